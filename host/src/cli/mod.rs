//! The command `meltano-state`.

mod arguments;
mod check;
mod commands;
mod config;
mod failure;
mod lock;
mod lock_run;
mod logging;
mod output;
mod payload;
mod progress;
mod prompt;
mod run;
mod table;

pub(crate) use run::run;
