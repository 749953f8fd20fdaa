//! Which time and which randomness a component sees.

use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::time::Instant;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx};

/// Which time and which randomness the component sees.
///
/// Waiting always follows tokio's clock. With [`Surroundings::virtual_time`] reading does too: in a runtime whose clock
/// is paused, a call that waits for minutes is over at once, and goes the same way every time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings(Option<Virtual>);

#[derive(Clone, Copy, Debug)]
struct Virtual {
    start: Instant,
    unix_time_at_start: Duration,
    seed: u64,
}

impl Surroundings {
    /// The system's clocks and its randomness. The default.
    #[must_use]
    pub const fn system() -> Self {
        Self(None)
    }

    /// Clocks that follow tokio's, the wall clock showing `unix_time` (since 1970-01-01 UTC) now, and random numbers
    /// that follow from `seed`.
    ///
    /// For tests and simulations only: the random numbers can be foretold. Each instance draws the same ones, so
    /// instances that meet in one simulation need plugins with different seeds.
    #[must_use]
    pub fn virtual_time(unix_time: Duration, seed: u64) -> Self {
        Self(Some(Virtual { start: Instant::now(), unix_time_at_start: unix_time, seed }))
    }

    /// After how many ticks of the epoch a component that computes gives way to other tasks. At once, so that the timer
    /// of its deadline can end it; in virtual time practically never, since ticks come by the real clock and would make
    /// each run of a simulation different.
    pub(crate) fn ticks_before_yielding(&self) -> u64 {
        if self.0.is_some() { 1 << 40 } else { 1 }
    }

    pub(crate) fn wasi(&self) -> WasiCtx {
        let mut builder = WasiCtx::builder();
        if let Some(surroundings) = self.0 {
            builder.monotonic_clock(surroundings);
            builder.wall_clock(surroundings);
            builder.secure_random(StdRng::seed_from_u64(surroundings.seed));
        }
        builder.build()
    }
}

/// Both clocks count nanoseconds.
const RESOLUTION: Duration = Duration::from_nanos(1);

impl HostMonotonicClock for Virtual {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        // 584 years fit.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl HostWallClock for Virtual {
    fn resolution(&self) -> Duration {
        RESOLUTION
    }

    fn now(&self) -> Duration {
        self.unix_time_at_start + self.start.elapsed()
    }
}
