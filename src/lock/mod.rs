//! The lock of a state id: rows in the lock table, and protocols that decide whose row counts.
//!
//! [`machine`] decides and does no I/O; [`Locks`] carries its decisions out; a [`Lock`] is what is held.

mod acquire;
mod held;
mod id;
mod locks;
pub mod machine;
mod reading;
mod refusal;
mod table;

pub use acquire::Acquire;
pub use held::Lock;
pub use id::lock_id;
pub use locks::{Locks, Wanted};
pub use reading::{Holder, LockRow, Reading};
