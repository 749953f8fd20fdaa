//! The states that are stored and read.

use meltano_state_host::State;

/// The one that is read and written again and again.
pub(crate) const ID: &str = "bench:tap-gitlab-to-target-jsonl";
/// As long.
pub(crate) const OTHER_ID: &str = "bench:tap-gitlab-to-target-jsonz";

/// One of many ids.
pub(crate) fn id(n: usize) -> String {
    format!("bench:tap-{n:07}-to-target-jsonl")
}

/// A state of a usual size, 250 bytes.
pub(crate) fn state(state_id: &str, n: usize) -> State {
    State { state_id: state_id.to_owned(), partial_state: Some(content(n)), completed_state: None }
}

/// Bookmarks of three streams.
pub(crate) fn content(n: usize) -> String {
    // Always as many digits.
    let page = 1_000_000 + n;
    let stream = |name: &str| {
        format!(r#""{name}":{{"replication_key":"updated_at","value":"2026-01-01T00:00:00Z","page":{page}}}"#)
    };
    let [issues, commits, users] = ["issues", "commits", "u"].map(stream);
    format!(r#"{{"singer_state":{{"bookmarks":{{{issues},{commits},{users}}}}}}}"#)
}
