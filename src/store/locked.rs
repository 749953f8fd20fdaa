//! Operations under locks.

use super::Store;
use crate::clickhouse::{StateRead, text};
use crate::error::{Error, ErrorKind};
use crate::glob;
use crate::lock::{Acquire, Holder, Lock, Reading, Wanted};
use crate::record::{self, Row, check_state_id, checked, merge_partial};
use crate::state::State;

/// How often a write under a lock is tried while somebody who takes none writes too.
const WRITE_ATTEMPTS: usize = 5;

/// What to write under a lock.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    state: &'a State,
    /// Whether its partial part is laid over the stored one; otherwise it replaces everything.
    merge: bool,
}

impl<'a> Write<'a> {
    fn update(state: &'a State) -> Self {
        Self { state, merge: state.completed_state.is_none() }
    }

    /// Replaces the whole state.
    pub(super) fn replace(state: &'a State) -> Self {
        Self { state, merge: false }
    }

    /// What it needs to know of the stored state.
    fn reads(self) -> StateRead {
        if self.merge { StateRead::Whole } else { StateRead::Version }
    }
}

impl Store<'_> {
    /// Records what a pipeline has reached, under the lock.
    ///
    /// # Errors
    /// As [`Self::set`]; [`ErrorKind::Locked`], [`ErrorKind::LockLost`], and [`ErrorKind::CorruptState`] if what is
    /// stored cannot be merged with.
    pub fn update(&self, state: &State) -> Result<(), Error> {
        let state = checked(state)?;
        let write = Write::update(&state);
        self.with_lock(&state.state_id, write.reads(), |lock, reading| self.write_held(lock, write, reading.state))
    }

    /// [`Self::update`] under a lock that the caller holds and keeps.
    ///
    /// # Errors
    /// As [`Self::update`], but never [`ErrorKind::Locked`].
    pub fn update_held(&self, lock: &Lock, state: &State) -> Result<(), Error> {
        self.read_and_write(lock, Write::update(&checked_for(lock, state)?))
    }

    /// [`Self::set`] under a lock that the caller holds and keeps.
    ///
    /// # Errors
    /// As [`Self::set`], and [`ErrorKind::LockLost`].
    pub fn set_held(&self, lock: &Lock, state: &State) -> Result<(), Error> {
        self.read_and_write(lock, Write::replace(&checked_for(lock, state)?))
    }

    /// Who still holds the lock the write itself finds out, so the state alone is read.
    fn read_and_write(&self, lock: &Lock, write: Write) -> Result<(), Error> {
        let stored = self.newest_row(lock.state_id())?;
        self.write_held(lock, write, stored)
    }

    /// Writes over the version that was read, and reads again if nothing was written: then the lock is lost, or somebody who
    /// takes none has written.
    pub(super) fn write_held(&self, lock: &Lock, write: Write, mut stored: Option<Row>) -> Result<(), Error> {
        let mut tried = None;
        for _ in 0..WRITE_ATTEMPTS {
            let seen = version(stored.as_ref())?;
            if tried.as_ref() == Some(&seen) {
                // Neither the lock nor the state stood in the way: the lock's age did.
                return Err(lock.too_old());
            }
            let written = match stored {
                Some(row) if write.merge => {
                    let merged = merge_partial(write.state, record::stored(lock.state_id(), row)?)?;
                    lock.write(&self.locks, &merged, &seen)?
                }
                _ => lock.write(&self.locks, write.state, &seen)?,
            };
            if written {
                return Ok(());
            }
            let reading = self.locks.read(lock.state_id(), lock.stale(), write.reads())?;
            if reading.holder().is_none_or(|row| row.lock_id != lock.lock_id()) {
                return Err(lock.lost());
            }
            stored = reading.state;
            tried = Some(seen);
        }
        Err(Error::new(
            ErrorKind::LockLost,
            format!(
                "the state of {:?} changes all the time although it is locked; nothing was written",
                lock.state_id()
            ),
        )
        .with_hint("a process that takes no lock writes it; stop that process"))
    }

    /// Removes a state under its lock. It is no error if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`]; otherwise as the server reports them.
    pub fn clear(&self, state_id: &str) -> Result<(), Error> {
        check_state_id(state_id)?;
        self.with_lock(state_id, StateRead::Nothing, |_, _| self.clear_held(state_id))
    }

    /// Removes the versions that are there under the lock, which a read with the lock rows need not show all of. Had the
    /// lock been lost since, what its next holder writes is newer and stays.
    fn clear_held(&self, state_id: &str) -> Result<(), Error> {
        let Some([updated_at, ..]) = self.newest_row(state_id)? else { return Ok(()) };
        let newest = text(updated_at)?;
        self.client().delete(&self.client().tables().delete(state_id, Some(&newest)))
    }

    /// Takes the lock of a state id and keeps it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if an option is out of range; [`ErrorKind::Locked`]; otherwise as the server
    /// reports them.
    pub fn acquire(&self, state_id: &str, options: &Acquire) -> Result<Lock, Error> {
        check_state_id(state_id)?;
        let limits = options.limits(self.client().settings())?;
        let wanted = Wanted { limits, owner: &options.owner, state: StateRead::Nothing };
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

    /// Takes a lock, does something under it, and gives it up, unless a write may still be on its way: then the lock lasts
    /// until it is stale, which no write outlives. A failing release hides neither what was done nor why it was not.
    pub(super) fn with_lock<T>(
        &self,
        state_id: &str,
        state: StateRead,
        action: impl FnOnce(&Lock, Reading) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let wanted = Wanted { limits: self.client().settings().lock.clone(), owner: "", state };
        let (lock, reading) = self.locks.acquire(state_id, &wanted)?;
        let result = action(&lock, reading);
        if !matches!(&result, Err(error) if error.kind == ErrorKind::OutcomeUnknown) {
            let _ = lock.release(&self.locks);
        }
        result
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

/// When the state that was read was written, in milliseconds since 1970; 0 if there is none.
fn version(stored: Option<&Row>) -> Result<String, Error> {
    match stored {
        Some([updated_at, ..]) => text(updated_at.clone()),
        None => Ok("0".to_owned()),
    }
}
