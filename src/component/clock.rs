//! Time, from `wasi:clocks`.

use std::time::Duration;

use wasi::clocks::{monotonic_clock, wall_clock};

use crate::ports::Clock;

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

    fn sleep(&self, duration: Duration) {
        monotonic_clock::subscribe_duration(nanos(duration)).block();
    }
}

/// WASI's unit of time; 584 years are the most it can say.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
