//! `history` and `restore`.

use serde_json::{Value, json};

use super::{insert, merge, ok, stored};
use crate::cli::{Run, check_fails, run};
use crate::sandbox::Sandbox;

const ON: [&str; 2] = ["--set", "clickhouse.history_days=30"];

fn kept(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let run = run(sandbox, &[&ON[..], arguments].concat());
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run
}

/// A state of three versions.
fn with_history() -> Sandbox {
    let sandbox = Sandbox::new();
    kept(&sandbox, &["init"]);
    ok(&sandbox, &["set", "a", "{\"singer_state\":{\"n\":1.0,\"m\":1}}"]);
    merge(&sandbox, "a", "\"p\":5");
    ok(&sandbox, &["set", "a", "{\"singer_state\":{\"n\":1.00}}", "--force"]);
    sandbox
}

fn versions(sandbox: &Sandbox, flags: &[&str]) -> Vec<Value> {
    let arguments = [&["history", "a", "--format", "json"], flags].concat();
    serde_json::from_str(&kept(sandbox, &arguments).stdout).unwrap()
}

#[test]
fn each_version_tells_what_changed() {
    let sandbox = with_history();
    let text = kept(&sandbox, &["history", "a"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    let changed = ".completed.singer_state.n, .completed.singer_state.m, .partial.singer_state.p";
    assert!(lines[0].contains("  complete  ") && lines[0].ends_with(changed), "{text}");
    assert!(lines[1].contains("  both  ") && lines[1].ends_with(".partial.singer_state.p"), "{text}");
    assert!(lines[2].ends_with("the oldest that is kept"), "{text}");
    assert!(lines[0].split_whitespace().nth(1).unwrap().ends_with('Z'), "{text}");

    let diff = kept(&sandbox, &["history", "a", "--diff", "--limit", "1"]).stdout;
    let (first, rest) = diff.split_once('\n').unwrap();
    assert_eq!(first, lines[0]);
    let values =
        "  ~ .completed.singer_state.n: 1.0 → 1.00\n  - .completed.singer_state.m: 1\n  - .partial.singer_state.p: 5\n";
    assert_eq!(rest, values);

    let all = versions(&sandbox, &[]);
    let numbers: Vec<i64> = all.iter().map(|version| version["version"].as_i64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|newer, older| newer > older), "{numbers:?}");
    assert_eq!(all[1]["changes"], json!([{"path": ".partial.singer_state.p", "new": 5}]));
    assert_eq!(all[2]["changes"], Value::Null);
    for limit in 1..=4 {
        let some = versions(&sandbox, &["--limit", &limit.to_string()]);
        // All but the age.
        let told = |versions: &[Value]| {
            let told = |version: &Value| (version["version"].clone(), version["changes"].clone());
            versions.iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(told(&some), told(&all[..limit.min(3)]));
    }
    assert_eq!(kept(&sandbox, &["history", "nothing"]).stdout, "");
}

#[test]
fn an_earlier_version_is_restored() {
    let sandbox = with_history();
    let all = versions(&sandbox, &[]);
    let middle = all[1]["version"].to_string();
    let before = stored(&sandbox);
    let refused = run(&sandbox, &[&ON[..], &["restore", "a", &middle]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("replace the state of a (complete,"), "{}", refused.stderr);
    let plan = kept(&sandbox, &["restore", "a", &middle, "--dry-run"]).stdout;
    assert!(plan.contains("  ~ .completed.singer_state.n: 1.00 → 1.0\n"), "{plan}");
    assert_eq!(stored(&sandbox), before);

    kept(&sandbox, &["restore", "a", &middle, "--force"]);
    let parts = sandbox.sql("SELECT completed_state, partial_state FROM {}.state FINAL FORMAT TSVRaw");
    assert_eq!(parts, "{\"singer_state\":{\"n\":1.0,\"m\":1}}\t{\"singer_state\":{\"p\":5}}\n");
    assert_eq!(versions(&sandbox, &[]).len(), 4, "it is a version of its own");
    assert_eq!(sandbox.lock_rows(), "");

    // Of a state that was removed its versions stay.
    ok(&sandbox, &["clear", "a", "--force"]);
    kept(&sandbox, &["restore", "a", &middle]);
    assert_eq!(ok(&sandbox, &["get", "a"]).stdout, "{\"singer_state\":{\"n\":1.0,\"m\":1,\"p\":5}}\n");
}

#[test]
fn versions_that_are_not_there_or_cannot_be_used() {
    let sandbox = with_history();
    for flags in [&[][..], &["--force"], &["--dry-run"]] {
        let arguments = [&ON[..], &["restore", "a", "12345"], flags].concat();
        check_fails(&sandbox, &arguments, if flags == ["--force"] { 2 } else { 1 }, &["12345"]);
    }
    insert(&sandbox, "a", "'garbage'", "NULL");
    let all = versions(&sandbox, &[]);
    assert_eq!((&all[0]["status"], &all[0]["changes"]), (&json!("unreadable"), &Value::Null));
    let text = kept(&sandbox, &["history", "a", "--diff"]).stdout;
    assert!(text.lines().next().unwrap().ends_with("cannot be compared"), "{text}");
    let garbage = all[0]["version"].to_string();
    check_fails(&sandbox, &[&ON[..], &["restore", "a", &garbage, "--force"]].concat(), 1, &["hint:"]);
    kept(&sandbox, &["restore", "a", &all[1]["version"].to_string(), "--force"]);
}

#[test]
fn that_nothing_is_recorded_any_more_is_said() {
    let sandbox = with_history();
    assert_eq!(kept(&sandbox, &["history", "a"]).stderr, "");
    kept(&sandbox, &["--set", "clickhouse.history_days=0", "init"]);
    let text = run(&sandbox, &["history", "a"]);
    assert_eq!((text.code, text.stdout.lines().count()), (0, 3));
    assert!(text.stderr.starts_with("warning: no further versions are recorded"), "{}", text.stderr);
    assert!(text.stderr.contains("\nhint: set history_days"), "{}", text.stderr);
    let json = run(&sandbox, &["history", "a", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&json.stdout).unwrap().len(), 3);
    let warning: Value = serde_json::from_str(&json.stderr).unwrap();
    assert!(warning["warning"]["message"].as_str().unwrap().contains("recorded"), "{warning}");
}

#[test]
fn without_a_history_its_setting_is_named() {
    let sandbox = super::ready();
    super::set(&sandbox, "a", 1);
    check_fails(&sandbox, &["history", "a"], 2, &["history_days"]);
    check_fails(&sandbox, &["restore", "a", "1", "--force"], 2, &["history_days"]);
}
