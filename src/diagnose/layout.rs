//! Whether the tables are what the statements need.

use super::report::Finding;
use super::tables::{Existing, Table};

/// Judges the tables that exist. `state` and `lock` are their names as they stand in a statement; `with_history` is whether
/// a history is wanted.
pub(super) fn judge(existing: &Existing, state: &str, lock: &str, with_history: bool) -> Finding {
    if existing.history_feed && !existing.history {
        return Finding::failed(
            "the table of earlier versions is gone, and the view that fills it lets no write succeed",
            "set history_days (0 to end the history) and run meltano-state init",
        );
    }
    let mut faults = Vec::new();
    if let Some(table) = &existing.state {
        faults.extend(faults_of(table, state, STATE_COLUMNS));
        if table.sorting_key != "state_id" {
            faults.push(format!("{state} is sorted by ({}), not by state_id", table.sorting_key));
        }
        if table.engine_name().ends_with(ENGINE) && !is_replaced_by(&table.engine, "updated_at") {
            faults.push(format!("{state} does not replace older versions by updated_at"));
        }
    }
    if let Some(table) = &existing.lock {
        faults.extend(faults_of(table, lock, LOCK_COLUMNS));
        if !matches!(table.sorting_key.as_str(), NEW_KEY | OLD_KEY) {
            faults.push(format!("{lock} is sorted by ({}), not by ({NEW_KEY})", table.sorting_key));
        }
    }
    if !faults.is_empty() {
        return Finding::failed(
            faults.join("; "),
            format!(
                "choose another state_backend.clickhouse.schema or state_backend.clickhouse.table, or move the table \
                 away (RENAME TABLE {state} TO {state}_old) and run meltano-state init"
            ),
        );
    }
    if existing.lock.as_ref().is_some_and(is_old) {
        return Finding::warning(
            format!("{lock} has the old layout: a merge may remove the row of a holder, and locks take longer"),
            "run meltano-state init while no pipeline runs",
        );
    }
    if with_history && existing.state.is_some() && !existing.history_feed {
        return Finding::warning(
            "history_days is set, but no earlier versions of states are kept",
            "run meltano-state init, as a user who may create tables and views",
        );
    }
    match (&existing.state, &existing.lock) {
        (None, None) => Finding::skipped("there are no tables yet"),
        _ => Finding::ok("engine, columns and sorting key of the tables are right"),
    }
}

/// Whether a lock table is the Python add-on's, or lacks what the newest layout has.
fn is_old(lock: &Table) -> bool {
    lock.sorting_key == OLD_KEY || !lock.columns.iter().any(|(name, _)| name == "ticket")
}

const ENGINE: &str = "ReplacingMergeTree";
const NEW_KEY: &str = "state_id, lock_id";
/// Of the Python add-on.
const OLD_KEY: &str = "state_id";

/// Names and the beginnings of types.
type Columns = &'static [(&'static str, &'static str)];

const STATE_COLUMNS: Columns = &[
    ("state_id", "String"),
    ("partial_state", "Nullable(String)"),
    ("completed_state", "Nullable(String)"),
    ("updated_at", "DateTime64(3"),
];
const LOCK_COLUMNS: Columns = &[("state_id", "String"), ("lock_id", "String"), ("locked_at", "DateTime")];

/// Wrong engine and columns. `Replicated…` and ClickHouse Cloud's `Shared…` are the same engine.
fn faults_of(table: &Table, name: &str, columns: Columns) -> Vec<String> {
    let mut faults = Vec::new();
    if !matches!(table.engine_name().strip_suffix(ENGINE), Some("" | "Replicated" | "Shared")) {
        faults.push(format!("the engine of {name} is {}, not {ENGINE}", table.engine_name()));
    }
    for (column, expected) in columns {
        match table.columns.iter().find(|(candidate, _)| candidate == column) {
            None => faults.push(format!("{name} has no column {column}")),
            Some((_, found)) if !found.starts_with(expected) => {
                faults
                    .push(format!("the column {column} of {name} is {found}, not {}", expected.trim_end_matches("(3")));
            }
            Some(_) => {}
        }
    }
    faults
}

/// Whether the last argument of the engine is that column.
fn is_replaced_by(engine: &str, column: &str) -> bool {
    let arguments = engine.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(arguments, _)| arguments);
    arguments.and_then(|arguments| arguments.rsplit(',').next()).is_some_and(|last| last.trim() == column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Status;

    fn table(engine: &str, sorting_key: &str, columns: &[(&str, &str)]) -> Table {
        Table {
            engine: engine.to_owned(),
            sorting_key: sorting_key.to_owned(),
            columns: columns.iter().map(|(name, ty)| ((*name).to_owned(), (*ty).to_owned())).collect(),
        }
    }

    fn state(engine: &str) -> Table {
        let columns = [
            ("state_id", "String"),
            ("partial_state", "Nullable(String)"),
            ("completed_state", "Nullable(String)"),
            ("updated_at", "DateTime64(3)"),
        ];
        table(engine, "state_id", &columns)
    }

    fn lock(sorting_key: &str) -> Table {
        let columns = [("state_id", "String"), ("lock_id", "String"), ("locked_at", "DateTime"), ("ticket", "UInt64")];
        table("ReplacingMergeTree(locked_at) ORDER BY x", sorting_key, &columns)
    }

    fn check(state: Option<Table>, lock: Option<Table>, status: Status, found: &str) {
        let existing = Existing { database: true, state, lock, ..Existing::default() };
        let finding = judge(&existing, "m.state", "m.state_lock", false);
        assert_eq!(finding.status, status, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
    }

    #[test]
    fn a_history_that_is_wanted_and_one_that_is_broken() {
        let check = |history, history_feed, with_history, status| {
            let existing = Existing { database: true, state: Some(state(RIGHT)), lock: None, history, history_feed };
            let finding = judge(&existing, "m.state", "m.state_lock", with_history);
            assert_eq!(finding.status, status, "{finding:?}");
        };
        check(false, false, false, Status::Ok);
        check(true, true, true, Status::Ok);
        check(true, true, false, Status::Ok);
        check(false, false, true, Status::Warning);
        check(true, false, true, Status::Warning);
        check(false, true, true, Status::Failed);
        check(false, true, false, Status::Failed);
    }

    const RIGHT: &str = "ReplacingMergeTree(updated_at) ORDER BY state_id SETTINGS index_granularity = 8192";

    #[test]
    fn verdicts() {
        check(None, None, Status::Skipped, "no tables");
        check(Some(state(RIGHT)), Some(lock(NEW_KEY)), Status::Ok, "right");
        check(Some(state(RIGHT)), None, Status::Ok, "right");
        check(Some(state(RIGHT)), Some(lock(OLD_KEY)), Status::Warning, "old layout");
        let mut without_ticket = lock(NEW_KEY);
        without_ticket.columns.pop();
        check(Some(state(RIGHT)), Some(without_ticket), Status::Warning, "old layout");
        let replicated = "ReplicatedReplacingMergeTree('/t/{uuid}/{shard}', '{replica}', updated_at) ORDER BY state_id";
        check(Some(state(replicated)), None, Status::Ok, "right");
        check(Some(state("SharedReplacingMergeTree('/t', '{replica}', updated_at)")), None, Status::Ok, "right");

        check(Some(state("MergeTree ORDER BY state_id")), None, Status::Failed, "is MergeTree, not Replacing");
        check(Some(state("View")), None, Status::Failed, "is View");
        check(Some(state("ReplacingMergeTree ORDER BY state_id")), None, Status::Failed, "updated_at");
        check(Some(table(RIGHT, "tuple()", &[])), None, Status::Failed, "sorted by (tuple())");
        check(Some(table(RIGHT, "state_id", &[("state_id", "UInt8")])), None, Status::Failed, "is UInt8, not String");
        check(None, Some(lock("lock_id")), Status::Failed, "sorted by (lock_id)");
    }
}
