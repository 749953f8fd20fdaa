//! The command `meltano-state`.

mod arguments;
mod call;
mod changes;
mod commands;
mod consent;
mod ending;
mod exchange;
mod failure;
mod held;
mod human;
mod layout;
mod logging;
mod output;
mod payload;
mod plan;
mod progress;
mod run;
mod stored;
mod table;
mod verbs;

pub(crate) use run::run;
