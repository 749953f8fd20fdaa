//! The time here against the time of the server.

use std::time::Duration;

use super::report::Finding;

/// Differences up to this do no harm: lock ids sort by the time of the host that makes them, so a process whose clock
/// is behind gets a contended lock more often. Nothing else depends on a host's clock.
const TOLERATED: u64 = 5;

/// Compares the server's clock, which counts whole seconds, with the clock here before the question and after the
/// answer.
pub(super) fn compare(before: Duration, server: u64, after: Duration) -> Finding {
    // The server's clock stood between `server` and `server + 1` at some moment between `before` and `after`.
    let ahead = server.saturating_sub(after.as_secs() + 1);
    let behind = before.as_secs().saturating_sub(server + 1);
    let (difference, side) = if ahead > 0 { (ahead, "ahead of") } else { (behind, "behind") };
    if difference == 0 {
        return Finding::ok("the clocks here and at the server agree to the second");
    }
    let found = format!("the server's clock is {difference} s {side} the one here");
    if difference <= TOLERATED {
        return Finding::ok(found);
    }
    Finding::warning(
        found,
        "set both clocks by NTP: of processes that want one lock, those whose clocks are behind get it more often",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Status;

    fn check(before: f64, server: u64, after: f64, status: Status, found: &str) {
        let finding = compare(Duration::from_secs_f64(before), server, Duration::from_secs_f64(after));
        assert_eq!(finding.status, status, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
    }

    #[test]
    fn differences() {
        check(100.0, 100, 100.1, Status::Ok, "agree");
        check(100.9, 101, 101.1, Status::Ok, "agree");
        check(100.0, 130, 140.0, Status::Ok, "agree");
        check(100.0, 104, 100.1, Status::Ok, "3 s ahead of");
        check(100.0, 160, 100.1, Status::Warning, "59 s ahead of");
        check(3700.0, 100, 3700.1, Status::Warning, "3599 s behind");
    }
}
