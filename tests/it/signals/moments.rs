//! Signals at any moment.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{ALL, command, ready, tell};
use crate::cli::run;
use crate::rng::Rng;
use crate::sandbox::Sandbox;

/// How often each signal meets each verb. `SIGNALS=75` makes a longer search.
fn rounds() -> u64 {
    std::env::var("SIGNALS").map_or(2, |rounds| rounds.parse().expect("a number"))
}

/// Sends signals to a command at moments drawn from the time that it takes.
fn check(sandbox: &Sandbox, seed: u64, arguments: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = command(&sandbox.uri(), arguments);
        command.env("TMPDIR", directory.path()).env("EDITOR", "sleep 0.1; true").current_dir(directory.path());
        command.spawn().unwrap()
    };
    let begun = Instant::now();
    let undisturbed = start().wait_with_output().unwrap();
    let took = u64::try_from(begun.elapsed().as_micros()).unwrap();
    assert!(undisturbed.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&undisturbed.stderr));
    let mut rng = Rng::new(seed);
    for round in 0..rounds() {
        for signal in ALL {
            let child = start();
            let moment = Duration::from_micros(rng.below(took));
            sleep(moment);
            let ended = tell(child, signal);
            let case = format!("{arguments:?}, round {round}, {signal:?} after {moment:?}: {ended:?}");
            // One that had ended before does not hear it.
            assert!(ended.by(signal) || ended.code == Some(0), "{case}");
            assert_eq!(sandbox.lock_rows(), "", "{case}");
            let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
            assert!(left.iter().all(|file| file == "out"), "{left:?} {case}");
        }
    }
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let sandbox = ready();
    let state = "{\"singer_state\":{}}";
    for id in ["a", "source"] {
        assert_eq!(run(&sandbox, &["set", id, state]).code, 0);
    }
    check(&sandbox, 1, &["set", "a", state, "--force"]);
    check(&sandbox, 2, &["merge", "a", state]);
    check(&sandbox, 3, &["merge", "a", state, "--set", "clickhouse.lock_protocol=settle"]);
    check(&sandbox, 4, &["copy", "source", "a", "--force"]);
    check(&sandbox, 5, &["edit", "a"]);
    check(&sandbox, 6, &["lock", "run", "a", "--", "sleep", "0.1"]);
    check(&sandbox, 7, &["export", "-o", "out"]);
    check(&sandbox, 8, &["clear", "a", "--force"]);
}
