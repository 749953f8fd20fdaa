//! Whether the tables are what the statements need.

use super::names::Names;
use super::report::{Finding, Status};
use crate::clickhouse::existing::{Existing, LOCK_KEY, OLD_LOCK_KEY, Table};
use crate::error::{Details, Error, ErrorKind};

/// Judges what exists, given the setting `history_days`, and whether a broken history is about to be mended.
pub(super) fn judge(existing: &Existing, names: &Names, days: Option<u16>, mends: bool) -> Finding {
    if existing.history_feed && existing.history.is_none() && !mends {
        return Finding::failed(
            "the table of earlier versions is gone, and the view that fills it lets no write succeed",
            "set history_days (0 to end the history) and run meltano-state init",
        );
    }
    let (state, lock) = (&names.state, &names.lock);
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
        if !matches!(table.sorting_key.as_str(), LOCK_KEY | OLD_LOCK_KEY) {
            faults.push(format!("{lock} is sorted by ({}), not by ({LOCK_KEY})", table.sorting_key));
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
    let history = history(existing, days);
    match &existing.lock {
        Some(table) if table.is_old_lock() => {
            let hint = if table.is_replicated() { REPLICATED } else { "run meltano-state init while no pipeline runs" };
            Finding::warning(format!("{lock} {OLD_LAYOUT}"), hint).and(history)
        }
        _ if !existing.leftovers.is_empty() => Finding::warning(
            format!("an upgrade of {lock} was broken off and has left {}", existing.leftovers.join(", ")),
            "run meltano-state init",
        )
        .and(history),
        None if existing.state.is_none() => Finding::skipped("there are no tables yet"),
        _ => Finding::ok("engine, columns and sorting key of the tables are right").and(history),
    }
}

/// What an old lock table is like.
pub(crate) const OLD_LAYOUT: &str = "has the old layout: a merge may remove the row of a holder, and locks take longer";

/// What to do about an old lock table that is replicated.
pub(crate) const REPLICATED: &str = "init leaves a replicated lock table as it is: let an administrator drop it on all \
    replicas while no pipeline runs, and create it with ORDER BY (state_id, lock_id)";

/// What to do about a history that is kept without being asked for.
pub(crate) const SET_DAYS: &str = "set history_days; to end the history, set it to 0 and run meltano-state init";

/// What there is of a history, in words, given its table's days and whether it is recorded.
pub(crate) fn history_in_words(table: Option<Option<u32>>, is_recorded: bool) -> String {
    let days = table.flatten().map_or_else(String::new, |days| format!(" for {days} days"));
    match (is_recorded, table) {
        (true, _) => format!("earlier versions of states are kept{days}"),
        (false, Some(_)) => {
            format!("no earlier versions of states are recorded any more; those that are there are kept{days}")
        }
        (false, None) => "no earlier versions of states are kept".to_owned(),
    }
}

/// Whether the history is what the setting says; none if there is nothing to say of it.
fn history(existing: &Existing, days: Option<u16>) -> Option<Finding> {
    let table = existing.history.map(|history| history.days);
    let is = history_in_words(table, existing.is_recorded());
    let is_other = |days: u16| days == 0 || table.flatten().is_some_and(|kept| kept != u32::from(days));
    match (existing.is_recorded(), days) {
        (true, None) => Some(Finding::warning(format!("{is}, and history_days is not set"), SET_DAYS)),
        (true, Some(days)) if is_other(days) => {
            Some(Finding::warning(format!("{is}, and history_days is {days}"), "run meltano-state init"))
        }
        (false, Some(1..)) if existing.state.is_some() => Some(Finding::warning(
            "history_days is set, but no earlier versions of states are kept",
            "run meltano-state init, as a user who may create tables and views",
        )),
        (false, _) if table.is_none() => None,
        _ => Some(Finding::ok(is)),
    }
}

/// Fails if a table has the right name and is not what the statements need, or a history is broken that the setting
/// `history_days` does not mend.
///
/// # Errors
/// [`ErrorKind::SchemaMismatch`], naming every fault.
pub(crate) fn refuse_other_tables(existing: &Existing, names: &Names, days: Option<u16>) -> Result<(), Error> {
    let Finding { status, found, hint } = judge(existing, names, days, days.is_some());
    if status != Status::Failed {
        return Ok(());
    }
    Err(Details { kind: ErrorKind::SchemaMismatch, message: found, hint, server: None }.into())
}

const ENGINE: &str = "ReplacingMergeTree";

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
    use crate::clickhouse::existing::History;

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

    fn names() -> Names {
        let [database, state, lock, history, feed, user] =
            ["m", "m.state", "m.state_lock", "m.state_history", "m.state_history_feed", "me"].map(str::to_owned);
        Names { database, state, lock, history, feed, user }
    }

    fn check_existing(existing: &Existing, days: Option<u16>, status: Status, found: &str) {
        let finding = judge(existing, &names(), days, false);
        assert_eq!(finding.status, status, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
    }

    fn check(state: Option<Table>, lock: Option<Table>, status: Status, found: &str) {
        check_existing(&Existing { database: true, state, lock, ..Existing::default() }, None, status, found);
    }

    #[test]
    fn a_history_against_what_the_setting_says() {
        // Days that the table keeps, where it is to be seen; whether the view is, and whether it records.
        let check = |kept: Option<Option<u32>>, view, recording, days, status, found| {
            let existing = Existing {
                database: true,
                state: Some(state(RIGHT)),
                history: kept.map(|days| History { days }),
                history_feed: view,
                recording,
                ..Existing::default()
            };
            check_existing(&existing, days, status, found);
        };
        check(None, false, false, None, Status::Ok, "right");
        check(None, false, false, Some(0), Status::Ok, "right");
        check(None, false, false, Some(7), Status::Warning, "no earlier versions");
        check(Some(Some(7)), false, false, Some(7), Status::Warning, "no earlier versions");
        check(Some(Some(7)), false, false, None, Status::Ok, "any more; those that are there are kept for 7 days");
        check(Some(Some(7)), true, true, Some(7), Status::Ok, "earlier versions of states are kept for 7 days");
        check(Some(None), true, true, Some(7), Status::Ok, "earlier versions of states are kept");
        check(Some(Some(7)), true, true, None, Status::Warning, "kept for 7 days, and history_days is not set");
        check(Some(Some(7)), true, true, Some(30), Status::Warning, "kept for 7 days, and history_days is 30");
        check(Some(Some(7)), true, true, Some(0), Status::Warning, "kept for 7 days, and history_days is 0");
        // A user who may not look into it.
        check(None, false, true, None, Status::Warning, "are kept, and history_days is not set");
        check(None, false, true, Some(7), Status::Ok, "earlier versions of states are kept");
        check(Some(Some(7)), false, true, Some(7), Status::Ok, "kept for 7 days");
        // One whose table is gone.
        check(None, true, true, Some(7), Status::Failed, "gone");
        check(None, true, true, None, Status::Failed, "gone");
    }

    #[test]
    fn an_upgrade_that_was_broken_off_and_one_that_is_not_for_init() {
        let existing = |lock, leftovers: &[&str]| Existing {
            database: true,
            state: Some(state(RIGHT)),
            lock: Some(lock),
            leftovers: leftovers.iter().map(|name| (*name).to_owned()).collect(),
            ..Existing::default()
        };
        check_existing(&existing(lock(LOCK_KEY), &["state_lock_old"]), None, Status::Warning, "left state_lock_old");
        let replicated = Table { engine: format!("Replicated{}", lock(OLD_LOCK_KEY).engine), ..lock(OLD_LOCK_KEY) };
        let finding = judge(&existing(replicated, &[]), &names(), None, false);
        assert!(finding.hint.is_some_and(|hint| hint.contains("all replicas")));
    }

    const RIGHT: &str = "ReplacingMergeTree(updated_at) ORDER BY state_id SETTINGS index_granularity = 8192";

    #[test]
    fn verdicts() {
        check(None, None, Status::Skipped, "no tables");
        check(Some(state(RIGHT)), Some(lock(LOCK_KEY)), Status::Ok, "right");
        check(Some(state(RIGHT)), None, Status::Ok, "right");
        check(Some(state(RIGHT)), Some(lock(OLD_LOCK_KEY)), Status::Warning, "old layout");
        let mut without_ticket = lock(LOCK_KEY);
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
