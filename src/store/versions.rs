//! Earlier versions of states.

use super::Store;
use super::bulk::BYTES;
use super::locked::Write;
use crate::clickhouse::{StateRead, Window, existing};
use crate::error::{Error, ErrorKind};
use crate::record::{self, check_state_id};
use crate::settings::PREFIX;
use crate::state::Entry;
use crate::warning::Warning;

/// How many versions a page has unless the caller says otherwise.
const ROWS: u32 = 1_000;

/// What is kept of earlier versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// For how many days a version is kept after it was recorded; none where that is not to be seen.
    pub days: Option<u32>,
    /// Whether new versions are recorded.
    pub recording: bool,
}

impl Store<'_> {
    /// What is kept of earlier versions; none if nothing is, as far as the user may see.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn keeping(&self) -> Result<Option<Keeping>, Error> {
        let existing = existing::read(self.client())?;
        let recording = existing.is_recorded();
        let days = existing.history.and_then(|history| history.days);
        Ok((recording || existing.history.is_some()).then_some(Keeping { days, recording }))
    }

    /// The versions of a state, newest first: those before `before`, in milliseconds since 1970, or the newest ones.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if no history is kept; otherwise as the server reports them.
    pub fn versions(&self, state_id: &str, before: Option<i64>, limit: Option<u32>) -> Result<Vec<Entry>, Error> {
        check_state_id(state_id)?;
        let window = Window { rows: limit.unwrap_or(ROWS), bytes: BYTES };
        let statement = self.client().tables().versions(state_id, before, window);
        let answer = self.client().run_if_exists(&statement)?.ok_or_else(not_kept)?;
        answer.rows()?.into_iter().map(record::entry).collect()
    }

    /// Stores a version again, as the newest one, under the lock. Says what was left behind, as [`Self::update`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if there is no such version; [`ErrorKind::CorruptState`] if it cannot be used;
    /// [`ErrorKind::Locked`] and [`ErrorKind::LockLost`]; otherwise as the server reports them.
    pub fn restore(&self, state_id: &str, version: i64) -> Result<Vec<Warning>, Error> {
        check_state_id(state_id)?;
        let statement = self.client().tables().version(state_id, version);
        let answer = self.client().run_if_exists(&statement)?.ok_or_else(not_kept)?;
        let row = answer.rows()?.pop().ok_or_else(|| no_version(state_id, version))?;
        let state = record::stored(state_id, row)?;
        self.end(self.with_lock(state_id, StateRead::Version, |lock, reading| {
            self.write_held(lock, Write::replace(&state), reading.state)
        }))
    }
}

fn not_kept() -> Error {
    Error::new(ErrorKind::InvalidArgument, "no earlier versions of states are kept").with_hint(format!(
        "set {PREFIX}history_days to the number of days for which to keep them, and run init (meltano-state init)"
    ))
}

fn no_version(state_id: &str, version: i64) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("the state of {state_id:?} has no version {version}"))
        .with_hint("versions (meltano-state history) shows which there are")
}
