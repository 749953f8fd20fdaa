//! What holds, whatever happens.

use meltano_state_backend_clickhouse::settings::LockProtocol;

use super::explore::check;
use super::monitor::Kind;
use super::scenario::{MIXED, MIXED_SLOW, PUBLISHED, SETTLE, Scenario, TICKET};
use super::table::Layout;

#[test]
fn ticket() {
    check(TICKET, 6_000);
}

#[test]
fn settle() {
    check(SETTLE, 5_000);
}

#[test]
fn auto_where_block_numbers_tell_nothing() {
    check(Scenario { protocol: LockProtocol::Auto, ..SETTLE }, 2_000);
}

#[test]
fn settle_where_block_numbers_would_tell() {
    check(Scenario { protocol: LockProtocol::Settle, ..TICKET }, 2_000);
}

/// On the add-on's table a merge can take the holder's row. Then its writes are refused, so that nothing is lost.
#[test]
fn settle_on_the_old_table() {
    let claims = &[Kind::LostUpdate, Kind::LeftBehind, Kind::NoProgress];
    check(Scenario { layout: Layout::Plain, claims, ..SETTLE }, 2_000);
}

#[test]
fn ticket_beside_prompt_peers() {
    check(MIXED, 2_000);
}

#[test]
fn settle_beside_prompt_peers() {
    check(Scenario { layout: Layout::Named, protocol: LockProtocol::Settle, ..MIXED }, 2_000);
}

#[test]
fn ticket_beside_slow_peers() {
    check(MIXED_SLOW, 2_000);
}

#[test]
fn settle_beside_slow_peers() {
    check(Scenario { layout: Layout::Named, protocol: LockProtocol::Settle, ..MIXED_SLOW }, 2_000);
}

/// What the add-on assumes is enough for it, on a table that no merge spoils.
#[test]
fn prompt_peers_alone() {
    check(PUBLISHED, 1_000);
}
