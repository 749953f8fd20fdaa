//! The examples that users copy: in each the bookmark of a pipeline moves on from run to run, and never back.

use std::process::Command;

use super::programs::{component, composed, source, transpiled};
use crate::peers::{invoke, peer};
use crate::sandbox::Sandbox;

#[test]
fn python_moves_a_bookmark_on() {
    let Some(python) = peer("PEERS_PYTHON") else { return };
    moves_a_bookmark_on(|uri, id| {
        page(Command::new(&python).arg(source("examples/python/step.py")).arg(component()).args([uri, id]))
    });
}

#[test]
fn node_moves_a_bookmark_on() {
    let Some(jco) = peer("PEERS_JCO") else { return };
    moves_a_bookmark_on(|uri, id| {
        page(Command::new("node").arg(source("examples/node/step.mjs")).arg(transpiled(&jco)).args([uri, id]))
    });
}

#[test]
fn a_composed_step_moves_its_bookmark_on() {
    let Some(wasmtime) = peer("PEERS_WASMTIME") else { return };
    let step = composed("orchestrator-step");
    moves_a_bookmark_on(|uri, id| {
        let printed = invoke(&wasmtime, &step, uri, &format!("run(\"{id}\")"));
        printed.strip_prefix("ok(").and_then(|page| page.strip_suffix(')')?.parse().ok())
    });
}

/// The page that a program says it has reached; none if it fails.
fn page(command: &mut Command) -> Option<u32> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8(output.stdout).unwrap();
    let page = printed.trim_end().rsplit_once(" has reached page ");
    output.status.success().then(|| page.unwrap_or_else(|| panic!("{printed:?}")).1.parse().unwrap())
}

/// `step` takes the URI and the state id, and says which page it has reached; none if it failed.
fn moves_a_bookmark_on(step: impl Fn(&str, &str) -> Option<u32>) {
    let sandbox = Sandbox::new();
    let step = |id: &str| step(sandbox.uri().as_str(), id);
    assert_eq!([step("new"), step("new")], [Some(1), Some(2)]);

    let stored = |id: &str| {
        sandbox.sql(&format!("SELECT completed_state, partial_state FROM {{}}.state FINAL WHERE state_id = '{id}'"))
    };
    let at = |page: u32| format!("{{\"singer_state\":{{\"page\":{page}}}}}");
    let plant = |id: &str, completed: &str, partial: &str| {
        sandbox.sql(&format!(
            "INSERT INTO {{}}.state (state_id, completed_state, partial_state) VALUES ('{id}', '{completed}', '{partial}')"
        ));
    };
    // An unfinished run has reached something else.
    plant("unrelated", &at(41), "{\"singer_state\":{\"users\":7}}");
    assert_eq!([step("unrelated"), step("unrelated")], [Some(42), Some(43)]);
    assert_eq!(stored("unrelated"), format!("{}\t{{\"singer_state\":{{\"users\":7,\"page\":43}}}}\n", at(41)));
    plant("beyond", &at(41), &at(50));
    assert_eq!(step("beyond"), Some(51));
    plant("finished", &at(41), "{ }");
    assert_eq!(step("finished"), Some(42));

    // Whatever is not understood stops it, and stays.
    for (id, completed, partial) in [
        ("corrupt", "no JSON", "{ }"),
        ("corrupt in part", &*at(41), "[]"),
        ("no page", "{\"singer_state\":{\"page\":\"41\"}}", "{\"singer_state\":{\"users\":7}}"),
    ] {
        plant(id, completed, partial);
        assert_eq!(step(id), None, "{id}");
        assert_eq!(stored(id), format!("{completed}\t{partial}\n"));
    }
    assert_eq!(sandbox.lock_rows(), "");
}
