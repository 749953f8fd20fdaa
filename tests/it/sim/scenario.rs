//! Who takes part, what may go wrong, which rules are in force and what is claimed.

use meltano_state_backend_clickhouse::settings::LockProtocol;

use super::monitor::Kind;
use super::table::Layout;
use super::times::{TIGHT, Times};

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
    /// Whether connections are lost and processes die.
    pub(super) faults: bool,
    /// Whether processes stop and go on.
    pub(super) stalls: bool,
    pub(super) merges: bool,
    /// Whether the server's clock steps.
    pub(super) clock_steps: bool,
    pub(super) rules: Rules,
    pub(super) claims: &'static [Kind],
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
    /// A candidate whose insert took longer than the settle time withdraws.
    pub(super) round_trip: bool,
    /// In ticket the row that was inserted first counts, not the lowest id.
    pub(super) block_order: bool,
    /// A write is carried out only under the lock.
    pub(super) fence: bool,
    /// It is so only if it ends before the lock can be stale.
    pub(super) margin: bool,
    /// An update is written only over the version that it was merged with.
    pub(super) compare: bool,
}

pub(super) const ALL_RULES: Rules =
    Rules { guard: true, round_trip: true, block_order: true, fence: true, margin: true, compare: true };

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
    faults: true,
    stalls: true,
    merges: true,
    clock_steps: true,
    rules: ALL_RULES,
    claims: OURS,
};

/// Settling where block numbers tell nothing.
pub(super) const SETTLE: Scenario = Scenario { layout: Layout::Named, protocol: LockProtocol::Settle, ..TICKET };
