//! Finds out, step by step, whether the backend can work, and says what stands in the way. It changes nothing.

mod check;
mod clock;
mod layout;
mod privileges;
mod profile;
mod replicas;
mod report;
mod tables;

pub use check::check;
pub(crate) use check::refuse_other_tables;
pub use report::{Report, Status, Step};
