//! Removing rows: one condition, and the ways in which the server can carry it out.

use crate::clickhouse::request::{Effect, Statement};

/// Removes the rows of a table for which a condition holds.
#[derive(Clone, Debug)]
pub struct Deletion {
    table: String,
    condition: String,
    /// All but the text.
    values: Statement,
}

impl Deletion {
    /// Removes rows of a table by its quoted name.
    pub(crate) fn new(table: &str, condition: impl Into<String>) -> Self {
        let values = Statement::new(Effect::Idempotent, "");
        Self { table: table.to_owned(), condition: condition.into(), values }
    }

    /// Gives its statement values, or says more of it.
    #[must_use]
    pub(crate) fn with(mut self, values: impl FnOnce(Statement) -> Statement) -> Self {
        self.values = values(self.values);
        self
    }

    /// Marks the rows as deleted, in a part beside theirs.
    pub(crate) fn patch(&self) -> Statement {
        self.lightweight().setting("lightweight_delete_mode", "lightweight_update")
    }

    /// Marks the rows as deleted.
    pub(crate) fn lightweight(&self) -> Statement {
        let Self { table, condition, values } = self;
        Statement { sql: format!("DELETE FROM {table} WHERE {condition}"), ..values.clone() }
    }

    /// Writes the parts anew without the rows, which works on every table, and waits for it.
    pub(crate) fn heavyweight(&self) -> Statement {
        let Self { table, condition, values } = self;
        let statement = Statement { sql: format!("ALTER TABLE {table} DELETE WHERE {condition}"), ..values.clone() };
        statement.setting("mutations_sync", "2")
    }
}
