//! Statements that change the lock table, and what a write under a lock asks of it.

use std::time::Duration;

use super::{Layout, Tables};
use crate::clickhouse::Deletion;
use crate::clickhouse::request::{Effect, Statement};

/// A lock that the caller believes to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'a> {
    pub(crate) state_id: &'a str,
    pub(crate) lock_id: &'a str,
    /// The age at which it counts as abandoned.
    pub(crate) stale: Duration,
    pub(crate) layout: Layout,
}

/// Whether a lock row is inserted where a live one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// It is not.
    Alone,
    /// It is: the order of insertion will decide, and looking takes longer than inserting.
    Queue,
}

impl Tables {
    /// Inserts a lock row; with [`Guard::Alone`] unless the state id has a live one. Its query id is the lock's.
    pub(crate) fn insert_candidate(
        &self,
        state_id: &str,
        lock_id: &str,
        owner: &str,
        stale: Duration,
        layout: Layout,
        guard: Guard,
    ) -> Statement {
        let lock = &self.lock;
        let (columns, values) = match layout.has_our_columns() {
            true => (
                "state_id, lock_id, owner, stale_ms",
                "{state_id:String}, {lock_id:String}, {owner:String}, {stale_ms:UInt32}",
            ),
            false => ("state_id, lock_id", "{state_id:String}, {lock_id:String}"),
        };
        let alone = match guard {
            Guard::Queue => String::new(),
            Guard::Alone => {
                let live = layout.live();
                // Not EXISTS: ClickHouse 25.8.1 to 25.8.4 takes it for false whatever is there (ClickHouse#86415).
                format!(
                    " WHERE {{state_id:String}} NOT IN \
                     (SELECT state_id FROM {lock} WHERE state_id = {{state_id:String}} AND {live})"
                )
            }
        };
        let statement = Statement::new(Effect::Once, format!("INSERT INTO {lock} ({columns}) SELECT {values}{alone}"))
            .param("state_id", state_id)
            .param("lock_id", lock_id)
            .param("stale_ms", stale.as_millis().to_string())
            .setting("async_insert", "0")
            .few_rows()
            .query_id(lock_id);
        if layout.has_our_columns() { statement.param("owner", owner) } else { statement }
    }

    /// A row of these columns if a lock's row is the one that counts, and so fresh that a statement which begins now has
    /// ended before anybody may take the lock for abandoned; otherwise none.
    fn held(&self, layout: Layout, columns: &str) -> String {
        self.held_among(layout, columns, &format!(" AND {}", layout.live()))
    }

    /// The same for a write.
    pub(super) fn held_to_write(&self, layout: Layout, columns: &str) -> String {
        match layout {
            // Rows before one's own were stale when the lock was taken, and were deleted then. Not to ask saves 0.5 ms. If
            // one is there all the same, nothing is written.
            Layout::Unknown | Layout::Ordered => self.held_among(layout, columns, ""),
            Layout::Plain | Layout::Named => self.held(layout, columns),
        }
    }

    fn held_among(&self, layout: Layout, columns: &str, live: &str) -> String {
        let (lock, order) = (&self.lock, layout.order());
        format!(
            "SELECT {columns} FROM {lock} WHERE state_id = {{state_id:String}}{live} \
             HAVING argMin(lock_id, {order}) = {{lock_id:String}} AND maxIf(locked_at, lock_id = {{lock_id:String}}) \
             > now64(3) - toIntervalMillisecond({{fresh_ms:UInt32}})"
        )
    }

    /// Gives a statement with such a condition its values and its time limit.
    pub(super) fn with_lock(&self, statement: Statement, held: &Held) -> Statement {
        let fresh = held.stale.saturating_sub(self.write_limit + self.settle);
        statement
            .param("state_id", held.state_id)
            .param("lock_id", held.lock_id)
            .param("stale_ms", held.stale.as_millis().to_string())
            .param("fresh_ms", fresh.as_millis().to_string())
            .setting("async_insert", "0")
            .setting("max_execution_time", self.write_limit.as_secs().to_string())
            .few_rows()
    }

    /// Makes a lock's row as fresh as new, if it still counts, and keeps its place in the order. Its query id is the lock's.
    pub(crate) fn renew(&self, held: &Held) -> Statement {
        let lock = &self.lock;
        let (columns, values) = match held.layout.has_our_columns() {
            true => (
                "state_id, lock_id, owner, stale_ms, ticket",
                "state_id, lock_id, any(owner), any(stale_ms), min(if(ticket = 0, _block_number, ticket))",
            ),
            false => ("state_id, lock_id", "state_id, lock_id"),
        };
        let is_held = self.held(held.layout, "1");
        let statement = Statement::new(
            Effect::Idempotent,
            format!(
                "INSERT INTO {lock} ({columns}) SELECT {values} FROM {lock} \
                 WHERE state_id = {{state_id:String}} AND lock_id = {{lock_id:String}} AND (SELECT count() FROM ({is_held})) = 1 \
                 GROUP BY state_id, lock_id"
            ),
        );
        self.with_lock(statement, held).query_id(held.lock_id)
    }

    /// Removes the stale lock rows of a state id.
    pub(crate) fn delete_stale(&self, state_id: &str, stale: Duration, layout: Layout) -> Deletion {
        let live = layout.live();
        Deletion::new(&self.lock, format!("state_id = {{state_id:String}} AND NOT ({live})")).with(|deletion| {
            deletion.param("state_id", state_id).param("stale_ms", stale.as_millis().to_string()).few_rows()
        })
    }

    /// Removes one lock.
    pub(crate) fn delete_lock(&self, state_id: &str, lock_id: &str) -> Deletion {
        Deletion::new(&self.lock, "state_id = {state_id:String} AND lock_id = {lock_id:String}")
            .with(|deletion| deletion.param("state_id", state_id).param("lock_id", lock_id).few_rows())
    }

    /// Removes one lock after the statement that inserts its row, or renews it, which may still be carried out though the
    /// connection is lost: it has the same query id, and the server carries out one statement of an id at a time.
    pub(crate) fn delete_uncertain_lock(&self, state_id: &str, lock_id: &str) -> Deletion {
        // Not for every lock: the server takes a moment to forget a statement that it has answered.
        self.delete_lock(state_id, lock_id).with(|deletion| deletion.query_id(lock_id))
    }
}
