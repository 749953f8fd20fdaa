//! Failures of the host, apart from those of the component.

use std::fmt;
use std::time::Duration;

use meltano_state_backend_clickhouse::Error;

use crate::limits::Limit;

/// Why a call of an instance failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The component's own, documented failure.
    Error(Error),
    /// The call took longer than [`Limits::call`](crate::Limits::call). A write may or may not have been carried out,
    /// and a lock that the call held stays until it is stale.
    TimedOut(Duration),
    /// The call ran into a limit of the host. A write may or may not have been carried out.
    Limit(Limit),
    /// The component failed in a way that it does not document: a defect in it or in the host.
    Trap(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::TimedOut(after) => write!(f, "the call was given up after {} s", after.as_secs_f64()),
            Self::Limit(limit) => limit.fmt(f),
            Self::Trap(report) => write!(f, "the component failed: {report}"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Error(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a [`Plugin`](crate::Plugin) could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// This machine cannot run WebAssembly as configured.
    Engine(String),
    /// The component does not compile.
    Compile(String),
    /// The component imports what this host does not offer, or does not export the state backend.
    Link(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(report) => write!(f, "WebAssembly cannot run here: {report}"),
            Self::Compile(report) => write!(f, "the component does not compile: {report}"),
            Self::Link(report) => write!(f, "the component does not fit this host: {report}"),
        }
    }
}

impl std::error::Error for BuildError {}
