//! `xtask bench`: the component beside a native client and the Python add-on's workflow, on one embedded server.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{
    peers::{self, Peers},
    server::{Server, URI},
    workspace,
};

/// Measure the component beside the same statements from a native client
///
/// Both sides and curl take turns on one server. Prints medians, spreads and ratios and writes them to target/bench.json.
/// Builds with optimisation first, which takes minutes the first time.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure the Python add-on's workflow too (installs its driver with pip)
    #[arg(long)]
    peers: bool,

    /// Measure instead how times grow with the number of ids and of versions, and draw docs/growth.svg
    #[arg(long, conflicts_with = "peers")]
    growth: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut bench = workspace::cargo();
    bench.args(["bench", "--package", "meltano-state-host", "--bench", "speed"]);
    let report: PathBuf = if args.growth {
        let plot = workspace::root().join("docs/growth.svg");
        bench.env("BENCH_GROWTH", &plot);
        plot
    } else {
        let json = workspace::metadata()?.target_directory.join("bench.json").into();
        bench.env_remove("BENCH_GROWTH").env("BENCH_JSON", &json);
        json
    };
    if args.peers {
        let Peers { python, .. } = peers::install()?;
        bench.env("PEERS_PYTHON", python);
    } else {
        bench.env_remove("PEERS_PYTHON");
    }
    // Ends when the benchmark has.
    let server = Server::choose()?;
    bench.env(URI, &server.uri);
    let status = bench.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("the benchmark failed ({status})");
    }
    println!("written to {}", report.display());
    Ok(())
}
