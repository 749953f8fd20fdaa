//! `export` and `import`.

use std::fs;

use meltano_state_host::State;
use serde_json::Value;

use super::{insert, merge, ok, ready, set, singer_state, stored};
use crate::cli::{Run, check, check_fails, meltano_state, run};
use crate::sandbox::{Sandbox, state};

const NAMES: &str = include_str!("../../cases/names.json");

fn import(sandbox: &Sandbox, text: &str, flags: &[&str]) -> Run {
    let uri = sandbox.uri();
    meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri.as_str())]).arg("import").args_list(flags).input(text).run()
}

/// Export → clear → import → export.
async fn check_round_trip(states: &[State]) {
    let sandbox = Sandbox::new();
    sandbox.instance().await.set_all(states).await.unwrap();
    let first = ok(&sandbox, &["export"]).stdout;
    let parsed: serde_json::Map<String, Value> = serde_json::from_str(&first).unwrap();
    assert_eq!(parsed.len(), states.len());
    ok(&sandbox, &["clear", "--all", "--force"]);
    check(&sandbox, &["export"], "{}\n");
    let imported = import(&sandbox, &first, &["--format", "json"]);
    assert_eq!(imported.stdout, format!("{{\"imported_count\":{}}}\n", states.len()), "{}", imported.stderr);
    assert_eq!(imported.stderr, "");
    let second = ok(&sandbox, &["export"]).stdout;
    assert!(first == second, "not the same after {}", states.len());
}

#[tokio::test]
async fn a_round_trip_changes_no_byte() {
    let names: Value = serde_json::from_str(NAMES).unwrap();
    let long = "é".repeat(5_000);
    let ids = names["state_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).chain([long.as_str()]);
    let texts = [
        (Some("{ \"b\" : 1.10,\n\"a\":12345678901234567890123, \"é\":\"\\u00e9 \\t\\\\\\\"\", \"x\":1E400 }"), None),
        (None, Some("{\"singer_state\":{\"p\":-0.0,\"\u{1F980}\":[ ]}}")),
        (Some("{\"a\":{}}"), Some("{\"b\":\"}\"}")),
        (None, None),
    ];
    let states: Vec<State> = ids.zip(texts.iter().cycle()).map(|(id, (one, two))| state(id, *one, *two)).collect();
    assert!(states.len() > 20);
    check_round_trip(&states).await;
}

fn many(count: usize) -> Vec<State> {
    let text = |n: usize| format!("{{\"singer_state\":{{\"bookmarks\":{{\"t{}\":{{\"n\":{n}.0}}}}}}}}", n % 7);
    let part = |n: usize, keep: bool| keep.then(|| text(n));
    let states = (0..count).map(|n| State {
        state_id: format!("env{}:tap\t{n}\"\\-to-\u{1F980}%", n % 3),
        completed_state: part(n, n % 4 != 0),
        partial_state: part(n + 1, n % 4 < 2),
    });
    states.collect()
}

#[tokio::test]
async fn a_round_trip_of_several_pages() {
    check_round_trip(&many(25_000)).await;
}

#[tokio::test]
#[ignore = "takes long"]
async fn a_round_trip_of_a_hundred_thousand_states() {
    check_round_trip(&many(100_000)).await;
}

#[test]
fn an_export_is_one_entry_a_line_as_meltano_has_it() {
    let sandbox = ready();
    check(&sandbox, &["export"], "{}\n");
    set(&sandbox, "dev:a", 1);
    merge(&sandbox, "dev:a", "\"p\":1.10");
    set(&sandbox, "prod:a", 2);
    let a = "\"dev:a\": {\"completed\": {\"singer_state\":{\"n\":1}}, \"partial\": {\"singer_state\":{\"p\":1.10}}}";
    let b = "\"prod:a\": {\"completed\": {\"singer_state\":{\"n\":2}}, \"partial\": null}";
    check(&sandbox, &["export"], &format!("{{\n{a},\n{b}\n}}\n"));
    check(&sandbox, &["export", "--pattern", "prod*"], &format!("{{\n{b}\n}}\n"));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_exported() {
    let sandbox = ready();
    set(&sandbox, "a", 1);
    insert(&sandbox, "b:garbage", "'{\"n\":NaN}'", "NULL");
    set(&sandbox, "c", 1);
    let export = run(&sandbox, &["export"]);
    assert_eq!(export.code, 1);
    assert!(export.stderr.contains("b:garbage") && export.stderr.contains("--raw"), "{}", export.stderr);
    let parsed: serde_json::Map<String, Value> = serde_json::from_str(&export.stdout).unwrap();
    assert_eq!(parsed.keys().collect::<Vec<_>>(), ["a", "c"]);

    let json = run(&sandbox, &["export", "--format", "json"]);
    assert_eq!(json.code, 1);
    for error in json.stderr.lines() {
        assert!(serde_json::from_str::<Value>(error).unwrap()["error"]["kind"].is_string(), "{error}");
    }
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let sandbox = ready();
    set(&sandbox, "a", 1);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("states.json");
    let path = file.to_str().unwrap();
    fs::write(&file, "older").unwrap();
    check_fails(&sandbox, &["--uri", "clickhouse://u:p@127.0.0.1:1/d", "export", "-o", path], 1, &["127.0.0.1:1"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "older");
    check(&sandbox, &["export", "-o", path], "");
    assert_eq!(fs::read_to_string(&file).unwrap(), ok(&sandbox, &["export"]).stdout);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    ok(&sandbox, &["export", "-o", link.to_str().unwrap(), "--pattern", "none"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}\n");
    ok(&sandbox, &["export", "-o", path]);
    let pipe = directory.path().join("pipe");
    std::os::unix::fs::symlink("/dev/stdout", &pipe).unwrap();
    check(&sandbox, &["export", "-o", pipe.to_str().unwrap()], &fs::read_to_string(&file).unwrap());

    check_fails(&sandbox, &["export", "-o", "/no/such/directory/f"], 1, &["/no/such/directory/f cannot be written"]);
    check(&sandbox, &["import", path], "");
}

#[test]
fn a_faulty_file_changes_nothing_and_the_entry_is_named() {
    let sandbox = ready();
    set(&sandbox, "ok", 1);
    let before = stored(&sandbox);
    let good = "\"ok\":{\"completed\":{\"n\":2}},\n";
    let cases = [
        ("", "line 1"),
        ("[]", "the file cannot be read"),
        ("{\"ok\":{\"completed\":{\"n\":2}}", "the file cannot be read"),
        (&format!("{{{good} \"bad\": {{\"completed\": {{\"n\": NaN}}}}}}"), "line 2, column 29: the entry \"bad\""),
        (
            &format!("{{{good} \"bad\": {{\"completed\": []}}}}"),
            "line 2, column 23: the entry \"bad\" has a completed part",
        ),
        (&format!("{{{good} \"bad\": {{\"partial\": {{\"a\":1,\"a\":2}}}}}}"), "\"a\" is there twice"),
        (&format!("{{{good} \"bad\": {{\"partial\": {{\"a\":\"\\udc00\"}}}}}}"), "the entry \"bad\""),
        (&format!("{{{good} \"bad\": {{\"singer_state\": {{}}}}}}"), "the member \"singer_state\""),
        (&format!("{{{good} \"bad\": null}}"), "the entry \"bad\" is no object"),
        (&format!("{{{good} \"ok\": {{}}}}"), "the entry \"ok\" stands in the file twice, first on line 1"),
        (&format!("{{{good} \"\": {{}}}}"), "empty id"),
    ];
    for (text, words) in cases {
        let run = import(&sandbox, text, &["--force"]);
        assert_eq!(run.code, 2, "{text}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{text}: {}", run.stderr);
        assert_eq!(stored(&sandbox), before, "{text}");
    }
    check_fails(&sandbox, &["import", "/no/such/file"], 2, &["/no/such/file"]);
}

#[test]
fn many_faults_are_named_together() {
    let sandbox = ready();
    let entries: Vec<String> = (0..12).map(|n| format!("\"s{n}\": {n}")).collect();
    let run = import(&sandbox, &format!("{{{}}}", entries.join(",\n")), &[]);
    assert!(run.stderr.contains("line 10, column 7: the entry \"s9\""), "{}", run.stderr);
    assert!(run.stderr.contains("and 2 more"), "{}", run.stderr);
}

#[test]
fn an_import_asks_before_it_replaces() {
    let sandbox = ready();
    set(&sandbox, "a", 1);
    set(&sandbox, "b", 1);
    let entry = |id: &str, n: u32| format!("\"{id}\":{{\"completed\":{}}}", singer_state(n));
    let file = |entries: &[String]| format!("{{{}}}", entries.join(","));
    let new = import(&sandbox, &file(&[entry("a", 1), entry("c", 3)]), &[]);
    // Nothing is lost, and no bar is drawn where no terminal is.
    assert_eq!((new.code, new.stderr.as_str()), (0, "2 states are imported\n"));
    assert_eq!(ok(&sandbox, &["export"]).stderr, "");
    let before = stored(&sandbox);
    let replacing = file(&[entry("a", 2), entry("b", 1), entry("d", 1)]);
    let refused = import(&sandbox, &replacing, &[]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("replace 1 of the stored states"), "{}", refused.stderr);
    assert_eq!(stored(&sandbox), before);
    assert_eq!(import(&sandbox, &replacing, &["--force"]).code, 0);
    check(&sandbox, &["list"], "a\nb\nc\nd\n");
    check(&sandbox, &["get", "a"], "{\"singer_state\":{\"n\":2}}\n");
}

#[tokio::test]
async fn what_an_import_would_change_is_found_among_many_states() {
    let sandbox = Sandbox::new();
    let states: Vec<State> = (0..3_000).map(|n| state(&format!("s{n:04}"), None, Some("{\"n\":1}"))).collect();
    sandbox.instance().await.set_all(&states).await.unwrap();
    let entries: Vec<String> = ["s2999", "a", "s0000", "s0001", "s1500", "s15000", "z"]
        .map(|id| format!("\"{id}\": {{\"completed\": {{\"n\":2}}}}"))
        .into();
    let plan = import(&sandbox, &format!("{{{}}}", entries.join(",")), &["--dry-run"]);
    let found: Vec<&str> = plan.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    let short: Vec<&str> = found.iter().map(|line| line.split(" (").next().unwrap()).collect();
    let expected = [
        "create the state of a",
        "replace the state of s0000",
        "replace the state of s0001",
        "replace the state of s1500",
        "create the state of s15000",
        "replace the state of s2999",
        "create the state of z",
    ];
    assert_eq!(short, expected, "{}", plan.stderr);
}
