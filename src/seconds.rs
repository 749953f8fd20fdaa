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

/// Reads a decimal number of seconds, such as `30` or `0.25`, to the nanosecond. By hand: the parser for floating-point
/// numbers takes 15 KB of the component.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() == fraction.len() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(Duration::new(whole.parse().ok()?, nanos.parse().ok()?))
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

    fn check_parse(text: &str, millis: Option<u64>) {
        assert_eq!(parse(text), millis.map(Duration::from_millis), "{text:?}");
    }

    #[test]
    fn decimal_numbers() {
        check_parse("0", Some(0));
        check_parse("30", Some(30_000));
        check_parse("1.0", Some(1_000));
        check_parse("0.25", Some(250));
        check_parse("2.", Some(2_000));
        check_parse("0.0010000001", Some(1));
        for text in ["", ".", ".5", "1e3", "-1", "+1", "NaN", "inf", "1.2.3", " 1", "1,5", "18446744073709551616"] {
            check_parse(text, None);
        }
    }
}
