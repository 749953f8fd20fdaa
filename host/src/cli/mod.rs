//! The command `meltano-state`.

mod arguments;
mod commands;
mod failure;
mod lock;
mod lock_run;
mod logging;
mod output;
mod payload;
mod progress;
mod prompt;
mod run;

pub(crate) use run::run;
