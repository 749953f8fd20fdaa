//! What a state consists of.

use std::time::Duration;

use crate::error::Error;

/// What one pipeline has reached. Each part is the text of a JSON object, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Which pipeline.
    pub state_id: String,
    /// What a run that has not finished has reached.
    pub partial_state: Option<String>,
    /// What the last run that finished has reached.
    pub completed_state: Option<String>,
}

impl State {
    /// How many bytes its parts have together.
    pub(crate) fn size(&self) -> usize {
        let length = |part: &Option<String>| part.as_deref().map_or(0, str::len);
        length(&self.partial_state) + length(&self.completed_state)
    }
}

/// How many bytes the parts of a state may have together, and those of two states that are merged: the memory that hosts
/// commonly give a component has room for a few copies of it, and to run out of memory under a lock would leave the lock
/// behind.
pub const LARGEST: usize = 24 << 20;

/// How many bytes a state id may have. ClickHouse takes no parameter of more than 128 KiB.
pub const LONGEST_ID: usize = 100_000;

/// A state as it is stored, with what is known of it whether or not it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which pipeline.
    pub state_id: String,
    /// When it was written, by the server's clock, in milliseconds since 1970: it names a version of the state.
    pub updated_at: i64,
    /// The time since then, by the server's clock, in whole seconds.
    pub age: Duration,
    /// How many bytes the parts have as they are stored.
    pub size: u64,
    /// The state, or why it cannot be used: [`ErrorKind::CorruptState`](crate::ErrorKind::CorruptState).
    pub content: Result<State, Error>,
}

/// What is stored of a state, byte for byte, whatever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawState {
    /// As in [`Entry`].
    pub updated_at: i64,
    /// What stands in the column of that name.
    pub partial_state: Option<Vec<u8>>,
    /// What stands in the column of that name.
    pub completed_state: Option<Vec<u8>>,
}
