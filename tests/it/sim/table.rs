//! The lock rows of one state id, as a table of one server keeps them.

use meltano_state_backend_clickhouse::lock::LockRow;

use super::times::millis;

/// What the table tells, and what its merges collapse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Ours on one server: rows keep the number of their block, which is given as they become visible.
    Ordered,
    /// Ours where block numbers tell nothing.
    Named,
    /// The add-on's: sorted by the state id alone, so that a merge leaves one row.
    Plain,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) lock_id: u128,
    /// In whole seconds of the server's clock.
    pub(super) locked_at: i64,
    /// The place in the order that a renewal keeps; 0 if its block tells it.
    pub(super) ticket: u64,
    /// Given at the commit, and so in the order in which rows become visible.
    pub(super) block: u64,
}

impl Row {
    pub(super) fn live(&self, server_ms: i64, stale: u64) -> bool {
        self.locked_at * 1000 > server_ms - stale.cast_signed()
    }
}

/// The rows by block number.
pub(super) struct LockTable {
    pub(super) layout: Layout,
    /// Off: the lowest lock id counts where the block number should.
    pub(super) block_order: bool,
    pub(super) rows: Vec<Row>,
    blocks: u64,
}

impl LockTable {
    pub(super) fn new(layout: Layout, block_order: bool) -> Self {
        Self { layout, block_order, rows: Vec::new(), blocks: 0 }
    }

    pub(super) fn insert(&mut self, row: Row) {
        self.blocks += 1;
        self.rows.push(Row { block: self.blocks, ..row });
    }

    pub(super) fn any_live(&self, server_ms: i64, stale: u64) -> bool {
        self.rows.iter().any(|row| row.live(server_ms, stale))
    }

    fn place(&self, row: &Row) -> u64 {
        match (self.layout, row.ticket) {
            (Layout::Ordered, _) if !self.block_order => 0,
            (Layout::Ordered, 0) => row.block,
            (Layout::Ordered, ticket) => ticket,
            _ => 0,
        }
    }

    /// `argMin(lock_id, …)` over the live rows.
    pub(super) fn holder(&self, server_ms: i64, stale: u64) -> Option<u128> {
        let live = self.rows.iter().filter(|row| row.live(server_ms, stale));
        live.min_by_key(|row| (self.place(row), row.lock_id)).map(|row| row.lock_id)
    }

    /// `argMin(lock_id, …)` over all rows.
    pub(super) fn first(&self) -> Option<u128> {
        self.rows.iter().min_by_key(|row| (self.place(row), row.lock_id)).map(|row| row.lock_id)
    }

    /// `max(locked_at)` of one lock.
    pub(super) fn locked_at(&self, lock_id: u128) -> Option<i64> {
        self.rows.iter().filter(|row| row.lock_id == lock_id).map(|row| row.locked_at).max()
    }

    /// The row that renews a lock, if that has a live one.
    pub(super) fn renewed(&self, lock_id: u128, server_ms: i64, stale: u64) -> Option<Row> {
        let own = self.rows.iter().filter(|row| row.lock_id == lock_id && row.live(server_ms, stale));
        let ticket = own.map(|row| if row.ticket == 0 { row.block } else { row.ticket }).min()?;
        Some(Row { lock_id, locked_at: server_ms.div_euclid(1000), ticket, block: 0 })
    }

    /// The lowest lock id among the rows that FINAL shows, stale or not: what the add-on takes for the holder.
    pub(super) fn lowest_final(&self) -> Option<u128> {
        let mut rows = self.rows.clone();
        collapse(&mut rows, self.layout);
        rows.iter().map(|row| row.lock_id).min()
    }

    /// The rows as the component reads them.
    pub(super) fn read(&self, server_ms: i64, stale: u64) -> Vec<LockRow> {
        self.rows
            .iter()
            .map(|row| LockRow {
                lasts: millis(stale),
                lock_id: format!("{:032x}", row.lock_id),
                owner: String::new(),
                locked_at: row.locked_at,
                age: millis(u64::try_from(server_ms - row.locked_at * 1000).unwrap_or(0)),
                stale: !row.live(server_ms, stale),
                ticket: self.place(row),
            })
            .collect()
    }

    /// Merges the parts from one block to another: rows of the same sorting key become one, and what outlived the TTL
    /// of 300 seconds goes.
    pub(super) fn merge(&mut self, first: usize, end: usize, server_ms: i64) {
        let mut merged: Vec<Row> = self.rows.drain(first..end).collect();
        collapse(&mut merged, self.layout);
        merged.retain(|row| row.locked_at + 300 >= server_ms.div_euclid(1000));
        self.rows.splice(first..first, merged);
    }
}

/// What a ReplacingMergeTree keeps: of the rows with one sorting key that with the greatest version, of equal ones the
/// last.
fn collapse(rows: &mut Vec<Row>, layout: Layout) {
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows.drain(..) {
        match kept.iter_mut().find(|other| layout == Layout::Plain || other.lock_id == row.lock_id) {
            Some(other) if other.locked_at <= row.locked_at => *other = row,
            Some(_) => {}
            None => kept.push(row),
        }
    }
    kept.sort_unstable_by_key(|row| row.block);
    *rows = kept;
}
