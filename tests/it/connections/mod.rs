//! Each way in which a connection fails, brought about for real: the command says why, and what mends it. What it says
//! stands in `docs/troubleshooting.md`.

mod address;
mod expect;
mod server;
mod tls;
mod user;

pub(crate) use expect::listed;
