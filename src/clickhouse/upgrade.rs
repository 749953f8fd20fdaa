//! From the add-on's lock table to ours, which merges cannot rob of a holder's row.

use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::sql::quote;
use crate::clickhouse::{Client, response, schema};
use crate::error::{Error, ErrorKind};

/// Replaces the lock table if it has the add-on's columns and no live lock is in it. Locks that are taken while it is
/// replaced are carried over. A user who may not do this keeps the old table.
pub(super) fn lock_table(client: &Client) -> Result<(), Error> {
    if has_our_columns(client)? || has_live_lock(client)? {
        return Ok(());
    }
    match replace(client) {
        Err(error) if error.kind == ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

fn has_our_columns(client: &Client) -> Result<bool, Error> {
    let (_, lock) = client.table_names();
    let statement = Statement::new(
        Effect::Read,
        "SELECT count() FROM system.columns WHERE database = {database:String} AND table = {table:String} \
         AND name = 'ticket' FORMAT TabSeparated",
    )
    .param("database", client.schema())
    .param("table", lock);
    is_positive(client, &statement)
}

fn has_live_lock(client: &Client) -> Result<bool, Error> {
    let lock = &client.tables().lock;
    let sql = format!("SELECT count() FROM {lock} WHERE locked_at > now() - {{stale:UInt64}} FORMAT TabSeparated");
    let stale = client.settings().lock.stale.as_secs() + 1;
    is_positive(client, &Statement::new(Effect::Read, sql).param("stale", stale.to_string()))
}

fn is_positive(client: &Client, statement: &Statement) -> Result<bool, Error> {
    let [count] = client.run(statement)?.rows::<1>()?.pop().unwrap_or_default();
    Ok(response::text(count)? != "0")
}

fn replace(client: &Client) -> Result<(), Error> {
    let tables = client.tables();
    let (_, lock) = client.table_names();
    let beside = |suffix: &str| format!("{}.{}", tables.database, quote(&format!("{lock}{suffix}")));
    let (new, old, lock) = (beside("_new"), beside("_old"), &tables.lock);
    let ddl = |sql: String| client.run(&schema::ddl(sql)).map(drop);
    // What an upgrade that broke off may have left.
    ddl(format!("DROP TABLE IF EXISTS {new}"))?;
    ddl(format!("DROP TABLE IF EXISTS {old}"))?;
    schema::create_lock(client, &new)?;
    // Not to be repeated: the second time the new table would be taken for the old one.
    client.run(&Statement::new(Effect::Once, format!("RENAME TABLE {lock} TO {old}, {new} TO {lock}")))?;
    ddl(format!(
        "INSERT INTO {lock} (state_id, lock_id, locked_at) SELECT state_id, lock_id, locked_at FROM {old} \
         WHERE locked_at > now() - 300"
    ))?;
    ddl(format!("DROP TABLE {old}"))
}
