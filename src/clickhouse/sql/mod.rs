//! Every statement on the tables. Values are parameters or rows; identifiers are quoted by [`quote`].
//!
//! No result begins its lines with free text: see `exception_in_body` in `response.rs`.

mod history;
mod layout;
mod lock;
mod lock_rows;
mod page;
mod state;

use std::time::Duration;

pub use layout::Layout;
pub(crate) use lock::{Guard, Held};
pub(crate) use lock_rows::Look;
pub use lock_rows::StateRead;
pub(crate) use page::Window;
pub(crate) use state::{Fence, Over};

use crate::settings::Settings;

/// The quoted names of the tables and what the statements take from the settings.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(crate) database: String,
    pub(crate) state: String,
    pub(crate) lock: String,
    pub(crate) history: String,
    pub(crate) history_feed: String,
    /// The lock table's place as values.
    lock_place: (String, String),
    /// After this the server stops a write under a lock, in whole seconds, since that is how it counts.
    write_limit: Duration,
    /// How far the server's clock may be set forward while such a write runs.
    settle: Duration,
}

impl Tables {
    /// The tables that the settings name.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let database = quote(&settings.schema);
        let named = |suffix: &str| format!("{database}.{}", quote(&format!("{}{suffix}", settings.table)));
        let lock = format!("{}_lock", settings.table);
        Self {
            state: named(""),
            lock: named("_lock"),
            history: named("_history"),
            history_feed: named("_history_feed"),
            database,
            lock_place: (settings.schema.clone(), lock),
            write_limit: settings.write_limit(),
            settle: settings.lock.settle,
        }
    }
}

/// Quotes an identifier.
pub(crate) fn quote(name: &str) -> String {
    format!("`{}`", name.replace('\\', r"\\").replace('`', r"\`"))
}
