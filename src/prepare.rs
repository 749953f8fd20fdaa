//! `init`: brings the database, the tables and the history to what the settings say, and tells of each what was done.

use crate::clickhouse::existing::{self, Table};
use crate::clickhouse::{Client, Existing, HistoryPlan, code};
use crate::diagnose::{self, Job, Known, Names};
use crate::error::{Details, Error, ErrorKind};

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
struct Reason {
    note: String,
    hint: String,
}

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
/// [`ErrorKind::SchemaMismatch`] if a table is of another kind; [`ErrorKind::PermissionDenied`], with `dry_run` as without;
/// otherwise as the server reports them.
pub(crate) fn init(client: &Client, dry_run: bool) -> Result<Vec<Prepared>, Error> {
    let (existing, names) = (existing::read(client)?, Names::new(client.settings()));
    let days = client.settings().history_days;
    diagnose::refuse_other_tables(&existing, &names, days)?;
    let history = HistoryPlan::new(&existing, days);
    Init { client, existing, names, history, dry_run }.carry_out()
}

impl Init<'_> {
    fn carry_out(self) -> Result<Vec<Prepared>, Error> {
        let Self { client, existing, .. } = &self;
        if self.dry_run {
            let is_due = |job| job != Job::Upgrade && diagnose::is_due(job, existing, self.history);
            if let Some(Reason { note, hint }) = self.missing(&is_due)? {
                return Err(Error::new(ErrorKind::PermissionDenied, note).with_hint(hint));
            }
        } else {
            client.create_absent(existing)?;
            if existing.state.is_some() {
                client.keep_history(existing)?;
            }
        }
        let created = |exists: bool| if exists { Deed::Right } else { Deed::Created };
        let (lock, reason) = match &existing.lock {
            None => (Deed::Created, None),
            Some(table) => self.upgrade(table)?,
        };
        let (database, state) = (created(existing.database), created(existing.state.is_some()));
        let (note, hint) = reason.map_or((None, None), |reason| (Some(reason.note), Some(reason.hint)));
        let (history, is, todo) = self.history();
        let Names { database: database_name, state: state_name, lock: lock_name, history: history_name, .. } =
            self.names;
        Ok(vec![
            Prepared { thing: Thing::Database, name: database_name, deed: database, note: None, hint: None },
            Prepared { thing: Thing::StateTable, name: state_name, deed: state, note: None, hint: None },
            Prepared { thing: Thing::LockTable, name: lock_name, deed: lock, note, hint },
            Prepared { thing: Thing::History, name: history_name, deed: history, note: Some(is), hint: todo },
        ])
    }

    /// What the user lacks for some jobs, as far as the server can tell: what one that is too old does not show may come
    /// from a role.
    fn missing(&self, wants: &dyn Fn(Job) -> bool) -> Result<Option<Reason>, Error> {
        let wanted = diagnose::wanted(&self.names, wants);
        if wanted.is_empty() {
            return Ok(None);
        }
        Ok(match diagnose::find_missing(self.client, wanted)? {
            Known::Missing(missing) if !missing.is_empty() => Some(Reason {
                note: format!("the user lacks {}", diagnose::list(&missing, "", "")),
                hint: diagnose::grants(&missing, &self.names.user),
            }),
            _ => None,
        })
    }

    /// Upgrades the lock table if it is old, and finishes upgrades that were broken off.
    fn upgrade(&self, table: &Table) -> Result<(Deed, Option<Reason>), Error> {
        let Self { client, existing, .. } = self;
        let is_old = table.is_old_lock();
        if !is_old && existing.leftovers.is_empty() {
            return Ok((Deed::Right, None));
        }
        if is_old && table.is_replicated() {
            let reason = Reason { note: format!("it {}", diagnose::OLD_LAYOUT), hint: diagnose::REPLICATED.to_owned() };
            return Ok((Deed::Left, Some(reason)));
        }
        if let Some(reason) = self.missing(&|job| job == Job::Upgrade)? {
            return Ok((Deed::Left, Some(reason)));
        }
        let obstacle = match (is_old, self.dry_run) {
            (true, true) => client.live_locks(),
            (true, false) => client.upgrade_lock_table(),
            (false, true) => Ok(None),
            (false, false) => client.finish_upgrades(existing).map(|()| None),
        };
        let reason = match obstacle {
            Ok(None) => return Ok((Deed::Upgraded, None)),
            Ok(Some((note, hint))) => Reason { note, hint: hint.to_owned() },
            // What a server that is too old to be asked before does not allow, or a database without such tables cannot do.
            Err(error) if error.kind == ErrorKind::PermissionDenied || error.code() == Some(code::NOT_IMPLEMENTED) => {
                let Details { message: note, hint, .. } = error.into_details();
                let hint = hint.unwrap_or_else(|| "move the tables to a database with the engine Atomic".to_owned());
                Reason { note, hint }
            }
            Err(error) => return Err(error),
        };
        Ok((Deed::Left, Some(reason)))
    }

    /// What was done about the history, what it is like now, and what to do about it.
    fn history(&self) -> (Deed, String, Option<String>) {
        let HistoryPlan { days, create, change, begin, end } = self.history;
        let existing = &self.existing;
        let kept = existing.history.map(|history| history.days);
        if end {
            return (Deed::Ended, diagnose::history_in_words(kept, false), None);
        }
        if create || begin || change {
            let deed = if change && !begin { Deed::Changed } else { Deed::Begun };
            return (deed, diagnose::history_in_words(Some(Some(days.into())), true), None);
        }
        let is = diagnose::history_in_words(kept, existing.is_recorded());
        if existing.is_recorded() && self.client.settings().history_days.is_none() {
            return (Deed::Left, format!("{is}, and history_days is not set"), Some(diagnose::SET_DAYS.to_owned()));
        }
        (Deed::Right, is, None)
    }
}
