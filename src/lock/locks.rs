//! Takes locks: carries out what the state machine decides.

use std::cell::Cell;
use std::time::Duration;

use crate::clickhouse::{Client, Guard, Layout, StateRead};
use crate::error::Error;
use crate::lock::machine::{Action, Event, Machine};
use crate::lock::refusal::{called_off, left_behind, locked, not_taken};
use crate::lock::table::LockTable;
use crate::lock::{Lock, Reading, lock_id};
use crate::settings::{LockProtocol, LockSettings};
use crate::warning::Warnings;

/// The locks of all state ids.
pub struct Locks<'a> {
    table: LockTable<'a>,
    /// Rows that could not be removed.
    pub(crate) warnings: Warnings,
}

/// What a caller wants of a lock.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// How to take it.
    pub limits: LockSettings,
    /// Who takes it, for those who have to wait.
    pub owner: &'a str,
    /// What to read of the state with the lock rows.
    pub state: StateRead,
}

/// A row that may hold a lock.
pub(crate) struct Claim {
    /// How inserting it went.
    pub(crate) event: Event,
    /// The lock that it holds if it is the first row; none if it was not inserted for sure.
    pub(crate) lock: Option<Lock>,
}

impl<'a> Locks<'a> {
    /// The locks on the client's tables.
    #[must_use]
    pub fn new(client: Client<'a>) -> Self {
        Self { table: LockTable::new(client), warnings: Warnings::default() }
    }

    pub(crate) fn client(&self) -> &Client<'a> {
        self.table.client()
    }

    pub(crate) fn table(&self) -> &LockTable<'a> {
        &self.table
    }

    /// Takes the lock of a state id, and returns what was read when it was decided.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) if another process holds it for longer than the wait limit; otherwise as the server reports
    /// them. After any error the lock is not held and no row of this call is left, unless removing it failed too.
    pub fn acquire(&self, state_id: &str, wanted: &Wanted) -> Result<(Lock, Reading), Error> {
        self.acquire_from(Event::Wanted, self.client().ports().clock.now(), state_id, wanted)
    }

    /// Whether [`Self::claim`] does: where the order of insertion decides, as was looked up within the last second.
    pub(crate) fn may_claim(&self, wanted: &Wanted, now: Duration) -> bool {
        wanted.limits.protocol != LockProtocol::Settle
            && self.table.layout() == Layout::Ordered
            && !self.table.look_is_due(now)
    }

    /// Inserts a row without a look at others: the lock is held if it is the first one, which a write under it finds out.
    /// If it is not, or if this failed, what happened is where [`Self::acquire_from`] goes on.
    pub(crate) fn claim(&self, state_id: &str, wanted: &Wanted) -> Claim {
        match self.insert(state_id, wanted, Guard::Queue) {
            // Unless the layout just turned out to be another.
            Event::Inserted { lock_id, .. } if self.table.layout() == Layout::Ordered => {
                let lock = self.lock(state_id, lock_id.clone(), wanted);
                Claim { event: Event::Claimed { lock_id }, lock: Some(lock) }
            }
            event => Claim { event, lock: None },
        }
    }

    /// [`Self::acquire`], `started` at a monotonic time, after what has happened since.
    pub(crate) fn acquire_from(
        &self,
        mut event: Event,
        started: Duration,
        state_id: &str,
        wanted: &Wanted,
    ) -> Result<(Lock, Reading), Error> {
        let clock = self.client().ports().clock;
        let limits = &wanted.limits;
        let mut machine = Machine::new(limits.clone(), started);
        let mut last = Reading { rows: Vec::new(), ordered: false, state: None };
        loop {
            let is_uncertain = matches!(event, Event::InsertUncertain { .. });
            event = match machine.next(clock.now(), event) {
                Action::Insert => self.insert(state_id, wanted, Guard::Alone),
                Action::Read => match self.table.read(state_id, limits.stale, wanted.state) {
                    Ok(reading) => {
                        last = reading;
                        Event::Read(last.without_state())
                    }
                    Err(error) => Event::Failed(error),
                },
                Action::Sleep(duration) => self.sleep(duration, state_id),
                Action::Retry(duration) => self.sleep(self.client().jittered(duration), state_id),
                Action::DeleteStale => deleted(self.table.delete_stale(state_id, limits.stale)),
                Action::DeleteOwn(lock_id) => {
                    let result = self.table.delete_own(state_id, &lock_id, is_uncertain);
                    if let Err(error) = &result {
                        self.warnings.add(left_behind(state_id, &lock_id, limits.stale, error));
                    }
                    deleted(result)
                }
                Action::Acquired(lock_id) => return Ok((self.lock(state_id, lock_id, wanted), last)),
                Action::Locked(obstacle) => return Err(locked(state_id, limits, obstacle)),
                Action::Fail(error) => return Err(error),
            };
        }
    }

    /// Gives a lock up at the end of a call, which is not to fail for it.
    pub(crate) fn release_after_call(&self, lock: &Lock) {
        if let Err(error) = lock.release(self) {
            self.warnings.add(left_behind(lock.state_id(), lock.lock_id(), lock.stale(), &error));
        }
    }

    fn lock(&self, state_id: &str, lock_id: String, wanted: &Wanted) -> Lock {
        Lock {
            state_id: state_id.to_owned(),
            lock_id,
            stale: wanted.limits.stale,
            layout: self.table.layout(),
            is_uncertain: Cell::new(false),
        }
    }

    fn insert(&self, state_id: &str, wanted: &Wanted, guard: Guard) -> Event {
        let ports = self.client().ports();
        let lock_id = lock_id(ports.clock.unix_time(), ports.random.random()).to_string();
        let start = ports.clock.now();
        let answer = self.table.with_layout(|layout| {
            let tables = self.client().tables();
            let stale = wanted.limits.stale;
            // The layout may just have turned out to be another.
            let guard = if layout == Layout::Ordered { guard } else { Guard::Alone };
            let statement = tables.insert_candidate(state_id, &lock_id, wanted.owner, stale, layout, guard);
            self.client().carry_out_creating(&statement)
        });
        match answer {
            Ok(answer) => Event::Inserted {
                lock_id,
                // A server or proxy that does not say is believed to have written: reading the rows will show it.
                written: answer.written_rows != Some(0),
                took: ports.clock.now() - start,
            },
            Err(failure) if failure.is_settled() => Event::Failed(self.client().blame_version(failure.error)),
            Err(failure) => Event::InsertUncertain { lock_id, error: not_taken(state_id, failure.error) },
        }
    }

    fn sleep(&self, duration: Duration, state_id: &str) -> Event {
        match self.client().ports().clock.sleep(duration) {
            true => Event::Slept,
            false => Event::Failed(called_off(state_id)),
        }
    }
}

fn deleted(result: Result<(), Error>) -> Event {
    result.map_or_else(Event::Failed, |()| Event::Deleted)
}
