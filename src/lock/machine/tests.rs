//! Scripts of events, and the actions that have to follow.

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
        (1, Event::Read(unordered(vec![row(LOWER, true), row(MINE, false), row(HIGHER, false)])), Action::DeleteStale),
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
                (5, Event::Read(ordered(vec![row(MINE, false), row(LOWER, false)])), Action::Acquired(MINE.to_owned())),
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
        (0, uncertain(), Action::DeleteOwn(MINE.to_owned())),
        (0, Event::Failed(failure()), Action::Fail(failure())),
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

fn uncertain() -> Event {
    Event::InsertUncertain { lock_id: MINE.to_owned(), error: failure() }
}

#[test]
fn an_insert_that_may_not_have_arrived_is_tried_again_once_its_row_is_gone() {
    let removed = || Action::DeleteOwn(MINE.to_owned());
    let milliseconds = Duration::from_millis;
    check(vec![
        (0, uncertain(), removed()),
        (0, Event::Deleted, Action::Retry(milliseconds(25))),
        (0, Event::Slept, Action::Insert),
        (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
    ]);
    // Not after the time to wait, and not for ever.
    check(vec![(30, uncertain(), removed()), (30, Event::Deleted, Action::Fail(failure()))]);
    let mut machine = machine(LockProtocol::Auto);
    machine.next(Duration::ZERO, Event::Wanted);
    for time in 1..8 {
        assert_eq!(machine.next(Duration::ZERO, uncertain()), removed());
        assert!(matches!(machine.next(Duration::ZERO, Event::Deleted), Action::Retry(_)), "{time}");
        assert_eq!(machine.next(Duration::ZERO, Event::Slept), Action::Insert);
    }
    assert_eq!(machine.next(Duration::ZERO, uncertain()), removed());
    assert_eq!(machine.next(Duration::ZERO, Event::Deleted), Action::Fail(failure()));
}

#[test]
fn a_wait_that_is_called_off_ends_it_and_leaves_no_row() {
    check(vec![
        (0, inserted(true, Duration::ZERO), Action::Sleep(seconds(1))),
        (0, Event::Failed(failure()), Action::DeleteOwn(MINE.to_owned())),
        (0, Event::Deleted, Action::Fail(failure())),
    ]);
    check(vec![
        (0, inserted(false, Duration::ZERO), Action::Read),
        (0, Event::Read(unordered(vec![row(LOWER, false)])), Action::Retry(FIRST_PAUSE)),
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

#[test]
fn a_claim_that_came_first_holds_the_lock_where_the_order_decides() {
    let claimed = || Event::Claimed { lock_id: MINE.to_owned() };
    let withdrawn = || Action::DeleteOwn(MINE.to_owned());
    for (reading, expected) in [
        (ordered(vec![row(MINE, false), row(LOWER, false)]), Action::Acquired(MINE.to_owned())),
        (ordered(vec![row(HIGHER, true), row(MINE, false)]), Action::DeleteStale),
        (ordered(vec![row(HIGHER, false), row(MINE, false)]), withdrawn()),
        (unordered(vec![row(MINE, false)]), withdrawn()),
    ] {
        play(LockProtocol::Auto, vec![(0, claimed(), Action::Read), (0, Event::Read(reading), expected)]);
    }
    play(
        LockProtocol::Auto,
        vec![
            (0, claimed(), Action::Read),
            (0, Event::Failed(failure()), withdrawn()),
            (0, Event::Deleted, Action::Fail(failure())),
        ],
    );
}
