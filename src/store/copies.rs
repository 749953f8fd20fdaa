//! Copying and moving states.

use super::Store;
use super::locked::Write;
use crate::clickhouse::{StateRead, text};
use crate::error::{Error, ErrorKind};
use crate::lock::{Lock, Reading};
use crate::record::{self, check_state_id};
use crate::state::State;
use crate::warning::Warning;

/// From where to where, and how.
#[derive(Clone, Copy, Debug)]
pub struct Copy<'a> {
    /// The state that is read.
    pub source: &'a str,
    /// The id that gets it.
    pub destination: &'a str,
    /// Whether both parts stay as they are; otherwise the partial part laid over the completed one becomes the completed
    /// one, as Meltano does it.
    pub keep_parts: bool,
}

impl Store<'_> {
    /// Stores a state under another id too, under the lock of that id. Says what was left behind, as [`Self::update`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if there is nothing to copy or it would be copied onto itself;
    /// [`ErrorKind::CorruptState`] of the source; [`ErrorKind::Locked`] and [`ErrorKind::LockLost`] of the destination.
    pub fn copy(&self, copy: Copy) -> Result<Vec<Warning>, Error> {
        copy.check()?;
        self.end(self.with_lock(copy.destination, StateRead::Version, |lock, reading| {
            self.copy_held(copy, lock, reading).map(drop)
        }))
    }

    /// Stores a state under another id and then removes it under its own, under the locks of both. Says what was left behind,
    /// as [`Self::update`].
    ///
    /// # Errors
    /// As [`Self::copy`]. Until the copy is made the state stays where it is.
    pub fn move_state(&self, copy: Copy) -> Result<Vec<Warning>, Error> {
        copy.check()?;
        let Copy { source, destination, .. } = copy;
        let move_held = |lock: &Lock, reading| {
            let version = self.copy_held(copy, lock, reading)?;
            self.client().delete(&self.client().tables().delete(source, Some(&version)))
        };
        // In the order of the ids, so that two moves never wait for each other.
        let moved = if source < destination {
            self.with_lock(source, StateRead::Nothing, |_, _| {
                self.with_lock(destination, StateRead::Version, move_held)
            })
        } else {
            self.with_lock(destination, StateRead::Version, |lock, reading| {
                self.with_lock(source, StateRead::Nothing, |_, _| move_held(lock, reading))
            })
        };
        self.end(moved)
    }

    /// Copies under the lock of the destination, and says which version of the source it was.
    fn copy_held(&self, copy: Copy, lock: &Lock, reading: Reading) -> Result<String, Error> {
        let row = self.newest_row(copy.source)?.ok_or_else(|| copy.nothing())?;
        let [updated_at, ..] = &row;
        let version = text(updated_at.clone())?;
        let state = copy.result(record::stored(copy.source, row)?)?;
        self.write_held(lock, Write::replace(&state), reading.state)?;
        Ok(version)
    }
}

impl Copy<'_> {
    fn check(self) -> Result<(), Error> {
        check_state_id(self.source)?;
        check_state_id(self.destination)?;
        if self.source != self.destination {
            return Ok(());
        }
        let message = format!("source and destination are both {:?}", self.source);
        Err(Error::new(ErrorKind::InvalidArgument, message).with_hint("name another id as the destination"))
    }

    /// What the destination gets.
    fn result(self, source: State) -> Result<State, Error> {
        let state_id = self.destination.to_owned();
        let state = match self.keep_parts {
            true => State { state_id, ..source },
            false => State { state_id, partial_state: None, completed_state: record::merged(source)? },
        };
        if state.partial_state.is_none() && state.completed_state.is_none() { Err(self.nothing()) } else { Ok(state) }
    }

    fn nothing(self) -> Error {
        Error::new(ErrorKind::InvalidArgument, format!("there is no state of {:?}; nothing was written", self.source))
            .with_hint("get-state-ids (meltano-state list) shows which ids have one")
    }
}
