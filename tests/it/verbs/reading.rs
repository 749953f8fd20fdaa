//! `list` and `get`.

use serde_json::{Value, json};

use super::{insert, merge, ok, ready, set};
use crate::cli::{check, check_fails};
use crate::sandbox::{Sandbox, state};

/// A state of each kind, and some that are none.
fn mixed() -> Sandbox {
    let sandbox = ready();
    set(&sandbox, "a:complete", 1);
    merge(&sandbox, "b:partial", "\"m\":2");
    set(&sandbox, "c:both", 1);
    merge(&sandbox, "c:both", "\"m\":2");
    insert(&sandbox, "d:empty", "NULL", "'{ }'");
    insert(&sandbox, "e:nan", "'{\"n\": NaN}'", "'{\"p\":1}'");
    insert(&sandbox, "f:bytes", "unhex('7BFF7D')", "NULL");
    sandbox
}

#[test]
fn a_long_list_tells_parts_age_and_size() {
    let sandbox = mixed();
    let text = ok(&sandbox, &["list", "--long"]).stdout;
    let columns: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let statuses: Vec<_> = columns.iter().map(|fields| (fields[0], *fields.last().unwrap())).collect();
    let expected = [
        ("complete", "a:complete"),
        ("partial", "b:partial"),
        ("both", "c:both"),
        ("empty", "d:empty"),
        ("unreadable", "e:nan"),
        ("unreadable", "f:bytes"),
    ];
    assert_eq!(statuses, expected, "{text}");
    assert_eq!(columns[0][3..5], ["24", "B"], "{text}");

    let listed = ok(&sandbox, &["list", "-l", "--pattern", "?:*e*", "--format", "json"]).stdout;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let ids: Vec<_> = listed.iter().map(|item| item["state_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a:complete", "d:empty", "f:bytes"]);
    assert_eq!((&listed[0]["status"], &listed[0]["size"]), (&json!("complete"), &json!(24)));
    assert!(listed[0]["age_seconds"].as_u64().unwrap() < 100, "{listed:?}");
    assert!(listed[0].get("error").is_none());
    assert!(listed[2]["error"].as_str().unwrap().contains("f:bytes"), "{listed:?}");
}

#[test]
fn an_empty_long_list() {
    let sandbox = Sandbox::new();
    check(&sandbox, &["list", "-l"], "");
    check(&sandbox, &["list", "-l", "--format", "json"], "[]\n");
}

#[test]
fn what_cannot_be_read_is_shown_raw() {
    let sandbox = mixed();
    check_fails(&sandbox, &["get", "e:nan"], 1, &["e:nan", "hint:"]);
    let raw = ok(&sandbox, &["get", "e:nan", "--raw"]).stdout;
    let (first, rest) = raw.split_once('\n').unwrap();
    assert!(first.starts_with("updated_at: 20"), "{raw}");
    assert_eq!(rest, "completed_state, 10 bytes:\n{\"n\": NaN}\npartial_state, 7 bytes:\n{\"p\":1}\n");

    let raw = |id: &str| -> Value {
        serde_json::from_str(&ok(&sandbox, &["get", id, "--raw", "--format", "json"]).stdout).unwrap()
    };
    let nan = raw("e:nan");
    assert_eq!((&nan["completed_state"], &nan["lossy"]), (&json!("{\"n\": NaN}"), &json!(false)));
    let bytes = raw("f:bytes");
    assert_eq!((&bytes["completed_state"], &bytes["lossy"]), (&json!("{\u{FFFD}}"), &json!(true)));
    assert_eq!(bytes["partial_state"], Value::Null);
    check_fails(&sandbox, &["get", "nothing", "--raw"], 1, &["there is no state of nothing"]);
}

#[tokio::test]
async fn control_characters_in_ids_break_no_line() {
    let sandbox = Sandbox::new();
    let id = "line\nbreak\ttab\u{1b}[31m\"";
    sandbox.instance().await.set(&state(id, None, Some("{\"x\":1}"))).await.unwrap();
    let escaped = "line\\nbreak\\ttab\\u{1b}[31m\"";
    check(&sandbox, &["list"], &format!("{escaped}\n"));
    let long = ok(&sandbox, &["list", "-l"]).stdout;
    assert!(long.ends_with(&format!("  {escaped}\n")) && long.lines().count() == 1, "{long}");
    let json: Vec<String> = serde_json::from_str(&ok(&sandbox, &["list", "--format", "json"]).stdout).unwrap();
    assert_eq!(json, [id]);
    check(&sandbox, &["get", id], "{\"x\":1}\n");
    let cleared = ok(&sandbox, &["clear", id, "--force"]);
    assert_eq!(cleared.stderr, format!("the state of {escaped} is removed\n"));
}
