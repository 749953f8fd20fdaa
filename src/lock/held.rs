//! A lock that is held.

use std::cell::Cell;
use std::time::Duration;

use crate::clickhouse::{Fence, Held, Layout, Over, Statement};
use crate::error::{Error, ErrorKind};
use crate::lock::Locks;
use crate::lock::table::lacks_column;
use crate::state::State;

/// A lock that is held until [`Lock::release`], or until it is stale and another takes it.
#[derive(Clone, Debug)]
pub struct Lock {
    pub(super) state_id: String,
    pub(super) lock_id: String,
    pub(super) stale: Duration,
    pub(super) layout: Layout,
    /// Whether a renewal failed, which the server may still carry out.
    pub(super) is_uncertain: Cell<bool>,
}

impl Lock {
    /// Whose state is locked.
    #[must_use]
    pub fn state_id(&self) -> &str {
        &self.state_id
    }

    /// The id of the row that holds the lock.
    #[must_use]
    pub fn lock_id(&self) -> &str {
        &self.lock_id
    }

    pub(crate) fn stale(&self) -> Duration {
        self.stale
    }

    /// Makes the lock as fresh as new.
    ///
    /// # Errors
    /// [`ErrorKind::LockLost`] if it is no longer held; otherwise as the server reports them.
    pub fn renew(&self, locks: &Locks) -> Result<(), Error> {
        match self.carry_out(locks, &locks.client().tables().renew(&self.held())) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.lost()),
            Err(error) => {
                self.is_uncertain.set(true);
                Err(error)
            }
        }
    }

    /// Writes a state if the lock is still held and what it replaces is still there. Says whether it was written.
    ///
    /// # Errors
    /// As the server reports them.
    pub(crate) fn write(&self, locks: &Locks, state: &State, over: Over) -> Result<bool, Error> {
        let fence = Fence { held: self.held(), over };
        self.carry_out(locks, &locks.client().tables().set_fenced(state, &fence))
    }

    /// Carries out a statement that writes a row if the lock is held, and says whether it did.
    fn carry_out(&self, locks: &Locks, statement: &Statement) -> Result<bool, Error> {
        match locks.client().run_creating(statement) {
            // The table was replaced since, and the lock is gone with it.
            Err(error) if self.layout != Layout::Plain && lacks_column(&error) => Ok(false),
            answer => written(answer?.written_rows),
        }
    }

    fn held(&self) -> Held<'_> {
        Held { state_id: &self.state_id, lock_id: &self.lock_id, stale: self.stale, layout: self.layout }
    }

    /// Gives the lock up.
    ///
    /// # Errors
    /// As the server reports them. The lock then lasts until it is stale.
    pub fn release(&self, locks: &Locks) -> Result<(), Error> {
        locks.table().delete_own(&self.state_id, &self.lock_id, self.is_uncertain.get())
    }

    /// The error that says that this lock is still there and too old to write under.
    pub(crate) fn too_old(&self) -> Error {
        Error::new(
            ErrorKind::LockLost,
            format!("the lock of state id {:?} is about to pass on; nothing was written", self.state_id),
        )
        .with_hint("renew a lock that is held for long; if it was not, raise lock_stale_seconds or lower request_timeout_seconds")
    }

    /// The error that says that this lock is gone.
    pub(crate) fn lost(&self) -> Error {
        Error::new(
            ErrorKind::LockLost,
            format!("the lock of state id {:?} was lost; nothing was written", self.state_id),
        )
        .with_hint("another process took the lock, or this one stood still for too long; run the pipeline again")
    }
}

/// Whether a statement wrote a row.
fn written(rows: Option<u64>) -> Result<bool, Error> {
    rows.map(|rows| rows > 0).ok_or_else(|| {
        Error::new(
            ErrorKind::OutcomeUnknown,
            "the answer lacks X-ClickHouse-Summary, so it does not say whether the write was carried out",
        )
        .with_hint("look for a proxy between here and the server that removes headers")
    })
}
