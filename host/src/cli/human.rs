//! Sizes, ages and times for people.

use std::time::Duration;

use jiff::Timestamp;

/// Such as `1.2 KiB`.
pub(super) fn size(bytes: u64) -> String {
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1 << 10, "KiB"));
    // In tenths, cut off: what is shown was reached.
    let tenths = bytes * 10 / unit;
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// Such as `3 d`: in whole units of the greatest that fits.
pub(super) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [(24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1, "s"));
    format!("{} {name}", seconds / unit)
}

/// A time in UTC, from milliseconds since 1970.
pub(super) fn time(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds).map_or_else(|_| milliseconds.to_string(), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let all = [0, 1023, 1024, 1279, 1 << 20, (1 << 30) - 1, 5 << 30].map(size);
        assert_eq!(all, ["0 B", "1023 B", "1.0 KiB", "1.2 KiB", "1.0 MiB", "1023.9 MiB", "5.0 GiB"]);
    }

    #[test]
    fn ages() {
        let all = [0, 59, 60, 3599, 3600, 86_399, 86_400, 864_000].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(all, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 d", "10 d"]);
    }

    #[test]
    fn times() {
        assert_eq!(time(1_790_000_000_120), "2026-09-21T14:13:20.120Z");
        assert_eq!(time(i64::MAX), i64::MAX.to_string());
    }
}
