//! Settings: their names, where each value comes from, what it may be, what it is when nothing is said.

mod fault;
mod model;
mod names;
mod origin;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use fault::Fault;
pub use model::{LOCK_TABLE_TTL, LockProtocol, LockSettings, Secret, Settings, TLS_PORTS};
pub use names::{NAMES, PREFIX, URI, environment_variable, full_name};
pub use origin::{Origin, Resolution};
