//! `copy` and `move`.

use super::{insert, merge, ok, ready, set, stored};
use crate::cli::{check, check_fails};
use crate::sandbox::Sandbox;

const MERGED: &str = "{\"singer_state\":{\"n\":1,\"p\":2}}";

/// A state with both parts.
fn with_source() -> Sandbox {
    let sandbox = ready();
    set(&sandbox, "source", 1);
    merge(&sandbox, "source", "\"p\":2");
    sandbox
}

/// The completed and the partial part, `ᴺᵁᴸᴸ` for none.
fn parts(sandbox: &Sandbox, id: &str) -> String {
    sandbox.sql(&format!(
        "SELECT completed_state, partial_state FROM {{}}.state FINAL WHERE state_id = '{id}' FORMAT TSVRaw"
    ))
}

#[test]
fn a_copy_is_what_the_next_run_would_start_from() {
    let sandbox = with_source();
    let copied = ok(&sandbox, &["copy", "source", "a"]);
    assert!(copied.stderr.contains("warning:") && copied.stderr.contains("--keep-parts"), "{}", copied.stderr);
    assert_eq!(parts(&sandbox, "a"), format!("{MERGED}\t\\N\n"));

    let copied = ok(&sandbox, &["copy", "source", "b", "--keep-parts"]);
    assert!(!copied.stderr.contains("warning:"), "{}", copied.stderr);
    assert_eq!(parts(&sandbox, "b"), parts(&sandbox, "source"));

    set(&sandbox, "complete", 3);
    let copied = ok(&sandbox, &["copy", "complete", "c"]);
    assert!(!copied.stderr.contains("warning:"), "{}", copied.stderr);
    assert_eq!(sandbox.lock_rows(), "");
}

#[test]
fn a_moved_state_is_in_one_place() {
    let sandbox = with_source();
    ok(&sandbox, &["move", "source", "a", "--keep-parts"]);
    check(&sandbox, &["list"], "a\n");
    check(&sandbox, &["get", "a"], &format!("{MERGED}\n"));
    ok(&sandbox, &["move", "a", "b"]);
    assert_eq!(parts(&sandbox, "b"), format!("{MERGED}\t\\N\n"));
    check(&sandbox, &["list"], "b\n");
    assert_eq!(sandbox.lock_rows(), "");
}

#[test]
fn nothing_is_lost_by_copies_that_cannot_be_made() {
    let sandbox = with_source();
    set(&sandbox, "a", 7);
    insert(&sandbox, "garbage", "'x'", "NULL");
    let before = stored(&sandbox);
    for verb in ["copy", "move"] {
        // Meltano's move onto itself removes the state.
        check_fails(&sandbox, &[verb, "source", "source", "--force"], 2, &["both source and destination"]);
        // Meltano's copy of a missing state puts an empty one over the destination.
        check_fails(&sandbox, &[verb, "nothing", "a", "--force"], 1, &["there is no state of nothing"]);
        check_fails(&sandbox, &[verb, "garbage", "a", "--force"], 1, &["garbage"]);
        check_fails(&sandbox, &[verb, "source", "a"], 2, &["replace the state of a (complete, 24 B", "--force"]);
        check_fails(&sandbox, &[verb, "source", "", "--force"], 2, &["empty"]);
        assert_eq!(stored(&sandbox), before);
    }
    ok(&sandbox, &["copy", "source", "a", "--force"]);
    check(&sandbox, &["get", "a"], &format!("{MERGED}\n"));
}

#[test]
fn a_locked_destination_is_left_alone() {
    let sandbox = with_source();
    sandbox.sql("INSERT INTO {}.state_lock (state_id, lock_id) VALUES ('a', 'rival')");
    let before = stored(&sandbox);
    for verb in ["copy", "move"] {
        let arguments = ["--set", "clickhouse.lock_wait_seconds=0", verb, "source", "a"];
        check_fails(&sandbox, &arguments, 3, &["rival"]);
        assert_eq!((stored(&sandbox), sandbox.lock_rows()), (before.clone(), "a\trival\n".to_owned()));
    }
}
