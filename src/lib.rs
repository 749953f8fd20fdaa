//! Meltano's state backend for ClickHouse, as a WebAssembly component.
//!
//! The crate has two faces. Compiled for `wasm32-unknown-unknown` it is the component: `component` binds the world
//! of `wit/` to WASI. Compiled natively it is the same logic as a library, for the host, the tests and the simulator:
//! everything outside `component` is free of effects but for the traits in [`ports`].
//!
//! - [`settings`] and [`uri`]: from names and text to a checked configuration.
//! - [`state`] and [`glob`]: what states are, how they merge, how ids are matched.
//! - [`clickhouse`]: statements, requests, answers, errors.
//! - [`lock`]: the lock as a state machine without I/O, and its driver.
//! - [`store`]: the operations.
//! - [`prepare`]: database, tables and history as the settings say.
//! - [`diagnose`]: what stands in the way, step by step.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]
#![deny(unsafe_code)]

pub mod clickhouse;
#[cfg(target_family = "wasm")]
mod component;
pub mod diagnose;
pub mod error;
pub mod glob;
pub mod lock;
pub mod ports;
pub mod prepare;
mod record;
mod seconds;
pub mod settings;
pub mod state;
pub mod store;
pub mod uri;
mod warning;

pub use error::{Details, Error, ErrorKind, ServerError};
pub use warning::Warning;
