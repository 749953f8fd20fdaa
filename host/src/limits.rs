//! What a component may use.

use std::fmt;
use std::time::Duration;

use wasmtime::ResourceLimiter;

/// What one instance of the component may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long one call may take, with all its requests and waits. 300 s: more than the wait for a lock (30 s) and
    /// the requests around it (60 s each) take with the default settings.
    pub call: Duration,
    /// The size of the instance's linear memory in bytes. 256 MiB.
    pub memory: usize,
    /// The size of the body of one answer in bytes. 64 MiB.
    pub response: usize,
    /// How many handles (requests, bodies, timers, …) may be open at once. 1,000: a call needs about ten.
    pub resources: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { call: Duration::from_secs(300), memory: 256 << 20, response: 64 << 20, resources: 1_000 }
    }
}

/// A limit that a call ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::memory`], in bytes.
    Memory(usize),
    /// [`Limits::response`], in bytes.
    Response(usize),
    /// [`Limits::resources`].
    Resources(usize),
    /// [`Builder::pool`](crate::Builder::pool).
    Instances,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(f, "the component needs more than {bytes} bytes of memory"),
            Self::Response(bytes) => write!(f, "the server's answer is larger than {bytes} bytes"),
            Self::Instances => f.write_str("there are as many instances as were set aside"),
            Self::Resources(count) => write!(f, "the component holds more than {count} handles"),
        }
    }
}

/// Refuses memory above the limit and remembers that it did: the component itself can only abort.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: usize,
    pub(crate) exceeded: bool,
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let allowed = desired <= self.bytes;
        self.exceeded |= !allowed;
        Ok(allowed)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        // A table holds the component's functions. It never grows after the start, so any size that a compiler
        // produces is allowed.
        Ok(desired <= 100_000)
    }
}
