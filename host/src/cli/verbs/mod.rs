//! What each verb does: a file for each verb or for those that belong together.

mod check;
mod clear;
mod config;
mod copy;
mod edit;
mod export;
mod get;
mod history;
mod import;
mod init;
mod list;
mod lock;
mod lock_run;
mod restore;
mod set;

pub(super) use check::check;
pub(super) use clear::clear;
pub(super) use config::config;
pub(super) use copy::{copy, move_state};
pub(super) use edit::edit;
pub(super) use export::export;
pub(super) use get::get;
pub(super) use history::history;
pub(super) use import::import;
pub(super) use init::init;
pub(super) use list::list;
pub(super) use lock::{lock_list, unlock};
pub(super) use lock_run::lock_run;
pub(super) use restore::restore;
pub(super) use set::{merge, set};
