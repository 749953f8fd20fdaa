//! The lock of a state id: rows in the lock table, and a protocol that decides whose row counts.
//!
//! [`settle`] decides and does no I/O; [`acquire`] carries its decisions out.

mod driver;
mod id;
mod row;
pub mod settle;

pub use driver::{Lock, acquire};
pub use id::lock_id;
pub use row::LockRow;
