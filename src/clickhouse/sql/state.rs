//! Statements on the state table.

use std::time::Duration;

use super::Tables;
use super::lock::{FRESH, Layout};
use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::tsv;
use crate::glob::Selection;
use crate::state::State;

/// What a write demands of the moment in which it is carried out; all of it is judged by the server.
pub(crate) struct Fence<'a> {
    /// The lock whose row has to be the one that counts, and fresh enough that this statement ends before anybody may
    /// take the lock for abandoned.
    pub(crate) lock_id: &'a str,
    /// The age at which a lock is abandoned.
    pub(crate) stale: Duration,
    /// How the lock table orders its rows.
    pub(crate) layout: Layout,
    /// If given, the version that has to be the newest stored one, in milliseconds since 1970; 0 for none at all.
    pub(crate) seen: Option<&'a str>,
}

impl Tables {
    /// The newest version of one state: when it was written in milliseconds since 1970, and its parts. At most one row.
    pub(crate) fn get(&self, state_id: &str) -> Statement {
        let table = &self.state;
        Statement::new(
            Effect::Read,
            format!(
                "SELECT toUnixTimestamp64Milli(updated_at), partial_state, completed_state FROM {table} FINAL \
                 WHERE state_id = {{state_id:String}} LIMIT 1 FORMAT TabSeparated"
            ),
        )
        .param("state_id", state_id)
    }

    /// The ids of the selected states.
    pub(crate) fn get_state_ids(&self, selection: &Selection) -> Statement {
        let table = &self.state;
        selected(selection, |condition| {
            format!("SELECT DISTINCT 1, state_id FROM {table} WHERE {condition} ORDER BY state_id FORMAT TabSeparated")
        })
    }

    /// Stores a state so that it is newer than every stored version of its id, whatever the clocks say. With a fence it
    /// writes no row unless the fence holds.
    pub(crate) fn set(&self, state: &State, fence: Option<&Fence>) -> Statement {
        let table = &self.state;
        let mut row = String::new();
        tsv::escape_into(&state.state_id, &mut row);
        for part in [&state.partial_state, &state.completed_state] {
            row.push('\t');
            tsv::escape_nullable_into(part.as_deref(), &mut row);
        }
        row.push('\n');

        let condition = fence.map(|fence| self.condition(fence)).unwrap_or_default();
        let statement = Statement::new(
            Effect::Idempotent,
            format!(
                "INSERT INTO {table} (state_id, partial_state, completed_state, updated_at) \
                 SELECT rows.state_id, rows.partial_state, rows.completed_state, \
                 greatest(now64(3), {NEWEST} + toIntervalMillisecond(1)) \
                 FROM rows LEFT JOIN (SELECT state_id, max(updated_at) AS updated_at FROM {table} \
                 WHERE state_id IN (SELECT state_id FROM rows) GROUP BY state_id) AS newest \
                 ON newest.state_id = rows.state_id{condition}"
            ),
        )
        .rows("state_id String, partial_state Nullable(String), completed_state Nullable(String)", row)
        .setting("async_insert", "0");
        let Some(fence) = fence else { return statement };
        let fresh = fence.stale.saturating_sub(self.request_timeout);
        let statement = statement
            .param("state_id", &state.state_id)
            .param("lock_id", fence.lock_id)
            .param("stale_ms", fence.stale.as_millis().to_string())
            .param("fresh_ms", fresh.as_millis().to_string())
            .setting("max_execution_time", whole_seconds(self.request_timeout).to_string());
        match fence.seen {
            Some(seen) => statement.param("seen", seen),
            None => statement,
        }
    }

    fn condition(&self, fence: &Fence) -> String {
        let lock = &self.lock;
        let mut condition = format!(
            " WHERE {{lock_id:String}} = ({holder}) AND (SELECT max(locked_at) FROM {lock} \
             WHERE state_id = {{state_id:String}} AND lock_id = {{lock_id:String}}) > {FRESH}",
            holder = self.holder(fence.layout),
        );
        if fence.seen.is_some() {
            condition.push_str(&format!(" AND toUnixTimestamp64Milli({NEWEST}) = {{seen:Int64}}"));
        }
        condition
    }

    /// Removes a state; of its versions only those up to `newest`, in milliseconds since 1970, if that is given.
    pub(crate) fn delete(&self, state_id: &str, newest: Option<&str>) -> Statement {
        let table = &self.state;
        let bound = newest.map_or("", |_| UP_TO_NEWEST);
        let sql = format!("DELETE FROM {table} WHERE state_id = {{state_id:String}}{bound}");
        let statement = Statement::new(Effect::Idempotent, sql).param("state_id", state_id);
        match newest {
            Some(newest) => statement.param("newest", newest),
            None => statement,
        }
    }

    /// How many states there are, and their newest version.
    pub(crate) fn count(&self) -> Statement {
        let table = &self.state;
        Statement::new(
            Effect::Read,
            format!(
                "SELECT uniqExact(state_id), toUnixTimestamp64Milli(max(updated_at)) FROM {table} FORMAT TabSeparated"
            ),
        )
    }

    /// Removes all versions of all states up to `newest`.
    pub(crate) fn delete_all(&self, newest: &str) -> Statement {
        // Not TRUNCATE, which needs a privilege of its own and would remove what was written since they were counted.
        let table = &self.state;
        Statement::new(Effect::Idempotent, format!("DELETE FROM {table} WHERE true{UP_TO_NEWEST}"))
            .param("newest", newest)
    }

    /// The lock rows of a state id as [`Self::lock_rows`] reads them, and the newest version of its state as a row of
    /// another kind, in one request.
    pub(crate) fn lock_rows_and_state(&self, state_id: &str, stale: Duration, layout: Layout) -> Statement {
        let table = &self.state;
        let mut statement = self.lock_rows(state_id, stale, layout);
        let state = format!(
            "SELECT 1 AS kind, '' AS id, toString(toUnixTimestamp64Milli(updated_at)) AS a, partial_state AS b, \
             completed_state AS c, '' AS d, '' AS e \
             FROM {table} FINAL WHERE state_id = {{state_id:String}} LIMIT 1"
        );
        statement.sql = format!("SELECT * FROM ({state}) UNION ALL {}", statement.sql);
        statement
    }
}

/// A statement whose condition holds for the selected state ids.
pub(super) fn selected(selection: &Selection, sql: impl FnOnce(&str) -> String) -> Statement {
    const PREFIX: &str = "startsWith(state_id, {prefix:String})";
    let read = |sql| Statement::new(Effect::Read, sql).param("prefix", &selection.prefix);
    match &selection.expression {
        None => read(sql(PREFIX)),
        Some(pattern) => {
            read(sql(&format!("{PREFIX} AND match(state_id, {{pattern:String}})"))).param("pattern", pattern)
        }
    }
}

/// When the newest stored version was written; 1970 if there is none.
const NEWEST: &str = "ifNull(newest.updated_at, toDateTime64(0, 3))";

const UP_TO_NEWEST: &str = " AND updated_at <= fromUnixTimestamp64Milli({newest:Int64})";

/// Rounded up, for a server that counts in seconds.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
