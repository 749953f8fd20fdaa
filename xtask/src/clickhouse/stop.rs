//! What ends an embedded server.

use std::{
    io::{self, PipeReader, PipeWriter},
    process,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context, Result};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
    low_level::emulate_default_handler,
};

/// Ends the server by closing the pipe that its embedded session reads as a file of queries.
#[derive(Clone)]
pub(super) struct Stop(Arc<Mutex<Option<PipeWriter>>>);

impl Stop {
    /// The pipe to read, and what closes it.
    pub(super) fn new() -> Result<(PipeReader, Self)> {
        let (reader, writer) = io::pipe().context("cannot create a pipe")?;
        Ok((reader, Self(Arc::new(Mutex::new(Some(writer))))))
    }

    /// Asks the server to end.
    pub(super) fn request(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Whether the server was asked to end.
    pub(super) fn requested(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// From now on SIGINT and SIGTERM ask the server to end; a second one does not wait for it.
    pub(super) fn on_signals(&self) -> Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen to signals")?;
        let stop = self.clone();
        thread::spawn(move || {
            for (earlier, signal) in signals.forever().enumerate() {
                if earlier > 0 && emulate_default_handler(signal).is_err() {
                    process::exit(1);
                }
                stop.request();
            }
        });
        Ok(())
    }

    /// From now on the end of stdin asks the server to end: the death of the process that holds its other side.
    pub(super) fn on_end_of_stdin(&self) {
        let stop = self.clone();
        thread::spawn(move || {
            // An error ends the watch as well: a stdin that cannot be read will not tell of its end.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            stop.request();
        });
    }
}
