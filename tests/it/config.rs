//! `config`: every setting, and where its value came from.

use std::fs;

use serde_json::Value;

use crate::cli::{Run, meltano_state};
use crate::connections::listed;

fn settings(run: &Run) -> Vec<Value> {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
}

/// The value and the source of a setting.
fn setting(run: &Run, name: &str) -> (Option<String>, String) {
    let settings = settings(run);
    let found = settings.iter().find(|setting| setting["name"] == format!("state_backend.{name}")).unwrap();
    (found["value"].as_str().map(str::to_owned), found["source"].as_str().unwrap().to_owned())
}

#[test]
fn every_source_is_named() {
    let project = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(project.path().join(name), text).unwrap();
    write("meltano.yml", "state_backend:\n  clickhouse:\n    schema: from_yml\n    table: from_yml\n");
    write(".env", "MELTANO_STATE_BACKEND_CLICKHOUSE_TABLE=from_dotenv\n");
    let run = meltano_state(&[
        ("MELTANO_STATE_BACKEND_URI", "clickhouse://me:hunter2@db:1234/d?connect_timeout_seconds=5"),
        ("MELTANO_STATE_BACKEND_CLICKHOUSE_SECURE", "yes"),
    ])
    .dir(project.path())
    .args(["config", "--format", "json", "--set", "clickhouse.lock_wait_seconds=7"])
    .run();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(settings(&run).len(), 18);
    let check = |name: &str, value: Option<&str>, source: &[&str]| {
        let (found, found_source) = setting(&run, name);
        assert_eq!(found.as_deref(), value, "{name}");
        for word in source {
            assert!(found_source.contains(word), "{name}: {found_source}");
        }
    };
    check("uri", Some("clickhouse://***@db:1234/d?***"), &["environment variable MELTANO_STATE_BACKEND_URI"]);
    check("clickhouse.lock_wait_seconds", Some("7"), &["flag"]);
    check("clickhouse.secure", Some("yes"), &["environment variable MELTANO_STATE_BACKEND_CLICKHOUSE_SECURE"]);
    check("clickhouse.table", Some("from_dotenv"), &["MELTANO_STATE_BACKEND_CLICKHOUSE_TABLE in ", ".env"]);
    check("clickhouse.schema", Some("from_yml"), &["meltano.yml"]);
    check("clickhouse.connect_timeout_seconds", Some("5"), &["query of the URI"]);
    check("clickhouse.host", Some("db"), &["part of the URI"]);
    check("clickhouse.password", Some("***"), &["part of the URI"]);
    check("clickhouse.request_timeout_seconds", Some("60"), &["default"]);
    check("clickhouse.cluster", None, &["not set"]);
}

#[test]
fn what_is_wrong_is_said_after_what_is_there() {
    let run = meltano_state(&[("MELTANO_STATE_BACKEND_CLICKHOUSE_PORT", "hunter2")])
        .args(["config", "--set", "clickhouse.user=me"])
        .run();
    assert_eq!(run.code, 2);
    assert!(run.stdout.contains("state_backend.clickhouse.user"), "{}", run.stdout);
    assert!(run.stdout.contains("it cannot be used") && !run.stdout.contains("hunter2"), "{}", run.stdout);
    for word in ["clickhouse.port", "clickhouse.database"] {
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
    assert!(run.stderr.contains(listed("is required and is not set")), "{}", run.stderr);
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    let run = meltano_state(&[("MELTANO_STATE_BACKEND_CLICKHOUSE_HOST", "db:8123")]).args(["config"]).run();
    assert!(run.stderr.contains(listed("host is neither a name nor an address")), "{}", run.stderr);
}
