//! `set`, `merge`, and `--dry-run` of every verb that writes.

use serde_json::{Value, json};

use super::{insert, merge, ok, ready, set, singer_state, stored};
use crate::cli::{check, check_fails, meltano_state, run};
use crate::sandbox::Sandbox;

#[test]
fn set_asks_before_it_loses_something() {
    let sandbox = ready();
    // Nothing is there, nothing changes, something is added.
    ok(&sandbox, &["set", "a", &singer_state(1)]);
    ok(&sandbox, &["set", "a", " {\"singer_state\": {\"n\": 1}} "]);
    ok(&sandbox, &["set", "a", "{\"singer_state\":{\"n\":1,\"m\":2}}"]);
    let before = stored(&sandbox);
    check_fails(&sandbox, &["set", "a", &singer_state(2)], 2, &["replace the state of a (complete, 30 B", "--force"]);
    assert_eq!(stored(&sandbox), before);
    set(&sandbox, "a", 2);
    check(&sandbox, &["get", "a"], "{\"singer_state\":{\"n\":2}}\n");

    // A partial state would be lost, and so would what cannot be read.
    merge(&sandbox, "a", "\"m\":1");
    check_fails(&sandbox, &["set", "a", &singer_state(2)], 2, &["complete and partial"]);
    insert(&sandbox, "b", "'garbage'", "NULL");
    check_fails(&sandbox, &["set", "b", &singer_state(2)], 2, &["unreadable"]);
    set(&sandbox, "b", 2);
    check(&sandbox, &["get", "b"], "{\"singer_state\":{\"n\":2}}\n");
}

#[test]
fn what_is_stored_is_found_under_awkward_ids() {
    let names: Value = serde_json::from_str(include_str!("../../cases/names.json")).unwrap();
    let ids = names["state_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap());
    let sandbox = ready();
    for other in ["a", "ab", "a*", "aa*"] {
        set(&sandbox, other, 5);
    }
    // An argument holds no null byte.
    for id in ids.filter(|id| !id.contains('\0')).chain(["a*b", "a?", "[a]", "*", "[!a]"]) {
        let plan = || ok(&sandbox, &["set", id, &singer_state(2), "--dry-run"]).stdout;
        assert!(plan().starts_with("create "), "{id:?}: {}", plan());
        ok(&sandbox, &["set", id, &singer_state(1)]);
        assert!(plan().ends_with(".completed.singer_state.n: 1 → 2\n"), "{id:?}: {}", plan());
    }
}

#[test]
fn merge_lays_another_state_over_the_stored_one() {
    let sandbox = ready();
    set(&sandbox, "source", 1);
    merge(&sandbox, "source", "\"m\":1.10");
    set(&sandbox, "a", 7);
    ok(&sandbox, &["merge", "a", "--from-state-id", "source"]);
    check(&sandbox, &["get", "a"], "{\"singer_state\":{\"n\":1,\"m\":1.10}}\n");

    insert(&sandbox, "empty", "NULL", "NULL");
    insert(&sandbox, "garbage", "'x'", "NULL");
    let before = stored(&sandbox);
    check_fails(&sandbox, &["merge", "a", "--from-state-id", "nothing"], 1, &["there is no state of nothing"]);
    check_fails(&sandbox, &["merge", "a", "--from-state-id", "empty"], 1, &["is empty"]);
    check_fails(&sandbox, &["merge", "a", "--from-state-id", "garbage"], 1, &["garbage"]);
    assert_eq!(stored(&sandbox), before);
}

#[test]
fn states_that_readers_would_understand_differently_are_refused() {
    let sandbox = ready();
    let nested = |levels: usize| format!("{{\"singer_state\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    ok(&sandbox, &["set", "a", &nested(126)]);
    let before = stored(&sandbox);
    check_fails(&sandbox, &["set", "a", &nested(127)], 2, &["127"]);
    check_fails(&sandbox, &["merge", "a", "{\"singer_state\":1,\"singer_state\":2}"], 2, &["singer_state", "twice"]);
    check_fails(&sandbox, &["set", "a", "{\"singer_state\":\"\\ud800\"}"], 2, &["surrogate"]);
    check_fails(&sandbox, &["set", "", &singer_state(1)], 2, &["empty"]);
    assert_eq!(stored(&sandbox), before);
}

/// States, a file to import, and somebody else's lock on all of them: whoever took a lock would not get it.
fn held_by_another() -> (Sandbox, tempfile::NamedTempFile) {
    let sandbox = ready();
    set(&sandbox, "a", 1);
    merge(&sandbox, "a", "\"p\":5");
    set(&sandbox, "b", 2);
    for id in ["a", "b", "c"] {
        sandbox.sql(&format!("INSERT INTO {{}}.state_lock (state_id, lock_id) VALUES ('{id}', 'rival')"));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{{\"a\":{{\"completed\":{}}},\"c\":{{}}}}", singer_state(9))).unwrap();
    (sandbox, file)
}

#[test]
fn a_dry_run_shows_what_would_change_and_changes_nothing() {
    let (sandbox, file) = held_by_another();
    let before = (stored(&sandbox), sandbox.lock_rows());
    let state = singer_state(3);
    let replaced = "  ~ .completed.singer_state.n: 1 → 3\n  - .partial.singer_state.p: 5\n";
    let removed = "  - .completed.singer_state.n: 1\n  - .partial.singer_state.p: 5\n";
    let file = file.path().to_str().unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["set", "a", &state], &["replace the state of a (complete and partial, 48 B,", replaced]),
        (&["set", "c", &state], &["create the state of c\n  + .completed.singer_state.n: 3\n"]),
        (&["set", "b", &singer_state(2)], &["not change the state of b"]),
        (&["merge", "a", "{\"singer_state\":{\"p\":6}}"], &["  ~ .partial.singer_state.p: 5 → 6\n"]),
        (&["merge", "b", "--from-state-id", "a"], &["  + .partial.singer_state.n: 1\n", ".p: 5\n"]),
        (&["copy", "a", "c"], &["create the state of c\n", "  + .completed.singer_state.p: 5\n"]),
        (&["copy", "a", "c", "--keep-parts"], &["  + .partial.singer_state.p: 5\n"]),
        (&["move", "a", "b"], &["replace the state of b", ".n: 2 → 1\n", "remove the state of a", removed]),
        (&["clear", "a"], &["remove the state of a", removed]),
        (&["clear", "c"], &["not change the state of c"]),
        (&["clear", "--all"], &["remove the state of a", "remove the state of b"]),
        (&["import", file], &["  ~ .completed.singer_state.n: 1 → 9\n", "create the state of c\n"]),
        (&["unlock", "a"], &["a\trival\t"]),
        (&["init"], &["tables", "what is needed exists"]),
    ];
    for (arguments, words) in cases {
        for flags in [&["--dry-run"][..], &["-n", "--force"]] {
            // Those that only add or create nothing have no --force.
            if flags.len() > 1 && ["merge", "init"].contains(&arguments[0]) {
                continue;
            }
            let run = ok(&sandbox, &[arguments, flags].concat());
            for word in *words {
                assert!(run.stdout.contains(word), "{arguments:?}: {}", run.stdout);
            }
            assert!(run.stderr.contains("dry run:"), "{arguments:?}: {}", run.stderr);
            assert_eq!((stored(&sandbox), sandbox.lock_rows()), before, "{arguments:?}");
        }
        let json = ok(&sandbox, &[arguments, &["-n", "--format", "json"][..]].concat()).stdout;
        serde_json::from_str::<Value>(&json).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {json}"));
    }
}

#[test]
fn a_dry_run_for_programs() {
    let (sandbox, _file) = held_by_another();
    let json = ok(&sandbox, &["set", "a", "{\"singer_state\":{\"n\":1.10}}", "-n", "--format", "json"]).stdout;
    assert!(json.contains("\"new\":1.10"), "numbers keep their text: {json}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["state_id"], &json[0]["action"]), (&json!("a"), &json!("replace")));
    assert_eq!((&json[0]["stored"]["status"], &json[0]["stored"]["size"]), (&json!("both"), &json!(48)));
    assert_eq!(json[0]["changes"][1], json!({"path": ".partial.singer_state.p", "old": 5}));
}

#[test]
fn a_file_is_read_from_standard_input() {
    let sandbox = ready();
    let uri = sandbox.uri();
    let environment = [("MELTANO_STATE_BACKEND_URI", uri.as_str())];
    let merged = meltano_state(&environment).args(["merge", "a", "--input-file", "-"]).input(&singer_state(1)).run();
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    let printed = run(&sandbox, &["get", "a"]).stdout;
    let set = meltano_state(&environment).args(["set", "b", "--input-file", "-"]).input(&printed).run();
    assert_eq!((set.code, run(&sandbox, &["get", "b"]).stdout), (0, printed));
}
