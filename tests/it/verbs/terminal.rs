//! Questions, and what else a person on a terminal sees.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{merge, ready, set, stored};
use crate::cli::{Run, check};
use crate::sandbox::Sandbox;

/// The two ends of a terminal: a person's, and a program's.
fn terminal() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(person), program)
}

fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meltano-state"));
    command.env("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str()).args(arguments);
    command
}

/// Runs a command whose question is answered on a terminal.
fn answered(sandbox: &Sandbox, answer: &str, arguments: &[&str]) -> Run {
    let (mut person, program) = terminal();
    writeln!(person, "{answer}").unwrap();
    let output = command(sandbox, arguments).stdin(Stdio::from(program)).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn only_a_yes_goes_on_and_what_is_lost_is_named() {
    let sandbox = ready();
    set(&sandbox, "a", 1);
    merge(&sandbox, "a", "\"p\":5");
    sandbox.sql("INSERT INTO {}.state_lock (state_id, lock_id, owner) VALUES ('b', 'rival', 'somebody')");
    let state = "{\"singer_state\":{\"n\":2}}";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{\"a\": {}}").unwrap();
    let before = (stored(&sandbox), sandbox.lock_rows());
    let cases: &[(&[&str], &[&str])] = &[
        (&["set", "a", state], &["replace the state of a (complete and partial, 48 B", ".n: 1 → 2", "- .partial"]),
        (&["clear", "a"], &["remove the state of a", "- .completed.singer_state.n: 1"]),
        (&["clear", "--all"], &["remove ALL states, 1 of them", "  a (complete and partial, 48 B"]),
        (&["import", file.path().to_str().unwrap()], &["replace 1 of the stored states", "  replace the state of a"]),
        (&["unlock", "b"], &["remove the lock of b", "somebody"]),
    ];
    for (arguments, words) in cases {
        for answer in ["", "n", "no", "yess"] {
            let run = answered(&sandbox, answer, arguments);
            assert_eq!(run.code, 1, "{arguments:?}: {}", run.stderr);
            assert!(run.stderr.contains("[y/N]") && run.stderr.contains("nothing was changed"), "{}", run.stderr);
            for word in *words {
                assert!(run.stderr.contains(word), "{arguments:?}: {}", run.stderr);
            }
            assert_eq!((stored(&sandbox), sandbox.lock_rows()), before, "{arguments:?}");
        }
    }
    assert_eq!(answered(&sandbox, "y", &["set", "a", state]).code, 0);
    check(&sandbox, &["get", "a"], &format!("{state}\n"));
    assert_eq!(answered(&sandbox, "YES", &["clear", "a"]).code, 0);
    check(&sandbox, &["list"], "");
    assert_eq!(answered(&sandbox, "y", &["unlock", "b"]).code, 0);
    assert_eq!(sandbox.lock_rows(), "");
    // Nothing is lost, so nothing is asked.
    let run = answered(&sandbox, "", &["set", "a", state]);
    assert!(run.code == 0 && !run.stderr.contains("[y/N]"), "{}", run.stderr);
}

#[test]
fn progress_is_seen() {
    let sandbox = ready();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{\"a\": {\"completed\": {\"n\":1}}}").unwrap();
    let shown = shown(&sandbox, &["import", file.path().to_str().unwrap()]);
    assert!(shown.contains("1 of 1 states imported"), "{shown}");
    let shown = self::shown(&sandbox, &["export", "-o", file.path().to_str().unwrap()]);
    assert!(shown.contains("1 states exported"), "{shown}");
}

/// What a person sees of a command that succeeds.
fn shown(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let (mut person, program) = terminal();
    let status = command(sandbox, arguments).stdout(program.try_clone().unwrap()).stderr(program).status().unwrap();
    assert!(status.success(), "{arguments:?}");
    // After what was written reading fails, for the program's end is closed.
    let mut shown = Vec::new();
    let _ = person.read_to_end(&mut shown);
    String::from_utf8_lossy(&shown).into_owned()
}

#[test]
fn lists_have_headings() {
    let sandbox = ready();
    set(&sandbox, "a", 1);
    let shown = shown(&sandbox, &["list", "-l"]);
    assert!(shown.starts_with("STATUS ") && shown.contains("STATE ID\r\ncomplete "), "{shown}");
}
