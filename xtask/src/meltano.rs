//! `xtask meltano`: the add-on for Meltano, installed beside Meltano itself, and its tests.
//!
//! Python comes with its packages from PyPI, into virtual environments below `target`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    build, install,
    server::{Server, URI},
    workspace,
};

/// The add-on, from the project's root.
const ADD_ON: &str = "host/meltano";

/// The oldest Python that Meltano 4 runs on.
const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// Test the add-on for Meltano within Meltano, or measure it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure runs beside Meltano's own system database instead
    #[arg(long)]
    bench: bool,
}

/// Programs that are installed.
struct Installed {
    /// A Python with Meltano and the add-on.
    python: PathBuf,
    /// The directory of a tap and a target.
    singer: PathBuf,
}

/// Whether this machine has what the installation needs.
pub(crate) fn can_install() -> bool {
    install::python_can(PROBE)
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.bench { python(&["bench.py"]) } else { test() }
}

/// Runs the add-on's tests.
pub(crate) fn test() -> Result<()> {
    python(&["-m", "pytest", "-q"])
}

/// Runs Python beside a server that ends with it.
fn python(arguments: &[&str]) -> Result<()> {
    let component = build::build(true)?.component;
    let Installed { python, singer } = install(&component)?;
    let server = Server::choose()?;
    let mut command = Command::new(python);
    command.args(arguments).current_dir(workspace::root().join(ADD_ON)).env("SINGER_BIN", singer).env(URI, &server.uri);
    let status = command.status().context("cannot run python3")?;
    if !status.success() {
        bail!("{command:?} failed ({status})");
    }
    Ok(())
}

fn install(component: &Path) -> Result<Installed> {
    let python = environment("host", "tests/requirements.txt")?;
    let singer = environment("singer", "tests/singer-requirements.txt")?;
    // As its users do, from the wheel; it changes more often than what it needs.
    let options = ["install", "--quiet", "--force-reinstall", "--no-deps", "--no-build-isolation"];
    let mut pip = install::pip(&python);
    let pip = pip.args(options).arg(workspace::root().join(ADD_ON)).env("MELTANO_STATE_COMPONENT", component);
    install::run(pip)?;
    Ok(Installed { python: python.join("python3"), singer })
}

/// The programs of a virtual environment with exactly these requirements.
fn environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let requirements = workspace::root().join(ADD_ON).join(requirements);
    let directory = PathBuf::from(workspace::metadata()?.target_directory).join("meltano").join(name);
    let what = format!("Installing Meltano, a tap and a target with pip ({name})");
    install::once(&requirements, &directory, &what, || {
        install::virtual_environment(&directory, &requirements).map(drop)
    })?;
    Ok(directory.join("bin"))
}
