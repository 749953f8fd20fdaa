//! Creating the database and the tables.

use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::sql::Tables;
use crate::clickhouse::{Client, code, response};
use crate::error::{Error, ErrorKind};

/// Creates what does not exist. What exists needs no privilege to create: `CREATE … IF NOT EXISTS` would.
///
/// # Errors
/// As the server reports them, such as [`ErrorKind::PermissionDenied`].
pub(crate) fn create(client: &Client, tables: &Tables) -> Result<(), Error> {
    let existing = existing_tables(client)?;
    let exists = |name: &str| existing.iter().any(|table| table == name);
    let (state, lock) = client.table_names();
    if existing.is_empty() {
        create_database(client, tables)?;
    }
    if !exists(&state) {
        client.run(&ddl(create_state(tables)))?;
        client.keep_history()?;
    }
    if !exists(&lock) {
        create_lock(client, &tables.lock)?;
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

/// Which of the two tables exist, as far as the user may see them.
fn existing_tables(client: &Client) -> Result<Vec<String>, Error> {
    let (state, lock) = client.table_names();
    let statement = Statement::new(
        Effect::Read,
        "SELECT 1, name FROM system.tables WHERE database = {database:String} AND name IN ({state:String}, {lock:String}) \
         FORMAT TabSeparated",
    )
    .param("database", client.schema())
    .param("state", state)
    .param("lock", lock);
    let rows = client.run(&statement)?.rows::<2>()?;
    rows.into_iter().map(|[_, name]| response::text(name)).collect()
}

/// The database may exist though none of our tables does, and the user may lack the privilege to create databases.
fn create_database(client: &Client, tables: &Tables) -> Result<(), Error> {
    let database = &tables.database;
    match client.run(&ddl(format!("CREATE DATABASE IF NOT EXISTS {database}"))) {
        Err(error) if error.kind == ErrorKind::PermissionDenied && database_exists(client)? => Ok(()),
        other => other.map(drop),
    }
}

fn database_exists(client: &Client) -> Result<bool, Error> {
    let statement = Statement::new(
        Effect::Read,
        "SELECT 1 FROM system.databases WHERE name = {database:String} FORMAT TabSeparated",
    )
    .param("database", client.schema());
    Ok(!client.run(&statement)?.rows::<1>()?.is_empty())
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
