//! The component in the host, against a real ClickHouse; and in [`host`] the host by itself.
//!
//! The server is the embedded one, started for this run, or the one that `MELTANO_STATE_BACKEND_URI` names, whose user
//! then has to be allowed to create databases and users. Each test works in a database of its own and removes it.

mod authority;
mod bulk;
mod cases;
mod check;
mod cli;
mod config;
mod connections;
mod contract;
mod copies;
mod creation;
mod depth;
mod every_host;
mod exactness;
mod forwarder;
mod gate;
mod history;
mod host;
mod left_behind;
mod lock_commands;
mod locks;
mod merging;
mod metadata;
mod missing_privileges;
mod network;
mod not_now;
mod old_server;
mod peers;
mod privileges;
mod profiles;
mod projections;
mod rng;
mod sandbox;
mod secrets;
mod server;
mod signals;
mod sim;
mod surface;
mod upgrade;
mod users;
mod verbs;
