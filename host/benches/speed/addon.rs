//! The Python add-on's workflow over its own driver, in a process that does what it is told.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use url::Url;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/addon.py");

/// Ends when its standard input does.
pub(crate) struct Addon {
    process: Child,
    orders: Option<ChildStdin>,
    times: Lines<BufReader<ChildStdout>>,
}

impl Addon {
    pub(crate) fn start(python: &OsStr, uri: &str) -> Self {
        let uri = Url::parse(uri).expect("a URI");
        let port = uri.port().unwrap_or(8123).to_string();
        let (host, password) = (uri.host_str().unwrap_or("localhost"), uri.password().unwrap_or_default());
        let mut process = Command::new(python)
            .args([PROGRAM, host, &port, uri.username(), password, "bench_addon", "bench"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let orders = process.stdin.take();
        let times = BufReader::new(process.stdout.take().expect("its output")).lines();
        Self { process, orders, times }
    }

    /// How long it takes for an operation, by its own clock.
    pub(crate) fn run(&mut self, operation: &str) -> Duration {
        writeln!(self.orders.as_ref().expect("its input"), "{operation}").expect("the add-on's workflow runs");
        let seconds = self.times.next().expect("the add-on's workflow runs").expect("a line");
        Duration::from_secs_f64(seconds.parse().expect("seconds"))
    }
}

impl Drop for Addon {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It has nothing left to do.
        let _ = self.process.wait();
    }
}
