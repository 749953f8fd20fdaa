//! `lock list`, `lock run` and `unlock`, and races between processes.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::{Run, meltano_state, run};
use crate::sandbox::Sandbox;

const STATE: &str = "{\"singer_state\":{}}";

fn locked(sandbox: &Sandbox, age_seconds: u32) {
    sandbox.sql(&format!(
        "INSERT INTO {{}}.state_lock (state_id, lock_id, owner, locked_at) VALUES ('a*', 'rival', 'me', now() - {age_seconds})"
    ));
}

fn ready() -> Sandbox {
    let sandbox = Sandbox::new();
    let init = run(&sandbox, &["init"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    sandbox
}

#[test]
fn locks_are_listed() {
    let sandbox = ready();
    assert_eq!(run(&sandbox, &["lock", "list"]).stdout, "");
    locked(&sandbox, 10);
    let listed = run(&sandbox, &["lock", "list"]).stdout;
    let fields: Vec<&str> = listed.trim_end().split('\t').collect();
    assert_eq!(fields[..3], ["a*", "rival", "me"], "{listed}");
    assert!(fields[3].ends_with('Z') && fields[4].starts_with("in 2"), "{listed}");
    let json = run(&sandbox, &["lock", "list", "--pattern", "a*", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["lock_id"], &json[0]["stale"]), (&"rival".into(), &false.into()), "{json}");
    assert_eq!(run(&sandbox, &["lock", "list", "--pattern", "b*"]).stdout, "");
}

#[test]
fn unlock_removes_the_lock_that_was_meant() {
    let sandbox = ready();
    locked(&sandbox, 10);
    let code = |arguments: &[&str]| run(&sandbox, arguments).code;
    assert_eq!(code(&["unlock", "a*"]), 2, "it asks, and there is no terminal");
    assert_eq!(code(&["unlock", "a*", "another", "--force"]), 1);
    assert_eq!(sandbox.lock_rows(), "a*\trival\n");
    assert_eq!(code(&["unlock", "ab", "--force"]), 0);
    assert_eq!(sandbox.lock_rows(), "a*\trival\n");
    assert_eq!(code(&["unlock", "a*", "rival", "--force"]), 0);
    assert_eq!(sandbox.lock_rows(), "");
    assert_eq!(code(&["unlock", "a*", "--force"]), 0);
}

/// Starts `lock run` on state id `a`.
fn hold(sandbox: &Sandbox, settings: &[&str], command: &[&str]) -> Child {
    let mut lock_run = Command::new(env!("CARGO_BIN_EXE_meltano-state"));
    lock_run.env("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str());
    for setting in settings {
        lock_run.args(["--set", setting]);
    }
    lock_run.args(["lock", "run", "a", "--"]).args(command);
    lock_run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a lock row is there.
pub(crate) fn wait_for_lock(sandbox: &Sandbox) {
    let start = Instant::now();
    while sandbox.lock_rows().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "no lock appears");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
}

fn wait(child: Child) -> Run {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn lock_run_passes_the_exit_status_on_and_releases() {
    let sandbox = ready();
    for (command, code) in [(&["true"][..], 0), (&["sh", "-c", "exit 7"], 7), (&["sh", "-c", "kill -9 $$"], 137)] {
        let ended = wait(hold(&sandbox, &[], command));
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert_eq!(sandbox.lock_rows(), "");
    }
    assert_eq!(wait(hold(&sandbox, &[], &["/no/such/program"])).code, 1);
    assert_eq!(sandbox.lock_rows(), "");
}

#[test]
fn lock_run_keeps_others_out_and_renews() {
    let sandbox = ready();
    let settings = ["clickhouse.lock_stale_seconds=3", "clickhouse.request_timeout_seconds=1"];
    let holder = hold(&sandbox, &settings, &["sleep", "5"]);
    wait_for_lock(&sandbox);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        let merge = [
            "--set",
            settings[0],
            "--set",
            settings[1],
            "--set",
            "clickhouse.lock_wait_seconds=0",
            "merge",
            "a",
            STATE,
        ];
        let refused = run(&sandbox, &merge);
        assert_eq!(refused.code, 3, "{}", refused.stderr);
        assert!(refused.stderr.contains("which runs sleep"), "the owner is named: {}", refused.stderr);
        assert!(!refused.stderr.contains("sleep 5"), "arguments may be secrets: {}", refused.stderr);
    }
    assert_eq!(wait(holder).code, 0);
    assert_eq!(run(&sandbox, &["merge", "a", STATE]).code, 0);
    assert_eq!(sandbox.lock_rows(), "");
}

#[test]
fn lock_run_passes_signals_on_and_releases() {
    let sandbox = ready();
    let holder = hold(&sandbox, &[], &["sh", "-c", "trap 'exit 42' TERM; while :; do sleep 0.05; done"]);
    wait_for_lock(&sandbox);
    std::thread::sleep(Duration::from_millis(300));
    signal(&holder, Signal::TERM);
    assert_eq!(wait(holder).code, 42);
    assert_eq!(sandbox.lock_rows(), "");
}

/// Before a renewal could notice.
#[test]
fn lock_run_says_when_the_lock_was_lost_while_the_command_ran() {
    let sandbox = Sandbox::new();
    let unlock = format!("\"$1\" --uri '{}' unlock a --force", sandbox.uri());
    let ended = wait(hold(&sandbox, &[], &["sh", "-c", &unlock, "sh", env!("CARGO_BIN_EXE_meltano-state")]));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("was lost while the command ran"), "{}", ended.stderr);
}

#[test]
fn lock_run_stops_the_command_when_the_lock_is_lost() {
    let sandbox = ready();
    let settings = ["clickhouse.lock_stale_seconds=3", "clickhouse.request_timeout_seconds=1"];
    let holder = hold(&sandbox, &settings, &["sleep", "60"]);
    wait_for_lock(&sandbox);
    assert_eq!(run(&sandbox, &["unlock", "a", "--force"]).code, 0);
    let start = Instant::now();
    let ended = wait(holder);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("lost"), "{}", ended.stderr);
}

#[test]
fn a_killed_holder_blocks_until_it_is_stale_and_a_stopped_one_cannot_write() {
    let sandbox = ready();
    let settings = ["clickhouse.lock_stale_seconds=3", "clickhouse.request_timeout_seconds=1"];
    let killed = hold(&sandbox, &settings, &["sleep", "1"]);
    wait_for_lock(&sandbox);
    signal(&killed, Signal::KILL);
    let start = Instant::now();
    let merge = |state: &str| run(&sandbox, &["--set", settings[0], "--set", settings[1], "merge", "a", state]);
    let taken_over = merge("{\"singer_state\":{\"n\":1}}");
    assert_eq!(taken_over.code, 0, "{}", taken_over.stderr);
    assert!(start.elapsed() > Duration::from_secs(1), "{:?}", start.elapsed());
    wait(killed);

    let stopped = hold(&sandbox, &settings, &["sleep", "1"]);
    wait_for_lock(&sandbox);
    signal(&stopped, Signal::STOP);
    let taken_over = merge("{\"singer_state\":{\"n\":2}}");
    assert_eq!(taken_over.code, 0, "{}", taken_over.stderr);
    signal(&stopped, Signal::CONT);
    wait(stopped);
    assert_eq!(sandbox.lock_rows(), "");
    assert_eq!(run(&sandbox, &["get", "a"]).stdout, "{\"singer_state\":{\"n\":2}}\n");
}

#[test]
fn eight_processes_of_five_sections_each_do_not_overlap() {
    let sandbox = ready();
    let directory = tempfile::tempdir().unwrap();
    // A section: enters a directory that only one can create at a time, counts, leaves.
    let section =
        "mkdir \"$DIR/in\" || echo overlap >>\"$DIR/overlaps\"; echo x >>\"$DIR/sections\"; rmdir \"$DIR/in\"";
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                sandbox.sql("OPTIMIZE TABLE {}.state_lock FINAL");
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let processes: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let run = meltano_state(&[("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str())])
                            .env("DIR", directory.path().to_str().unwrap())
                            .args([
                                "--set",
                                "clickhouse.lock_wait_seconds=100",
                                "lock",
                                "run",
                                "a",
                                "--",
                                "sh",
                                "-c",
                                section,
                            ])
                            .run();
                        assert_eq!(run.code, 0, "{}", run.stderr);
                    }
                })
            })
            .collect();
        processes.into_iter().for_each(|process| process.join().unwrap());
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        merging.join().unwrap();
    });
    let lines = |file: &str| std::fs::read_to_string(directory.path().join(file)).unwrap_or_default().lines().count();
    assert_eq!((lines("sections"), lines("overlaps")), (40, 0));
    assert_eq!(sandbox.lock_rows(), "");
}
