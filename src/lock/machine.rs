//! The lock protocols as a state machine: events in, actions out, no I/O.
//!
//! A candidate row is inserted unless a live row exists. **ticket**: where the table tells the order of insertion, the
//! rows are read at once, and the first one holds the lock. **settle**: anywhere else the candidate first waits for its
//! rivals to become visible, and then the lowest id holds the lock, as the Python add-on has it. Everybody else removes
//! its row and tries again.
//!
//! In ticket, a candidate may also be inserted without a look for live rows, as a claim: a write that is fenced by its being
//! the first row needs to know no more, and whether it is the first is read only if the write fails.
//!
//! In ticket, a row that became visible earlier has a lower number, so whoever reads after its own insert sees every row
//! that could come before its own. In settle, a candidate whose insert took longer than the settle time withdraws: of two
//! that both stay, each was visible before the other decided.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::lock::{LockRow, Reading};
use crate::settings::{LockProtocol, LockSettings};

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The caller wants the lock.
    Wanted,
    /// The candidate of this id was inserted, or not, because a live row exists.
    Inserted {
        /// The candidate's id.
        lock_id: String,
        /// Whether a row was written.
        written: bool,
        /// From the request to its answer.
        took: Duration,
    },
    /// The candidate of this id was inserted whether or not a live row exists, so it counts only where the order of
    /// insertion decides. A write under it failed, so it may not be the first row.
    Claimed {
        /// The candidate's id.
        lock_id: String,
    },
    /// It is not known whether the candidate was inserted.
    InsertUncertain {
        /// The candidate's id.
        lock_id: String,
        /// What went wrong.
        error: Error,
    },
    /// The rows of the state id.
    Read(Reading),
    /// The time asked for has passed.
    Slept,
    /// The rows asked for are deleted.
    Deleted,
    /// The action failed and changed nothing.
    Failed(Error),
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Insert a candidate with a new id, unless a live row exists.
    Insert,
    /// Read the rows of the state id.
    Read,
    /// Wait as long as this.
    Sleep(Duration),
    /// Wait about as long as this, so that rivals come apart.
    Retry(Duration),
    /// Delete the stale rows of the state id.
    DeleteStale,
    /// Delete the candidate with this id.
    DeleteOwn(String),
    /// The end: the id of the row that holds the lock.
    Acquired(String),
    /// The end: the time to wait is over.
    Locked(Obstacle),
    /// The end: an action failed.
    Fail(Error),
}

/// What kept a lock from being taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Another holds it.
    Holder(LockRow),
    /// Rivals were there, and gone when it was looked who they are.
    Rivals,
    /// The candidate's insert took this long, more than the settle time.
    SlowInsert(Duration),
}

/// One attempt to take a lock.
#[derive(Debug)]
pub struct Machine {
    limits: LockSettings,
    started: Duration,
    phase: Phase,
    /// The next pause between attempts; each is twice as long as the one before, up to the limit.
    pause: Duration,
    /// What was last seen to be in the way.
    obstacle: Obstacle,
    /// How often it was not known whether a candidate was inserted.
    times_uncertain: u32,
}

/// How often it may be unknown whether a candidate was inserted: a server that is being restarted, or a proxy that closes
/// connections, does not go on like that.
const MOST_UNCERTAIN: u32 = 8;

/// The first pause between attempts: about the time for which one update holds a lock.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug)]
enum Phase {
    Inserting,
    /// The candidate looks whether the order of insertion decides; if not, it still has to settle, which needs the time
    /// that its insert took.
    Looking(String, Duration),
    /// The claim looks whether it came first. Where the order of insertion does not decide, it was none.
    Claiming(String),
    /// The candidate waits for its rivals to become visible.
    Settling(String),
    Settled(String),
    /// The lock is taken once the stale rows are gone. Their owners, who may go by another stale time, then know that
    /// they hold nothing, and peers do not count them.
    Tidying(String),
    /// The candidate is being removed.
    Withdrawing(Then),
    /// A live row stopped the insert: whose is it?
    LookingUpHolder,
    RemovingStale,
    Waiting,
}

/// What comes after the removal of a candidate.
#[derive(Debug)]
enum Then {
    /// Another attempt: a rival was first.
    Again,
    /// Another attempt, unless this has happened too often: it was not known whether the candidate was inserted.
    AgainAfter(Error),
    /// The end.
    Fail(Error),
}

impl Machine {
    /// A machine at its start; `now` is the monotonic time.
    #[must_use]
    pub fn new(limits: LockSettings, now: Duration) -> Self {
        Self {
            pause: FIRST_PAUSE.min(limits.retry),
            limits,
            started: now,
            phase: Phase::Inserting,
            obstacle: Obstacle::Rivals,
            times_uncertain: 0,
        }
    }

    /// The answer to an event at the monotonic time `now`. After `Acquired`, `Locked` or `Fail` nothing follows.
    pub fn next(&mut self, now: Duration, event: Event) -> Action {
        let phase = std::mem::replace(&mut self.phase, Phase::Inserting);
        match (phase, event) {
            (_, Event::Wanted) => self.insert(),
            (_, Event::Inserted { lock_id, written: true, took }) if self.limits.protocol == LockProtocol::Settle => {
                self.settle(lock_id, took)
            }
            (_, Event::Inserted { lock_id, written: true, took }) => {
                self.go(Phase::Looking(lock_id, took), Action::Read)
            }
            (_, Event::Inserted { written: false, .. }) => self.go(Phase::LookingUpHolder, Action::Read),
            (_, Event::Claimed { lock_id }) => self.go(Phase::Claiming(lock_id), Action::Read),
            (_, Event::InsertUncertain { lock_id, error }) => self.withdraw(lock_id, Then::AgainAfter(error)),

            (Phase::Looking(lock_id, _) | Phase::Claiming(lock_id), Event::Read(reading)) if reading.ordered => {
                self.decide(lock_id, &reading)
            }
            (Phase::Claiming(lock_id), Event::Read(_)) => self.withdraw(lock_id, Then::Again),
            (Phase::Looking(lock_id, _), Event::Read(_)) if self.limits.protocol == LockProtocol::Ticket => {
                self.withdraw(lock_id, Then::Fail(no_tickets()))
            }
            (Phase::Looking(lock_id, took), Event::Read(_)) => self.settle(lock_id, took),
            (Phase::Settling(lock_id), Event::Slept) => self.go(Phase::Settled(lock_id), Action::Read),
            (Phase::Settled(lock_id), Event::Read(reading)) => self.decide(lock_id, &reading),
            (
                Phase::Looking(lock_id, _)
                | Phase::Claiming(lock_id)
                | Phase::Settling(lock_id)
                | Phase::Settled(lock_id)
                | Phase::Tidying(lock_id),
                Event::Failed(error),
            ) => self.withdraw(lock_id, Then::Fail(error)),
            (Phase::Tidying(lock_id), Event::Deleted) => Action::Acquired(lock_id),

            (Phase::Withdrawing(Then::AgainAfter(error)), Event::Deleted) => self.wait_after(error, now),
            (Phase::Withdrawing(Then::AgainAfter(error) | Then::Fail(error)), _) => Action::Fail(error),
            (Phase::Withdrawing(Then::Again), Event::Deleted) => self.wait(now),

            (Phase::LookingUpHolder, Event::Read(reading)) => self.look_at(&reading, now),
            (Phase::RemovingStale, Event::Deleted) | (Phase::Waiting, Event::Slept) => self.insert(),

            (_, Event::Failed(error)) => Action::Fail(error),
            // The driver answers each action with its own event, so nothing else can follow.
            (_, Event::Slept | Event::Deleted | Event::Read(_)) => self.insert(),
        }
    }

    fn go(&mut self, phase: Phase, action: Action) -> Action {
        self.phase = phase;
        action
    }

    fn insert(&mut self) -> Action {
        self.go(Phase::Inserting, Action::Insert)
    }

    fn settle(&mut self, lock_id: String, took: Duration) -> Action {
        let settle = self.limits.settle;
        if took > settle {
            self.obstacle = Obstacle::SlowInsert(took);
            return self.withdraw(lock_id, Then::Again);
        }
        self.go(Phase::Settling(lock_id), Action::Sleep(settle))
    }

    fn decide(&mut self, lock_id: String, reading: &Reading) -> Action {
        match reading.holder() {
            Some(holder) if holder.lock_id == lock_id && reading.any_stale() => {
                self.go(Phase::Tidying(lock_id), Action::DeleteStale)
            }
            Some(holder) if holder.lock_id == lock_id => Action::Acquired(lock_id),
            holder => {
                self.obstacle = obstacle(holder);
                self.withdraw(lock_id, Then::Again)
            }
        }
    }

    fn withdraw(&mut self, lock_id: String, then: Then) -> Action {
        self.go(Phase::Withdrawing(then), Action::DeleteOwn(lock_id))
    }

    fn look_at(&mut self, reading: &Reading, now: Duration) -> Action {
        self.obstacle = obstacle(reading.holder());
        match self.obstacle {
            Obstacle::Holder(_) => self.wait(now),
            _ if reading.any_stale() => self.go(Phase::RemovingStale, Action::DeleteStale),
            // Released between the insert and the read.
            _ if self.is_late(now) => self.give_up(),
            _ => self.insert(),
        }
    }

    fn wait(&mut self, now: Duration) -> Action {
        if self.is_late(now) {
            return self.give_up();
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(self.limits.retry);
        self.go(Phase::Waiting, Action::Retry(pause))
    }

    /// [`Self::wait`], after it was not known whether a candidate was inserted.
    fn wait_after(&mut self, error: Error, now: Duration) -> Action {
        self.times_uncertain += 1;
        if self.is_late(now) || self.times_uncertain == MOST_UNCERTAIN { Action::Fail(error) } else { self.wait(now) }
    }

    /// Whether another attempt would begin after the time to wait, which counts everything since the start, the
    /// requests included.
    fn is_late(&self, now: Duration) -> bool {
        now.saturating_sub(self.started) + self.pause > self.limits.wait
    }

    fn give_up(&self) -> Action {
        Action::Locked(self.obstacle.clone())
    }
}

fn obstacle(holder: Option<&LockRow>) -> Obstacle {
    holder.cloned().map_or(Obstacle::Rivals, Obstacle::Holder)
}

fn no_tickets() -> Error {
    Error::new(
        ErrorKind::SchemaMismatch,
        "the lock table does not tell the order of its rows, which lock_protocol = ticket needs",
    )
    .with_hint("upgrade the table with meltano-state init, or set lock_protocol to auto")
}

#[cfg(test)]
mod tests;
