//! `xtask build`: the component, and the host that embeds it.

use std::{fs, io::BufReader, path::PathBuf, process::Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Message, Metadata, PackageId};

use crate::{toolchain, workspace};

const HOST: &str = "meltano-state-host";
const HOST_PROGRAM: &str = "meltano-state";
const COMPONENT: &str = "meltano_state_backend_clickhouse.wasm";

/// Build the component and the host that embeds it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build the host without optimisation, as the tests do
    #[arg(long)]
    dev: bool,
}

/// What cargo built.
#[derive(Default)]
struct Built {
    /// The host's executable.
    program: Option<PathBuf>,
    /// The directory that the host's build script left the component in.
    out_dir: Option<PathBuf>,
}

/// The files that came of it.
pub(crate) struct Artifacts {
    /// The component.
    pub(crate) component: PathBuf,
    /// The command `meltano-state`.
    pub(crate) program: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let Artifacts { component, program } = build(args.dev)?;
    let size = fs::metadata(&component).context("the component has just been written")?.len();
    println!("component  {} ({} KB)", component.display(), size.div_ceil(1000));
    println!("host       {}", program.display());
    Ok(())
}

/// Builds component and host; `dev` without optimising the host.
pub(crate) fn build(dev: bool) -> Result<Artifacts> {
    toolchain::ensure_wasm_target()?;
    let metadata = workspace::metadata()?;
    let built = build_host(dev, host_id(&metadata)?)?;
    let out_dir = built.out_dir.context("the host's build script reported no output directory")?;
    let program = built.program.with_context(|| format!("cargo reported no executable {HOST_PROGRAM}"))?;

    let directory = metadata.target_directory.join("component");
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {directory}"))?;
    let component = directory.join(COMPONENT);
    fs::copy(out_dir.join(COMPONENT), &component)
        .with_context(|| format!("cannot copy {} to {component}", out_dir.join(COMPONENT).display()))?;
    Ok(Artifacts { component: component.into(), program })
}

fn host_id(metadata: &Metadata) -> Result<&PackageId> {
    let mut members = metadata.workspace_packages().into_iter();
    let host = members.find(|package| package.name.as_str() == HOST);
    Ok(&host.with_context(|| format!("the workspace has no package {HOST}"))?.id)
}

fn build_host(dev: bool, host: &PackageId) -> Result<Built> {
    let mut command = workspace::cargo();
    command.args(["build", "--message-format=json-render-diagnostics"]);
    if dev {
        // What the tests select, so that neither compiles wasmtime again for other features of its dependencies.
        command.args(["--workspace", "--lib", "--bins", "--tests"]);
    } else {
        command.args(["--package", HOST, "--release"]);
    }
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let messages = BufReader::new(cargo.stdout.take().context("cargo has no stdout")?);

    let mut built = Built::default();
    for message in Message::parse_stream(messages) {
        match message.context("cannot read cargo's messages")? {
            Message::BuildScriptExecuted(script) if script.package_id == *host => {
                built.out_dir = Some(script.out_dir.into());
            }
            Message::CompilerArtifact(artifact) if artifact.target.name == HOST_PROGRAM && !artifact.profile.test => {
                built.program = artifact.executable.map(PathBuf::from).or(built.program);
            }
            _ => {}
        }
    }
    let status = cargo.wait().context("cannot wait for cargo")?;
    if !status.success() {
        bail!("cargo build failed ({status})");
    }
    Ok(built)
}
