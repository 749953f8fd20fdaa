//! A real ClickHouse in a process of its own, from the shared library `libchdb.so`.

mod chdb;
mod config;
mod embedded;
mod fetch;
mod http;
mod library;
mod port;
mod server;
mod stdio;
mod stop;
mod tarball;

pub(crate) use embedded::Embedded;
pub(crate) use server::{Args, run};
