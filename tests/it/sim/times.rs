//! The limits of the protocol, and delays that lie about them. All times are in milliseconds.

use std::time::Duration;

use meltano_state_backend_clickhouse::settings::{LockProtocol, LockSettings};

use crate::rng::Rng;

/// The limits that are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) settle: u64,
    pub(super) stale: u64,
    pub(super) wait: u64,
    pub(super) retry: u64,
    /// For one statement with its repetitions.
    pub(super) request: u64,
    /// What the server holds a fenced statement to: the same, in whole seconds.
    pub(super) limit: u64,
}

/// As close together as the settings allow, so that short schedules meet all of them.
pub(super) const TIGHT: Times =
    Times { settle: 1_000, stale: 7_000, wait: 8_000, retry: 500, request: 5_000, limit: 5_000 };
/// The defaults, which the add-on's fixed limits go with; with longer pauses, for the sake of shorter schedules.
pub(super) const DEFAULT: Times =
    Times { settle: 1_000, stale: 300_000, wait: 30_000, retry: 5_000, request: 60_000, limit: 60_000 };

impl Times {
    pub(super) fn limits(&self, protocol: LockProtocol, stale: u64, wait: u64) -> LockSettings {
        LockSettings {
            protocol,
            settle: millis(self.settle),
            stale: millis(stale),
            wait: millis(wait),
            retry: millis(self.retry),
        }
    }
}

pub(super) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How bad one schedule is, each in times of a thousand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// A connection is lost, before or after the request arrived.
    pub(super) cut: u64,
    /// A process stops when it is its turn, and goes on later.
    pub(super) stall: u64,
    /// A process ends when it is its turn.
    pub(super) crash: u64,
    /// A merge follows a change.
    pub(super) merge: u64,
}

impl Weather {
    pub(super) const CALM: Self = Self { cut: 0, stall: 0, crash: 0, merge: 0 };

    /// Some schedules are all but calm, so that a single mishap meets a protocol that works; some are storms.
    pub(super) fn draw(rng: &mut Rng, cuts: &[u64]) -> Self {
        Self {
            cut: rng.pick(cuts),
            stall: rng.pick(&[0, 0, 10, 50]),
            crash: rng.pick(&[0, 0, 5, 20]),
            merge: rng.pick(&[0, 100, 500]),
        }
    }
}

/// How long a step takes. So many of a thousand take about as long as one of the limits.
pub(super) fn delay(rng: &mut Rng, times: &Times, slow: u64) -> u64 {
    if rng.chance(slow) {
        return long(rng, times);
    }
    let most = rng.pick(&[2, 5, 30]);
    rng.below(most)
}

/// About as long as one of the limits, or as the gap between two of them.
pub(super) fn long(rng: &mut Rng, times: &Times) -> u64 {
    let limit = rng.pick(&[
        50,
        times.retry,
        times.settle,
        times.settle,
        times.settle * 2,
        times.request,
        times.stale - times.request,
        times.stale,
    ]);
    match rng.below(3) {
        0 => limit.saturating_sub(20) + rng.below(40),
        1 => limit * (500 + rng.below(1000)) / 1000,
        _ => rng.below(limit),
    }
}
