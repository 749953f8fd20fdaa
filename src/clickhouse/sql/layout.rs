//! What a lock table's layout means for the statements on it.

/// What a lock table can tell of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Not looked at yet. Statements treat it as `Ordered`, and the first read tells whether it is.
    Unknown,
    /// The add-on's columns: the lowest lock id counts.
    Plain,
    /// Our columns, but block numbers that do not follow visibility, as on replicated engines: the lowest lock id counts.
    Named,
    /// Our columns on one server: the row that was inserted first counts.
    Ordered,
}

impl Layout {
    /// What orders the rows: the one with the lowest value counts.
    pub(super) fn order(self) -> &'static str {
        match self {
            Self::Unknown | Self::Ordered => "if(ticket = 0, _block_number, ticket)",
            Self::Plain | Self::Named => "lock_id",
        }
    }

    pub(super) const fn has_our_columns(self) -> bool {
        !matches!(self, Self::Plain)
    }

    /// Whether a row counts: each of ours says itself how long it does, so that all agree.
    pub(super) const fn live(self) -> &'static str {
        match self {
            Self::Plain => "locked_at > now64(3) - toIntervalMillisecond({stale_ms:UInt32})",
            _ => "locked_at > now64(3) - toIntervalMillisecond(stale_ms)",
        }
    }
}
