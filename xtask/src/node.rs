//! What the example for Node needs, from npm. A machine without Node can do without it.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Result;

use crate::{install, workspace};

/// The oldest Node that jco runs on.
const OLDEST_NODE: u32 = 20;

/// Whether this machine has a Node that will do, and npm.
pub(crate) fn can_install() -> bool {
    let node = Command::new("node").args(["-p", "process.versions.node.split('.')[0]"]).output();
    let recent = node.is_ok_and(|node| {
        String::from_utf8_lossy(&node.stdout).trim().parse().is_ok_and(|major: u32| major >= OLDEST_NODE)
    });
    let npm = Command::new("npm").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    recent && npm.is_ok_and(|npm| npm.success())
}

/// Installs the packages of `examples/node`, unless exactly those of its lock file are there, and returns the program jco.
pub(crate) fn install() -> Result<PathBuf> {
    let example = workspace::root().join("examples/node");
    let modules = example.join("node_modules");
    install::once(&example.join("package-lock.json"), &modules, "Installing jco with npm", || {
        let mut npm = Command::new("npm");
        install::run(npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&example))
    })?;
    Ok(modules.join(".bin/jco"))
}
