//! Finds out, step by step, whether the backend can work, and says what stands in the way. It changes nothing.

mod check;
mod clock;
mod layout;
mod names;
mod needs;
mod privileges;
mod profile;
mod replicas;
mod report;

pub use check::check;
pub(crate) use layout::{OLD_LAYOUT, REPLICATED, SET_DAYS, history_in_words, refuse_other_tables};
pub(crate) use names::Names;
pub use needs::{Job, NEEDS, On};
pub(crate) use needs::{is_due, wanted};
pub(crate) use privileges::{Known, find_missing, grants, list};
pub use report::{Report, Status, Step};
