//! Programs of others, installed by pip and npm once for each list of what is wanted.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::progress;

/// Installs what the file `list` lists into `directory`, unless exactly that is there.
pub(crate) fn once(list: &Path, directory: &Path, what: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    // Written last, so that an installation broken off is done anew.
    let installed = directory.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let spinner = progress::spinner(what);
    if directory.exists() {
        fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    install()?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    spinner.finish_and_clear();
    Ok(())
}

/// Whether there is a Python for which this code succeeds.
pub(crate) fn python_can(code: &str) -> bool {
    let mut probe = Command::new("python3");
    probe.args(["-c", code]).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Makes a virtual environment with exactly these requirements, and returns the directory of its programs.
pub(crate) fn virtual_environment(directory: &Path, requirements: &Path) -> Result<PathBuf> {
    run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    let programs = directory.join("bin");
    run(pip(&programs).args(["install", "--quiet", "-r"]).arg(requirements))?;
    Ok(programs)
}

/// The pip of a virtual environment.
pub(crate) fn pip(programs: &Path) -> Command {
    let mut pip = Command::new(programs.join("python3"));
    pip.args(["-m", "pip", "--disable-pip-version-check"]);
    pip
}

/// Runs a command whose output matters only if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
