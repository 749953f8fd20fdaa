//! ClickHouse over HTTP: what is asked, how it is sent, what the answers mean.

mod client;
pub mod code;
pub(crate) mod existing;
mod explain;
mod failure;
mod history;
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
pub(crate) use existing::Existing;
pub(crate) use explain::OUTCOME_UNKNOWN;
pub(crate) use failure::Stage;
pub(crate) use history::HistoryPlan;
pub use request::{Effect, Statement};
pub use response::Answer;
pub(crate) use response::{incomplete, text};
pub(crate) use sql::{Fence, Guard, Held, Look, Over, Window, quote};
pub use sql::{Layout, StateRead, Tables};
pub(crate) use upgrade::Obstacle;
