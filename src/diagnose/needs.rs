//! Which statements need which privileges. `check` asks for them, hints name them, and the README lists them.

use super::names::Names;
use crate::clickhouse::{Existing, HistoryPlan};

/// What statements are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// To read states.
    Read,
    /// To write and remove states, under locks or without.
    Write,
    /// To create the database.
    CreateDatabase,
    /// To create the state table.
    CreateState,
    /// To create the lock table.
    CreateLock,
    /// To replace a lock table of the Python add-on.
    Upgrade,
    /// To create the table of earlier versions.
    CreateHistory,
    /// To keep earlier versions for another time.
    ChangeHistory,
    /// To record earlier versions, those that are there first.
    BeginHistory,
    /// To record no further ones.
    EndHistory,
    /// To list and restore earlier versions.
    LookBack,
    /// To notice in time that another program deletes locks by mutation.
    SeeMutations,
    /// To find out how the copies of replicated tables are.
    SeeReplicas,
}

/// What a privilege is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The state table.
    State,
    /// The lock table.
    Lock,
    /// The table of earlier versions.
    History,
    /// The view that fills it.
    Feed,
    /// All tables of the database, also those that do not exist yet.
    Database,
    /// Table engines, or tables of the server's own.
    Other(&'static str),
}

/// What each job needs, and on what.
pub const NEEDS: &[(Job, &[&str], On)] = &[
    (Job::Read, &["SELECT"], On::State),
    (Job::Write, &["SELECT", "INSERT", "ALTER DELETE"], On::State),
    (Job::Write, &["SELECT", "INSERT", "ALTER DELETE"], On::Lock),
    (Job::CreateDatabase, &["CREATE DATABASE"], On::Database),
    (Job::CreateState, &["CREATE TABLE"], On::State),
    (Job::CreateState, &[TABLE_ENGINE], REPLACING),
    (Job::CreateLock, &["CREATE TABLE"], On::Lock),
    (Job::CreateLock, &[TABLE_ENGINE], REPLACING),
    // To let the new table change places with the old one.
    (Job::Upgrade, &["SELECT", "INSERT", "CREATE TABLE", "DROP TABLE"], On::Database),
    (Job::Upgrade, &[TABLE_ENGINE], REPLACING),
    (Job::CreateHistory, &["CREATE TABLE"], On::History),
    (Job::CreateHistory, &[TABLE_ENGINE], On::Other("MergeTree")),
    (Job::ChangeHistory, &["ALTER TTL"], On::History),
    (Job::BeginHistory, &["CREATE VIEW"], On::Feed),
    (Job::BeginHistory, &["SELECT", "INSERT"], On::History),
    (Job::BeginHistory, &["SELECT"], On::State),
    (Job::EndHistory, &["DROP VIEW"], On::Feed),
    (Job::LookBack, &["SELECT"], On::History),
    (Job::SeeMutations, &["SELECT"], On::Other("system.mutations")),
    (Job::SeeReplicas, &["SELECT"], On::Other("system.replicas")),
];

/// Needed where the server is configured with `table_engines_require_grant`; elsewhere it says that everybody has it.
pub(super) const TABLE_ENGINE: &str = "TABLE ENGINE";
const REPLACING: On = On::Other("ReplacingMergeTree");

/// A privilege that somebody needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(super) job: Job,
    pub(super) privilege: &'static str,
    /// As it stands in a statement.
    pub(super) on: String,
}

/// The privileges for the jobs that somebody wants to do, each once.
pub(crate) fn wanted(names: &Names, wants: &dyn Fn(Job) -> bool) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for (job, privileges, on) in NEEDS.iter().filter(|(job, ..)| wants(*job)) {
        for privilege in *privileges {
            let on = on.name(names);
            if !wanted.iter().any(|wanted| wanted.privilege == *privilege && wanted.on == on) {
                wanted.push(Wanted { job: *job, privilege, on });
            }
        }
    }
    wanted
}

/// Whether `init` has to do a job where this exists.
pub(crate) fn is_due(job: Job, existing: &Existing, history: HistoryPlan) -> bool {
    match job {
        Job::CreateDatabase => !existing.database,
        Job::CreateState => existing.state.is_none(),
        Job::CreateLock => existing.lock.is_none(),
        Job::Upgrade => {
            let is_old = existing.lock.as_ref().is_some_and(|lock| lock.is_old_lock() && !lock.is_replicated());
            is_old || !existing.leftovers.is_empty()
        }
        Job::CreateHistory => history.create,
        Job::ChangeHistory => history.change,
        Job::BeginHistory => history.begin,
        Job::EndHistory => history.end,
        _ => false,
    }
}

impl On {
    fn name(self, names: &Names) -> String {
        match self {
            Self::State => names.state.clone(),
            Self::Lock => names.lock.clone(),
            Self::History => names.history.clone(),
            Self::Feed => names.feed.clone(),
            Self::Database => format!("{}.*", names.database),
            Self::Other(name) => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = include_str!("../../README.md");

    fn names() -> Names {
        let [database, state, lock, history, feed] =
            ["", ".state", ".state_lock", ".state_history", ".state_history_feed"]
                .map(|table| format!("meltano{table}"));
        Names { database, state, lock, history, feed, user: "your_user".to_owned() }
    }

    /// What the README says to grant: each privilege, and on what.
    fn documented() -> Vec<(String, String)> {
        let statements = README.split("GRANT ").skip(1).map(|rest| rest.split_once(" TO your_user").unwrap().0);
        let pairs = statements.flat_map(|statement| {
            let (privileges, on) = statement.split_once(" ON ").unwrap();
            privileges.split(", ").map(|privilege| (privilege.to_owned(), on.to_owned())).collect::<Vec<_>>()
        });
        pairs.collect()
    }

    fn covers((granted, on): &(String, String), wanted: &Wanted) -> bool {
        let database = on.strip_suffix('*').is_some_and(|database| wanted.on.starts_with(database));
        granted == wanted.privilege && (*on == wanted.on || database)
    }

    #[test]
    fn the_readme_lists_what_is_needed_and_nothing_else() {
        let names = names();
        let documented = documented();
        let all: Vec<Wanted> = NEEDS.iter().flat_map(|(job, ..)| wanted(&names, &|wanted| wanted == *job)).collect();
        for wanted in &all {
            assert!(documented.iter().any(|granted| covers(granted, wanted)), "the README lacks {wanted:?}");
        }
        for granted in &documented {
            assert!(all.iter().any(|wanted| covers(granted, wanted)), "nothing needs {granted:?}");
        }
    }
}
