//! Settings of the user's profile that would interfere.

use super::report::{Finding, Status};
use crate::clickhouse::{Client, Effect, Statement};
use crate::error::Error;

/// A setting, the value that interferes (any other does not, unless it begins with `!`: then only that one does not),
/// and what it does.
const INTERFERING: [(&str, &str, &str, Status); 13] = [
    ("readonly", "!0", "only get and list work", Status::Failed),
    ("enable_lightweight_delete", "0", "states and locks are removed slowly", Status::Warning),
    ("lightweight_deletes_sync", "0", "a state may still be seen after it was removed", Status::Warning),
    ("use_query_cache", "!0", "states and locks are read as they were, not as they are", Status::Failed),
    ("allow_ddl", "0", "no state and no lock can be removed, and no table created", Status::Failed),
    ("limit", "!0", "results are cut short", Status::Failed),
    ("offset", "!0", "results are cut short", Status::Failed),
    ("result_overflow_mode", "!throw", "long results may be cut short without a word", Status::Warning),
    ("read_overflow_mode", "!throw", "long results may be cut short without a word", Status::Warning),
    ("empty_result_for_aggregation_by_empty_set", "1", "first writes are not stored", Status::Failed),
    ("input_format_tsv_skip_first_lines", "!0", "writes are not stored", Status::Failed),
    ("output_format_tsv_crlf_end_of_line", "!0", "answers cannot be read", Status::Failed),
    ("format_tsv_null_representation", "!\\N", "an absent part of a state is taken for a text", Status::Failed),
];

/// What statements set themselves, and to what, where that is always the same: then it may be fixed there.
const NEEDED: [(&str, Option<&str>); 2] = [("async_insert", Some("0")), ("max_execution_time", None)];

/// A setting's name, its value, and whether a constraint forbids changing it.
type Row = (String, String, bool);

/// Reads the settings that matter.
pub(super) fn read(client: &Client) -> Result<Vec<Row>, Error> {
    let names = INTERFERING.iter().map(|(name, ..)| *name).chain(NEEDED.iter().map(|(name, _)| *name));
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let statement = Statement::new(
        Effect::Read,
        format!(
            "SELECT readonly, name, value FROM system.settings WHERE name IN ({}) ORDER BY name != 'limit' FORMAT TabSeparated",
            names.join(", ")
        ),
    );
    let rows = client.run(&statement)?.texts()?;
    let row = |row: Vec<String>| match <[String; 3]>::try_from(row) {
        Ok([readonly, name, value]) => Some((name, value, readonly != "0")),
        Err(_) => None,
    };
    Ok(rows.into_iter().filter_map(row).collect())
}

/// Judges them.
pub(super) fn judge(rows: &[Row], user: &str) -> Finding {
    let mut finding = Finding::ok("nothing that interferes");
    let mut found = Vec::new();
    let read_only = is_read_only(rows);
    for (name, value, fixed) in rows {
        let harm = INTERFERING.iter().find(|(candidate, bad, ..)| candidate == name && matches(bad, value));
        // A read-only user may change nothing, which says nothing about each setting.
        let refused = *fixed && !read_only && NEEDED.iter().any(|(needed, to)| needed == name && *to != Some(value));
        let (status, harm) = match harm {
            Some((_, _, harm, status)) => (*status, *harm),
            None if refused => (Status::Failed, "writes need to change it, and a constraint forbids that"),
            None => continue,
        };
        found.push(format!("{name} = {value}: {harm}"));
        if finding.status != Status::Failed {
            finding.status = status;
        }
    }
    if !found.is_empty() {
        finding.found = found.join("; ");
        finding.hint = Some(format!(
            "take these settings and constraints out of the profile of {user}, or name another user in \
             state_backend.clickhouse.user"
        ));
    }
    finding
}

pub(super) fn is_read_only(rows: &[Row]) -> bool {
    rows.iter().any(|(name, value, _)| name == "readonly" && value != "0")
}

fn matches(bad: &str, value: &str) -> bool {
    match bad.strip_prefix('!') {
        Some(good) => value != good,
        None => value == bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&str, &str, bool)], status: Status, found: &str) {
        let rows: Vec<Row> = rows.iter().map(|(n, v, fixed)| ((*n).to_owned(), (*v).to_owned(), *fixed)).collect();
        let finding = judge(&rows, "me");
        assert_eq!(finding.status, status, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
        assert_eq!(finding.hint.is_some(), status != Status::Ok);
    }

    #[test]
    fn verdicts() {
        check(&[], Status::Ok, "nothing");
        check(&[("readonly", "0", false), ("async_insert", "1", false)], Status::Ok, "nothing");
        check(&[("readonly", "2", false), ("async_insert", "1", true)], Status::Failed, "readonly = 2");
        check(&[("async_insert", "1", true)], Status::Failed, "async_insert = 1");
        check(&[("async_insert", "0", true)], Status::Ok, "nothing");
        check(&[("max_execution_time", "0", true)], Status::Failed, "max_execution_time = 0");
        check(&[("max_execution_time", "5", false)], Status::Ok, "nothing");
        check(&[("lightweight_deletes_sync", "0", false)], Status::Warning, "removed");
        check(&[("allow_ddl", "0", false)], Status::Failed, "removed");
        check(&[("lightweight_deletes_sync", "2", false)], Status::Ok, "nothing");
        check(&[("limit", "5", false), ("result_overflow_mode", "break", false)], Status::Failed, "limit = 5: ");
        check(&[("format_tsv_null_representation", "NULL", false)], Status::Failed, "NULL");
        check(&[("format_tsv_null_representation", "\\N", false)], Status::Ok, "nothing");
    }
}
