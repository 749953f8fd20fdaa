//! A ClickHouse server that is too old, for the tests: the one that Debian 12 packages.
//!
//! It is fetched with apt, as any user may, and unpacked below `target`; nothing is installed. Machines without apt, or
//! whose apt offers another version, do without it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{progress, workspace};

const PACKAGE: &str = "clickhouse-server";
const VERSION: &str = "18.16.1";

/// Whether apt offers that server.
pub(crate) fn can_fetch() -> bool {
    let policy = Command::new("apt-cache").args(["policy", PACKAGE]).env("LC_ALL", "C").output();
    let offered = |line: &str| line.trim().strip_prefix("Candidate: ").is_some_and(|found| found.starts_with(VERSION));
    policy.is_ok_and(|policy| String::from_utf8_lossy(&policy.stdout).lines().any(offered))
}

/// Fetches and unpacks the server with the libraries that this machine lacks, unless that is done, and returns the
/// directory that holds its `usr`.
pub(crate) fn fetch() -> Result<PathBuf> {
    let directory: PathBuf = workspace::metadata()?.target_directory.join("old-clickhouse").into();
    let root = directory.join("root");
    // Written last, so that one broken off is done anew.
    let done = directory.join("done");
    if done.exists() {
        return Ok(root);
    }
    let spinner = progress::spinner("Fetching ClickHouse 18.16.1 with apt");
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    let plan = output(Command::new("apt-get").args(["install", "--simulate", "--no-install-recommends", PACKAGE]))?;
    let packages = plan.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    output(Command::new("apt-get").arg("download").args(packages).current_dir(&directory))?;
    for entry in fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            unpack(&file, &root)?;
        }
    }
    fs::write(&done, VERSION).with_context(|| format!("cannot write {}", done.display()))?;
    spinner.finish_and_clear();
    Ok(root)
}

fn unpack(package: &Path, root: &Path) -> Result<()> {
    output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(root)).map(drop)
}

/// What a command prints, unless it fails.
fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
