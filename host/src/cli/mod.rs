//! The command `meltano-state`.

mod arguments;
mod commands;
mod failure;
mod logging;
mod output;
mod payload;
mod progress;
mod prompt;
mod run;

pub(crate) use run::run;
