//! What each statement does, in the steps in which the server does it.

use meltano_state_backend_clickhouse::lock::LockRow;

use super::kernel::Kernel;
use super::scenario::Rules;
use super::state::Version;
use super::table::{Layout, Row};

/// One statement on the lock rows or the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// Inserts a row unless a live one exists.
    Candidate(u128),
    /// Inserts a row in any case.
    Claim(u128),
    /// The state, and then all lock rows.
    Rows,
    /// The newest version of the state.
    State,
    Delete(u128),
    /// The same after every statement that adds such a row, if one is still carried out.
    DeleteAfter(u128),
    DeleteStale,
    Renew(u128),
    /// Writes if the lock is held and fresh, and if what it replaces is there.
    Write {
        lock_id: u128,
        over: Over,
        tokens: u64,
    },
    /// The add-on's: the lowest id with FINAL.
    PeerHolder,
    /// The add-on's: an insert without condition.
    PeerInsert(u128),
    /// The add-on's: a write without condition.
    PeerWrite {
        lock_id: u128,
        tokens: u64,
    },
}

/// What a write replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The version of this time.
    Version(i64),
    /// One that holds these tokens.
    Content(u64),
}

/// What comes back.
#[derive(Debug)]
pub(super) enum Answer {
    /// Whether a row was written.
    Written(bool),
    Rows(Vec<LockRow>, Version),
    State(Version),
    Deleted,
    Holder(Option<u128>),
    /// The time limit for the statement is over; nothing was changed.
    Aborted,
    /// The same statement is still being carried out.
    Busy,
}

/// What was found when the statement was judged, on snapshots that are older than its commit.
#[derive(Debug)]
pub(super) enum Judged {
    Nothing,
    /// The row to insert.
    Insert(Row),
    /// The blocks of the rows to delete.
    Delete(Vec<u64>),
    /// The state as it was before the lock rows were read.
    State(Version),
    /// The fence holds. The time is that at which the statement began, which `now64()` gives all through it.
    Fenced(i64),
    /// The version to write.
    Write(Version),
}

impl Statement {
    /// Whether the server looks at two tables one after the other.
    pub(super) fn looks_twice(&self) -> bool {
        matches!(self, Self::Rows | Self::Write { .. })
    }

    /// Whether the statement changes anything at its end.
    pub(super) fn commits(&self) -> bool {
        !matches!(self, Self::Rows | Self::State | Self::PeerHolder)
    }

    /// Whether the server may be held to a time limit, which a lock's freshness is judged with.
    pub(super) fn is_limited(&self, rules: &Rules) -> bool {
        matches!(self, Self::Write { .. }) || matches!(self, Self::Renew(_)) && rules.renewal_margin
    }

    /// Whether it may be repeated when the connection was lost.
    pub(super) fn is_repeated(&self) -> bool {
        !matches!(self, Self::Candidate(_) | Self::Claim(_))
    }

    /// The query id, if it is the lock's: the server carries out one statement of an id at a time.
    pub(super) fn query_id(&self, rules: &Rules) -> Option<u128> {
        match *self {
            Self::Candidate(lock_id) | Self::Claim(lock_id) | Self::Renew(lock_id) => Some(lock_id),
            Self::DeleteAfter(lock_id) if rules.in_turn => Some(lock_id),
            _ => None,
        }
    }

    /// The lock under which a write is carried out, if it is held.
    pub(super) fn held(&self, kernel: &Kernel, stale: u64) -> Option<u128> {
        match *self {
            Self::Write { lock_id, .. } if may_write(kernel, lock_id, stale, true) => Some(lock_id),
            _ => None,
        }
    }

    /// The first look.
    pub(super) fn judge(&self, kernel: &Kernel, stale: u64) -> Judged {
        let now = kernel.server_now();
        let row = |lock_id| Row { lock_id, locked_at: now.div_euclid(1000), ticket: 0, block: 0 };
        let rules = &kernel.scenario.rules;
        let locks = &kernel.locks;
        match *self {
            Self::Candidate(_) if rules.guard && locks.any_live(now, stale) => Judged::Nothing,
            Self::Candidate(lock_id) | Self::Claim(lock_id) | Self::PeerInsert(lock_id) => Judged::Insert(row(lock_id)),
            Self::Renew(lock_id) if is_held(kernel, lock_id, stale, rules.renewal_margin) => {
                locks.renewed(lock_id, now, stale).map_or(Judged::Nothing, Judged::Insert)
            }
            Self::Delete(lock_id) | Self::DeleteAfter(lock_id) => {
                Judged::Delete(blocks(locks.rows.iter().filter(|row| row.lock_id == lock_id)))
            }
            Self::DeleteStale => Judged::Delete(blocks(locks.rows.iter().filter(|row| !row.live(now, stale)))),
            Self::Write { .. } if !rules.lock_first => Judged::State(kernel.state),
            Self::Write { lock_id, .. } if !rules.fence || may_write(kernel, lock_id, stale, rules.margin) => {
                Judged::Fenced(now)
            }
            Self::PeerWrite { tokens, .. } => Judged::Write(Version { updated_at: now, tokens }),
            Self::Rows => Judged::State(kernel.state),
            Self::Renew(_) | Self::Write { .. } | Self::State | Self::PeerHolder => Judged::Nothing,
        }
    }

    /// The second look, for a write: at the newest version, or if the rule is broken only now at the lock.
    pub(super) fn compare(&self, kernel: &Kernel, stale: u64, judged: Judged) -> Judged {
        let rules = &kernel.scenario.rules;
        match (*self, judged) {
            (Self::Write { over, tokens, .. }, Judged::Fenced(began)) => {
                replaced(kernel.state, over, tokens, began, rules)
            }
            (Self::Write { lock_id, over, tokens }, Judged::State(before)) => {
                match may_write(kernel, lock_id, stale, rules.margin) {
                    true => replaced(before, over, tokens, kernel.server_now(), rules),
                    false => Judged::Nothing,
                }
            }
            (_, judged) => judged,
        }
    }

    /// The end: what was judged becomes visible.
    pub(super) fn commit(&self, kernel: &mut Kernel, actor: usize, stale: u64, judged: Judged) -> Answer {
        match (*self, judged) {
            (_, Judged::Insert(row)) => {
                kernel.locks.insert(row);
                Answer::Written(true)
            }
            (_, Judged::Delete(blocks)) => {
                kernel.locks.rows.retain(|row| !blocks.contains(&row.block));
                Answer::Deleted
            }
            (Self::Write { lock_id, .. } | Self::PeerWrite { lock_id, .. }, Judged::Write(version)) => {
                let before = kernel.state;
                kernel.state = before.replaced_by(version);
                kernel.monitor.landed(actor, lock_id, before, kernel.state);
                Answer::Written(true)
            }
            (Self::Rows, Judged::State(version)) => {
                Answer::Rows(kernel.locks.read(kernel.server_now(), stale), version)
            }
            (Self::State, _) => Answer::State(kernel.state),
            (Self::PeerHolder, _) => Answer::Holder(kernel.locks.lowest_final()),
            _ => Answer::Written(false),
        }
    }
}

/// The version to write, if the newest one is as expected.
fn replaced(newest: Version, over: Over, tokens: u64, began: i64, rules: &Rules) -> Judged {
    let as_expected = match over {
        Over::Version(seen) => newest.updated_at == seen,
        Over::Content(was) => newest.tokens == was,
    };
    match as_expected || !rules.compare {
        true => Judged::Write(Version { updated_at: began.max(newest.updated_at + 1), tokens }),
        false => Judged::Nothing,
    }
}

/// Whether the lock's row is the one that counts, and fresh; with the margin, so fresh that a statement that is held to
/// the time limit ends before it is stale.
fn is_held(kernel: &Kernel, lock_id: u128, stale: u64, margin: bool) -> bool {
    kernel.locks.holder(kernel.server_now(), stale) == Some(lock_id) && is_fresh(kernel, lock_id, stale, margin)
}

/// The same for a write, which stale rows stop too where the order of insertion counts.
fn may_write(kernel: &Kernel, lock_id: u128, stale: u64, margin: bool) -> bool {
    match kernel.scenario.layout {
        Layout::Ordered => kernel.locks.first() == Some(lock_id) && is_fresh(kernel, lock_id, stale, margin),
        Layout::Named | Layout::Plain => is_held(kernel, lock_id, stale, margin),
    }
}

fn is_fresh(kernel: &Kernel, lock_id: u128, stale: u64, margin: bool) -> bool {
    let stays = if margin { stale - kernel.scenario.times.request } else { stale };
    let limit = kernel.server_now() - stays.cast_signed();
    kernel.locks.locked_at(lock_id).is_some_and(|locked_at| locked_at * 1000 > limit)
}

fn blocks<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<u64> {
    rows.map(|row| row.block).collect()
}
