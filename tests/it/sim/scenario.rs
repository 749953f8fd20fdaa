//! Who takes part, what may go wrong, which rules are in force and what is claimed.

use meltano_state_backend_clickhouse::settings::LockProtocol;

use super::monitor::Kind;
use super::table::Layout;
use super::times::{DEFAULT, TIGHT, Times};

/// A family of schedules; the seed picks one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) layout: Layout,
    pub(super) protocol: LockProtocol,
    pub(super) times: Times,
    /// At least and at most so many of ours, each making a few calls.
    pub(super) ours: (u64, u64),
    pub(super) peers: (u64, u64),
    /// How slow the peers may be.
    pub(super) peer_pace: Pace,
    /// How often a connection is lost, in times of a thousand; each schedule draws one of these.
    pub(super) cuts: &'static [u64],
    /// Whether processes die.
    pub(super) crashes: bool,
    /// Whether processes stop and go on.
    pub(super) stalls: bool,
    /// How often a client is slow, in times of a thousand; each draws one of these. One that is slow among others that
    /// are not shows the most.
    pub(super) slow: &'static [u64],
    /// How often a holder waits until its lock is all but stale, and as often until it is all but too old to be written
    /// under, in times of a thousand.
    pub(super) edges: u64,
    pub(super) merges: bool,
    pub(super) clock: Clock,
    /// Each of ours goes by one of these stale times; none: by the one that is set.
    pub(super) stales: &'static [u64],
    pub(super) rules: Rules,
    pub(super) claims: &'static [Kind],
}

/// The server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Steady,
    /// It steps back by less than the freshness that a fence demands beyond the lock's own, all steps together: then a
    /// lock that was stale once stays without effect. It steps forward by any time, but not while a fenced statement is
    /// carried out, whose margin is no longer than its time limit.
    Steps,
    /// It steps at any moment by any time.
    Jumps,
}

/// What the add-on assumes of the time from its look for a holder until its row is visible: less than the settle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// The assumption holds.
    Prompt,
    /// It does not.
    Any,
}

/// The rules of our protocols that the simulator can break.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// A candidate is inserted only where no live row is.
    pub(super) guard: bool,
    /// A row is inserted without that guard only where the order of insertion decides.
    pub(super) ordered_claims: bool,
    /// A candidate whose insert took longer than the settle time withdraws.
    pub(super) round_trip: bool,
    /// In ticket the row that was inserted first counts, not the lowest id.
    pub(super) block_order: bool,
    /// A write is carried out only under the lock.
    pub(super) fence: bool,
    /// Within a write the server looks at the lock first, and then at the state.
    pub(super) lock_first: bool,
    /// It is so only if it ends before the lock can be stale.
    pub(super) margin: bool,
    /// An update is written only over the version that it was merged with.
    pub(super) compare: bool,
    /// Who does not know what became of a write keeps the lock, which then lasts until it is stale: the write may have
    /// been judged already, and become visible later.
    pub(super) keep: bool,
    /// The server refuses to repeat a statement while it is still being carried out, as it does if both have one query id.
    pub(super) one_at_a_time: bool,
    /// A row that may still be added is removed under the query id of the statement that adds it.
    pub(super) in_turn: bool,
    /// A renewal has the margin and the time limit of a write.
    pub(super) renewal_margin: bool,
}

pub(super) const ALL_RULES: Rules = Rules {
    guard: true,
    ordered_claims: true,
    round_trip: true,
    block_order: true,
    fence: true,
    lock_first: true,
    margin: true,
    compare: true,
    keep: true,
    one_at_a_time: true,
    in_turn: true,
    renewal_margin: true,
};

/// All that is claimed of our own clients.
const OURS: &[Kind] = &[Kind::Overlap, Kind::LateWrite, Kind::LostUpdate, Kind::LeftBehind, Kind::NoProgress];

/// The order of insertion on a table that tells it.
pub(super) const TICKET: Scenario = Scenario {
    layout: Layout::Ordered,
    protocol: LockProtocol::Auto,
    times: TIGHT,
    ours: (2, 4),
    peers: (0, 0),
    peer_pace: Pace::Prompt,
    cuts: &[0, 0, 20, 100],
    crashes: true,
    stalls: true,
    slow: &[0, 0, 20, 100, 400],
    edges: 50,
    merges: true,
    clock: Clock::Steps,
    stales: &[],
    rules: ALL_RULES,
    claims: OURS,
};

/// Settling where block numbers tell nothing.
pub(super) const SETTLE: Scenario = Scenario { layout: Layout::Named, protocol: LockProtocol::Settle, ..TICKET };

/// Ours and prompt peers, side by side.
pub(super) const MIXED: Scenario = Scenario {
    times: DEFAULT,
    ours: (1, 3),
    peers: (1, 2),
    // The add-on's writes carry the server's time as it is, so its versions need a clock that does not step.
    clock: Clock::Steady,
    claims: &[
        Kind::Overlap,
        Kind::MixedOverlap,
        Kind::PeerOverlap,
        Kind::LateWrite,
        Kind::LostUpdate,
        Kind::LeftBehind,
        Kind::NoProgress,
    ],
    ..TICKET
};

/// Ours, and peers whose assumption does not hold: they may rob each other, but not us, nor we them.
pub(super) const MIXED_SLOW: Scenario = Scenario {
    peer_pace: Pace::Any,
    claims: &[Kind::Overlap, Kind::MixedOverlap, Kind::LeftBehind, Kind::NoProgress],
    ..MIXED
};

/// The published algorithm alone, on a table that no merge spoils.
pub(super) const PUBLISHED: Scenario = Scenario {
    times: DEFAULT,
    ours: (0, 0),
    peers: (2, 4),
    cuts: &[0],
    crashes: false,
    merges: false,
    clock: Clock::Steady,
    claims: &[Kind::PeerOverlap],
    ..TICKET
};

/// More of what takes about as long as a limit.
pub(super) const LATE: Scenario =
    Scenario { slow: &[0, 100, 200], edges: 300, ours: (3, 5), clock: Clock::Steady, ..TICKET };
