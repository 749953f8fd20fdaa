//! The host from outside: its library and its command, without a ClickHouse.

mod calls;
mod command;
mod faults;
pub(crate) mod server;
mod tls;
mod transport;
