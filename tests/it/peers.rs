//! The Python add-on on the same tables, and what a stock wasmtime says of errors.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use meltano_state_host::{Acquire, COMPONENT};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, instance, state};
use crate::server::SERVER;

/// A program that `cargo xtask test` installs. Where there is no Python these tests cannot run, except on CI, where
/// it has to be there.
pub(crate) fn peer(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    assert!(path.is_some() || std::env::var_os("CI").is_none(), "{variable} is not set; cargo xtask test sets it");
    if path.is_none() {
        eprintln!("skipped: {variable} is not set; cargo xtask test sets it where there is a python3");
    }
    path
}

fn python(python: &Path, sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let uri = SERVER.uri();
    let port = uri.port().unwrap_or(8123).to_string();
    let mut command = Command::new(python);
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/addon.py"))
        .args([uri.host_str().unwrap(), &port, uri.username(), uri.password().unwrap_or_default(), &sandbox.schema])
        .args(arguments);
    command
}

fn addon(program: &Path, sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let output = python(program, sandbox, arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn rows_of_the_python_addon_are_read_and_ours_are_read_by_it() {
    let Some(program) = peer("PEERS_PYTHON") else { return };
    let sandbox = Sandbox::new();
    let partial = json!({"singer_state": {"é": "\u{1F980} \"\\\n", "n": 12345678901234567890u64}});
    let completed = json!({"singer_state": {"f": 1.5, "list": [null, true]}});
    // The add-on creates the tables in its own layout; the component works on them.
    addon(&program, &sandbox, &["set", "py:'\\", &partial.to_string(), &completed.to_string()]);
    addon(&program, &sandbox, &["set", "empty", "{}", "{}"]);

    let mut store = sandbox.instance().await;
    let read = store.get("py:'\\").await.unwrap().unwrap();
    let parsed = |text: Option<String>| serde_json::from_str::<Value>(&text.unwrap()).unwrap();
    assert_eq!(parsed(read.partial_state), partial);
    assert_eq!(parsed(read.completed_state), completed);
    assert_eq!(store.get("empty").await.unwrap(), Some(state("empty", None, None)));

    store.update(&state("py:'\\", Some("{\"more\":1}"), None)).await.unwrap();
    store.set(&state("ours\n", None, Some(&completed.to_string()))).await.unwrap();
    let mut merged = partial.clone();
    merged["more"] = json!(1);
    assert_eq!(addon(&program, &sandbox, &["get", "py:'\\"]), json!([merged, completed]));
    assert_eq!(addon(&program, &sandbox, &["get", "ours\n"]), json!([{}, completed]));
    assert_eq!(addon(&program, &sandbox, &["list"]), json!(["empty", "ours\n", "py:'\\"]));

    addon(&program, &sandbox, &["delete", "ours\n"]);
    assert_eq!(store.get("ours\n").await.unwrap(), None);
    store.clear("empty").await.unwrap();
    assert_eq!(addon(&program, &sandbox, &["list"]), json!(["py:'\\"]));
}

/// Starts the add-on and returns once it holds the lock. Its output has to stay open until it ends.
fn hold(program: &Path, sandbox: &Sandbox, seconds: &str) -> (Child, impl Sized) {
    let mut child = python(program, sandbox, &["hold", "a", seconds]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "held");
    (child, lines)
}

#[tokio::test]
async fn component_and_addon_wait_for_each_others_locks() {
    let Some(program) = peer("PEERS_PYTHON") else { return };
    let sandbox = Sandbox::new();
    let settings = [("state_backend.clickhouse.lock_settle_seconds", "1"), ("state_backend.lock_retry_seconds", "0.2")];
    let mut store = instance(&sandbox.uri(), &settings).await;

    let (mut holder, _output) = hold(&program, &sandbox, "1.5");
    store.update(&state("a", Some("{\"p\":1}"), None)).await.unwrap();
    assert!(holder.wait().unwrap().success());
    // The add-on's write under its lock came first, so its completed state stayed below the update.
    let expected = state("a", Some("{\"p\":1}"), Some("{\"n\": 1}"));
    assert_eq!(store.get("a").await.unwrap(), Some(expected));

    // The other way round: the add-on starts while the component settles.
    let starting = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        python(&program, &sandbox, &["hold", "a", "0"]).stdout(Stdio::null()).spawn().unwrap()
    };
    let update = state("a", None, Some("{\"n\":10}"));
    let (updated, mut second) = tokio::join!(store.update(&update), starting);
    updated.unwrap();
    let ended = tokio::task::spawn_blocking(move || second.wait().unwrap()).await.unwrap();
    assert!(ended.success());
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", None, Some("{\"n\": 11}"))));
    assert_eq!(sandbox.lock_rows(), "");
}

/// Adds 1 to `n` in the completed state of `a` under the lock, `sections` times.
async fn count(uri: url::Url, sections: u32) {
    let settings = [("state_backend.clickhouse.lock_wait_seconds", "120")];
    let mut store = instance(&uri, &settings).await;
    for _ in 0..sections {
        let lock = store.acquire("a", &Acquire::default()).await.unwrap();
        let stored = store.get("a").await.unwrap().and_then(|state| state.completed_state);
        let stored: Value = stored.map_or(json!({}), |text| serde_json::from_str(&text).unwrap());
        let n = stored["n"].as_u64().unwrap_or(0) + 1;
        store.set_locked(&lock, &state("a", None, Some(&json!({"n": n}).to_string()))).await.unwrap();
        store.release(lock).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mixed_with_peers_no_section_overlaps() {
    let Some(program) = peer("PEERS_PYTHON") else { return };
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    // As when peers have been there for a while: their first mutation can be missed for a second.
    sandbox.sql("DELETE FROM {}.state_lock WHERE locked_at < now() - 300");
    let peers: Vec<_> = (0..3)
        .map(|_| python(&program, &sandbox, &["hold", "a", "0.2"]).stdout(Stdio::null()).spawn().unwrap())
        .collect();
    let ours: Vec<_> = (0..3).map(|_| tokio::spawn(count(sandbox.uri(), 10))).collect();
    let mut ended = 0;
    for mut peer in peers {
        // A peer gives up after 30 s of waiting, which is no overlap.
        ended += u64::from(tokio::task::spawn_blocking(move || peer.wait().unwrap()).await.unwrap().success());
    }
    for task in ours {
        task.await.unwrap();
    }
    let state = sandbox.instance().await.get("a").await.unwrap().unwrap();
    let n = serde_json::from_str::<Value>(&state.completed_state.unwrap()).unwrap()["n"].as_u64().unwrap();
    assert_eq!(n, 30 + ended, "every section counted");
    assert!(ended > 0, "a peer took its turn");
    assert_eq!(sandbox.lock_rows(), "");
}

/// Calls a function of the component with `wasmtime run --invoke` and returns what it prints.
pub(crate) fn invoke(wasmtime: &Path, component: &Path, uri: &str, call: &str) -> String {
    let output = Command::new(wasmtime)
        .args(["run", "-S", "http,config", "-S", &format!("config-var=state_backend.uri={uri}"), "--invoke", call])
        .arg(component)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{call}: {stderr}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn a_stock_wasmtime_prints_errors() {
    let Some(wasmtime) = peer("PEERS_WASMTIME") else { return };
    let directory = tempfile::tempdir().unwrap();
    let component = directory.path().join("component.wasm");
    std::fs::write(&component, COMPONENT).unwrap();
    let down = "clickhouse://u:p@127.0.0.1:1/d";
    let printed = invoke(&wasmtime, &component, down, "get(\"a\")");
    assert!(printed.starts_with("err({kind: unreachable, message: "), "{printed}");
}
