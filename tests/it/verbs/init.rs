//! `init`: what it says it did, and what it would do.

use serde_json::{Value, json};

use super::ok;
use crate::cli::run;
use crate::sandbox::Sandbox;

fn deeds(sandbox: &Sandbox, flags: &[&str]) -> Vec<Value> {
    let arguments = [&["init", "--format", "json"], flags].concat();
    let result: Value = serde_json::from_str(&ok(sandbox, &arguments).stdout).unwrap();
    let dry_run = flags.contains(&"--dry-run");
    assert_eq!((&result["initialized"], &result["dry_run"]), (&json!(!dry_run), &json!(dry_run)));
    result["things"].as_array().unwrap().iter().map(|thing| thing["deed"].clone()).collect()
}

#[test]
fn it_says_what_it_did_and_before_what_it_would_do() {
    let sandbox = Sandbox::new();
    let databases = || sandbox.sql("SELECT count() FROM system.databases WHERE name = '{}'");
    let keeping = ["--set", "clickhouse.history_days=7"];
    let plan = ok(&sandbox, &[&["init", "-n"][..], &keeping].concat());
    for line in ["would be created  database it_", "would be created  state table", "would be begun    history"] {
        assert!(plan.stdout.contains(line), "{}", plan.stdout);
    }
    assert_eq!((plan.stderr.as_str(), databases().as_str()), ("dry run: nothing was changed\n", "0\n"));
    assert_eq!(deeds(&sandbox, &["--dry-run"]), ["created", "created", "created", "right"]);
    assert_eq!(databases(), "0\n");

    let done = ok(&sandbox, &[&["init"][..], &keeping].concat());
    assert!(done.stdout.contains(" created  lock table") && done.stdout.contains("kept for 7 days"), "{}", done.stdout);
    assert_eq!(done.stderr, "the tables are ready\n");
    assert_eq!(deeds(&sandbox, &keeping), ["right"; 4]);
    let ending = ["--set", "clickhouse.history_days=0"];
    assert_eq!(deeds(&sandbox, &[&["--dry-run"][..], &ending].concat()), ["right", "right", "right", "ended"]);
    assert_eq!(deeds(&sandbox, &ending), ["right", "right", "right", "ended"]);
    assert_eq!(deeds(&sandbox, &ending), ["right"; 4]);
}

#[test]
fn what_it_left_is_not_called_ready() {
    let sandbox = Sandbox::new();
    ok(&sandbox, &["init"]);
    sandbox.sql("DROP TABLE {}.state_lock SYNC");
    sandbox.sql(
        "CREATE TABLE {}.state_lock (state_id String, lock_id String, locked_at DateTime DEFAULT now()) \
         ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id",
    );
    sandbox.sql("INSERT INTO {}.state_lock (state_id, lock_id) VALUES ('a', 'rival')");
    for flags in [&["init"][..], &["init", "--dry-run"]] {
        let left = ok(&sandbox, flags);
        assert!(left.stdout.contains("left as it is  lock table"), "{}", left.stdout);
        assert!(left.stdout.contains("locks are held") && left.stdout.contains("hint: "), "{}", left.stdout);
        assert!(!left.stderr.contains("ready"), "{}", left.stderr);
    }
    assert_eq!(deeds(&sandbox, &[]), ["right", "right", "left", "right"]);
    sandbox.sql("DELETE FROM {}.state_lock WHERE true");
    assert_eq!(deeds(&sandbox, &["--dry-run"]), ["right", "right", "upgraded", "right"]);
    assert_eq!(deeds(&sandbox, &[]), ["right", "right", "upgraded", "right"]);
    assert_eq!(deeds(&sandbox, &[]), ["right"; 4]);
    sandbox.sql("DROP TABLE {}.state SYNC");
    sandbox.sql("CREATE TABLE {}.state (n UInt8) ENGINE = MergeTree ORDER BY n");
    assert_eq!(run(&sandbox, &["init", "--dry-run"]).code, 1);
}
