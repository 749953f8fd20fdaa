//! A checker that cannot fail proves nothing: each broken rule or assumption shows within so many schedules.

use super::explore::check_caught;
use super::monitor::Kind;
use super::scenario::{ALL_RULES, Clock, LATE, PUBLISHED, Pace, Rules, SETTLE, Scenario, TICKET};
use super::table::Layout;
use super::times::Times;

/// Connections that are lost, and nothing else.
const CUT: Scenario = Scenario { edges: 0, cuts: &[100], stalls: false, crashes: false, ..LATE };

fn check(scenario: Scenario, rules: Rules, kind: Kind, schedules: u64) {
    let claims: &[Kind] = match kind {
        Kind::Overlap => &[Kind::Overlap],
        Kind::PeerOverlap => &[Kind::PeerOverlap],
        Kind::LateWrite => &[Kind::LateWrite],
        Kind::LostUpdate => &[Kind::LostUpdate],
        Kind::LeftBehind => &[Kind::LeftBehind],
        other => panic!("{other:?} is not looked for"),
    };
    check_caught(Scenario { rules, claims, ..scenario }, kind, schedules);
}

/// A process that stops between its look for a holder and its insert takes a held lock.
#[test]
fn the_published_algorithm() {
    check(Scenario { peer_pace: Pace::Any, ..PUBLISHED }, ALL_RULES, Kind::PeerOverlap, 2_000);
}

/// A merge takes the holder's row, though nobody is slow.
#[test]
fn the_published_algorithm_on_its_own_table() {
    let scenario = Scenario { layout: Layout::Plain, merges: true, ..PUBLISHED };
    check(scenario, ALL_RULES, Kind::PeerOverlap, 2_000);
}

#[test]
fn settle_on_the_old_table() {
    check(Scenario { layout: Layout::Plain, cuts: &[0], crashes: false, ..SETTLE }, ALL_RULES, Kind::Overlap, 10_000);
}

#[test]
fn settle_without_its_guard() {
    check(SETTLE, Rules { guard: false, ..ALL_RULES }, Kind::Overlap, 2_000);
}

#[test]
fn settle_without_its_round_trip_rule() {
    check(SETTLE, Rules { round_trip: false, ..ALL_RULES }, Kind::Overlap, 2_000);
}

#[test]
fn claims_where_the_lowest_id_counts() {
    check(SETTLE, Rules { ordered_claims: false, ..ALL_RULES }, Kind::LateWrite, 10_000);
}

/// The last holder writes and releases between the look at the state and that at the lock.
#[test]
fn claims_that_look_at_the_state_first() {
    let slow = Scenario { slow: &[200], edges: 0, cuts: &[0], stalls: false, crashes: false, ..TICKET };
    check(slow, Rules { lock_first: false, ..ALL_RULES }, Kind::LostUpdate, 40_000);
}

#[test]
fn ticket_by_the_lowest_id() {
    check(TICKET, Rules { block_order: false, ..ALL_RULES }, Kind::Overlap, 2_000);
}

#[test]
fn writes_without_a_fence() {
    for scenario in [TICKET, SETTLE] {
        check(scenario, Rules { fence: false, ..ALL_RULES }, Kind::LateWrite, 2_000);
    }
}

#[test]
fn a_fence_without_margin() {
    check(LATE, Rules { margin: false, ..ALL_RULES }, Kind::LateWrite, 10_000);
}

#[test]
fn updates_that_do_not_compare() {
    check(TICKET, Rules { compare: false, ..ALL_RULES }, Kind::LostUpdate, 10_000);
}

/// The next holder sees a state that changes under its lock.
#[test]
fn a_lock_released_after_a_write_of_unknown_outcome() {
    check(Scenario { slow: &[0, 0, 200], ..CUT }, Rules { keep: false, ..ALL_RULES }, Kind::LateWrite, 60_000);
}

#[test]
fn a_write_repeated_while_it_is_carried_out() {
    check(CUT, Rules { one_at_a_time: false, ..ALL_RULES }, Kind::LateWrite, 10_000);
}

#[test]
fn a_row_removed_while_it_is_added() {
    check(CUT, Rules { in_turn: false, ..ALL_RULES }, Kind::LeftBehind, 10_000);
}

#[test]
fn a_renewal_without_margin() {
    check(LATE, Rules { renewal_margin: false, ..ALL_RULES }, Kind::Overlap, 10_000);
}

/// As a time limit is, that is rounded up to whole seconds when the margin is not.
#[test]
fn a_margin_shorter_than_the_time_limit() {
    let times = Times { request: 4_050, ..LATE.times };
    check(Scenario { times, ..LATE }, ALL_RULES, Kind::LateWrite, 10_000);
}

#[test]
fn holders_that_do_not_agree_when_a_lock_is_stale() {
    check(Scenario { stales: &[7_000, 14_000], ..LATE }, ALL_RULES, Kind::LateWrite, 10_000);
}

#[test]
fn a_clock_that_jumps_while_a_write_is_carried_out() {
    check(Scenario { clock: Clock::Jumps, ..LATE }, ALL_RULES, Kind::LateWrite, 10_000);
}
