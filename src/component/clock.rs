//! Time, from `wasi:clocks`.

use std::time::Duration;

use wasi::clocks::{monotonic_clock, wall_clock};

use crate::ports::Clock;

/// How much too early the timers of some hosts may be.
const COARSE: Duration = Duration::from_millis(10);

/// The host's clocks.
pub(super) struct WasiClock;

impl Clock for WasiClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_clock::now())
    }

    fn unix_time(&self) -> Duration {
        let time = wall_clock::now();
        Duration::new(time.seconds, time.nanoseconds)
    }

    /// Until a moment, so that a host can tell it from the time limit of a request.
    fn sleep(&self, duration: Duration) -> bool {
        let end = monotonic_clock::now().saturating_add(nanos(duration));
        loop {
            monotonic_clock::subscribe_instant(end).block();
            match end.saturating_sub(monotonic_clock::now()) {
                0 => return true,
                left if left > nanos(COARSE) => return false,
                _ => {}
            }
        }
    }
}

/// WASI's unit of time; 584 years are the most it can say.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
