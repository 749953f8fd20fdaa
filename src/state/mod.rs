//! States: what they consist of, what counts as a state, how two of them merge.

mod check;
mod merge;
mod model;

pub use check::{DEEPEST, check_object};
pub use merge::{MergeError, merge};
pub use model::{Entry, LARGEST, LONGEST_ID, RawState, State};
