//! Times, and how they are taken.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The times that one thing took, sorted.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// In milliseconds, as all of them.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn spread(&self) -> String {
        // Enough digits for what takes microseconds.
        let digits = if self.median() < 1.0 { 4 } else { 2 };
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|fraction| self.quantile(fraction));
        format!("{middle:.digits$} ({low:.digits$} … {high:.digits$})")
    }

    pub(crate) fn json(&self) -> Value {
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|fraction| self.quantile(fraction));
        json!({"median_ms": middle, "p10_ms": low, "p90_ms": high, "rounds": self.0.len()})
    }

    fn quantile(&self, fraction: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let index = ((self.0.len() - 1) as f64 * fraction).round() as usize;
        self.0[index].as_secs_f64() * 1000.0
    }
}

pub(crate) fn timed<T>(action: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = action();
    (start.elapsed(), result)
}

/// One side of a comparison: does its thing for a round, and says how long it took.
pub(crate) type Side<'a> = Box<dyn FnMut(usize) -> Duration + 'a>;

/// Lets the sides take turns, after a tenth as many rounds that do not count.
pub(crate) fn in_turns(rounds: usize, sides: &mut [Side]) -> Vec<Times> {
    let warm_up = rounds.div_ceil(10);
    let mut times = vec![Vec::with_capacity(rounds); sides.len()];
    for round in 0..rounds + warm_up {
        for turn in 0..sides.len() {
            // Who begins changes, and the direction, so that none always finds what the same other one left in the caches.
            let turn = if round % 2 == 0 { turn } else { sides.len() - 1 - turn };
            let side = (turn + round / 2) % sides.len();
            let time = sides[side](round);
            if round >= warm_up {
                times[side].push(time);
            }
        }
    }
    times.into_iter().map(Times::new).collect()
}
