//! Every statement on the two tables. Values are parameters or rows; identifiers are quoted by [`quote`].
//!
//! No result begins its lines with free text: see `exception_in_body` in [`super::response`].

use std::time::Duration;

use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::tsv;
use crate::glob::Selection;
use crate::settings::Settings;
use crate::state::State;

/// The quoted names of the tables and what the statements take from the settings.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(crate) database: String,
    pub(crate) state: String,
    pub(crate) lock: String,
    stale: Duration,
    request_timeout: Duration,
}

/// Quotes an identifier.
pub(crate) fn quote(name: &str) -> String {
    format!("`{}`", name.replace('\\', r"\\").replace('`', r"\`"))
}

const STATE_ROWS: &str = "state_id String, partial_state Nullable(String), completed_state Nullable(String)";

impl Tables {
    /// The tables that the settings name.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let database = quote(&settings.schema);
        Self {
            state: format!("{database}.{}", quote(&settings.table)),
            lock: format!("{database}.{}", quote(&format!("{}_lock", settings.table))),
            database,
            stale: settings.lock.stale,
            request_timeout: settings.request_timeout,
        }
    }

    /// The newest version of one state: at most one row.
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
        let (expression, pattern) = match &selection.expression {
            Some(pattern) => (" AND match(state_id, {pattern:String})", Some(pattern)),
            None => ("", None),
        };
        let statement = Statement::new(
            Effect::Read,
            format!(
                "SELECT DISTINCT 1, state_id FROM {table} WHERE startsWith(state_id, {{prefix:String}}){expression} \
                 ORDER BY state_id FORMAT TabSeparated"
            ),
        )
        .param("prefix", &selection.prefix);
        match pattern {
            Some(pattern) => statement.param("pattern", pattern),
            None => statement,
        }
    }

    /// Stores a state so that it is newer than every stored version of its id, whatever the clocks say. With
    /// `lock_id` it writes only while that row holds the lock, and for long enough that this statement ends before
    /// anybody may take the lock for abandoned.
    pub(crate) fn set(&self, state: &State, lock_id: Option<&str>) -> Statement {
        let Self { state: table, lock, .. } = self;
        let mut row = String::new();
        tsv::escape_into(&state.state_id, &mut row);
        for part in [&state.partial_state, &state.completed_state] {
            row.push('\t');
            tsv::escape_nullable_into(part.as_deref(), &mut row);
        }
        row.push('\n');

        let fence = lock_id.map_or_else(String::new, |_| {
            format!(
                " WHERE {{lock_id:String}} = (SELECT min(lock_id) FROM {lock} \
                 WHERE state_id = {{state_id:String}} AND {LIVE}) \
                 AND (SELECT max(locked_at) FROM {lock} \
                 WHERE state_id = {{state_id:String}} AND lock_id = {{lock_id:String}}) \
                 > now64(3) - toIntervalMillisecond({{fresh_ms:UInt64}})",
            )
        });
        let statement = Statement::new(
            Effect::Idempotent,
            format!(
                "INSERT INTO {table} (state_id, partial_state, completed_state, updated_at) \
                 SELECT rows.state_id, rows.partial_state, rows.completed_state, \
                 greatest(now64(3), ifNull(newest.updated_at, toDateTime64(0, 3)) + toIntervalMillisecond(1)) \
                 FROM rows LEFT JOIN (SELECT state_id, max(updated_at) AS updated_at FROM {table} \
                 WHERE state_id IN (SELECT state_id FROM rows) GROUP BY state_id) AS newest \
                 ON newest.state_id = rows.state_id{fence}"
            ),
        )
        .rows(STATE_ROWS, row)
        .setting("async_insert", "0");
        match lock_id {
            None => statement,
            Some(lock_id) => {
                let fresh = self.stale.saturating_sub(self.request_timeout);
                statement
                    .param("state_id", &state.state_id)
                    .param("lock_id", lock_id)
                    .param("stale_ms", self.stale.as_millis().to_string())
                    .param("fresh_ms", fresh.as_millis().to_string())
                    .setting("max_execution_time", whole_seconds(self.request_timeout).to_string())
            }
        }
    }

    /// Removes a state; of its versions only those up to `newest`, in milliseconds since 1970, if that is given.
    pub(crate) fn delete(&self, state_id: &str, newest: Option<&str>) -> Statement {
        let table = &self.state;
        let bound = newest.map_or("", |_| UP_TO_NEWEST);
        let statement = Statement::new(
            Effect::Idempotent,
            format!("DELETE FROM {table} WHERE state_id = {{state_id:String}}{bound}"),
        )
        .param("state_id", state_id);
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

    /// Inserts a lock row, unless the state id has a live one.
    pub(crate) fn insert_candidate(&self, state_id: &str, lock_id: &str) -> Statement {
        let Self { lock, .. } = self;
        Statement::new(
            Effect::Once,
            format!(
                "INSERT INTO {lock} (state_id, lock_id) SELECT {{state_id:String}}, {{lock_id:String}} \
                 WHERE NOT EXISTS (SELECT 1 FROM {lock} WHERE state_id = {{state_id:String}} AND {LIVE})"
            ),
        )
        .param("state_id", state_id)
        .param("lock_id", lock_id)
        .param("stale_ms", self.stale.as_millis().to_string())
        .setting("async_insert", "0")
    }

    /// All lock rows of a state id: whether stale, lock id, time, age in seconds. Without FINAL, which would show one of several rivals.
    pub(crate) fn lock_rows(&self, state_id: &str) -> Statement {
        let Self { lock, .. } = self;
        Statement::new(
            Effect::Read,
            format!(
                "SELECT NOT ({LIVE}), lock_id, toString(locked_at), toUnixTimestamp(now()) - toUnixTimestamp(locked_at) \
                 FROM {lock} WHERE state_id = {{state_id:String}} ORDER BY lock_id FORMAT TabSeparated"
            ),
        )
        .param("state_id", state_id)
        .param("stale_ms", self.stale.as_millis().to_string())
    }

    /// Removes the stale lock rows of a state id.
    pub(crate) fn delete_stale(&self, state_id: &str) -> Statement {
        let Self { lock, .. } = self;
        Statement::new(
            Effect::Idempotent,
            format!("DELETE FROM {lock} WHERE state_id = {{state_id:String}} AND NOT ({LIVE})"),
        )
        .param("state_id", state_id)
        .param("stale_ms", self.stale.as_millis().to_string())
    }

    /// Removes one lock row.
    pub(crate) fn delete_lock(&self, state_id: &str, lock_id: &str) -> Statement {
        let Self { lock, .. } = self;
        Statement::new(
            Effect::Idempotent,
            format!("DELETE FROM {lock} WHERE state_id = {{state_id:String}} AND lock_id = {{lock_id:String}}"),
        )
        .param("state_id", state_id)
        .param("lock_id", lock_id)
    }
}

/// Rounded up, for a server that counts in seconds.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

const UP_TO_NEWEST: &str = " AND updated_at <= fromUnixTimestamp64Milli({newest:Int64})";

/// Whether a lock row counts.
const LIVE: &str = "locked_at > now64(3) - toIntervalMillisecond({stale_ms:UInt64})";
