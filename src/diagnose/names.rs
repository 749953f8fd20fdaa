//! Names as they stand in a statement, quoted where they have to be.

use crate::clickhouse::quote;
use crate::settings::Settings;

/// The names of what the statements work on, and of the user.
pub(crate) struct Names {
    pub(crate) database: String,
    pub(crate) state: String,
    pub(crate) lock: String,
    pub(crate) history: String,
    pub(crate) feed: String,
    pub(crate) user: String,
}

impl Names {
    pub(crate) fn new(settings: &Settings) -> Self {
        let database = quote_if_needed(&settings.schema);
        let named = |suffix: &str| format!("{database}.{}", quote_if_needed(&format!("{}{suffix}", settings.table)));
        Self {
            state: named(""),
            lock: named("_lock"),
            history: named("_history"),
            feed: named("_history_feed"),
            user: quote_if_needed(&settings.user),
            database,
        }
    }
}

fn quote_if_needed(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        name.to_owned()
    } else {
        quote(name)
    }
}
