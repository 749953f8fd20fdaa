//! The command `meltano-state`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::server::{NO_TABLE, Server};

const UNREACHABLE: &str = "clickhouse://me:s3cret@127.0.0.1:1/d";

/// The command in an environment of its own, in which no Meltano project is found.
fn command(arguments: &[&str]) -> Command {
    // One cache for all tests, so that the component is compiled once.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_meltano-state"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", directory)
        .env("XDG_CACHE_HOME", directory.join("cache"))
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Checks the exit code and that standard error contains `error`; returns standard output.
fn check(output: &Output, code: i32, error: &str) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(error), "{stderr}");
    assert!(!stderr.contains("s3cret") && !stdout.contains("s3cret"), "{stdout}{stderr}");
    stdout
}

#[test]
fn what_cannot_be_used_exits_with_2() {
    check(&run(&["nonsense"]), 2, "unrecognized subcommand");
    check(&run(&["list"]), 2, "hint: set state_backend.clickhouse.user");
    check(&run(&["list", "--set", "hots=x"]), 2, "error: there is no setting \"hots\"");
    check(&run(&["list", "--project", "/nowhere"]), 2, "error: /nowhere holds no meltano.yml");
    check(&run(&["list", "--ca-file", "/nowhere"]), 2, "error: /nowhere: ");
    check(
        &run(&["set", "dev:a", "[]", "--uri", UNREACHABLE]),
        2,
        "error: the state cannot be used: it is not a JSON object",
    );
    check(
        &run(&["merge", "dev:a", "--input-file", "-", "--uri", UNREACHABLE]),
        2,
        "error: the state that was given is an empty text",
    );
}

#[test]
fn a_failure_exits_with_1_and_says_why() {
    assert_eq!(check(&run(&["list", "--uri", UNREACHABLE]), 1, "error: no connection to 127.0.0.1:1"), "");
    let output = run(&["list", "--uri", UNREACHABLE, "--format", "json", "-vv"]);
    check(&output, 1, "");
    let stderr = String::from_utf8(output.stderr).unwrap();
    let error: serde_json::Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(error["error"]["kind"], "unreachable");
    assert!(error["error"]["hint"].is_string() && error["error"]["server"].is_null());
}

#[test]
fn results_go_to_standard_output_alone() {
    let server = Server::answering(NO_TABLE);
    let uri = format!("clickhouse://me:s3cret@{}/d", server.address);
    assert_eq!(check(&run(&["list", "--uri", &uri]), 0, ""), "");
    assert_eq!(check(&run(&["list", "--uri", &uri, "--format", "json"]), 0, ""), "[]\n");
    assert_eq!(check(&run(&["get", "dev:a", "--uri", &uri]), 0, ""), "{}\n");
    let output = run(&["get", "dev:a", "--uri", &uri, "-vv"]);
    assert_eq!(check(&output, 0, "status=404"), "{}\n");
}

#[test]
fn settings_come_from_the_project() {
    let server = Server::answering(NO_TABLE);
    let project = tempfile::tempdir().unwrap();
    let yml = "state_backend: {uri: clickhouse://$LOGIN@127.0.0.1/d, clickhouse: {port: 1}}";
    std::fs::write(project.path().join("meltano.yml"), yml).unwrap();
    std::fs::write(project.path().join(".env"), "LOGIN=me:s3cret").unwrap();
    let list = |project: &Path| {
        let mut command = command(&["list"]);
        command.current_dir(project);
        command
    };
    check(&list(project.path()).output().unwrap(), 1, "error: no connection to 127.0.0.1:1");
    let port = server.address.port().to_string();
    let output = list(project.path()).env("MELTANO_STATE_BACKEND_CLICKHOUSE_PORT", port).output().unwrap();
    check(&output, 0, "");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let server = Server::answering(NO_TABLE);
    let uri = format!("clickhouse://me:s3cret@{}/d", server.address);
    let mut command = command(&["get", "dev:a", "--uri", &uri]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    check(&child.wait_with_output().unwrap(), 0, "");
}

#[test]
fn a_state_may_come_from_standard_input() {
    let arguments = ["set", "dev:a", "--input-file", "-", "--uri", UNREACHABLE];
    let mut command = command(&arguments);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"singer_state\": {}}").unwrap();
    check(&child.wait_with_output().unwrap(), 1, "error: no connection to 127.0.0.1:1");
}
