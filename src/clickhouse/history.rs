//! Begins, changes and ends the keeping of earlier versions.

use crate::clickhouse::request::{Effect, Statement};
use crate::clickhouse::{Client, text};
use crate::error::Error;

/// Brings history table and feed to what the setting says. What is right already needs no privilege; a history that ends
/// keeps what it has.
///
/// # Errors
/// As the server reports them.
pub(super) fn keep(client: &Client, days: u16) -> Result<(), Error> {
    let tables = client.tables();
    let existing = Existing::read(client, days)?;
    let run = |statement: Statement| client.run(&statement).map(drop);
    if days == 0 {
        return if existing.feed { run(tables.drop_history_feed()) } else { Ok(()) };
    }
    match existing.table {
        Table::Absent => run(tables.create_history(days))?,
        Table::OtherDays => run(tables.change_history_days(days))?,
        Table::AsWanted => {}
    }
    if !existing.feed {
        run(tables.create_history_feed())?;
        run(tables.begin_history())?;
    }
    Ok(())
}

/// What there is of a history.
struct Existing {
    table: Table,
    /// Whether new versions get into it.
    feed: bool,
}

/// The history table.
enum Table {
    Absent,
    /// It keeps versions for another time.
    OtherDays,
    AsWanted,
}

impl Existing {
    fn read(client: &Client, days: u16) -> Result<Self, Error> {
        let [history, feed] = client.history_names();
        let statement = Statement::new(
            Effect::Read,
            "SELECT position(create_table_query, {days:String}) > 0, name FROM system.tables \
             WHERE database = {database:String} AND name IN ({history:String}, {feed:String}) FORMAT TabSeparated",
        )
        .param("days", format!("toIntervalDay({days})"))
        .param("database", client.schema())
        .param("history", history)
        .param("feed", &feed);
        let mut existing = Self { table: Table::Absent, feed: false };
        for [as_wanted, name] in client.run(&statement)?.rows()? {
            match (text(name)? == feed, text(as_wanted)?.as_str()) {
                (true, _) => existing.feed = true,
                (false, "1") => existing.table = Table::AsWanted,
                (false, _) => existing.table = Table::OtherDays,
            }
        }
        Ok(existing)
    }
}
