//! Statements that read the lock table.

use std::time::Duration;

use super::state::selected;
use super::{Layout, Tables};
use crate::clickhouse::request::{Effect, Statement};
use crate::glob::Selection;

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

    /// The newest version of a state as a row beside lock rows, up to the keyword that joins them.
    fn state_row(&self, state: StateRead) -> String {
        let parts = match state {
            StateRead::Nothing => return String::new(),
            StateRead::Version => "NULL AS b, NULL AS c",
            StateRead::Whole => "partial_state AS b, completed_state AS c",
        };
        let table = &self.state;
        format!(
            "SELECT * FROM (SELECT 1 AS kind, '' AS id, toString(toUnixTimestamp64Milli(updated_at)) AS a, {parts}, \
             '' AS d, '' AS e, '' AS f FROM {table} FINAL WHERE state_id = {{state_id:String}} LIMIT 1) UNION ALL "
        )
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
