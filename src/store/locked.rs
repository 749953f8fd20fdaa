//! Operations under locks.

use super::Store;
use crate::clickhouse::{Over, StateRead, text};
use crate::error::{Error, ErrorKind};
use crate::glob;
use crate::lock::machine::Event;
use crate::lock::{Acquire, Holder, Lock, Reading, Wanted};
use crate::record::{self, Row, check_state_id, checked, merge_partial};
use crate::state::State;
use crate::warning::Warning;

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

    /// What is stored afterwards.
    fn over(self, stored: &State) -> Result<State, Error> {
        if self.merge { merge_partial(self.state, stored.clone()) } else { Ok(self.state.clone()) }
    }

    /// What it needs to know of the stored state.
    fn reads(self) -> StateRead {
        if self.merge { StateRead::Whole } else { StateRead::Version }
    }
}

impl Store<'_> {
    /// Records what a pipeline has reached, under the lock, and says what was left behind: a lock that could not be removed.
    ///
    /// # Errors
    /// As [`Self::set`]; [`ErrorKind::Locked`], [`ErrorKind::LockLost`], and [`ErrorKind::CorruptState`] if what is
    /// stored cannot be merged with.
    pub fn update(&self, state: &State) -> Result<Vec<Warning>, Error> {
        self.end(self.update_under_own_lock(state))
    }

    fn update_under_own_lock(&self, state: &State) -> Result<(), Error> {
        let state = checked(state)?;
        let write = Write::update(&state);
        let wanted = self.wanted(write.reads());
        let started = self.client().ports().clock.now();
        let mut event = Event::Wanted;
        // A pipeline that writes one state after the other needs to read neither the state nor who else wants the lock: the
        // write succeeds only if the state is as this instance left it and the lock is its own.
        if !self.last_written.is_shared()
            && self.locks.may_claim(&wanted, started)
            && let Some((known, next)) = self.foreseen(write)
        {
            let claim = self.locks.claim(&state.state_id, &wanted);
            if let Some(lock) = &claim.lock {
                let written = self.write_over(lock, &next, Over::Content(&known));
                if !matches!(written, Ok(false)) {
                    return self.and_release(lock, written.map(drop));
                }
            }
            event = claim.event;
        }
        let (lock, reading) = self.locks.acquire_from(event, started, &state.state_id, &wanted)?;
        let result = self.write_held(&lock, write, reading.state);
        self.and_release(&lock, result)
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

    /// Who still holds the lock the write itself finds out, so the state alone is read; and only if it is not known, or not
    /// as it was.
    fn read_and_write(&self, lock: &Lock, write: Write) -> Result<(), Error> {
        if let Some((known, next)) = self.foreseen(write)
            && self.write_over(lock, &next, Over::Content(&known))?
        {
            return Ok(());
        }
        let stored = self.newest_row(lock.state_id())?;
        self.write_held(lock, write, stored)
    }

    /// What this store wrote last under the state's id, and what the write makes of it; none where only reading can tell.
    fn foreseen(&self, write: Write) -> Option<(State, State)> {
        let known = self.last_written.get(&write.state.state_id)?;
        let next = write.over(&known).ok()?;
        Some((known, next))
    }

    /// Writes a state, if the lock is held and what it replaces is there, and remembers it. Says whether it was written.
    fn write_over(&self, lock: &Lock, next: &State, over: Over) -> Result<bool, Error> {
        let written = lock.write(&self.locks, next, over)?;
        if written {
            self.last_written.set(next);
        }
        Ok(written)
    }

    /// Writes over the version that was read, and reads again if nothing was written: then the lock is lost, or somebody who
    /// takes none has written, or a stale row has come back.
    pub(super) fn write_held(&self, lock: &Lock, write: Write, mut stored: Option<Row>) -> Result<(), Error> {
        let mut unexplained = 0;
        for _ in 0..WRITE_ATTEMPTS {
            let seen = version(stored.as_ref())?;
            let next = match stored {
                Some(row) if write.merge => {
                    let stored = record::stored(lock.state_id(), row)?;
                    self.last_written.compare(&stored);
                    write.over(&stored)?
                }
                _ => write.state.clone(),
            };
            if self.write_over(lock, &next, Over::Version(&seen))? {
                return Ok(());
            }
            let reading = self.locks.table().read(lock.state_id(), lock.stale(), write.reads())?;
            if reading.holder().is_none_or(|row| row.lock_id != lock.lock_id()) {
                return Err(lock.lost());
            }
            if reading.any_stale() {
                self.locks.table().delete_stale(lock.state_id(), lock.stale())?;
            } else if version(reading.state.as_ref())? == seen {
                // A stale row may have gone meanwhile. What stands in the way twice is the lock's age.
                unexplained += 1;
                if unexplained == 2 {
                    return Err(lock.too_old());
                }
            }
            stored = reading.state;
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

    /// Removes a state under its lock. It is no error if there is none. Says what was left behind, as [`Self::update`].
    ///
    /// # Errors
    /// [`ErrorKind::Locked`]; otherwise as the server reports them.
    pub fn clear(&self, state_id: &str) -> Result<Vec<Warning>, Error> {
        check_state_id(state_id)?;
        self.end(self.with_lock(state_id, StateRead::Nothing, |_, _| self.clear_held(state_id)))
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
        let acquired = self.locks.acquire(state_id, &wanted);
        self.locks.warnings.end(acquired).map(|((lock, _), _)| lock)
    }

    /// The locks of the state ids that match a glob.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn holders(&self, pattern: Option<&str>) -> Result<Vec<Holder>, Error> {
        self.locks.table().holders(&glob::translate(pattern.unwrap_or_default()))
    }

    /// Removes a lock, whoever holds it, and says whether it was there.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn force_release(&self, state_id: &str, lock_id: &str) -> Result<bool, Error> {
        check_state_id(state_id)?;
        self.locks.table().force_release(state_id, lock_id)
    }

    /// Takes a lock, does something under it, and gives it up.
    pub(super) fn with_lock<T>(
        &self,
        state_id: &str,
        state: StateRead,
        action: impl FnOnce(&Lock, Reading) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (lock, reading) = self.locks.acquire(state_id, &self.wanted(state))?;
        let result = action(&lock, reading);
        self.and_release(&lock, result)
    }

    /// How an operation takes a lock that it needs itself.
    fn wanted(&self, state: StateRead) -> Wanted<'static> {
        Wanted { limits: self.client().settings().lock.clone(), owner: "", state }
    }

    /// Gives a lock up, unless a write may still be on its way: then the lock lasts until it is stale, which no write
    /// outlives. A failing release is a warning.
    fn and_release<T>(&self, lock: &Lock, result: Result<T, Error>) -> Result<T, Error> {
        if !matches!(&result, Err(error) if error.kind == ErrorKind::OutcomeUnknown) {
            self.locks.release_after_call(lock);
        }
        result
    }

    /// Ends a call that took a lock itself: what it left behind.
    pub(super) fn end(&self, result: Result<(), Error>) -> Result<Vec<Warning>, Error> {
        self.locks.warnings.end(result).map(|((), warnings)| warnings)
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

/// When the state that was read was written, in milliseconds since 1970; 0 if before, as the fence has it, or if there is
/// none.
fn version(stored: Option<&Row>) -> Result<String, Error> {
    let written = match stored {
        Some([updated_at, ..]) => Some(text(updated_at.clone())?),
        None => None,
    };
    Ok(written.filter(|time| !time.starts_with('-')).unwrap_or_else(|| "0".to_owned()))
}
