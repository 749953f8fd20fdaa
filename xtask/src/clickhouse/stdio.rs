//! Standard output and standard error while ClickHouse runs in this process.
//!
//! Stdout is for the one line that tells that the server is ready, whatever ClickHouse prints. Stderr is passed on
//! and read on the way, since there alone ClickHouse tells why it ended.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, PipeReader, Write},
    os::fd::AsFd,
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result};
use rustix::stdio::{dup2_stderr, dup2_stdout};

/// The process's standard streams, redirected until [`Streams::restore`].
pub(super) struct Streams {
    stdout: File,
    stderr: File,
    relay: JoinHandle<Option<Failure>>,
}

/// An error that ClickHouse printed: `Code: 210. DB::Exception: Listen …`.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    /// ClickHouse's error code.
    pub(super) code: u32,
    /// The whole line.
    pub(super) text: String,
}

impl Streams {
    /// Redirects both streams.
    pub(super) fn redirect() -> Result<Self> {
        let redirect = || {
            let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
            let passed_to = stderr.try_clone()?;
            let (reader, writer) = io::pipe()?;
            dup2_stderr(&writer)?;
            dup2_stdout(&writer)?;
            let relay = thread::spawn(move || relay(reader, passed_to));
            io::Result::Ok(Self { stdout, stderr, relay })
        };
        redirect().context("cannot redirect the standard streams")
    }

    /// The standard output that the process was started with.
    pub(super) fn stdout(&self) -> Result<File> {
        self.stdout.try_clone().context("cannot duplicate stdout")
    }

    /// Restores both streams; returns the last error that ClickHouse printed.
    pub(super) fn restore(self) -> Result<Option<Failure>> {
        dup2_stdout(&self.stdout).context("cannot restore stdout")?;
        dup2_stderr(&self.stderr).context("cannot restore stderr")?;
        // With these two the last writers of the pipe are gone, and the relay ends.
        Ok(self.relay.join().ok().flatten())
    }
}

/// Passes on what `from` gives, line by line.
fn relay(from: PipeReader, mut to: impl Write) -> Option<Failure> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut last = None;
    while from.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        // A reader of ours that went away is no reason to block ClickHouse on a full pipe.
        let _ = to.write_all(&line);
        last = failure(&String::from_utf8_lossy(&line)).or(last);
        line.clear();
    }
    last
}

fn failure(line: &str) -> Option<Failure> {
    let (code, _) = line.strip_prefix("Code: ")?.split_once('.')?;
    Some(Failure { code: code.parse().ok()?, text: line.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_kept_and_everything_passed_on() {
        let text =
            "Code: 76. DB::Exception: Cannot lock file\nnotes\nCode: 210. DB::Exception: Listen failed\nCode: x\n";
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        let mut passed_on = Vec::new();
        let last = relay(reader, &mut passed_on);
        assert_eq!(passed_on, text.as_bytes());
        let text = "Code: 210. DB::Exception: Listen failed".to_owned();
        assert_eq!(last, Some(Failure { code: 210, text }));
    }
}
