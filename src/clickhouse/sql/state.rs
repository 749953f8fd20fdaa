//! Statements on the state table.

use super::page::{Order, Window};
use super::{Held, Layout, Tables};
use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::{Deletion, tsv};
use crate::glob::Selection;
use crate::state::{LONGEST_ID, State};

/// What a write demands of the moment in which it is carried out; all of it is judged by the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence<'a> {
    /// The lock that has to be held.
    pub(crate) held: Held<'a>,
    /// What has to be stored.
    pub(crate) over: Over<'a>,
}

/// What a write replaces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Over<'a> {
    /// The version of this time, in milliseconds since 1970, has to be the newest one; 0 for none at all.
    Version(&'a str),
    /// The newest version has to hold what this state does, or nothing if this holds nothing.
    Content(&'a State),
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

    /// A page of the selected states, those with ids that nobody could ask for left out.
    pub(crate) fn get_all(&self, selection: &Selection, after: Option<&str>, window: Window) -> Statement {
        let table = &self.state;
        let statement = selected(selection, |condition| {
            let bound = after.map_or("", |_| " AND state_id > {after:String}");
            let from = format!(
                "{table} FINAL WHERE {condition}{bound} AND isValidUTF8(state_id) AND length(state_id) <= {LONGEST_ID}"
            );
            Window::sql(&from, "state_id", Order::Ascending)
        });
        let statement = window.limit(statement);
        match after {
            Some(after) => statement.param("after", after),
            None => statement,
        }
    }

    /// Stores a state so that it is newer than every stored version of its id, whatever the clocks say.
    pub(crate) fn set(&self, state: &State) -> Statement {
        let table = &self.state;
        self.insert_over(
            &format!("SELECT max(updated_at) AS newest FROM {table} WHERE state_id = {{state_id:String}}"),
            "",
        )
        .rows(COLUMNS, rows(&[state]))
        .param("state_id", &state.state_id)
        .setting("async_insert", "0")
        .few_rows()
    }

    /// Stores a state in the same way if the fence holds; otherwise it writes no row.
    pub(crate) fn set_fenced(&self, state: &State, fence: &Fence) -> Statement {
        let Fence { held, over } = fence;
        let statement = match over {
            Over::Version(seen) => self
                .insert_over(
                    &self.newest_if_held(held.layout, "", "", ""),
                    " WHERE toUnixTimestamp64Milli(newest) = {seen:Int64}",
                )
                .rows(COLUMNS, rows(&[state]))
                .param("seen", *seen),
            Over::Content(was) => self
                .insert_over(
                    &self.newest_if_held(
                        held.layout,
                        ", max(part) AS partial, max(whole) AS completed",
                        ", '' AS part, '' AS whole",
                        ", ifNull(concat('=', partial_state), '') AS part, ifNull(concat('=', completed_state), '') AS whole",
                    ),
                    // For an equality the server would build a hash table, which takes 1.5 ms.
                    " WHERE NOT (partial != was_partial OR completed != was_completed)",
                )
                .rows(COLUMNS_WITH_CONTENT, row_with_content(state, was)),
        };
        self.with_lock(statement, held)
    }

    /// A statement that inserts `rows` as a version that follows the `newest` one of a state.
    fn insert_over(&self, newest: &str, condition: &str) -> Statement {
        let table = &self.state;
        let sql = format!(
            "INSERT INTO {table} (state_id, partial_state, completed_state, updated_at) \
             SELECT state_id, partial_state, completed_state, greatest(now64(3), newest + toIntervalMillisecond(1)) \
             FROM rows CROSS JOIN ({newest}) AS seen{condition}"
        );
        Statement::new(Effect::Idempotent, sql)
    }

    /// One row if a lock is held, otherwise none: the time of the newest version, and the given columns, which are made of
    /// others of the lock table's part and the state table's.
    ///
    /// The lock comes first, because the server looks at the tables of a union in their order. Looked at the other way
    /// round, the state could be that from before the last holder's write, and the lock free since.
    fn newest_if_held(&self, layout: Layout, columns: &str, of_lock: &str, of_state: &str) -> String {
        let table = &self.state;
        let held = self.held_to_write(layout, &format!("1 AS held, toDateTime64(0, 3) AS updated{of_lock}"));
        format!(
            "SELECT max(updated) AS newest{columns} FROM ({held} UNION ALL SELECT 0 AS held, updated_at AS updated{of_state} \
             FROM {table} FINAL WHERE state_id = {{state_id:String}}) HAVING max(held) = 1"
        )
    }

    /// Stores states as [`Self::set`] stores one. No two of them have one id.
    pub(crate) fn set_all(&self, states: &[&State]) -> Statement {
        let table = &self.state;
        let sql = format!(
            "INSERT INTO {table} (state_id, partial_state, completed_state, updated_at) \
             SELECT rows.state_id, rows.partial_state, rows.completed_state, \
             greatest(now64(3), ifNull(newest.updated_at, toDateTime64(0, 3)) + toIntervalMillisecond(1)) \
             FROM rows LEFT JOIN (SELECT state_id, max(updated_at) AS updated_at FROM {table} FINAL \
             WHERE state_id IN (SELECT state_id FROM rows) GROUP BY state_id) AS newest \
             ON newest.state_id = rows.state_id"
        );
        Statement::new(Effect::Idempotent, sql).rows(COLUMNS, rows(states)).setting("async_insert", "0")
    }

    /// Removes a state; of its versions only those up to `newest`, in milliseconds since 1970, if that is given.
    pub(crate) fn delete(&self, state_id: &str, newest: Option<&str>) -> Deletion {
        let bound = newest.map_or("", |_| UP_TO_NEWEST);
        Deletion::new(&self.state, format!("state_id = {{state_id:String}}{bound}")).with(|deletion| {
            let deletion = deletion.param("state_id", state_id).few_rows();
            match newest {
                Some(newest) => deletion.param("newest", newest),
                None => deletion,
            }
        })
    }

    /// How many states there are, and their newest version.
    pub(crate) fn count(&self) -> Statement {
        let table = &self.state;
        Statement::new(
            Effect::Read,
            format!("SELECT count(), toUnixTimestamp64Milli(max(updated_at)) FROM {table} FINAL FORMAT TabSeparated"),
        )
    }

    /// Removes all versions of all states up to `newest`.
    pub(crate) fn delete_all(&self, newest: &str) -> Deletion {
        // Not TRUNCATE, which needs a privilege of its own and would remove what was written since they were counted.
        Deletion::new(&self.state, format!("true{UP_TO_NEWEST}")).with(|deletion| deletion.param("newest", newest))
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

/// The columns of the rows that a write brings along. Parameters would be faster, but show in the server's query log.
const COLUMNS: &str = "state_id String, partial_state Nullable(String), completed_state Nullable(String)";
/// The same with what is replaced.
const COLUMNS_WITH_CONTENT: &str = "state_id String, partial_state Nullable(String), completed_state Nullable(String), \
    was_partial String, was_completed String";

/// States as rows.
fn rows(states: &[&State]) -> String {
    let mut rows = String::new();
    for state in states {
        columns_into(state, &mut rows);
        rows.push('\n');
    }
    rows
}

/// A state and the parts of what it replaces as a row: empty if they are NULL, else after an `=`.
fn row_with_content(state: &State, was: &State) -> String {
    let mut row = String::new();
    columns_into(state, &mut row);
    for part in [&was.partial_state, &was.completed_state] {
        row.push('\t');
        if let Some(part) = part {
            row.push('=');
            tsv::escape_into(part, &mut row);
        }
    }
    row.push('\n');
    row
}

fn columns_into(state: &State, row: &mut String) {
    tsv::escape_into(&state.state_id, row);
    for part in [&state.partial_state, &state.completed_state] {
        row.push('\t');
        tsv::escape_nullable_into(part.as_deref(), row);
    }
}

const UP_TO_NEWEST: &str = " AND updated_at <= fromUnixTimestamp64Milli({newest:Int64})";
