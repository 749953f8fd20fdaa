//! The operations on states.

use crate::clickhouse::{Client, text};
use crate::error::{Error, ErrorKind};
use crate::glob;
use crate::lock::{Acquire, Holder, Lock, Locks, Wanted};
use crate::record::{self, Row, check_state_id, checked, merge_partial};
use crate::state::State;

/// States, stored in ClickHouse by state id. What each operation promises stands in `wit/store.wit`.
pub struct Store<'a> {
    locks: Locks<'a>,
}

/// How often an update is merged anew because somebody who takes no lock has written meanwhile.
const MERGE_ATTEMPTS: usize = 5;

impl<'a> Store<'a> {
    /// A store on the client's tables.
    #[must_use]
    pub fn new(client: Client<'a>) -> Self {
        Self { locks: Locks::new(client) }
    }

    /// The locks of its states.
    #[must_use]
    pub fn locks(&self) -> &Locks<'a> {
        &self.locks
    }

    /// Creates the database and the tables where they do not exist, and upgrades the add-on's lock table if no live lock
    /// is in it and the user may.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn init(&self) -> Result<(), Error> {
        self.client().create_tables()?;
        self.client().upgrade_lock_table()
    }

    /// The state of `state_id`.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptState`] if what is stored is no JSON object; otherwise as the server reports them.
    pub fn get(&self, state_id: &str) -> Result<Option<State>, Error> {
        check_state_id(state_id)?;
        self.newest_row(state_id)?.map(|row| record::stored(state_id, row)).transpose()
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
    /// [`ErrorKind::InvalidState`] if a part is no JSON object; otherwise as the server reports them.
    pub fn set(&self, state: &State) -> Result<(), Error> {
        let state = checked(state)?;
        self.client().run_creating(&self.client().tables().set(&state, None)).map(drop)
    }

    /// Records what a pipeline has reached, under the lock.
    ///
    /// # Errors
    /// As [`Self::set`]; [`ErrorKind::Locked`], [`ErrorKind::LockLost`], and [`ErrorKind::CorruptState`] if what is
    /// stored cannot be merged with.
    pub fn update(&self, state: &State) -> Result<(), Error> {
        let state = checked(state)?;
        // A complete state replaces whatever is stored.
        let wanted = self.wanted(state.completed_state.is_none());
        let (lock, reading) = self.locks.acquire(&state.state_id, &wanted)?;
        let result = self.write_update(&lock, &state, reading.state);
        self.finish(&lock, result)
    }

    /// [`Self::update`] under a lock that the caller holds and keeps.
    ///
    /// # Errors
    /// As [`Self::update`], but never [`ErrorKind::Locked`].
    pub fn update_held(&self, lock: &Lock, state: &State) -> Result<(), Error> {
        let state = checked_for(lock, state)?;
        let stored = match state.completed_state {
            Some(_) => None,
            None => self.newest_row(&state.state_id)?,
        };
        self.write_update(lock, &state, stored)
    }

    /// [`Self::set`] under a lock that the caller holds and keeps.
    ///
    /// # Errors
    /// As [`Self::set`], and [`ErrorKind::LockLost`].
    pub fn set_held(&self, lock: &Lock, state: &State) -> Result<(), Error> {
        if lock.write(&self.locks, &checked_for(lock, state)?, None)? { Ok(()) } else { Err(lock.lost()) }
    }

    /// Merges with what is stored, and writes if that is still what is stored.
    fn write_update(&self, lock: &Lock, state: &State, mut stored: Option<Row>) -> Result<(), Error> {
        if state.completed_state.is_some() {
            return if lock.write(&self.locks, state, None)? { Ok(()) } else { Err(lock.lost()) };
        }
        for _ in 0..MERGE_ATTEMPTS {
            let seen = match &stored {
                Some([updated_at, ..]) => text(updated_at.clone())?,
                None => "0".to_owned(),
            };
            let merged = match stored {
                Some(row) => merge_partial(state, record::stored(&state.state_id, row)?)?,
                None => state.clone(),
            };
            if lock.write(&self.locks, &merged, Some(&seen))? {
                return Ok(());
            }
            // Either the lock is lost, or somebody who takes none has written since.
            let reading = self.locks.read(&state.state_id, lock.stale(), true)?;
            if reading.holder().is_none_or(|row| row.lock_id != lock.lock_id()) {
                return Err(lock.lost());
            }
            stored = reading.state;
        }
        Err(Error::new(
            ErrorKind::LockLost,
            format!(
                "the state of {:?} changes all the time although it is locked; nothing was written",
                state.state_id
            ),
        )
        .with_hint("a process that takes no lock writes it; stop that process"))
    }

    /// Removes a state. It is no error if there is none.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn delete(&self, state_id: &str) -> Result<(), Error> {
        check_state_id(state_id)?;
        self.client().delete(self.client().tables().delete(state_id, None))
    }

    /// Removes a state under its lock. It is no error if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`]; otherwise as the server reports them.
    pub fn clear(&self, state_id: &str) -> Result<(), Error> {
        check_state_id(state_id)?;
        let (lock, reading) = self.locks.acquire(state_id, &self.wanted(true))?;
        // Only the versions that were there under the lock: had the lock been lost since, what its next holder writes is
        // newer and stays.
        let result = match reading.state {
            Some([updated_at, ..]) => text(updated_at)
                .and_then(|newest| self.client().delete(self.client().tables().delete(state_id, Some(&newest)))),
            None => Ok(()),
        };
        self.finish(&lock, result)
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
            self.client().delete(self.client().tables().delete_all(&text(newest)?))?;
        }
        Ok(count)
    }

    fn newest_row(&self, state_id: &str) -> Result<Option<Row>, Error> {
        match self.client().run_if_exists(&self.client().tables().get(state_id))? {
            Some(answer) => Ok(answer.rows()?.pop()),
            None => Ok(None),
        }
    }

    /// Takes the lock of a state id and keeps it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if an option is out of range; [`ErrorKind::Locked`]; otherwise as the server
    /// reports them.
    pub fn acquire(&self, state_id: &str, options: &Acquire) -> Result<Lock, Error> {
        check_state_id(state_id)?;
        let limits = options.limits(self.client().settings())?;
        let wanted = Wanted { limits, owner: &options.owner, state: false };
        self.locks.acquire(state_id, &wanted).map(|(lock, _)| lock)
    }

    /// The locks of the state ids that match a glob.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn holders(&self, pattern: Option<&str>) -> Result<Vec<Holder>, Error> {
        self.locks.holders(&glob::translate(pattern.unwrap_or_default()))
    }

    /// Removes a lock, whoever holds it, and says whether it was there.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn force_release(&self, state_id: &str, lock_id: &str) -> Result<bool, Error> {
        check_state_id(state_id)?;
        self.locks.force_release(state_id, lock_id)
    }

    /// Gives the lock up. A failing release hides neither what was done nor why it was not: the lock then lasts until it
    /// is stale.
    fn finish<T>(&self, lock: &Lock, result: Result<T, Error>) -> Result<T, Error> {
        let _ = lock.release(&self.locks);
        result
    }

    fn wanted(&self, state: bool) -> Wanted<'static> {
        Wanted { limits: self.locks.client().settings().lock.clone(), owner: "", state }
    }

    fn client(&self) -> &Client<'a> {
        self.locks.client()
    }
}

/// A state as it is stored, which has to be the locked one.
fn checked_for(lock: &Lock, state: &State) -> Result<State, Error> {
    if state.state_id != lock.state_id() {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("the lock is that of state id {:?}, the state that of {:?}", lock.state_id(), state.state_id),
        )
        .with_hint("take the lock of the state that is to be written"));
    }
    checked(state)
}

fn no_row() -> Error {
    Error::new(ErrorKind::Protocol, "the server counted no rows where a count was asked for")
}
