//! The workspace that the tasks work on, and the cargo that works on it.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// The workspace's root directory.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// This program's own file. Has to be asked for before cargo may have put another in its place: then the system no longer
/// tells.
pub(crate) fn own_program() -> Result<&'static Path> {
    static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| env::current_exe().ok());
    PROGRAM.as_deref().context("cannot tell the path of this program")
}

/// The cargo that started this task, to be run at the workspace's root.
pub(crate) fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root());
    // What `cargo run` says of this program would make some crates be built anew each time that cargo is run from a
    // shell instead.
    for (name, _) in env::vars_os() {
        let of_this_program = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_CRATE_NAME"
        });
        if of_this_program {
            command.env_remove(name);
        }
    }
    command
}

/// What `cargo metadata` tells of the workspace and of every crate that it depends on.
pub(crate) fn metadata() -> Result<Metadata> {
    MetadataCommand::new().current_dir(root()).exec().context("cargo metadata failed")
}
