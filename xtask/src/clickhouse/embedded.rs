//! An embedded server as a child of this process.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    http::Http,
    library::{self, LIBCHDB},
};
use crate::{progress, workspace};

/// A start takes half a second; when it takes longer than this, the user is told what is waited for.
const QUIET: Duration = Duration::from_secs(2);
/// When a server that has not become ready is given up.
const START_LIMIT: Duration = Duration::from_secs(60);
/// When a server that was asked to end is killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Name and password of the user in `users.xml` who may do everything.
const ADMINISTRATOR: (&str, &str) = ("meltano", "s3cret");

/// The `state_backend.uri` of the user who may do everything on the server at `url`.
pub(super) fn uri(url: &str) -> String {
    url.replacen("http://", &format!("clickhouse://{}:{}@", ADMINISTRATOR.0, ADMINISTRATOR.1), 1) + "/default"
}

/// A ClickHouse server with empty data on a free port. It ends when this is dropped, and when this process dies.
pub(crate) struct Embedded {
    child: Child,
    url: String,
}

impl Embedded {
    /// Starts one and waits until it answers. Fetches ClickHouse first if this user has none yet.
    pub(crate) fn start() -> Result<Self> {
        let library = library::locate()?;
        let mut child = Command::new(workspace::own_program()?)
            .args(["clickhouse", "--port", "0", "--until-stdin-closes"])
            .env(LIBCHDB, library)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for this process, which may want the server to clean up.
            .process_group(0)
            .spawn()
            .context("cannot start the embedded ClickHouse")?;
        let ready = child.stdout.take().map(first_line);
        let mut server = Self { child, url: String::new() };
        let ready = wait(&ready.context("the embedded ClickHouse has no stdout")?)?;
        match ready.trim_end().strip_prefix("ready ") {
            Some(url) => url.clone_into(&mut server.url),
            None => bail!("the embedded ClickHouse did not start; what it said is above"),
        }
        Ok(server)
    }

    /// Its HTTP interface: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Its `state_backend.uri`.
    pub(crate) fn uri(&self) -> String {
        uri(&self.url)
    }

    /// ClickHouse's version, as it tells itself.
    pub(crate) fn version(&self) -> Result<String> {
        self.query("SELECT version()")
    }

    /// What a statement that only reads prints.
    pub(crate) fn query(&self, statement: &str) -> Result<String> {
        Http::new(self.url()).query(statement)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let asked = Instant::now();
        while asked.elapsed() < STOP_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // It may have ended this very moment, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line of `stdout`, empty when it ends before.
fn first_line(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = sender.send(line);
    });
    receiver
}

fn wait(ready: &Receiver<String>) -> Result<String> {
    let line = match ready.recv_timeout(QUIET) {
        Err(RecvTimeoutError::Timeout) => {
            let spinner = progress::spinner("Starting ClickHouse");
            let line = ready.recv_timeout(START_LIMIT - QUIET);
            spinner.finish_and_clear();
            line
        }
        line => line,
    };
    line.with_context(|| format!("the embedded ClickHouse did not start within {} s", START_LIMIT.as_secs()))
}
