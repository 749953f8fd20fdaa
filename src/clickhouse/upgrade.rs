//! From the add-on's lock table to ours, which merges cannot rob of a holder's row.
//!
//! A new table is made under a name that nobody else uses, and changes places with the lock table in one statement: at no
//! moment is there none. Then the locks that were taken meanwhile are carried over, and the old table is dropped. Each of
//! these statements may be the last one of a process that dies: what it leaves has a name that tells, and the next upgrade,
//! or whoever else finds it, finishes it.
//!
//! Of several upgrades at once only one swaps. Each first makes its new table, then takes away the tables of all others by
//! renaming them, and then looks whether the lock table is still an old one. Of two, the one that looks for others last
//! finds the other's table: either not swapped yet, and then it never will be, since its name is gone; or swapped, and then
//! the lock table is no longer old.

use std::time::Duration;

use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::sql::quote;
use crate::clickhouse::{Client, code, existing, schema};
use crate::error::{Error, ErrorKind};
use crate::settings::LOCK_TABLE_TTL;

/// Why a lock table stays as it is, and what to do about it.
pub(crate) type Obstacle = (String, &'static str);

/// How often it is tried while others upgrade too, with a pause between that grows.
const ATTEMPTS: u32 = 12;
/// A few times as long as the statements take from making a table to swapping it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Replaces the lock table if it is an old one and nothing stands in the way.
///
/// # Errors
/// As the server reports them, above all [`ErrorKind::PermissionDenied`]: then nothing was made.
pub(super) fn lock_table(client: &Client) -> Result<Option<Obstacle>, Error> {
    let mut pause = FIRST_PAUSE;
    for _ in 0..ATTEMPTS {
        if !is_old(client)? {
            return Ok(None);
        }
        if let Some(obstacle) = live_locks(client)? {
            finish(client, &existing::read(client)?.leftovers)?;
            return Ok(Some(obstacle));
        }
        if attempt(client)? {
            return Ok(None);
        }
        client.ports().clock.sleep(client.jittered(pause));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(Some(("others upgrade it at the same time".to_owned(), "run meltano-state init again")))
}

fn is_old(client: &Client) -> Result<bool, Error> {
    Ok(existing::read(client)?.lock.is_some_and(|lock| lock.is_old_lock()))
}

/// Whether the lock table is a new one now; if not, another upgrade came between, or a lock was taken.
fn attempt(client: &Client) -> Result<bool, Error> {
    let new = unused(client);
    let swap = swap(client, &new)?;
    schema::create_lock(client, &new)?;
    let others = existing::read(client)?.leftovers;
    finish(client, others.iter().filter(|other| !new.ends_with(&quote(other))))?;
    // A look of its own, after the others were taken away: it has to show what they have swapped before.
    if !is_old(client)? || live_locks(client)?.is_some() {
        drop_table(client, &new)?;
        return Ok(false);
    }
    match client.run(&swap) {
        Ok(_) => {}
        Err(error) if error.code() == Some(code::UNKNOWN_TABLE) => return Ok(false),
        // It may still be carried out, unless its table has gone before.
        Err(error) if error.kind == ErrorKind::OutcomeUnknown => {
            take_over(client, &new)?;
            return Ok(false);
        }
        Err(error) => {
            drop_table(client, &new)?;
            return Err(error);
        }
    }
    carry_over(client, &new)?;
    Ok(true)
}

/// Finishes upgrades that were broken off, given the unquoted names of the tables that they have left. One that is still
/// under way finds its table gone, and starts anew.
pub(super) fn finish<'a>(client: &Client, leftovers: impl IntoIterator<Item = &'a String>) -> Result<(), Error> {
    let database = &client.tables().database;
    leftovers.into_iter().try_for_each(|name| take_over(client, &format!("{database}.{}", quote(name))))
}

/// Makes a table one's own, unless it is gone, and finishes what it was made for.
fn take_over(client: &Client, table: &str) -> Result<(), Error> {
    let own = unused(client);
    let rename = schema::ddl(format!("RENAME TABLE {table} TO {own}"));
    if unless_gone(client.run(&rename))? { carry_over(client, &own) } else { Ok(()) }
}

/// Carries the live locks of what was the lock table over to what is, and drops it. There are none in one that never was.
fn carry_over(client: &Client, from: &str) -> Result<(), Error> {
    let lock = &client.tables().lock;
    let insert = format!(
        "INSERT INTO {lock} (state_id, lock_id, locked_at) SELECT state_id, lock_id, locked_at FROM {from} \
         WHERE locked_at > now() - {} AND (state_id, lock_id) NOT IN (SELECT state_id, lock_id FROM {lock})",
        LOCK_TABLE_TTL.as_secs()
    );
    let insert = Statement::new(Effect::Idempotent, insert).setting("async_insert", "0");
    // Whoever has taken it over does the same.
    if unless_gone(client.run(&insert))? { drop_table(client, from) } else { Ok(()) }
}

fn drop_table(client: &Client, table: &str) -> Result<(), Error> {
    client.run(&schema::ddl(format!("DROP TABLE IF EXISTS {table}"))).map(drop)
}

/// Whether a statement was carried out; if not, its table is gone.
fn unless_gone<T>(result: Result<T, Error>) -> Result<bool, Error> {
    match result {
        Err(error) if error.code() == Some(code::UNKNOWN_TABLE) => Ok(false),
        other => other.map(|_| true),
    }
}

/// The quoted name of a table beside the lock table that nobody else uses.
fn unused(client: &Client) -> String {
    let (_, lock) = client.table_names();
    format!("{}.{}", client.tables().database, quote(&format!("{lock}_new_{}", client.random_id())))
}

/// The statement that lets a table change places with the lock table. Never to be repeated: that would swap back.
///
/// It is tried before the table exists: so a user who may not do this makes no table that could then not be dropped, and a
/// database which cannot exchange tables says so. There they are renamed one after the other; the first step fails if the
/// table is gone, and no other statement that creates or renames one of them comes between.
fn swap(client: &Client, new: &str) -> Result<Statement, Error> {
    let lock = &client.tables().lock;
    let exchange = Statement::new(Effect::Once, format!("EXCHANGE TABLES {new} AND {lock}"));
    match client.run(&exchange) {
        Err(error) if error.code() == Some(code::NOT_IMPLEMENTED) => {
            let third = unused(client);
            let rename = format!("RENAME TABLE {new} TO {third}, {lock} TO {new}, {third} TO {lock}");
            Ok(Statement::new(Effect::Once, rename))
        }
        Err(error) if error.code() != Some(code::UNKNOWN_TABLE) => Err(error),
        _ => Ok(exchange),
    }
}

/// The live locks, if there are any.
pub(super) fn live_locks(client: &Client) -> Result<Option<Obstacle>, Error> {
    let lock = &client.tables().lock;
    let sql = format!(
        "SELECT toUnixTimestamp(max(locked_at)) + {{stale:UInt64}} - toUnixTimestamp(now()) FROM {lock} \
         WHERE locked_at > now() - {{stale:UInt64}} HAVING count() > 0 FORMAT TabSeparated"
    );
    let stale = client.settings().lock.stale.as_secs() + 1;
    let rows = client.run(&Statement::new(Effect::Read, sql).param("stale", stale.to_string()))?.texts()?;
    Ok(rows.into_iter().flatten().next().map(|left| {
        (
            format!("locks are held in it, of which the last one counts for up to {left} s yet"),
            "run meltano-state init again when no pipeline runs; meltano-state lock list shows who holds them",
        )
    }))
}
