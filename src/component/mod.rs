//! The component: the world of `wit/`, bound to WASI.
//!
//! No type of WIT, WASI or waki leaves this module. A failure of ours that is no documented error would be a bug, and
//! traps.

mod bindings;
mod clock;
mod config;
mod convert;
mod exports;
mod http;
mod locking;
mod random;
