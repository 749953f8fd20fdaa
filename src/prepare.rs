//! `init`: brings the database, the tables and the history to what the settings say, and tells of each what was done.

use crate::clickhouse::existing::{self, Table};
use crate::clickhouse::{Client, Existing, HistoryPlan, Upgrade, code};
use crate::diagnose::{self, Job, Known, Names};
use crate::error::{Error, ErrorKind};
use crate::seconds::Seconds;

/// What `init` did about one thing, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Which thing.
    pub thing: Thing,
    /// Its name, as it stands in a statement.
    pub name: String,
    /// What was done.
    pub deed: Deed,
    /// What it is like now; why it was left as it is.
    pub note: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What `init` looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// The database that holds the tables.
    Database,
    /// The table of states.
    StateTable,
    /// The table of locks.
    LockTable,
    /// The table of earlier versions, and the view that fills it.
    History,
}

impl Thing {
    /// The name in the WIT package.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::StateTable => "state-table",
            Self::LockTable => "lock-table",
            Self::History => "history",
        }
    }
}

/// What was done about a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It did not exist.
    Created,
    /// It was of an older layout, or its upgrade had been broken off.
    Upgraded,
    /// From now on earlier versions are recorded.
    Begun,
    /// Earlier versions are kept for another time.
    Changed,
    /// No further versions are recorded.
    Ended,
    /// Nothing: it is as it should be.
    Right,
    /// Nothing, though something is to be done.
    Left,
}

impl Deed {
    /// The name in the WIT package.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Upgraded => "upgraded",
            Self::Begun => "begun",
            Self::Changed => "changed",
            Self::Ended => "ended",
            Self::Right => "right",
            Self::Left => "left",
        }
    }
}

/// Why something is left as it is, and what to do about it.
type Reason = (String, Option<String>);

/// What every `init` goes by.
struct Init<'a> {
    client: &'a Client<'a>,
    existing: Existing,
    names: Names,
    history: HistoryPlan,
    dry_run: bool,
}

/// Creates what does not exist, upgrades an old lock table, and begins, changes or ends the history; or with `dry_run` tells
/// what it would do.
///
/// # Errors
/// [`ErrorKind::SchemaMismatch`] if a table is of another kind; [`ErrorKind::PermissionDenied`], before anything was
/// done with `dry_run`; otherwise as the server reports them.
pub(crate) fn init(client: &Client, dry_run: bool) -> Result<Vec<Prepared>, Error> {
    let (existing, names) = (existing::read(client)?, Names::new(client.settings()));
    let days = client.settings().history_days;
    diagnose::refuse_other_tables(&existing, &names, days)?;
    let history = HistoryPlan::new(&existing, days);
    Init { client, existing, names, history, dry_run }.carry_out()
}

impl Init<'_> {
    fn carry_out(&self) -> Result<Vec<Prepared>, Error> {
        let Self { client, existing, names, .. } = self;
        let mut lacks_upgrade = None;
        if self.dry_run {
            lacks_upgrade = self.missing_privileges()?;
        } else {
            client.create_absent(existing)?;
            if existing.state.is_some() {
                client.keep_history(existing)?;
            }
        }
        let created = |exists: bool| if exists { Deed::Right } else { Deed::Created };
        let (lock, reason) = match &existing.lock {
            None => (Deed::Created, None),
            Some(table) => self.upgrade(table, lacks_upgrade)?,
        };
        let (history, note, hint) = self.history();
        let (why, how) = reason.unzip();
        let prepared = |thing, name: &str, deed, note, hint| Prepared { thing, name: name.to_owned(), deed, note, hint };
        Ok(vec![
            prepared(Thing::Database, &names.database, created(existing.database), None, None),
            prepared(Thing::StateTable, &names.state, created(existing.state.is_some()), None, None),
            prepared(Thing::LockTable, &names.lock, lock, why, how.flatten()),
            prepared(Thing::History, &names.history, history, note, hint),
        ])
    }

    /// Fails as `init` would for want of a privilege; what is wanting to upgrade the lock table alone is returned.
    fn missing_privileges(&self) -> Result<Option<Reason>, Error> {
        let jobs = diagnose::jobs(&self.existing, self.history);
        if jobs.is_empty() {
            return Ok(None);
        }
        // What a server that is too old to tell does not show may come from a role.
        let Known::Missing(missing) = diagnose::find_missing(self.client, diagnose::wanted(&jobs, &self.names))? else {
            return Ok(None);
        };
        let (upgrade, others): (Vec<_>, Vec<_>) = missing.into_iter().partition(|wanted| wanted.is_for(Job::Upgrade));
        let reason = |missing: &[_]| (diagnose::lacks(missing), diagnose::grants(missing, &self.names.user));
        if !others.is_empty() {
            let (lacks, grants) = reason(&others);
            return Err(Error::new(ErrorKind::PermissionDenied, lacks).with_hint(grants));
        }
        let (lacks, grants) = reason(&upgrade);
        Ok((!upgrade.is_empty()).then_some((lacks, Some(grants))))
    }

    /// Upgrades the lock table if it is old, and finishes upgrades that were broken off.
    fn upgrade(&self, table: &Table, lacks: Option<Reason>) -> Result<(Deed, Option<Reason>), Error> {
        let Self { client, existing, .. } = self;
        let is_old = table.is_old_lock();
        if !is_old && existing.leftovers.is_empty() {
            return Ok((Deed::Right, None));
        }
        if is_old && table.is_replicated() {
            return Ok((Deed::Left, Some((format!("it {}", diagnose::OLD_LAYOUT), Some(diagnose::REPLICATED.to_owned())))));
        }
        if lacks.is_some() {
            return Ok((Deed::Left, lacks));
        }
        let upgrade = match (is_old, self.dry_run) {
            (true, true) => Ok(client.longest_live_lock()?.map_or(Upgrade::Done, Upgrade::Locked)),
            (true, false) => client.upgrade_lock_table(),
            (false, true) => Ok(Upgrade::Done),
            (false, false) => client.finish_upgrades(existing).map(|()| Upgrade::Done),
        };
        let reason = match upgrade {
            Ok(Upgrade::Done) => return Ok((Deed::Upgraded, None)),
            Ok(Upgrade::Locked(left)) => (
                format!("locks are held in it, of which the last one counts for up to {} yet", Seconds(left)),
                "run meltano-state init again when no pipeline runs; meltano-state lock list shows who holds them".to_owned(),
            ),
            Ok(Upgrade::Contended) => {
                ("others upgrade it at the same time".to_owned(), "run meltano-state init again".to_owned())
            }
            Err(error) if error.kind == ErrorKind::PermissionDenied => {
                let wanted = diagnose::wanted(&[Job::Upgrade], &self.names);
                (error.into_details().message, diagnose::grants(&wanted, &self.names.user))
            }
            Err(error) if error.code() == Some(code::NOT_IMPLEMENTED) => (
                error.into_details().message,
                "move the tables to a database with the engine Atomic, ClickHouse's default".to_owned(),
            ),
            Err(error) => return Err(error),
        };
        Ok((Deed::Left, Some((reason.0, Some(reason.1)))))
    }

    /// What was done about the history, what it is like now, and what to do about it.
    fn history(&self) -> (Deed, Option<String>, Option<String>) {
        let HistoryPlan { days, create, change, begin, end } = self.history;
        let found = diagnose::history_in_words(&self.existing);
        if end {
            let note = "no further versions of states are recorded; those that are there stay until they are old";
            return (Deed::Ended, Some(note.to_owned()), None);
        }
        if create || begin || change {
            let deed = if create || begin { Deed::Begun } else { Deed::Changed };
            return (deed, Some(format!("earlier versions of states are kept for {days} days")), None);
        }
        let is_set = self.client.settings().history_days.is_some();
        if self.existing.is_recorded() && !is_set {
            let hint = "set history_days to keep, change or (with 0) end it";
            return (Deed::Left, found.map(|found| format!("{found}, and history_days is not set")), Some(hint.to_owned()));
        }
        (Deed::Right, Some(found.unwrap_or_else(|| "no earlier versions of states are kept".to_owned())), None)
    }
}
