//! `xtask meltano`: the add-on for Meltano, installed beside Meltano itself, and its tests.
//!
//! Python comes with its packages from PyPI, into virtual environments below `target`.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    build, progress,
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
    let mut probe = Command::new("python3");
    probe.args(["-c", PROBE]).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
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
    let python = environment("host", "tests/requirements.txt")?.join("python3");
    let singer = environment("singer", "tests/singer-requirements.txt")?;
    // As its users do, from the wheel; it changes more often than what it needs.
    let add_on = workspace::root().join(ADD_ON);
    let options = ["install", "--quiet", "--force-reinstall", "--no-deps", "--no-build-isolation"];
    pip(&python, |pip| pip.args(options).arg(add_on).env("MELTANO_STATE_COMPONENT", component))?;
    Ok(Installed { python, singer })
}

/// The programs of a virtual environment with exactly these requirements.
fn environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let requirements = workspace::root().join(ADD_ON).join(requirements);
    let wanted =
        fs::read_to_string(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    let directory = PathBuf::from(workspace::metadata()?.target_directory).join("meltano").join(name);
    let programs = directory.join("bin");
    // Written last, so that an installation broken off is done anew.
    let installed = directory.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(programs);
    }
    let spinner = progress::spinner("Installing Meltano, a tap and a target with pip");
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
    pip(&programs.join("python3"), |pip| {
        pip.args([OsStr::new("install"), OsStr::new("-r"), requirements.as_os_str()])
    })?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    spinner.finish_and_clear();
    Ok(programs)
}

fn pip(python: &Path, arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<()> {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    succeed(arguments(&mut command))
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
