//! The verbs of `meltano-state` on the real server.

mod clear;
mod copies;
mod edit;
mod exchange;
mod history;
mod init;
mod reading;
mod setting;
mod terminal;
mod usage;

use crate::cli::{Run, run};
use crate::sandbox::Sandbox;

/// A database with its tables.
fn ready() -> Sandbox {
    let sandbox = Sandbox::new();
    ok(&sandbox, &["init"]);
    sandbox
}

/// Runs a command that has to succeed.
fn ok(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let run = run(sandbox, arguments);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    run
}

/// All that is stored, with the time of each write: any write changes it.
fn stored(sandbox: &Sandbox) -> String {
    sandbox.sql("SELECT * FROM {}.state FINAL ORDER BY state_id FORMAT JSONEachRow")
}

/// A row as another program may have written it. Each part is an expression of SQL.
fn insert(sandbox: &Sandbox, state_id: &str, completed: &str, partial: &str) {
    sandbox.sql(&format!(
        "INSERT INTO {{}}.state (state_id, completed_state, partial_state) VALUES ('{state_id}', {completed}, {partial})"
    ));
}

fn set(sandbox: &Sandbox, state_id: &str, n: u32) {
    ok(sandbox, &["set", state_id, &singer_state(n), "--force"]);
}

fn merge(sandbox: &Sandbox, state_id: &str, member: &str) {
    ok(sandbox, &["merge", state_id, &format!("{{\"singer_state\":{{{member}}}}}")]);
}

fn singer_state(n: u32) -> String {
    format!("{{\"singer_state\":{{\"n\":{n}}}}}")
}
