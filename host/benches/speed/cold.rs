//! The command beside curl: whole processes that do one request.

use std::path::Path;
use std::process::{Command, Stdio};

use meltano_state_backend_clickhouse::ports::Request;

use crate::native::Native;
use crate::report::{Report, Row};
use crate::sides::{Setup, URI, resolved};
use crate::states::{ID, state};
use crate::times::{Side, in_turns, timed};

pub(crate) const COMMAND: &str = env!("CARGO_BIN_EXE_meltano-state");
const SCHEMA: &str = "bench_cold";
const ROUNDS: usize = 100;

pub(crate) fn measure(setup: &Setup, report: &mut Report) {
    let directory = tempfile::tempdir().expect("a directory");
    let request = store_one(setup);
    eprintln!("cold get: {ROUNDS} rounds");
    let mut sides: Vec<Side> = vec![
        Box::new(|_| {
            let mut command = process(COMMAND, directory.path());
            let command = command.args(["get", ID]).env(URI, &setup.uri).env(SCHEMA_VARIABLE, SCHEMA);
            timed(|| assert!(command.status().expect("the command runs").success())).0
        }),
        Box::new(|_| {
            let mut curl = curl(&request, directory.path());
            timed(|| assert!(curl.status().expect("curl runs").success())).0
        }),
    ];
    report.add(Row::new("cold get beside curl", in_turns(ROUNDS, &mut sides)));
}

pub(crate) const SCHEMA_VARIABLE: &str = "MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA";

/// Stores the state, and says which request reads it.
pub(crate) fn store_one(setup: &Setup) -> Request {
    let resolved = resolved(&setup.settings(SCHEMA, &[]));
    let native = Native::new(&setup.runtime);
    native.requests(&resolved, |store| store.set(&state(ID, 1)).expect("a state"));
    let sent = native.requests(&resolved, |store| assert!(store.get(ID).expect("get").is_some()));
    sent.into_iter().next().expect("a request")
}

/// A process without surroundings of its own, but for a place for its cache.
pub(crate) fn process(program: impl AsRef<std::ffi::OsStr>, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", directory).env("XDG_CACHE_HOME", directory.join("cache"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn curl(request: &Request, directory: &Path) -> Command {
    let mut command = process("curl", directory);
    command.args(["--silent", "--show-error", "--fail", "--data-binary"]);
    command.arg(String::from_utf8_lossy(&request.body).as_ref());
    for (name, header) in &request.headers {
        command.args(["--header", &format!("{name}: {}", header.value())]);
    }
    command.arg(format!("http://{}{}", request.authority, request.path_and_query));
    command
}
