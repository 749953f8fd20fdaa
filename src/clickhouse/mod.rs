//! ClickHouse over HTTP: what is asked, how it is sent, what the answers mean.

mod client;
pub mod code;
mod deletion;
pub(crate) mod existing;
mod explain;
mod failure;
mod history;
mod passing;
mod request;
mod response;
mod schema;
mod sql;
#[cfg(test)]
mod tests;
mod tsv;
mod upgrade;
pub(crate) mod version;

pub use client::Client;
pub use deletion::Deletion;
pub(crate) use existing::Existing;
pub(crate) use failure::Stage;
pub(crate) use history::HistoryPlan;
pub use request::{Effect, Statement};
pub use response::Answer;
pub(crate) use response::{incomplete, text};
pub(crate) use sql::{Fence, Guard, Held, Look, Over, Window, quote};
pub use sql::{Layout, StateRead, Tables};
pub(crate) use upgrade::Obstacle;
