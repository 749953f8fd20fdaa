//! Programs that run under a lock: who gets which signal, and that none is left alone.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, test_kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{ALL, APART, command, end, ready, start, tell};
use crate::gate::Gate;
use crate::lock_commands::signal;

/// Waits until a script has said how far it is.
fn wait_for(file: &Path) -> String {
    let start = Instant::now();
    loop {
        match fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => assert!(start.elapsed() < Duration::from_secs(20), "{} does not appear", file.display()),
        }
        sleep(Duration::from_millis(5));
    }
}

fn is_alive(pid: &str) -> bool {
    test_kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap()).is_ok()
}

#[test]
fn a_program_gets_the_signal_and_what_it_makes_of_it_counts() {
    let sandbox = ready();
    let directory = tempfile::tempdir().unwrap();
    for told in ALL {
        let begun = directory.path().join("begun");
        let script = format!("echo $$ > {}; exec sleep 60", begun.display());
        let child = start(&sandbox.uri(), &["lock", "run", "a", "--", "sh", "-c", &script]);
        let pid = wait_for(&begun);
        let ended = tell(child, told);
        assert!(ended.by(told), "{ended:?}");
        assert!(!is_alive(&pid));
        assert_eq!(sandbox.lock_rows(), "");
        fs::remove_file(&begun).unwrap();

        let script = format!("trap 'exit 42' INT TERM HUP; echo > {}; while :; do sleep 0.05; done", begun.display());
        let child = start(&sandbox.uri(), &["lock", "run", "a", "--", "sh", "-c", &script]);
        wait_for(&begun);
        assert_eq!(tell(child, told).code, Some(42));
        assert_eq!(sandbox.lock_rows(), "");
        fs::remove_file(&begun).unwrap();
    }
}

#[test]
fn a_program_that_does_not_listen_is_killed_by_the_second_signal() {
    let sandbox = ready();
    let directory = tempfile::tempdir().unwrap();
    let begun = directory.path().join("begun");
    let script = format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.05; done", begun.display());
    let child = start(&sandbox.uri(), &["lock", "run", "a", "--", "sh", "-c", &script]);
    let pid = wait_for(&begun);
    signal(&child, Signal::TERM);
    sleep(APART);
    assert!(is_alive(&pid));
    signal(&child, Signal::TERM);
    end(child);
    assert!(!is_alive(&pid));
    assert_eq!(sandbox.lock_rows(), "");
}

/// As a shell without job control, or `nohup`, has it for what goes on in the background.
#[test]
fn an_ignored_signal_stays_ignored() {
    let sandbox = ready();
    let directory = tempfile::tempdir().unwrap();
    let begun = directory.path().join("begun");
    let program = format!("echo > {}; sleep 1; exit 7", begun.display());
    let child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_meltano-state")])
        .args(["lock", "run", "a", "--", "sh", "-c", &program])
        .env("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&begun);
    let ended = tell(child, Signal::HUP);
    assert_eq!(ended.code, Some(7), "{ended:?}");
}

/// A terminal sends SIGINT to the whole group: the program gets it once.
#[test]
fn what_the_terminal_interrupts_is_interrupted_once() {
    let sandbox = ready();
    let directory = tempfile::tempdir().unwrap();
    let heard = directory.path().join("heard");
    let begun = directory.path().join("begun");
    let script = format!(
        "trap 'echo x >> {}' INT; echo > {}; n=0; while [ $n -lt 20 ]; do sleep 0.05; n=$((n+1)); done; exit 5",
        heard.display(),
        begun.display()
    );
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut person = File::from(person);
    let child = Command::new("setsid")
        .args(["--ctty", env!("CARGO_BIN_EXE_meltano-state"), "lock", "run", "a", "--", "sh", "-c", &script])
        .env("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str())
        .stdin(Stdio::from(program))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&begun);
    // Control-C.
    person.write_all(b"\x03").unwrap();
    let ended = end(child);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(fs::read_to_string(&heard).unwrap(), "x\n");
    assert_eq!(sandbox.lock_rows(), "");
}

/// Nobody reads the warnings: the program is stopped all the same when the lock cannot be kept.
#[test]
fn a_program_is_not_left_alone_when_nobody_reads_the_warnings() {
    let sandbox = ready();
    let gate = Gate::open();
    let directory = tempfile::tempdir().unwrap();
    let begun = directory.path().join("begun");
    let script = format!("echo $$ > {}; exec sleep 60", begun.display());
    let settings = ["--set", "clickhouse.lock_stale_seconds=3", "--set", "clickhouse.request_timeout_seconds=1"];
    let run = ["lock", "run", "a", "--", "sh", "-c", &script];
    let mut child = command(&gate.uri(&sandbox), &[&settings[..], &run].concat()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let pid = wait_for(&begun);
    gate.slam();
    let ended = end(child);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!is_alive(&pid));
}
