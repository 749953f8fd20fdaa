//! Signals while the command waits: for another's lock, for rivals, for a server.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{ALL, APART, SOON, end, ready, start, tell};
use crate::gate::Gate;
use crate::lock_commands::{signal, wait_for_lock};

const STATE: &str = "{\"singer_state\":{}}";

/// Far longer than a test waits.
const PATIENT: [&str; 4] = ["--set", "clickhouse.lock_wait_seconds=600", "--set", "lock_retry_seconds=600"];

#[test]
fn a_wait_for_anothers_lock_ends() {
    let sandbox = ready();
    sandbox.sql("INSERT INTO {}.state_lock (state_id, lock_id) VALUES ('a', 'rival')");
    for protocol in ["ticket", "settle"] {
        let protocol = format!("clickhouse.lock_protocol={protocol}");
        for (told, verb) in
            ALL.into_iter().zip([&["merge", "a", STATE][..], &["edit", "a"], &["lock", "run", "a", "--", "true"]])
        {
            let child = start(&sandbox.uri(), &[&["--set", &protocol], &PATIENT[..], verb].concat());
            // After a second the pauses are long.
            sleep(Duration::from_secs(1));
            let ended = tell(child, told);
            assert!(ended.by(told), "{verb:?}: {ended:?}");
            assert!(ended.stderr.contains("nothing was written"), "{verb:?}: {ended:?}");
            assert_eq!(sandbox.lock_rows(), "a\trival\n", "{verb:?}");
        }
    }
}

#[test]
fn a_candidate_that_waits_for_its_rivals_withdraws() {
    let sandbox = ready();
    let slow = ["--set", "clickhouse.lock_protocol=settle", "--set", "clickhouse.lock_settle_seconds=60"];
    for told in ALL {
        let child = start(&sandbox.uri(), &[&slow[..], &["merge", "a", STATE]].concat());
        wait_for_lock(&sandbox);
        let ended = tell(child, told);
        assert!(ended.by(told), "{ended:?}");
        assert!(ended.stderr.contains("nothing was written"), "{ended:?}");
        assert_eq!(sandbox.lock_rows(), "");
    }
    assert_eq!(crate::cli::run(&sandbox, &["list"]).stdout, "");
}

#[test]
fn a_server_that_stands_still_holds_nothing_up() {
    let sandbox = ready();
    let check = |verb: &[&str], signals: &[Signal], words: &str| {
        let gate = Gate::open();
        gate.stand_still();
        let child = start(&gate.uri(&sandbox), verb);
        gate.wait_for_request();
        for told in signals {
            signal(&child, *told);
            sleep(APART);
        }
        let ended = end(child);
        assert!(ended.by(signals[signals.len() - 1]), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    };
    for told in ALL {
        check(&["get", "a"], &[told], "");
        check(&["merge", "a", STATE], &[told, Signal::TERM], "it is not known whether the change was made");
    }
    check(&["merge", "a", STATE], &[Signal::TERM], "it is not known whether the change was made");
}

/// The lock cannot be given up, but that is said, and the command ends.
#[test]
fn a_held_lock_does_not_hold_the_end_up() {
    let sandbox = ready();
    for signals in 1..=2 {
        let gate = Gate::open();
        let directory = tempfile::tempdir().unwrap();
        let mut edit = super::command(&gate.uri(&sandbox), &["edit", "a"]);
        edit.env("EDITOR", "exec sleep 60 #").env("TMPDIR", directory.path());
        let lock_run = super::command(&gate.uri(&sandbox), &["lock", "run", "a", "--", "sleep", "60"]);
        for mut command in [lock_run, edit] {
            let child = command.spawn().unwrap();
            wait_for_lock(&sandbox);
            sleep(APART);
            gate.stand_still();
            let told = Instant::now();
            signal(&child, Signal::TERM);
            if signals == 2 {
                gate.wait_for_request();
                sleep(APART);
                signal(&child, Signal::TERM);
            }
            let ended = end(child);
            assert!(told.elapsed() < SOON && ended.by(Signal::TERM), "{ended:?}");
            assert!(ended.stderr.contains("lasts until it is stale"), "{ended:?}");
            sandbox.sql("TRUNCATE TABLE {}.state_lock");
            gate.let_through();
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the draft is removed");
    }
}
