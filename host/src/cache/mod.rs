//! Compiled components on disk.

mod access;
mod directory;

pub use directory::Cache;
