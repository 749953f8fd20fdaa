//! The examples that users copy: in each the bookmark of a pipeline moves on from run to run.

use std::process::Command;

use super::programs::{component, composed, run, source, transpiled};
use crate::peers::{invoke, peer};
use crate::sandbox::Sandbox;

#[test]
fn python_moves_a_bookmark_on() {
    let Some(python) = peer("PEERS_PYTHON") else { return };
    moves_a_bookmark_on(|uri| {
        run(Command::new(&python).arg(source("examples/python/step.py")).arg(component()).args([uri, "prod:a"]))
    });
}

#[test]
fn node_moves_a_bookmark_on() {
    let Some(jco) = peer("PEERS_JCO") else { return };
    moves_a_bookmark_on(|uri| {
        run(Command::new("node").arg(source("examples/node/step.mjs")).arg(transpiled(&jco)).args([uri, "prod:a"]))
    });
}

fn moves_a_bookmark_on(step: impl Fn(&str) -> String) {
    let sandbox = Sandbox::new();
    for page in 1..=2 {
        assert_eq!(step(sandbox.uri().as_str()).trim_end(), format!("prod:a has reached page {page}"));
    }
}

#[test]
fn a_composed_step_moves_its_bookmark_on() {
    let Some(wasmtime) = peer("PEERS_WASMTIME") else { return };
    let sandbox = Sandbox::new();
    let step = composed("orchestrator-step");
    for page in 1..=2 {
        let printed = invoke(&wasmtime, &step, sandbox.uri().as_str(), "run(\"prod:a\")");
        assert_eq!(printed, format!("ok({page})"));
    }
}
