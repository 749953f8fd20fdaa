//! Takes locks: carries out what the state machine decides.

use std::cell::Cell;
use std::time::Duration;

use crate::clickhouse::{Client, Guard, Layout, Look, StateRead, Statement, code};
use crate::error::{Error, ErrorKind};
use crate::glob::Selection;
use crate::lock::machine::{Action, Event, Machine};
use crate::lock::reading::holders;
use crate::lock::refusal::{locked, not_taken};
use crate::lock::{Holder, Lock, Reading, lock_id};
use crate::settings::{LockProtocol, LockSettings};

/// The locks of all state ids.
pub struct Locks<'a> {
    client: Client<'a>,
    /// What is known of the lock table's layout.
    layout: Cell<Layout>,
    /// Whether the lock table was mutated lately, as far as is known.
    mutated: Cell<bool>,
    /// When both were last looked up.
    looked_up: Cell<Option<Duration>>,
    /// Cleared when the user lacks the privilege. Then only rows of others tell that they are there.
    may_see_mutations: Cell<bool>,
}

/// How long it may go unnoticed that somebody begins to mutate the lock table. Looking costs 2 ms.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

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
        Self {
            client,
            layout: Cell::new(Layout::Unknown),
            mutated: Cell::new(false),
            looked_up: Cell::new(None),
            may_see_mutations: Cell::new(true),
        }
    }

    pub(crate) fn client(&self) -> &Client<'a> {
        &self.client
    }

    /// Takes the lock of a state id, and returns what was read when it was decided.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] if another process holds it for longer than the wait limit; otherwise as the server reports
    /// them. After any error the lock is not held and no row of this call is left, unless removing it failed too.
    pub fn acquire(&self, state_id: &str, wanted: &Wanted) -> Result<(Lock, Reading), Error> {
        self.acquire_from(Event::Wanted, self.client.ports().clock.now(), state_id, wanted)
    }

    /// Whether [`Self::claim`] does: where the order of insertion decides, as was looked up within the last second.
    pub(crate) fn may_claim(&self, wanted: &Wanted, now: Duration) -> bool {
        self.layout.get() == Layout::Ordered && wanted.limits.protocol != LockProtocol::Settle && !self.look_is_due(now)
    }

    /// Inserts a row without a look at others: the lock is held if it is the first one, which a write under it finds out.
    /// If it is not, or if this failed, what happened is where [`Self::acquire_from`] goes on.
    pub(crate) fn claim(&self, state_id: &str, wanted: &Wanted) -> Claim {
        match self.insert(state_id, wanted, Guard::Queue) {
            // Unless the layout just turned out to be another.
            Event::Inserted { lock_id, .. } if self.layout.get() == Layout::Ordered => {
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
        let clock = self.client.ports().clock;
        let limits = &wanted.limits;
        let mut machine = Machine::new(limits.clone(), started);
        let mut last = Reading { rows: Vec::new(), ordered: false, state: None };
        loop {
            event = match machine.next(clock.now(), event) {
                Action::Insert => self.insert(state_id, wanted, Guard::Alone),
                Action::Read => match self.read(state_id, limits.stale, wanted.state) {
                    Ok(reading) => {
                        last = reading;
                        Event::Read(last.without_state())
                    }
                    Err(error) => Event::Failed(error),
                },
                Action::Sleep(duration) => self.sleep(duration),
                Action::Retry(duration) => self.sleep(self.client.jittered(duration)),
                Action::DeleteStale => deleted(self.delete_stale(state_id, limits.stale)),
                Action::DeleteOwn(lock_id) => {
                    deleted(self.delete(&self.client.tables().delete_lock(state_id, &lock_id)))
                }
                Action::Acquired(lock_id) => return Ok((self.lock(state_id, lock_id, wanted), last)),
                Action::Locked(obstacle) => return Err(locked(state_id, limits, obstacle)),
                Action::Fail(error) => return Err(error),
            };
        }
    }

    fn lock(&self, state_id: &str, lock_id: String, wanted: &Wanted) -> Lock {
        Lock { state_id: state_id.to_owned(), lock_id, stale: wanted.limits.stale, layout: self.layout.get() }
    }

    /// Whether it is time to look up the lock table again.
    fn look_is_due(&self, now: Duration) -> bool {
        self.looked_up.get().is_none_or(|last| now - last > LOOK_AGAIN)
    }

    /// The lock rows of a state id, and its state if that is asked for.
    ///
    /// # Errors
    /// As the server reports them.
    pub(crate) fn read(&self, state_id: &str, stale: Duration, state: StateRead) -> Result<Reading, Error> {
        // Again if the layout turns out to be another, is changed in between, or mutations may not be seen.
        for _ in 0..4 {
            let layout = self.layout.get();
            let tables = self.client.tables();
            let now = self.client.ports().clock.now();
            // An add-on's table may be upgraded at any moment, and then other rows count.
            let unsure = matches!(layout, Layout::Unknown | Layout::Plain);
            let due = self.look_is_due(now);
            let look = match self.may_see_mutations.get() {
                true if unsure || due => Look::Mutations,
                false if unsure || due => Look::Table,
                _ => Look::Rows,
            };
            let statement = tables.lock_rows(state_id, stale, layout, state, look);
            let answer = match self.client.run_creating(&statement) {
                Err(error) if self.is_of_other_layout(&error) => continue,
                Err(error) if error.kind == ErrorKind::PermissionDenied && look == Look::Mutations => {
                    self.may_see_mutations.set(false);
                    continue;
                }
                other => other?,
            };
            let (reading, table) = Reading::decode(&answer, layout)?;
            if let Some(table) = table {
                self.looked_up.set(Some(now));
                self.layout.set(table.layout);
                self.mutated.set(table.mutated);
            }
            if let Some(reading) = reading {
                if reading.has_foreign_rows() {
                    self.mutated.set(true);
                }
                return Ok(reading);
            }
        }
        Err(Error::new(ErrorKind::SchemaMismatch, "the lock table's columns change while it is used")
            .with_hint("wait until its upgrade is done"))
    }

    /// The lock rows of the selected state ids; none where there is no table.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn holders(&self, selection: &Selection) -> Result<Vec<Holder>, Error> {
        let stale = self.client.settings().lock.stale;
        let answer = self.with_layout(|layout| {
            self.client.run_if_exists(&self.client.tables().all_lock_rows(selection, stale, layout))
        })?;
        answer.map_or_else(|| Ok(Vec::new()), |answer| holders(&answer))
    }

    /// Removes a lock, whoever holds it, and says whether it was there.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn force_release(&self, state_id: &str, lock_id: &str) -> Result<bool, Error> {
        let stale = self.client.settings().lock.stale;
        let reading = self.read(state_id, stale, StateRead::Nothing)?;
        if !reading.rows.iter().any(|row| row.lock_id == lock_id) {
            return Ok(false);
        }
        self.delete(&self.client.tables().delete_lock(state_id, lock_id))?;
        Ok(true)
    }

    fn insert(&self, state_id: &str, wanted: &Wanted, guard: Guard) -> Event {
        let ports = self.client.ports();
        let lock_id = lock_id(ports.clock.unix_time(), ports.random.random()).to_string();
        let start = ports.clock.now();
        let answer = self.with_layout(|layout| {
            let tables = self.client.tables();
            let stale = wanted.limits.stale;
            // The layout may just have turned out to be another.
            let guard = if layout == Layout::Ordered { guard } else { Guard::Alone };
            self.client.run_creating(&tables.insert_candidate(state_id, &lock_id, wanted.owner, stale, layout, guard))
        });
        match answer {
            Ok(answer) => Event::Inserted {
                lock_id,
                // A server or proxy that does not say is believed to have written: reading the rows will show it.
                written: answer.written_rows != Some(0),
                took: ports.clock.now() - start,
            },
            // Only ClickHouse's own word says that nothing was inserted: a proxy's does not.
            Err(error) if error.server.is_some() && error.kind != ErrorKind::OutcomeUnknown => Event::Failed(error),
            Err(error) => Event::InsertUncertain { lock_id, error: not_taken(state_id, error) },
        }
    }

    /// Runs a statement that depends on the layout, again if the table turns out to have the add-on's columns.
    fn with_layout<T>(&self, run: impl Fn(Layout) -> Result<T, Error>) -> Result<T, Error> {
        match run(self.layout.get()) {
            Err(error) if self.is_of_other_layout(&error) => run(self.layout.get()),
            other => other,
        }
    }

    /// Whether a statement failed because the table has the add-on's columns only; remembers it then.
    fn is_of_other_layout(&self, error: &Error) -> bool {
        let lacks_column = matches!(error.code(), Some(code::NO_SUCH_COLUMN_IN_TABLE | code::UNKNOWN_IDENTIFIER));
        let other = lacks_column && self.layout.get() != Layout::Plain;
        if other {
            self.layout.set(Layout::Plain);
            self.looked_up.set(None);
        }
        other
    }

    fn sleep(&self, duration: Duration) -> Event {
        self.client.ports().clock.sleep(duration);
        Event::Slept
    }

    /// Removes the rows of a state id that are too old to count.
    pub(crate) fn delete_stale(&self, state_id: &str, stale: Duration) -> Result<(), Error> {
        self.delete(&self.client.tables().delete_stale(state_id, stale, self.layout.get()))
    }

    /// Deletes lock rows: as a patch, unless somebody, such as the add-on, deletes by mutation. Those could undo a patch,
    /// and the row would be back.
    pub(crate) fn delete(&self, statement: &Statement) -> Result<(), Error> {
        match self.mutated.get() {
            true => self.client.delete(statement),
            false => self.client.delete_by_patch(statement),
        }
    }
}

fn deleted(result: Result<(), Error>) -> Event {
    result.map_or_else(Event::Failed, |()| Event::Deleted)
}
