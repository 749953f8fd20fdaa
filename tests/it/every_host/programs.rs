//! The component as other programs take it, and those programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use meltano_state_host::COMPONENT;
use url::Url;

use crate::sandbox::Sandbox;
use crate::server::xtask;

/// A file of the project.
pub(super) fn source(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

/// Where files of these tests go.
fn scratch() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hosts");
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// The component as a file.
pub(super) fn component() -> &'static Path {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
        let file = scratch().join("component.wasm");
        fs::write(&file, COMPONENT).unwrap();
        file
    });
    &FILE
}

/// The component plugged into a package of the workspace that imports its store.
pub(super) fn composed(consumer: &str) -> PathBuf {
    let file = scratch().join(format!("{consumer}.wasm"));
    let mut compose = xtask();
    compose.args(["compose", consumer, "--dev", "--component"]).arg(component()).arg("--output").arg(&file);
    run(&mut compose);
    file
}

/// The directory that jco transpiles the component into.
pub(super) fn transpiled(jco: &Path) -> &'static Path {
    static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| scratch().join("transpiled"));
    static DONE: std::sync::Once = std::sync::Once::new();
    DONE.call_once(|| {
        let mut transpile = Command::new(jco);
        transpile.arg("transpile").arg(component());
        run(transpile.args(["--name", "state-backend", "--instantiation", "sync", "-o"]).arg(&*DIRECTORY));
    });
    &DIRECTORY
}

/// The URI of a test's database, in which a history is kept.
pub(super) fn uri(sandbox: &Sandbox) -> Url {
    let mut uri = sandbox.uri();
    uri.query_pairs_mut().append_pair("history_days", "7");
    uri
}

/// What a program prints, which has to succeed.
pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
