//! Every statement on the two tables. Values are parameters or rows; identifiers are quoted by [`quote`].
//!
//! No result begins its lines with free text: see `exception_in_body` in `response.rs`.

mod lock;
mod state;

use std::time::Duration;

pub use lock::Layout;
pub(crate) use state::Fence;

use crate::settings::Settings;

/// The quoted names of the tables and what the statements take from the settings.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(crate) database: String,
    pub(crate) state: String,
    pub(crate) lock: String,
    /// The lock table's place as values.
    lock_place: (String, String),
    request_timeout: Duration,
}

impl Tables {
    /// The tables that the settings name.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let database = quote(&settings.schema);
        let lock = format!("{}_lock", settings.table);
        Self {
            state: format!("{database}.{}", quote(&settings.table)),
            lock: format!("{database}.{}", quote(&lock)),
            database,
            lock_place: (settings.schema.clone(), lock),
            request_timeout: settings.request_timeout,
        }
    }
}

/// Quotes an identifier.
pub(crate) fn quote(name: &str) -> String {
    format!("`{}`", name.replace('\\', r"\\").replace('`', r"\`"))
}
