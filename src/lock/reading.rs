//! What the lock table says of a state id, judged by the server's clock.

use std::time::Duration;

use crate::clickhouse::{Answer, Layout, text};
use crate::error::{Error, ErrorKind};
use crate::lock::id::OWN_PREFIX;

/// A row of the lock table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRow {
    /// Whose row it is.
    pub lock_id: String,
    /// Who took the lock, in the words of whoever did; empty if they did not say.
    pub owner: String,
    /// When it was inserted or renewed, in seconds since 1970.
    pub locked_at: i64,
    /// The time since then.
    pub age: Duration,
    /// The age at which it is too old to count.
    pub lasts: Duration,
    /// Whether it is too old to count.
    pub stale: bool,
    /// The place in the order of insertion; 0 in every row where the table does not tell.
    pub ticket: u64,
}

impl LockRow {
    /// What rows are compared by: of the live ones the lowest counts. A renewed lock may have several rows, of which the
    /// youngest tells its age.
    fn rank(&self) -> (u64, &str, Duration) {
        (self.ticket, &self.lock_id, self.age)
    }
}

/// The lock of a state id, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Whose state is locked.
    pub state_id: String,
    /// The row.
    pub row: LockRow,
    /// The time until it is stale.
    pub expires_in: Duration,
}

impl Holder {
    fn is_of_same_lock(&self, other: &Self) -> bool {
        self.state_id == other.state_id && self.row.lock_id == other.row.lock_id
    }
}

/// The lock rows of one state id, and what was read with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// All rows, stale ones included, in no order.
    pub rows: Vec<LockRow>,
    /// Whether the order of insertion decides.
    pub ordered: bool,
    /// The newest version of the state, if it was asked for and there is one: when it was written in milliseconds since
    /// 1970, its partial and its completed part.
    pub(crate) state: Option<[Option<Vec<u8>>; 3]>,
}

impl Reading {
    /// Rows alone, without the state.
    #[must_use]
    pub const fn new(rows: Vec<LockRow>, ordered: bool) -> Self {
        Self { rows, ordered, state: None }
    }

    /// The rows alone, without a copy of what may be a large state.
    pub(crate) fn without_state(&self) -> Self {
        Self { rows: self.rows.clone(), ordered: self.ordered, state: None }
    }

    /// The live row that counts.
    #[must_use]
    pub fn holder(&self) -> Option<&LockRow> {
        self.rows.iter().filter(|row| !row.stale).min_by(|a, b| a.rank().cmp(&b.rank()))
    }

    /// Whether stale rows are there.
    #[must_use]
    pub fn any_stale(&self) -> bool {
        self.rows.iter().any(|row| row.stale)
    }

    /// Whether rows are there that were not inserted by this backend, so that their owners delete by mutation.
    pub(crate) fn has_foreign_rows(&self) -> bool {
        self.rows.iter().any(|row| !row.lock_id.starts_with(OWN_PREFIX))
    }

    /// Decodes rows of all kinds; also what was looked up of the table, if it was. No reading if the statement has to be
    /// sent again, with another layout than the assumed one.
    pub(crate) fn decode(answer: &Answer, assumed: Layout) -> Result<(Option<Self>, Option<LockTable>), Error> {
        let mut rows = Vec::new();
        let mut state = None;
        let mut table = None;
        for [kind, _, a, b, c, d, e, f] in answer.rows::<8>()? {
            match text(kind)?.as_str() {
                "0" => rows.push(lock_row([a, b, c, d, e, f])?),
                "1" => state = Some([a, b, c]),
                _ => {
                    let layout = shown(assumed, text(e)? == "1");
                    table = Some(LockTable { layout, mutated: text(f)? == "1" });
                }
            }
        }
        let layout = table.map_or(assumed, |table| table.layout);
        if assumed == Layout::Plain && layout != Layout::Plain {
            return Ok((None, table));
        }
        let ordered = layout == Layout::Ordered;
        if !ordered {
            rows.iter_mut().for_each(|row| row.ticket = 0);
        }
        Ok((Some(Self { rows, ordered, state }), table))
    }
}

/// What was looked up of the lock table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockTable {
    pub(crate) layout: Layout,
    /// Whether it was mutated lately.
    pub(crate) mutated: bool,
}

/// The layout that a lookup has confirmed or refuted.
const fn shown(assumed: Layout, confirmed: bool) -> Layout {
    match (assumed, confirmed) {
        (Layout::Plain, true) => Layout::Plain,
        (Layout::Plain, false) => Layout::Unknown,
        (_, true) => Layout::Ordered,
        (_, false) => Layout::Named,
    }
}

/// The locks of several state ids, of a renewed one its youngest row.
pub(crate) fn holders(answer: &Answer) -> Result<Vec<Holder>, Error> {
    let mut holders: Vec<Holder> = Vec::new();
    for [_, state_id, a, b, c, d, e, f] in answer.rows::<8>()? {
        let state_id = String::from_utf8_lossy(&state_id.unwrap_or_default()).into_owned();
        let row = lock_row([a, b, c, d, e, f])?;
        let expires_in = if row.stale { Duration::ZERO } else { row.lasts.saturating_sub(row.age) };
        let holder = Holder { state_id, row, expires_in };
        match holders.last_mut().filter(|last| last.is_of_same_lock(&holder)) {
            Some(last) if last.row.age > holder.row.age => *last = holder,
            Some(_) => {}
            None => holders.push(holder),
        }
    }
    Ok(holders)
}

/// Lock id, owner, time, age with a mark if it is stale, place in the order, milliseconds that it lasts.
fn lock_row([lock_id, owner, locked_at, age, ticket, lasts]: [Option<Vec<u8>>; 6]) -> Result<LockRow, Error> {
    let age = text(age)?;
    let seconds: i64 = number(age.split(' ').next().unwrap_or_default())?;
    Ok(LockRow {
        lock_id: text(lock_id)?,
        owner: text(owner)?,
        locked_at: number(&text(locked_at)?)?,
        age: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        lasts: Duration::from_millis(number(&text(lasts)?)?),
        stale: age.ends_with(" stale"),
        ticket: number(&text(ticket)?)?,
    })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::new(ErrorKind::Protocol, "a lock row holds a text where a number belongs"))
}
