//! The lock protocols as a state machine: events in, actions out, no I/O.
//!
//! A candidate row is inserted unless a live row exists. **ticket**: where the table tells the order of insertion, the
//! rows are read at once, and the first one holds the lock. **settle**: anywhere else the candidate first waits for its
//! rivals to become visible, and then the lowest id holds the lock, as the Python add-on has it. Everybody else removes
//! its row and tries again.
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
}

/// The first pause between attempts: about the time for which one update holds a lock.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug)]
enum Phase {
    Inserting,
    /// The candidate looks whether the order of insertion decides; if not, it still has to settle, which needs the time
    /// that its insert took.
    Looking(String, Duration),
    /// The candidate waits for its rivals to become visible.
    Settling(String),
    Settled(String),
    /// The lock is taken once the stale rows are gone. Their owners, who may go by another stale time, then know that
    /// they hold nothing, and peers do not count them.
    Tidying(String),
    /// The candidate is being removed: to try again, or to fail.
    Withdrawing(Option<Error>),
    /// A live row stopped the insert: whose is it?
    LookingUpHolder,
    RemovingStale,
    Waiting,
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
            (_, Event::InsertUncertain { lock_id, error }) => self.withdraw(lock_id, Some(error)),

            (Phase::Looking(lock_id, _), Event::Read(reading)) if reading.ordered => self.decide(lock_id, &reading),
            (Phase::Looking(lock_id, _), Event::Read(_)) if self.limits.protocol == LockProtocol::Ticket => {
                self.withdraw(lock_id, Some(no_tickets()))
            }
            (Phase::Looking(lock_id, took), Event::Read(_)) => self.settle(lock_id, took),
            (Phase::Settling(lock_id), Event::Slept) => self.go(Phase::Settled(lock_id), Action::Read),
            (Phase::Settled(lock_id), Event::Read(reading)) => self.decide(lock_id, &reading),
            (Phase::Looking(lock_id, _) | Phase::Settled(lock_id) | Phase::Tidying(lock_id), Event::Failed(error)) => {
                self.withdraw(lock_id, Some(error))
            }
            (Phase::Tidying(lock_id), Event::Deleted) => Action::Acquired(lock_id),

            (Phase::Withdrawing(Some(error)), _) => Action::Fail(error),
            (Phase::Withdrawing(None), Event::Deleted) => self.wait(now),

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
            return self.withdraw(lock_id, None);
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
                self.withdraw(lock_id, None)
            }
        }
    }

    fn withdraw(&mut self, lock_id: String, then: Option<Error>) -> Action {
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
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const MINE: &str = "00000000-0199-8000-8000-000000000002";
    const LOWER: &str = "00000000-0199-8000-8000-000000000001";
    const HIGHER: &str = "5f0f6f6e-0000-4000-8000-000000000000";

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn machine(protocol: LockProtocol) -> Machine {
        let limits =
            LockSettings { protocol, settle: seconds(1), stale: seconds(300), wait: seconds(30), retry: seconds(1) };
        Machine::new(limits, Duration::ZERO)
    }

    fn row(lock_id: &str, stale: bool) -> LockRow {
        LockRow {
            lock_id: lock_id.to_owned(),
            owner: String::new(),
            locked_at: 0,
            ticket: 0,
            lasts: seconds(300),
            age: seconds(if stale { 301 } else { 1 }),
            stale,
        }
    }

    fn inserted(written: bool, took: Duration) -> Event {
        Event::Inserted { lock_id: MINE.to_owned(), written, took }
    }

    fn unordered(rows: Vec<LockRow>) -> Reading {
        Reading { rows, ordered: false, state: None }
    }

    /// The same rows with tickets in the order in which they stand.
    fn ordered(rows: Vec<LockRow>) -> Reading {
        let rows = (1..).zip(rows).map(|(ticket, row)| LockRow { ticket, ..row }).collect();
        Reading { rows, ordered: true, state: None }
    }

    fn failure() -> Error {
        Error::new(ErrorKind::Unreachable, "gone")
    }

    /// Plays a script: at each time, in seconds, an event and the action that has to follow.
    fn check(script: Vec<(u64, Event, Action)>) {
        play(LockProtocol::Settle, script);
    }

    fn play(protocol: LockProtocol, script: Vec<(u64, Event, Action)>) {
        let mut machine = machine(protocol);
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
            (1, Event::Read(unordered(vec![row(MINE, false)])), Action::Acquired(MINE.to_owned())),
        ]);
    }

    #[test]
    fn the_lowest_live_row_wins_and_stale_rows_go() {
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (
                1,
                Event::Read(unordered(vec![row(LOWER, true), row(MINE, false), row(HIGHER, false)])),
                Action::DeleteStale,
            ),
            (1, Event::Deleted, Action::Acquired(MINE.to_owned())),
        ]);
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Read(unordered(vec![row(LOWER, false), row(MINE, false)])), Action::DeleteOwn(MINE.to_owned())),
            (1, Event::Deleted, Action::Retry(FIRST_PAUSE)),
            (2, Event::Slept, Action::Insert),
        ]);
    }

    #[test]
    fn a_candidate_that_vanished_or_became_stale_does_not_win() {
        for rows in [vec![], vec![row(HIGHER, false)], vec![row(MINE, true)]] {
            check(vec![
                (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
                (1, Event::Slept, Action::Read),
                (1, Event::Read(unordered(rows)), Action::DeleteOwn(MINE.to_owned())),
            ]);
        }
    }

    #[test]
    fn an_insert_slower_than_the_settle_time_withdraws() {
        check(vec![
            (2, inserted(true, Duration::from_millis(1001)), Action::DeleteOwn(MINE.to_owned())),
            (2, Event::Deleted, Action::Retry(FIRST_PAUSE)),
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
            (29, Event::Read(unordered(vec![])), Action::Insert),
            (30, inserted(false, Duration::ZERO), Action::Read),
            (30, Event::Read(unordered(vec![])), Action::Locked(Obstacle::Rivals)),
        ]);
    }

    #[test]
    fn a_holder_is_waited_for_until_the_limit() {
        check(vec![
            (0, inserted(false, Duration::ZERO), Action::Read),
            (0, Event::Read(unordered(vec![row(LOWER, false)])), Action::Retry(FIRST_PAUSE)),
            (1, Event::Slept, Action::Insert),
            // Requests took most of the time: they count.
            (30, inserted(false, seconds(29)), Action::Read),
            (30, Event::Read(unordered(vec![row(LOWER, false)])), Action::Locked(Obstacle::Holder(row(LOWER, false)))),
        ]);
    }

    #[test]
    fn stale_rows_alone_are_removed_and_a_released_lock_is_taken_at_once() {
        check(vec![
            (0, inserted(false, Duration::ZERO), Action::Read),
            (0, Event::Read(unordered(vec![row(LOWER, true)])), Action::DeleteStale),
            (0, Event::Deleted, Action::Insert),
        ]);
        check(vec![
            (0, inserted(false, Duration::ZERO), Action::Read),
            (0, Event::Read(unordered(vec![])), Action::Insert),
        ]);
    }

    #[test]
    fn a_ticket_is_read_at_once_and_the_first_row_counts() {
        for protocol in [LockProtocol::Auto, LockProtocol::Ticket] {
            let slow = seconds(5);
            play(
                protocol,
                vec![
                    (5, inserted(true, slow), Action::Read),
                    (
                        5,
                        Event::Read(ordered(vec![row(MINE, false), row(LOWER, false)])),
                        Action::Acquired(MINE.to_owned()),
                    ),
                ],
            );
            play(
                protocol,
                vec![
                    (0, inserted(true, Duration::ZERO), Action::Read),
                    (
                        0,
                        Event::Read(ordered(vec![row(HIGHER, false), row(MINE, false)])),
                        Action::DeleteOwn(MINE.to_owned()),
                    ),
                ],
            );
        }
    }

    #[test]
    fn without_tickets_auto_settles_and_ticket_fails() {
        let alone = || Event::Read(unordered(vec![row(MINE, false)]));
        play(
            LockProtocol::Auto,
            vec![
                (0, inserted(true, Duration::ZERO), Action::Read),
                (0, alone(), Action::Sleep(seconds(1))),
                (1, Event::Slept, Action::Read),
                (1, alone(), Action::Acquired(MINE.to_owned())),
            ],
        );
        play(
            LockProtocol::Auto,
            vec![(2, inserted(true, seconds(2)), Action::Read), (2, alone(), Action::DeleteOwn(MINE.to_owned()))],
        );
        play(
            LockProtocol::Ticket,
            vec![
                (0, inserted(true, Duration::ZERO), Action::Read),
                (0, alone(), Action::DeleteOwn(MINE.to_owned())),
                (0, Event::Deleted, Action::Fail(no_tickets())),
            ],
        );
    }

    #[test]
    fn settling_on_a_table_with_tickets_goes_by_them_too() {
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Read(ordered(vec![row(MINE, false), row(LOWER, false)])), Action::Acquired(MINE.to_owned())),
        ]);
    }

    #[test]
    fn pauses_grow_up_to_the_limit() {
        let mut machine = machine(LockProtocol::Auto);
        let mut pauses = Vec::new();
        machine.next(Duration::ZERO, Event::Wanted);
        for _ in 0..8 {
            machine.next(Duration::ZERO, inserted(false, Duration::ZERO));
            match machine.next(Duration::ZERO, Event::Read(unordered(vec![row(LOWER, false)]))) {
                Action::Retry(pause) => pauses.push(pause.as_millis()),
                other => panic!("{other:?}"),
            }
            machine.next(Duration::ZERO, Event::Slept);
        }
        assert_eq!(pauses, [25, 50, 100, 200, 400, 800, 1000, 1000]);
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
    fn a_lock_is_not_taken_over_before_the_stale_rows_are_gone() {
        check(vec![
            (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
            (1, Event::Slept, Action::Read),
            (1, Event::Read(unordered(vec![row(LOWER, true), row(MINE, false)])), Action::DeleteStale),
            (1, Event::Failed(failure()), Action::DeleteOwn(MINE.to_owned())),
            (1, Event::Deleted, Action::Fail(failure())),
        ]);
    }
}
