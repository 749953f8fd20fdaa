//! `xtask compose`: a component that needs a state backend, and the state backend in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use wac_graph::{CompositionGraph, EncodeOptions, types::Package};
use wit_component::ComponentEncoder;

use crate::{build, toolchain, workspace};

const TARGET: &str = "wasm32-unknown-unknown";

/// Build a component that imports the store, and plug the state backend into it
///
/// Does what `wac plug` does. The result runs wherever the state backend runs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The package of the workspace that is the consumer
    #[arg(default_value = "orchestrator-step")]
    consumer: String,
    /// The state backend to plug in; it is built if none is named
    #[arg(long)]
    component: Option<PathBuf>,
    /// Where the result goes, by default target/component/CONSUMER.wasm
    #[arg(long)]
    output: Option<PathBuf>,
    /// Build without optimisation, as the tests do
    #[arg(long)]
    dev: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let backend = match &args.component {
        Some(component) => component.clone(),
        None => build::build(args.dev)?.component,
    };
    let consumer = build_consumer(&args.consumer, args.dev)?;
    let backend = fs::read(&backend).with_context(|| format!("cannot read {}", backend.display()))?;
    let composed = plug(consumer, backend).context("the components do not fit together")?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None => default_output(&args.consumer)?,
    };
    fs::write(&output, composed).with_context(|| format!("cannot write {}", output.display()))?;
    println!("composed   {}", output.display());
    Ok(())
}

fn default_output(consumer: &str) -> Result<PathBuf> {
    let directory = workspace::metadata()?.target_directory.join("component");
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {directory}"))?;
    Ok(directory.join(format!("{}.wasm", consumer.replace('-', "_"))).into())
}

/// Compiles a package of the workspace and makes a component of it.
fn build_consumer(package: &str, dev: bool) -> Result<Vec<u8>> {
    toolchain::ensure_wasm_target()?;
    let (profile, directory) = if dev { ("dev", "debug") } else { ("component", "component") };
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", package, "--target", TARGET, "--profile", profile]);
    let status = cargo.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo build failed ({status})");
    }
    let module = format!("{TARGET}/{directory}/{}.wasm", package.replace('-', "_"));
    componentise(workspace::metadata()?.target_directory.join(module).as_std_path())
}

fn componentise(module: &Path) -> Result<Vec<u8>> {
    let core = fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&core)
        .and_then(|encoder| encoder.encode())
        .with_context(|| format!("{} cannot be turned into a component", module.display()))
}

/// `consumer` with its imports filled from the exports of `backend`, as far as they have the same names.
fn plug(consumer: Vec<u8>, backend: Vec<u8>) -> Result<Vec<u8>> {
    let mut graph = CompositionGraph::new();
    let consumer = Package::from_bytes("consumer", None, consumer, graph.types_mut())?;
    let consumer = graph.register_package(consumer)?;
    let backend = Package::from_bytes("backend", None, backend, graph.types_mut())?;
    let backend = graph.register_package(backend)?;
    wac_graph::plug(&mut graph, vec![backend], consumer)?;
    Ok(graph.encode(EncodeOptions::default())?)
}
