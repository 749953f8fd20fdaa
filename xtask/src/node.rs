//! What the example for Node needs, from npm. A machine without Node can do without it.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{progress, workspace};

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
    let lock = example.join("package-lock.json");
    let wanted = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let jco = example.join("node_modules/.bin/jco");
    // Written last, so that an installation broken off is done anew.
    let installed = example.join("node_modules/installed.json");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(jco);
    }
    let spinner = progress::spinner("Installing jco with npm");
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&example);
    let output = npm.output().context("cannot run npm")?;
    if !output.status.success() {
        bail!("npm ci failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    spinner.finish_and_clear();
    Ok(jco)
}
