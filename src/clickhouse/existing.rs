//! Which of the database and the tables exist, and what they are like.

use crate::clickhouse::{Client, Effect, Statement};
use crate::error::Error;

/// What exists, as far as the user may see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Existing {
    pub(crate) database: bool,
    pub(crate) state: Option<Table>,
    pub(crate) lock: Option<Table>,
    /// The table of earlier versions.
    pub(crate) history: Option<History>,
    /// The view that fills it. A user who may not see it may see [`Self::recording`].
    pub(crate) history_feed: bool,
    /// Whether what is written into the state table gets into the history too.
    pub(crate) recording: bool,
    /// Unquoted names of lock tables that upgrades have left which were broken off, or are under way.
    pub(crate) leftovers: Vec<String>,
}

impl Existing {
    /// Whether new versions of states get into the history.
    pub(crate) fn is_recorded(&self) -> bool {
        self.history_feed || self.recording
    }
}

/// A table as the server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// With its arguments, clauses and settings, such as `ReplacingMergeTree(updated_at) ORDER BY state_id`.
    pub(crate) engine: String,
    pub(crate) sorting_key: String,
    /// Names and types.
    pub(crate) columns: Vec<(String, String)>,
}

/// The table of earlier versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// For how many days it keeps a version; none if somebody has told it otherwise.
    pub(crate) days: Option<u32>,
}

/// The sorting key of a lock table of ours.
pub(crate) const LOCK_KEY: &str = "state_id, lock_id";
/// That of the Python add-on.
pub(crate) const OLD_LOCK_KEY: &str = "state_id";

impl Table {
    /// The name of the engine alone.
    pub(crate) fn engine_name(&self) -> &str {
        let end = self.engine.find(['(', ' ']).unwrap_or(self.engine.len());
        self.engine.get(..end).unwrap_or_default()
    }

    /// Whether a lock table is the Python add-on's, or lacks what the newest layout has.
    pub(crate) fn is_old_lock(&self) -> bool {
        self.sorting_key == OLD_LOCK_KEY || !self.columns.iter().any(|(name, _)| name == "ticket")
    }

    /// Whether other servers have copies that a change here does not reach.
    pub(crate) fn is_replicated(&self) -> bool {
        self.engine_name().starts_with("Replicated")
    }
}

/// Reads the descriptions, in one request.
pub(crate) fn read(client: &Client) -> Result<Existing, Error> {
    let (state, lock) = client.table_names();
    let [history, feed] = client.history_names();
    let statement = Statement::new(
        Effect::Read,
        "SELECT 0, '', name, '' FROM system.databases WHERE name = {database:String} \
         UNION ALL SELECT 1, name, if(engine_full = '', engine, engine_full), sorting_key FROM system.tables \
         WHERE database = {database:String} AND name IN ({state:String}, {lock:String}) \
         UNION ALL SELECT 2, table, name, type FROM system.columns \
         WHERE database = {database:String} AND table IN ({state:String}, {lock:String}) \
         UNION ALL SELECT 3, name, extract(create_table_query, 'toIntervalDay\\\\((\\\\d+)\\\\)'), '' FROM system.tables \
         WHERE database = {database:String} AND name IN ({history:String}, {feed:String}) \
         UNION ALL SELECT 4, name, '', '' FROM system.tables \
         WHERE database = {database:String} AND name = {state:String} AND has(dependencies_table, {feed:String}) \
         UNION ALL SELECT 5, name, '', '' FROM system.tables \
         WHERE database = {database:String} AND startsWith(name, {lock:String}) \
         AND match(substring(name, length({lock:String}) + 1), '^_(old|new(_[0-9a-f-]{36})?)$') \
         AND sorting_key IN ('state_id', 'state_id, lock_id') AND engine_full LIKE '%locked_at)%' FORMAT TabSeparated",
    )
    .param("database", client.schema())
    .param("state", &state)
    .param("lock", &lock)
    .param("history", &history)
    .param("feed", &feed);
    let mut existing = Existing::default();
    for row in client.run(&statement)?.texts()? {
        let [kind, table, first, second] = row.as_slice() else { continue };
        let slot = if *table == state { &mut existing.state } else { &mut existing.lock };
        match kind.as_str() {
            "0" => existing.database = true,
            "1" => {
                let table = slot.get_or_insert_default();
                table.engine.clone_from(first);
                table.sorting_key.clone_from(second);
            }
            "2" => slot.get_or_insert_default().columns.push((first.clone(), second.clone())),
            "3" if *table == feed => existing.history_feed = true,
            "3" => existing.history = Some(History { days: first.parse().ok() }),
            "4" => existing.recording = true,
            _ => existing.leftovers.push(table.clone()),
        }
    }
    Ok(existing)
}
