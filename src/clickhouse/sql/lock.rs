//! Statements on the lock table.

use std::time::Duration;

use super::Tables;
use super::state::selected;
use crate::clickhouse::request::{Effect, Statement};
use crate::glob::Selection;

/// What a lock table can tell of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Not looked at yet. Statements treat it as `Ordered`, and the first read tells whether it is.
    Unknown,
    /// The add-on's columns: the lowest lock id counts.
    Plain,
    /// Our columns, but block numbers that do not follow visibility, as on replicated engines: the lowest lock id counts.
    Named,
    /// Our columns on one server: the row that was inserted first counts.
    Ordered,
}

impl Layout {
    /// What orders the rows: the one with the lowest value counts.
    fn order(self) -> &'static str {
        match self {
            Self::Unknown | Self::Ordered => "if(ticket = 0, _block_number, ticket)",
            Self::Plain | Self::Named => "lock_id",
        }
    }

    const fn has_our_columns(self) -> bool {
        !matches!(self, Self::Plain)
    }

    /// Whether a row counts: each of ours says itself how long it does, so that all agree.
    const fn live(self) -> &'static str {
        match self {
            Self::Plain => "locked_at > now64(3) - toIntervalMillisecond({stale_ms:UInt32})",
            _ => "locked_at > now64(3) - toIntervalMillisecond(stale_ms)",
        }
    }
}

/// A lock that the caller believes to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'a> {
    pub(crate) state_id: &'a str,
    pub(crate) lock_id: &'a str,
    /// The age at which it counts as abandoned.
    pub(crate) stale: Duration,
    pub(crate) layout: Layout,
}

/// Whether a lock row is inserted where a live one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// It is not.
    Alone,
    /// It is: the order of insertion will decide, and looking takes longer than inserting.
    Queue,
}

/// What to look at besides lock rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing.
    Rows,
    /// Whether the layout is as assumed.
    Table,
    /// That, and whether the table was mutated lately, which takes a privilege on `system.mutations` on some servers.
    Mutations,
}

/// What to read of a state with its lock rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateRead {
    /// Nothing.
    Nothing,
    /// When it was written.
    Version,
    /// All of it.
    Whole,
}

impl Tables {
    /// Inserts a lock row; with [`Guard::Alone`] unless the state id has a live one.
    pub(crate) fn insert_candidate(
        &self,
        state_id: &str,
        lock_id: &str,
        owner: &str,
        stale: Duration,
        layout: Layout,
        guard: Guard,
    ) -> Statement {
        let lock = &self.lock;
        let (columns, values) = match layout.has_our_columns() {
            true => (
                "state_id, lock_id, owner, stale_ms",
                "{state_id:String}, {lock_id:String}, {owner:String}, {stale_ms:UInt32}",
            ),
            false => ("state_id, lock_id", "{state_id:String}, {lock_id:String}"),
        };
        let alone = match guard {
            Guard::Queue => String::new(),
            Guard::Alone => {
                let live = layout.live();
                format!(" WHERE NOT EXISTS (SELECT 1 FROM {lock} WHERE state_id = {{state_id:String}} AND {live})")
            }
        };
        let statement = Statement::new(Effect::Once, format!("INSERT INTO {lock} ({columns}) SELECT {values}{alone}"))
            .param("state_id", state_id)
            .param("lock_id", lock_id)
            .param("stale_ms", stale.as_millis().to_string())
            .setting("async_insert", "0")
            .few_rows();
        if layout.has_our_columns() { statement.param("owner", owner) } else { statement }
    }

    /// All lock rows of a state id, as rows of kind 0; its newest version, if asked for, as a row of kind 1; and if asked for
    /// what else matters of the lock table, as a row of kind 2. Without FINAL, which on an old layout would show one of
    /// several rivals.
    pub(crate) fn lock_rows(
        &self,
        state_id: &str,
        stale: Duration,
        layout: Layout,
        state: StateRead,
        look: Look,
    ) -> Statement {
        let state_row = self.state_row(state);
        let rows = self.lock_columns(layout, "state_id = {state_id:String}");
        let confirmed = if layout.has_our_columns() { ORDERED } else { STILL_PLAIN };
        let mutated = match look {
            Look::Rows => None,
            Look::Table => Some("'0'"),
            Look::Mutations => Some(MUTATED),
        };
        let table_row = mutated.map_or_else(String::new, |mutated| {
            format!(
                " UNION ALL SELECT 2 AS kind, '' AS id, '' AS a, '' AS b, '' AS c, '' AS d, \
                 ({confirmed}) AS e, ({mutated}) AS f"
            )
        });
        let statement = Statement::new(Effect::Read, format!("{state_row}{rows}{table_row} FORMAT TabSeparated"))
            .param("state_id", state_id)
            .param("stale_ms", stale.as_millis().to_string())
            .few_rows();
        let (database, table) = &self.lock_place;
        match look {
            Look::Rows => statement,
            _ => statement.param("database", database).param("table", table),
        }
    }

    /// The lock rows of the selected state ids, in the same form.
    pub(crate) fn all_lock_rows(&self, selection: &Selection, stale: Duration, layout: Layout) -> Statement {
        selected(selection, |condition| {
            let rows = self.lock_columns(layout, condition);
            format!("SELECT * FROM ({rows}) ORDER BY id, a FORMAT TabSeparated")
        })
        .param("stale_ms", stale.as_millis().to_string())
    }

    fn lock_columns(&self, layout: Layout, condition: &str) -> String {
        let lock = &self.lock;
        let (owner, order, stale) = match layout {
            Layout::Plain => ("''", "'0'".to_owned(), "{stale_ms:UInt32}"),
            Layout::Named => ("owner", "'0'".to_owned(), "stale_ms"),
            Layout::Unknown | Layout::Ordered => ("owner", format!("toString({})", layout.order()), "stale_ms"),
        };
        let live = layout.live();
        format!(
            "SELECT 0 AS kind, state_id AS id, lock_id AS a, {owner} AS b, toString(toUnixTimestamp(locked_at)) AS c, \
             concat(toString(toUnixTimestamp(now()) - toUnixTimestamp(locked_at)), if({live}, '', ' stale')) AS d, \
             {order} AS e, toString({stale}) AS f \
             FROM {lock} WHERE {condition}"
        )
    }

    /// A row of these columns if a lock's row is the one that counts, and so fresh that a statement which begins now has
    /// ended before anybody may take the lock for abandoned; otherwise none.
    fn held(&self, layout: Layout, columns: &str) -> String {
        self.held_among(layout, columns, &format!(" AND {}", layout.live()))
    }

    /// The same for a write.
    pub(super) fn held_to_write(&self, layout: Layout, columns: &str) -> String {
        match layout {
            // Rows before one's own were stale when the lock was taken, and were deleted then. Not to ask saves 0.5 ms. If
            // one is there all the same, nothing is written.
            Layout::Unknown | Layout::Ordered => self.held_among(layout, columns, ""),
            Layout::Plain | Layout::Named => self.held(layout, columns),
        }
    }

    fn held_among(&self, layout: Layout, columns: &str, live: &str) -> String {
        let (lock, order) = (&self.lock, layout.order());
        format!(
            "SELECT {columns} FROM {lock} WHERE state_id = {{state_id:String}}{live} \
             HAVING argMin(lock_id, {order}) = {{lock_id:String}} AND maxIf(locked_at, lock_id = {{lock_id:String}}) \
             > now64(3) - toIntervalMillisecond({{fresh_ms:UInt32}})"
        )
    }

    /// Gives a statement with such a condition its values and its time limit.
    pub(super) fn with_lock(&self, statement: Statement, held: &Held) -> Statement {
        let fresh = held.stale.saturating_sub(self.write_limit + self.settle);
        statement
            .param("state_id", held.state_id)
            .param("lock_id", held.lock_id)
            .param("stale_ms", held.stale.as_millis().to_string())
            .param("fresh_ms", fresh.as_millis().to_string())
            .setting("async_insert", "0")
            .setting("max_execution_time", self.write_limit.as_secs().to_string())
            .few_rows()
    }

    /// Makes a lock's row as fresh as new, if it still counts, and keeps its place in the order.
    pub(crate) fn renew(&self, held: &Held) -> Statement {
        let lock = &self.lock;
        let (columns, values) = match held.layout.has_our_columns() {
            true => (
                "state_id, lock_id, owner, stale_ms, ticket",
                "state_id, lock_id, any(owner), any(stale_ms), min(if(ticket = 0, _block_number, ticket))",
            ),
            false => ("state_id, lock_id", "state_id, lock_id"),
        };
        let is_held = self.held(held.layout, "1");
        let statement = Statement::new(
            Effect::Idempotent,
            format!(
                "INSERT INTO {lock} ({columns}) SELECT {values} FROM {lock} \
                 WHERE state_id = {{state_id:String}} AND lock_id = {{lock_id:String}} AND EXISTS ({is_held}) \
                 GROUP BY state_id, lock_id"
            ),
        );
        self.with_lock(statement, held)
    }

    /// Removes the stale lock rows of a state id.
    pub(crate) fn delete_stale(&self, state_id: &str, stale: Duration, layout: Layout) -> Statement {
        let lock = &self.lock;
        let live = layout.live();
        Statement::new(
            Effect::Idempotent,
            format!("DELETE FROM {lock} WHERE state_id = {{state_id:String}} AND NOT ({live})"),
        )
        .param("state_id", state_id)
        .param("stale_ms", stale.as_millis().to_string())
        .few_rows()
    }

    /// Removes one lock.
    pub(crate) fn delete_lock(&self, state_id: &str, lock_id: &str) -> Statement {
        let lock = &self.lock;
        Statement::new(
            Effect::Idempotent,
            format!("DELETE FROM {lock} WHERE state_id = {{state_id:String}} AND lock_id = {{lock_id:String}}"),
        )
        .param("state_id", state_id)
        .param("lock_id", lock_id)
        .few_rows()
    }
}

/// Block numbers are given and parts made visible in one step only on a table of one server, and they survive merges
/// only where they are stored.
const ORDERED: &str = "SELECT toString(engine = 'ReplacingMergeTree' \
    AND create_table_query LIKE '%enable_block_number_column = 1%') \
    FROM system.tables WHERE database = {database:String} AND name = {table:String}";

/// Another process may have upgraded the table since.
const STILL_PLAIN: &str = "SELECT toString(count() = 0) FROM system.columns \
    WHERE database = {database:String} AND table = {table:String} AND name = 'ticket'";

/// Whether somebody mutates the table, or has within the last ten minutes.
const MUTATED: &str = "SELECT toString(count() > 0) FROM system.mutations \
    WHERE database = {database:String} AND table = {table:String} \
    AND (NOT is_done OR create_time > now() - 600)";
