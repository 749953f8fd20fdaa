//! Which of the database and the tables exist, and what they are like.

use crate::clickhouse::{Client, Effect, Statement};
use crate::error::Error;

/// What exists, as far as the user may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Existing {
    pub(super) database: bool,
    pub(super) state: Option<Table>,
    pub(super) lock: Option<Table>,
    /// The table of earlier versions.
    pub(super) history: bool,
    /// The view that fills it.
    pub(super) history_feed: bool,
}

/// A table as the server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// With its arguments, clauses and settings, such as `ReplacingMergeTree(updated_at) ORDER BY state_id`.
    pub(super) engine: String,
    pub(super) sorting_key: String,
    /// Names and types.
    pub(super) columns: Vec<(String, String)>,
}

impl Table {
    /// The name of the engine alone.
    pub(super) fn engine_name(&self) -> &str {
        let end = self.engine.find(['(', ' ']).unwrap_or(self.engine.len());
        self.engine.get(..end).unwrap_or_default()
    }
}

/// Reads the descriptions, in one request.
pub(super) fn read(client: &Client) -> Result<Existing, Error> {
    let (state, lock) = client.table_names();
    let [history, feed] = client.history_names();
    let statement = Statement::new(
        Effect::Read,
        "SELECT 0, '', name, '' FROM system.databases WHERE name = {database:String} \
         UNION ALL SELECT 1, name, if(engine_full = '', engine, engine_full), sorting_key FROM system.tables \
         WHERE database = {database:String} AND name IN ({state:String}, {lock:String}, {history:String}, {feed:String}) \
         UNION ALL SELECT 2, table, name, type FROM system.columns \
         WHERE database = {database:String} AND table IN ({state:String}, {lock:String}) FORMAT TabSeparated",
    )
    .param("database", client.schema())
    .param("state", &state)
    .param("lock", &lock)
    .param("history", &history)
    .param("feed", &feed);
    let mut existing = Existing::default();
    for row in client.run(&statement)?.texts()? {
        let [kind, table, first, second] = row.as_slice() else { continue };
        if kind == "0" {
            existing.database = true;
            continue;
        }
        if *table == history || *table == feed {
            *(if *table == history { &mut existing.history } else { &mut existing.history_feed }) = true;
            continue;
        }
        let slot = if *table == state { &mut existing.state } else { &mut existing.lock };
        let table = slot.get_or_insert_default();
        if kind == "1" {
            table.engine.clone_from(first);
            table.sorting_key.clone_from(second);
        } else {
            table.columns.push((first.clone(), second.clone()));
        }
    }
    Ok(existing)
}
