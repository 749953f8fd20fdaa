//! Statements on the history table, and those that make it.

use super::Tables;
use super::page::{Order, Window};
use crate::clickhouse::request::{Effect, Statement};

impl Tables {
    /// A page of the versions of a state, newest first: those before `before`, in milliseconds since 1970, or all.
    pub(crate) fn versions(&self, state_id: &str, before: Option<i64>, window: Window) -> Statement {
        let history = &self.history;
        let bound = before.map_or("", |_| " AND updated_at < fromUnixTimestamp64Milli({before:Int64})");
        // Two who write at the same time without the lock may give one version twice, of which the last recorded counts, and
        // one that was written while the history began is there twice.
        let from = format!(
            "(SELECT * FROM {history} WHERE state_id = {{state_id:String}}{bound} \
             ORDER BY updated_at DESC, recorded_at DESC LIMIT 1 BY updated_at) WHERE true"
        );
        let statement = Statement::new(Effect::Read, Window::sql(&from, "updated_at", Order::Descending));
        let statement = window.limit(statement).param("state_id", state_id);
        match before {
            Some(before) => statement.param("before", before.to_string()),
            None => statement,
        }
    }

    /// One version of a state, as [`Tables::get`] reads the newest.
    pub(crate) fn version(&self, state_id: &str, version: i64) -> Statement {
        let history = &self.history;
        Statement::new(
            Effect::Read,
            format!(
                "SELECT toUnixTimestamp64Milli(updated_at), partial_state, completed_state FROM {history} \
                 WHERE state_id = {{state_id:String}} AND updated_at = fromUnixTimestamp64Milli({{version:Int64}}) \
                 ORDER BY recorded_at DESC LIMIT 1 FORMAT TabSeparated"
            ),
        )
        .param("state_id", state_id)
        .param("version", version.to_string())
    }

    /// Keeps versions for that many days after they were recorded: `updated_at` is whatever a writer's clock said.
    pub(crate) fn create_history(&self, days: u16) -> Statement {
        let history = &self.history;
        Statement::new(
            Effect::Idempotent,
            format!(
                "CREATE TABLE IF NOT EXISTS {history} (state_id String, partial_state Nullable(String), \
             completed_state Nullable(String), updated_at DateTime64(3), recorded_at DateTime64(9) DEFAULT now64(9)) \
             ENGINE = MergeTree ORDER BY (state_id, updated_at) TTL {}",
                time_to_live(days)
            ),
        )
    }

    pub(crate) fn change_history_days(&self, days: u16) -> Statement {
        let history = &self.history;
        Statement::new(Effect::Idempotent, format!("ALTER TABLE {history} MODIFY TTL {}", time_to_live(days)))
    }

    /// From then on the server copies what anybody inserts into the state table.
    pub(crate) fn create_history_feed(&self) -> Statement {
        let Self { state, history, history_feed, .. } = self;
        Statement::new(
            Effect::Idempotent,
            format!(
                "CREATE MATERIALIZED VIEW IF NOT EXISTS {history_feed} TO {history} \
             AS SELECT state_id, partial_state, completed_state, updated_at FROM {state}"
            ),
        )
    }

    pub(crate) fn drop_history_feed(&self) -> Statement {
        let feed = &self.history_feed;
        Statement::new(Effect::Idempotent, format!("DROP VIEW IF EXISTS {feed}"))
    }

    /// Copies the newest versions that the history lacks.
    pub(crate) fn begin_history(&self) -> Statement {
        let Self { state, history, .. } = self;
        Statement::new(
            Effect::Idempotent,
            format!(
                "INSERT INTO {history} (state_id, partial_state, completed_state, updated_at) \
                 SELECT state_id, partial_state, completed_state, updated_at FROM {state} FINAL \
                 WHERE (state_id, updated_at) NOT IN (SELECT state_id, updated_at FROM {history})"
            ),
        )
        .setting("async_insert", "0")
    }
}

fn time_to_live(days: u16) -> String {
    format!("toDateTime(recorded_at) + INTERVAL {days} DAY")
}
