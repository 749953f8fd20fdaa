//! Durations as people read them.

use std::fmt;
use std::time::Duration;

/// Shows a duration in seconds, to the millisecond: `30 s`, `0.25 s`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.subsec_millis();
        write!(f, "{}", self.0.as_secs())?;
        if millis > 0 {
            let digits = format!("{millis:03}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str(" s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(millis: u64, shown: &str) {
        assert_eq!(Seconds(Duration::from_millis(millis)).to_string(), shown);
    }

    #[test]
    fn no_zeros_at_the_end() {
        check(0, "0 s");
        check(1, "0.001 s");
        check(250, "0.25 s");
        check(30_000, "30 s");
        check(60_500, "60.5 s");
    }
}
