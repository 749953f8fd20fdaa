//! The operations on states.

mod bulk;
mod copies;
mod last_written;
mod locked;
mod versions;

pub use copies::Copy;
pub use versions::Keeping;

use self::last_written::LastWritten;
use crate::clickhouse::{Answer, Client, text};
use crate::error::{Error, ErrorKind};
use crate::glob;
use crate::lock::Locks;
use crate::prepare::{self, Prepared};
use crate::record::{self, Row, check_state_id, checked};
use crate::state::{RawState, State};

/// States, stored in ClickHouse by state id. What each operation promises stands in `wit/store.wit`.
pub struct Store<'a> {
    locks: Locks<'a>,
    last_written: LastWritten,
}

impl<'a> Store<'a> {
    /// A store on the client's tables.
    #[must_use]
    pub fn new(client: Client<'a>) -> Self {
        Self { locks: Locks::new(client), last_written: LastWritten::default() }
    }

    /// The locks of its states.
    #[must_use]
    pub fn locks(&self) -> &Locks<'a> {
        &self.locks
    }

    /// Creates the database and the tables where they do not exist, upgrades the add-on's lock table if no live lock is in
    /// it and the user may, and begins, changes or ends the history if a setting says so. Says what was done, or with
    /// `dry_run` what would be.
    ///
    /// # Errors
    /// [`ErrorKind::SchemaMismatch`] if a table is of another kind; otherwise as the server reports them.
    pub fn init(&self, dry_run: bool) -> Result<Vec<Prepared>, Error> {
        prepare::init(self.client(), dry_run)
    }

    /// The state of `state_id`.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptState`] if what is stored is no JSON object; otherwise as the server reports them.
    pub fn get(&self, state_id: &str) -> Result<Option<State>, Error> {
        check_state_id(state_id)?;
        self.newest_row(state_id)?.map(|row| record::stored(state_id, row)).transpose()
    }

    /// What the next run starts from: the partial part laid over the completed one; none if that is nothing.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn get_merged(&self, state_id: &str) -> Result<Option<String>, Error> {
        self.get(state_id)?.map_or(Ok(None), record::merged)
    }

    /// What is stored of a state, whatever it is.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn get_raw(&self, state_id: &str) -> Result<Option<RawState>, Error> {
        check_state_id(state_id)?;
        self.newest_row(state_id)?.map(record::raw).transpose()
    }

    /// The ids of the states that match a glob; none and the empty one match all.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn get_state_ids(&self, pattern: Option<&str>) -> Result<Vec<String>, Error> {
        let selection = glob::translate(pattern.unwrap_or_default());
        let Some(answer) = self.client().run_if_exists(&self.client().tables().get_state_ids(&selection))? else {
            return Ok(Vec::new());
        };
        let rows = answer.rows::<2>()?;
        // An id that is not UTF-8 can only come from elsewhere; it is shown as well as it can be.
        let lossy = |id: Option<Vec<u8>>| String::from_utf8_lossy(&id.unwrap_or_default()).into_owned();
        Ok(rows.into_iter().map(|[_, id]| lossy(id)).collect())
    }

    /// Stores a state in place of any that its id has.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidState`] if a part is no JSON object; [`ErrorKind::Protocol`] if the server reports success and has
    /// not stored it; otherwise as the server reports them.
    pub fn set(&self, state: &State) -> Result<(), Error> {
        let state = checked(state)?;
        all_stored(&self.client().run_creating(&self.client().tables().set(&state))?, 1)
    }

    /// Removes a state. It is no error if there is none.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn delete(&self, state_id: &str) -> Result<(), Error> {
        check_state_id(state_id)?;
        self.client().delete(&self.client().tables().delete(state_id, None))
    }

    /// Removes all states and says how many there were. States written while it runs may stay.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn clear_all(&self) -> Result<u64, Error> {
        let Some(answer) = self.client().run_if_exists(&self.client().tables().count())? else {
            return Ok(0);
        };
        let [count, newest] = answer.rows::<2>()?.pop().ok_or_else(no_row)?;
        let count = text(count)?.parse().map_err(|_| no_row())?;
        if count > 0 {
            self.client().delete(&self.client().tables().delete_all(&text(newest)?))?;
        }
        Ok(count)
    }

    fn newest_row(&self, state_id: &str) -> Result<Option<Row>, Error> {
        match self.client().run_if_exists(&self.client().tables().get(state_id))? {
            Some(answer) => Ok(answer.rows()?.pop()),
            None => Ok(None),
        }
    }

    fn client(&self) -> &Client<'a> {
        self.locks.client()
    }
}

/// A setting of the user's profile may keep rows from being inserted, and the server calls that a success.
fn all_stored(answer: &Answer, count: usize) -> Result<(), Error> {
    match answer.written_rows {
        // What a view adds counts too.
        Some(written) if written < count as u64 => Err(Error::new(
            ErrorKind::Protocol,
            format!("the server reports success and has stored {written} of {count} states"),
        )
        .with_hint("meltano-state check names settings of the user's profile that interfere")),
        _ => Ok(()),
    }
}

fn no_row() -> Error {
    Error::new(ErrorKind::Protocol, "the server counted no rows where a count was asked for")
}
