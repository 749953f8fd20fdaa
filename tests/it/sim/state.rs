//! The versions of one state. What a state holds is a set of tokens, one for each update that was ever merged into it.

/// One version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// In milliseconds of the server's clock; 0 if there is no state.
    pub(super) updated_at: i64,
    /// One bit for each update.
    pub(super) tokens: u64,
}

impl Version {
    /// Of two versions the one that FINAL shows, `other` being the one that was inserted later.
    pub(super) fn replaced_by(self, other: Self) -> Self {
        if other.updated_at >= self.updated_at { other } else { self }
    }
}
