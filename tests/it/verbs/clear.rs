//! `clear`.

use super::{insert, ok, ready, set, stored};
use crate::cli::{check, check_fails};

#[test]
fn what_is_cleared_is_named_before() {
    let sandbox = ready();
    set(&sandbox, "a*", 1);
    set(&sandbox, "ab", 1);
    insert(&sandbox, "garbage", "'x'", "NULL");
    let before = stored(&sandbox);
    check_fails(&sandbox, &["clear", "a*"], 2, &["remove the state of a* (complete, 24 B,", "--force"]);
    check_fails(&sandbox, &["clear", "--all"], 2, &["remove ALL states, 3 of them", "--force"]);
    check_fails(&sandbox, &["clear", ""], 2, &["empty"]);
    assert_eq!(stored(&sandbox), before);

    ok(&sandbox, &["clear", "a*", "--force"]);
    check(&sandbox, &["list"], "ab\ngarbage\n");
    ok(&sandbox, &["clear", "garbage", "-y"]);
    check(&sandbox, &["clear", "--all", "--force", "--format", "json"], "{\"cleared_count\":1}\n");
    check(&sandbox, &["list"], "");
}

#[test]
fn where_nothing_is_nothing_is_removed() {
    let sandbox = ready();
    for flags in [&[][..], &["--force"]] {
        let run = ok(&sandbox, &[&["clear", "a"], flags].concat());
        assert_eq!(run.stderr, "there is no state of a\n");
        check(&sandbox, &[&["clear", "a", "--format", "json"], flags].concat(), "{\"cleared\":null}\n");
        check(&sandbox, &[&["clear", "--all", "--format", "json"], flags].concat(), "{\"cleared_count\":0}\n");
    }
}
