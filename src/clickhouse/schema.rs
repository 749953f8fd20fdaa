//! Creating the database and the tables.

use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::sql::Tables;
use crate::clickhouse::{Client, Existing, code, upgrade};
use crate::error::{Error, ErrorKind};

/// Creates what does not exist. What exists needs no privilege to create: `CREATE … IF NOT EXISTS` would.
///
/// # Errors
/// As the server reports them, such as [`ErrorKind::PermissionDenied`].
pub(super) fn create(client: &Client, existing: &Existing) -> Result<(), Error> {
    let tables = client.tables();
    if !existing.database {
        client.run(&ddl(format!("CREATE DATABASE IF NOT EXISTS {}", tables.database)))?;
    }
    if existing.state.is_none() {
        client.run(&ddl(create_state(tables)))?;
        client.keep_history(existing)?;
    }
    if existing.lock.is_none() {
        create_lock(client, &tables.lock)?;
        // A server that ended while it renamed has left the locks in another table.
        match upgrade::finish(client, &existing.leftovers) {
            Err(error) if error.kind == ErrorKind::PermissionDenied => {}
            other => other?,
        }
    }
    Ok(())
}

/// Creates a lock table of that quoted name.
pub(super) fn create_lock(client: &Client, table: &str) -> Result<(), Error> {
    match client.run(&ddl(lock_table(table, BLOCK_NUMBERS))) {
        // A server without block numbers can still hold the lock table; only faster protocols need them.
        Err(error) if error.code() == Some(code::UNKNOWN_SETTING) => client.run(&ddl(lock_table(table, ""))),
        other => other,
    }
    .map(drop)
}

pub(super) fn ddl(sql: String) -> Statement {
    Statement::new(Effect::Idempotent, sql)
}

fn create_state(tables: &Tables) -> String {
    let table = &tables.state;
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (state_id String, partial_state Nullable(String), \
         completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3)) \
         ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id"
    )
}

/// Rows keep their block numbers, and deletes become patch parts instead of mutations.
const BLOCK_NUMBERS: &str = " SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1";

/// Rival rows differ in the sorting key, so that no merge removes one for another.
fn lock_table(table: &str, settings: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (state_id String, lock_id String, locked_at DateTime DEFAULT now(), \
         owner String DEFAULT '', ticket UInt64 DEFAULT 0, \
         stale_ms UInt32 DEFAULT 300000) ENGINE = ReplacingMergeTree(locked_at) ORDER BY (state_id, lock_id) \
         TTL locked_at + INTERVAL 300 SECOND{settings}"
    )
}
