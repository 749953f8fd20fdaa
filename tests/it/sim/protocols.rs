//! What holds, whatever happens.

use meltano_state_backend_clickhouse::settings::LockProtocol;

use super::explore::check;
use super::monitor::Kind;
use super::scenario::{Clock, LATE, MIXED, MIXED_SLOW, PUBLISHED, SETTLE, Scenario, TICKET};
use super::table::Layout;

/// Settling on the same table as before, whose block numbers then tell nothing.
const fn settling(scenario: Scenario) -> Scenario {
    Scenario { layout: Layout::Named, protocol: LockProtocol::Settle, ..scenario }
}

const AUTO_SETTLING: Scenario = Scenario { protocol: LockProtocol::Auto, ..SETTLE };
const SETTLING_BY_TICKETS: Scenario = Scenario { protocol: LockProtocol::Settle, ..TICKET };

/// On the add-on's table a merge can take the holder's row. Then its writes are refused, so that nothing is lost.
const OLD_TABLE: Scenario =
    Scenario { layout: Layout::Plain, claims: &[Kind::LostUpdate, Kind::LeftBehind, Kind::NoProgress], ..SETTLE };

/// Whatever the server's clock does, no update is lost.
const JUMPS: Scenario = Scenario { clock: Clock::Jumps, claims: &[Kind::LostUpdate], ..TICKET };

#[test]
fn ticket() {
    check(TICKET, 5_000);
    check(LATE, 1_000);
}

#[test]
fn settle() {
    check(SETTLE, 4_000);
    check(settling(LATE), 1_000);
}

#[test]
fn auto_where_block_numbers_tell_nothing() {
    check(AUTO_SETTLING, 1_500);
}

#[test]
fn settle_where_block_numbers_would_tell() {
    check(SETTLING_BY_TICKETS, 1_000);
}

#[test]
fn settle_on_the_old_table() {
    check(OLD_TABLE, 1_500);
}

#[test]
fn beside_prompt_peers() {
    check(MIXED, 1_000);
    check(settling(MIXED), 1_000);
}

#[test]
fn beside_slow_peers() {
    check(MIXED_SLOW, 1_000);
    check(settling(MIXED_SLOW), 1_000);
}

#[test]
fn no_update_is_lost_whatever_the_clock_does() {
    check(JUMPS, 1_000);
}

/// What the add-on assumes is enough for it, on a table that no merge spoils.
#[test]
fn prompt_peers_alone() {
    check(PUBLISHED, 1_000);
}

#[test]
#[ignore = "minutes: cargo xtask test --long"]
fn a_million_schedules() {
    check(TICKET, 250_000);
    check(LATE, 150_000);
    check(SETTLE, 200_000);
    check(settling(LATE), 100_000);
    for scenario in [AUTO_SETTLING, SETTLING_BY_TICKETS, OLD_TABLE, JUMPS, MIXED, settling(MIXED)] {
        check(scenario, 40_000);
    }
    for scenario in [MIXED_SLOW, settling(MIXED_SLOW), PUBLISHED] {
        check(scenario, 20_000);
    }
}
