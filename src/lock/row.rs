//! Rows of the lock table.

use std::time::Duration;

use crate::clickhouse::Answer;
use crate::clickhouse::text;
use crate::error::{Error, ErrorKind};

/// A row of the lock table, judged by the server's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRow {
    /// Whose row it is. The lowest of the live ones, compared as text, holds the lock.
    pub lock_id: String,
    /// When it was inserted, as the server writes it.
    pub locked_at: String,
    /// The time since then.
    pub age: Duration,
    /// Whether it is too old to count.
    pub stale: bool,
}

impl LockRow {
    /// The rows that `Tables::lock_rows` asks for.
    pub(crate) fn decode(answer: &Answer) -> Result<Vec<Self>, Error> {
        let rows = answer.rows::<4>()?;
        rows.into_iter()
            .map(|[stale, lock_id, locked_at, age]| {
                let age: i64 = text(age)?
                    .parse()
                    .map_err(|_| Error::new(ErrorKind::Protocol, "the age of a lock is not a number"))?;
                Ok(Self {
                    lock_id: text(lock_id)?,
                    locked_at: text(locked_at)?,
                    age: Duration::from_secs(u64::try_from(age).unwrap_or(0)),
                    stale: text(stale)? == "1",
                })
            })
            .collect()
    }
}
