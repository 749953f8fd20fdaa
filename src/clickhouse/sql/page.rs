//! Pages: as many rows as were asked for, and no more bytes than a component can hold.

use crate::clickhouse::request::Statement;
use crate::state::LARGEST;

/// How large a page may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// In rows.
    pub(crate) rows: u32,
    /// In bytes of the parts, unless the first row alone has more.
    pub(crate) bytes: u64,
}

/// By which way of the key rows are sorted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Ascending,
    Descending,
}

impl Window {
    /// Reads the first rows of `from`, sorted by `key`, of those that fit. The server adds the sizes up first, so that it
    /// need not hold more than a page either. Parts that are larger than a state may be stay where they are.
    pub(super) fn sql(from: &str, key: &str, order: Order) -> String {
        let (order, last, up_to) = match order {
            Order::Ascending => ("ASC", "max", "<="),
            Order::Descending => ("DESC", "min", ">="),
        };
        let part = |name: &str| format!("if({SIZE} > {LARGEST}, NULL, {name})");
        let (partial, completed) = (part("partial_state"), part("completed_state"));
        format!(
            "SELECT toUnixTimestamp64Milli(updated_at), greatest(0, dateDiff('second', updated_at, now64(3))), \
                 {SIZE}, state_id, {partial}, {completed} FROM {from} AND {key} {up_to} (SELECT {last}({key}) FROM \
                 (SELECT {key}, size, sum(size) OVER (ORDER BY {key} {order} ROWS UNBOUNDED PRECEDING) AS total FROM \
                 (SELECT {key}, if({SIZE} > {LARGEST}, 0, {SIZE}) AS size FROM {from} \
                 ORDER BY {key} {order} LIMIT {{rows:UInt32}})) WHERE total <= {{bytes:UInt64}} OR total = size) \
                 ORDER BY {key} {order} LIMIT {{rows:UInt32}} FORMAT TabSeparated"
        )
    }

    /// Gives a statement its limits.
    pub(super) fn limit(self, statement: Statement) -> Statement {
        statement.param("rows", self.rows.to_string()).param("bytes", self.bytes.to_string())
    }
}

/// The bytes of a row's parts.
const SIZE: &str = "(length(ifNull(partial_state, '')) + length(ifNull(completed_state, '')))";
