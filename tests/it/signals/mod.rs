//! What `meltano-state` leaves when SIGINT, SIGTERM or SIGHUP tells it to end: no lock, no half-written file, and a word on
//! what was done.

mod files;
mod moments;
mod programs;
mod waits;

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use url::Url;

use crate::cli::run;
use crate::lock_commands::signal;
use crate::sandbox::Sandbox;

const ALL: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// More than any end may take, and less than the time limits that once had to pass before one: 60 s.
const SOON: Duration = Duration::from_secs(25);

/// Longer than the time within which two signals count as one.
const APART: Duration = Duration::from_millis(300);

fn ready() -> Sandbox {
    let sandbox = Sandbox::new();
    let init = run(&sandbox, &["init"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    sandbox
}

/// A command that has not started yet, which nobody can answer.
fn command(uri: &Url, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meltano-state"));
    command
        .env("MELTANO_STATE_BACKEND_URI", uri.as_str())
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(uri: &Url, arguments: &[&str]) -> Child {
    command(uri, arguments).spawn().unwrap()
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    signal: Option<i32>,
    stderr: String,
}

impl Ended {
    fn by(&self, signal: Signal) -> bool {
        self.signal == Some(signal.as_raw())
    }
}

/// Waits for the end, which has to come soon.
fn end(mut child: Child) -> Ended {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > SOON {
            let _ = child.kill();
            let output = child.wait_with_output().unwrap();
            panic!("it does not end: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ended { code: output.status.code(), signal: output.status.signal(), stderr }
}

/// Tells a command to end, and waits for that.
fn tell(child: Child, told: Signal) -> Ended {
    signal(&child, told);
    end(child)
}
