//! What a command is expected to say.

use serde_json::Value;

use crate::cli::{Cli, Run, meltano_state};
use crate::server::SERVER;

pub(super) fn command(uri: &str, options: &[&str]) -> Cli {
    meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri)]).args_list(options).args(["--format", "json"])
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text.trim_end()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A step of a report by its name.
pub(super) fn step<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["steps"].as_array().unwrap().iter().find(|step| step["name"] == name).unwrap()
}

/// What `docs/troubleshooting.md` says that one will see: it has to stand there.
pub(crate) fn listed(symptom: &str) -> &str {
    const PAGE: &str = include_str!("../../../docs/troubleshooting.md");
    assert!(
        PAGE.contains(&format!("`{symptom}")) || PAGE.contains(&format!("{symptom}`")),
        "{symptom:?} is not listed"
    );
    symptom
}

pub(super) fn assert_words(text: &Value, words: &[&str]) {
    let text = text.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
}

/// Checks that `check` fails at `step`, and that its finding or hint has these words.
pub(super) fn check_step(uri: &str, options: &[&str], step_name: &str, words: &[&str]) {
    let run = command(uri, options).arg("check").run();
    let report = json(&run.stdout);
    assert_eq!(run.code, 1, "{report:#}");
    let failed = step(&report, step_name);
    assert_eq!(failed["status"], "failed", "{report:#}");
    assert_words(failed, words);
}

/// Checks that `arguments` fail with an error of this kind and with these words in message or hint.
pub(super) fn check_error(uri: &str, options: &[&str], arguments: &[&str], kind: &str, words: &[&str]) -> Run {
    let run = command(uri, options).args_list(arguments).run();
    let last_line = run.stderr.lines().last().unwrap_or_default();
    let error = &json(last_line)["error"];
    assert_eq!(error["kind"], kind, "{error:#}");
    assert!(error["hint"].is_string(), "{error:#}");
    assert_words(error, words);
    run
}

/// Checks that both the check and a read say the same.
pub(super) fn check(uri: &str, options: &[&str], step_name: &str, kind: &str, words: &[&str]) {
    check_error(uri, options, &["get", "a"], kind, words);
    check_step(uri, options, step_name, words);
}

/// The administrator's URI with another host and port, and a short time limit.
pub(super) fn uri_at(address: impl std::fmt::Display) -> String {
    let uri = SERVER.uri();
    let (user, password) = (uri.username(), uri.password().unwrap_or_default());
    format!("clickhouse://{user}:{password}@{address}/default?request_timeout_seconds=2&schema=connections")
}

pub(super) fn secure(uri: &str) -> String {
    uri.replacen("clickhouse://", "clickhouse+https://", 1)
}
