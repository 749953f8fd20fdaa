//! The settle protocol as a state machine: events in, actions out, no I/O.
//!
//! A candidate row is inserted unless a live row exists; after the settle time all rows are read, and the lowest id
//! among the live ones holds the lock. Everybody else removes its row and tries again. It works on any engine, and with
//! the Python add-on, which follows the same rule.
//!
//! A candidate whose insert took longer than the settle time withdraws. So of two candidates that both stay, each was
//! visible before the other decided: had one become visible only after the other's read, it would have been inserted
//! after the other's row could be seen, and the insert's own condition would have stopped it.

use std::time::Duration;

use crate::error::Error;
use crate::lock::LockRow;
use crate::settings::LockSettings;

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
    /// It is not known whether the candidate was inserted.
    InsertUncertain {
        /// The candidate's id.
        lock_id: String,
        /// What went wrong.
        error: Error,
    },
    /// The rows of the state id.
    Rows(Vec<LockRow>),
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
pub struct Settle {
    limits: LockSettings,
    started: Duration,
    phase: Phase,
    /// What was last seen to be in the way.
    obstacle: Obstacle,
}

#[derive(Debug)]
enum Phase {
    Inserting,
    /// The candidate waits for its rivals to become visible.
    Settling(String),
    Deciding(String),
    /// The lock is taken; stale rows are being removed for the sake of peers that still count them.
    Tidying(String),
    /// The candidate is being removed: to try again, or to fail.
    Withdrawing(Option<Error>),
    /// A live row stopped the insert: whose is it?
    LookingUpHolder,
    RemovingStale,
    Waiting,
}

impl Settle {
    /// A machine at its start; `now` is the monotonic time.
    #[must_use]
    pub fn new(limits: LockSettings, now: Duration) -> Self {
        Self { limits, started: now, phase: Phase::Inserting, obstacle: Obstacle::Rivals }
    }

    /// The answer to an event at the monotonic time `now`. After `Acquired`, `Locked` or `Fail` nothing follows.
    pub fn next(&mut self, now: Duration, event: Event) -> Action {
        let phase = std::mem::replace(&mut self.phase, Phase::Inserting);
        match (phase, event) {
            (_, Event::Wanted) => self.insert(),
            (_, Event::Inserted { lock_id, written: true, took }) => self.settle(lock_id, took),
            (_, Event::Inserted { written: false, .. }) => self.go(Phase::LookingUpHolder, Action::Read),
            (_, Event::InsertUncertain { lock_id, error }) => self.withdraw(lock_id, Some(error)),

            (Phase::Settling(lock_id), Event::Slept) => self.go(Phase::Deciding(lock_id), Action::Read),
            (Phase::Deciding(lock_id), Event::Rows(rows)) => self.decide(lock_id, rows),
            (Phase::Deciding(lock_id), Event::Failed(error)) => self.withdraw(lock_id, Some(error)),
            // The lock is held all the same: stale rows hinder nobody who judges them by their age.
            (Phase::Tidying(lock_id), _) => Action::Acquired(lock_id),

            (Phase::Withdrawing(Some(error)), _) => Action::Fail(error),
            (Phase::Withdrawing(None), Event::Deleted) => self.wait(now),

            (Phase::LookingUpHolder, Event::Rows(rows)) => self.look_at(rows, now),
            (Phase::RemovingStale, Event::Deleted) | (Phase::Waiting, Event::Slept) => self.insert(),

            (_, Event::Failed(error)) => Action::Fail(error),
            // The driver answers each action with its own event, so nothing else can follow.
            (_, Event::Slept | Event::Deleted | Event::Rows(_)) => self.insert(),
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
        if took > self.limits.settle {
            self.obstacle = Obstacle::SlowInsert(took);
            return self.withdraw(lock_id, None);
        }
        let settle = self.limits.settle;
        self.go(Phase::Settling(lock_id), Action::Sleep(settle))
    }

    fn decide(&mut self, lock_id: String, rows: Vec<LockRow>) -> Action {
        let any_stale = rows.iter().any(|row| row.stale);
        match lowest_live(rows) {
            Some(lowest) if lowest.lock_id == lock_id && any_stale => {
                self.go(Phase::Tidying(lock_id), Action::DeleteStale)
            }
            Some(lowest) if lowest.lock_id == lock_id => Action::Acquired(lock_id),
            lowest => {
                self.obstacle = obstacle(lowest);
                self.withdraw(lock_id, None)
            }
        }
    }

    fn withdraw(&mut self, lock_id: String, then: Option<Error>) -> Action {
        self.go(Phase::Withdrawing(then), Action::DeleteOwn(lock_id))
    }

    fn look_at(&mut self, rows: Vec<LockRow>, now: Duration) -> Action {
        let any_stale = rows.iter().any(|row| row.stale);
        self.obstacle = obstacle(lowest_live(rows));
        match self.obstacle {
            Obstacle::Holder(_) => self.wait(now),
            _ if any_stale => self.go(Phase::RemovingStale, Action::DeleteStale),
            _ if self.is_late(now) => self.give_up(),
            // Released between the insert and the read.
            _ => self.insert(),
        }
    }

    fn wait(&mut self, now: Duration) -> Action {
        if self.is_late(now) {
            return self.give_up();
        }
        let retry = self.limits.retry;
        self.go(Phase::Waiting, Action::Retry(retry))
    }

    /// Whether another attempt would begin after the time to wait, which counts everything since the start, the
    /// requests included.
    fn is_late(&self, now: Duration) -> bool {
        now.saturating_sub(self.started) + self.limits.retry > self.limits.wait
    }

    fn give_up(&self) -> Action {
        Action::Locked(self.obstacle.clone())
    }
}

fn obstacle(holder: Option<LockRow>) -> Obstacle {
    holder.map_or(Obstacle::Rivals, Obstacle::Holder)
}

fn lowest_live(rows: Vec<LockRow>) -> Option<LockRow> {
    rows.into_iter().filter(|row| !row.stale).min_by(|a, b| a.lock_id.cmp(&b.lock_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const MINE: &str = "00000000-0199-8000-8000-000000000002";
    const LOWER: &str = "00000000-0199-8000-8000-000000000001";
    const HIGHER: &str = "5f0f6f6e-0000-4000-8000-000000000000";

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn machine() -> Settle {
        let limits = LockSettings { settle: seconds(1), stale: seconds(300), wait: seconds(30), retry: seconds(1) };
        Settle::new(limits, Duration::ZERO)
    }

    fn row(lock_id: &str, stale: bool) -> LockRow {
        LockRow {
            lock_id: lock_id.to_owned(),
            locked_at: "2026-01-01 00:00:00".to_owned(),
            age: seconds(if stale { 301 } else { 1 }),
            stale,
        }
    }

    fn inserted(written: bool, took: Duration) -> Event {
        Event::Inserted { lock_id: MINE.to_owned(), written, took }
    }

    fn failure() -> Error {
        Error::new(ErrorKind::Unreachable, "gone")
    }

    /// Plays a script: at each time, in seconds, an event and the action that has to follow.
    fn check(script: Vec<(u64, Event, Action)>) {
        let mut machine = machine();
        assert_eq!(machine.next(Duration::ZERO, Event::Wanted), Action::Insert);
        for (time, event, expected) in script {
            let shown = format!("{event:?}");
            assert_eq!(machine.next(seconds(time), event), expected, "after {shown} at {time} s");
        }
    }

    #[test]
    fn alone() {
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Rows(vec![row(MINE, false)]), Action::Acquired(MINE.to_owned())),
        ]);
    }

    #[test]
    fn the_lowest_live_row_wins_and_stale_rows_go() {
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Rows(vec![row(LOWER, true), row(MINE, false), row(HIGHER, false)]), Action::DeleteStale),
            (1, Event::Deleted, Action::Acquired(MINE.to_owned())),
        ]);
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Rows(vec![row(LOWER, false), row(MINE, false)]), Action::DeleteOwn(MINE.to_owned())),
            (1, Event::Deleted, Action::Retry(seconds(1))),
            (2, Event::Slept, Action::Insert),
        ]);
    }

    #[test]
    fn a_candidate_that_vanished_or_became_stale_does_not_win() {
        for rows in [vec![], vec![row(HIGHER, false)], vec![row(MINE, true)]] {
            check(vec![
                (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
                (1, Event::Slept, Action::Read),
                (1, Event::Rows(rows), Action::DeleteOwn(MINE.to_owned())),
            ]);
        }
    }

    #[test]
    fn an_insert_slower_than_the_settle_time_withdraws() {
        check(vec![
            (2, inserted(true, Duration::from_millis(1001)), Action::DeleteOwn(MINE.to_owned())),
            (2, Event::Deleted, Action::Retry(seconds(1))),
            (3, Event::Slept, Action::Insert),
        ]);
        check(vec![(1, inserted(true, seconds(1)), Action::Sleep(seconds(1)))]);
    }

    #[test]
    fn inserts_that_are_always_too_slow_are_named_as_the_reason() {
        let slow = seconds(2);
        check(vec![
            (30, inserted(true, slow), Action::DeleteOwn(MINE.to_owned())),
            (30, Event::Deleted, Action::Locked(Obstacle::SlowInsert(slow))),
        ]);
    }

    #[test]
    fn rivals_that_come_and_go_do_not_make_it_go_on_for_ever() {
        check(vec![
            (29, inserted(false, Duration::ZERO), Action::Read),
            (29, Event::Rows(vec![]), Action::Insert),
            (30, inserted(false, Duration::ZERO), Action::Read),
            (30, Event::Rows(vec![]), Action::Locked(Obstacle::Rivals)),
        ]);
    }

    #[test]
    fn a_holder_is_waited_for_until_the_limit() {
        check(vec![
            (0, inserted(false, Duration::ZERO), Action::Read),
            (0, Event::Rows(vec![row(LOWER, false)]), Action::Retry(seconds(1))),
            (1, Event::Slept, Action::Insert),
            // Requests took most of the time: they count.
            (30, inserted(false, seconds(29)), Action::Read),
            (30, Event::Rows(vec![row(LOWER, false)]), Action::Locked(Obstacle::Holder(row(LOWER, false)))),
        ]);
    }

    #[test]
    fn stale_rows_alone_are_removed_and_a_released_lock_is_taken_at_once() {
        check(vec![
            (0, inserted(false, Duration::ZERO), Action::Read),
            (0, Event::Rows(vec![row(LOWER, true)]), Action::DeleteStale),
            (0, Event::Deleted, Action::Insert),
        ]);
        check(vec![(0, inserted(false, Duration::ZERO), Action::Read), (0, Event::Rows(vec![]), Action::Insert)]);
    }

    #[test]
    fn failures_end_it_and_leave_no_row() {
        check(vec![(0, Event::Failed(failure()), Action::Fail(failure()))]);
        check(vec![
            (
                0,
                Event::InsertUncertain { lock_id: MINE.to_owned(), error: failure() },
                Action::DeleteOwn(MINE.to_owned()),
            ),
            (0, Event::Deleted, Action::Fail(failure())),
        ]);
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Failed(failure()), Action::DeleteOwn(MINE.to_owned())),
            (1, Event::Deleted, Action::Fail(failure())),
        ]);
        check(vec![
            (0, inserted(false, Duration::ZERO), Action::Read),
            (0, Event::Failed(failure()), Action::Fail(failure())),
        ]);
    }

    #[test]
    fn a_failing_removal_of_stale_rows_does_not_cost_the_lock() {
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Rows(vec![row(LOWER, true), row(MINE, false)]), Action::DeleteStale),
            (1, Event::Failed(failure()), Action::Acquired(MINE.to_owned())),
        ]);
    }
}
