//! A test for each host: it makes the calls of the contract and has to come to what the contract says.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use super::contract::{CONTRACT, Outcome, Step, check, steps};
use super::programs::{component, composed, run, source, transpiled, uri};
use super::{ours, wave};
use crate::peers::{invoke, peer};
use crate::sandbox::{Sandbox, instance};

#[tokio::test]
async fn our_host() {
    let sandbox = Sandbox::new();
    let mut backend = instance(&uri(&sandbox), &[]).await;
    let steps = steps();
    let mut outcomes = Vec::new();
    for step in &steps {
        outcomes.push(ours::carry_out(&mut backend, step).await);
    }
    check("our host", &steps, &outcomes);
}

#[test]
fn stock_wasmtime() {
    let Some(wasmtime) = peer("PEERS_WASMTIME") else { return };
    let steps = steps();
    check("stock wasmtime", &steps, &invoked(&wasmtime, component(), &steps));
}

/// The consumer imports the store alone, so only the store's part of the contract goes through it.
#[test]
fn composed_with_a_consumer() {
    let Some(wasmtime) = peer("PEERS_WASMTIME") else { return };
    let steps: Vec<_> = steps().into_iter().filter(|step| step.call.starts_with("store.")).collect();
    check("composed", &steps, &invoked(&wasmtime, &composed("relay"), &steps));
}

#[test]
fn python() {
    let Some(python) = peer("PEERS_PYTHON") else { return };
    driven("Python", Command::new(python).arg(source("tests/hosts/python.py")).arg(component()));
}

#[test]
fn node() {
    let Some(jco) = peer("PEERS_JCO") else { return };
    driven("Node", Command::new("node").arg(source("tests/hosts/node.mjs")).arg(transpiled(&jco)));
}

/// Each step in a process of its own.
fn invoked(wasmtime: &Path, component: &Path, steps: &[Step]) -> Vec<Outcome> {
    let sandbox = Sandbox::new();
    let uri = uri(&sandbox);
    steps.iter().map(|step| wave::outcome(&invoke(wasmtime, component, uri.as_str(), &wave::call(step)))).collect()
}

/// All steps in a driver, which reads the contract and prints what came of each.
fn driven(host: &str, driver: &mut Command) {
    let sandbox = Sandbox::new();
    let printed = run(driver.arg(uri(&sandbox).as_str()).stdin(File::open(source(CONTRACT)).unwrap()));
    check(host, &steps(), &serde_json::from_str::<Vec<Outcome>>(&printed).unwrap());
}
