//! The component in the host beside the same statements from a native client, and beside the Python add-on's workflow.
//!
//! `cargo xtask bench` runs this against an embedded ClickHouse. All sides take turns on one server; what is printed are
//! medians and ratios. Times depend on the machine, ratios hardly.

mod native;
mod report;

use std::process::Command;
use std::time::{Duration, Instant};

use meltano_state_backend_clickhouse::clickhouse::Client;
use meltano_state_backend_clickhouse::lock::Acquire;
use meltano_state_backend_clickhouse::ports::Ports;
use meltano_state_backend_clickhouse::settings::Settings as Resolved;
use meltano_state_backend_clickhouse::store::Store;
use meltano_state_host::{Instance, Plugin, Settings, State};
use native::Native;
use report::{Report, Row};
use tokio::runtime::Runtime;

/// How often each side does each thing, after a few times that do not count.
const ROUNDS: usize = 200;
const WARM_UP: usize = 10;
/// The same for what takes a second.
const SLOW_ROUNDS: usize = 3;

fn main() {
    // `cargo test --benches` only wants to know whether it builds.
    let Ok(uri) = std::env::var("MELTANO_STATE_BACKEND_URI") else {
        println!("skipped: run cargo xtask bench");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut report = Report::default();
    for protocol in ["ticket", "settle"] {
        let settings = Settings::new()
            .with("state_backend.uri", &uri)
            .and_then(|settings| settings.with("state_backend.clickhouse.schema", format!("bench_{protocol}")))
            .and_then(|settings| settings.with("state_backend.clickhouse.lock_protocol", protocol))
            .expect("settings");
        bench(&runtime, &settings, protocol, &mut report);
    }
    if let Some(python) = std::env::var_os("PEERS_PYTHON") {
        published(&python, &uri, &mut report);
    }
    report.print();
    report.write(std::env::var_os("BENCH_JSON").map(Into::into));
}

/// Both of our sides, in turns.
struct Sides<'a> {
    runtime: &'a Runtime,
    component: Instance,
    native: Store<'a>,
}

fn bench(runtime: &Runtime, settings: &Settings, protocol: &str, report: &mut Report) {
    let plugin = Plugin::builder().settings(settings.clone()).build().expect("a plugin");
    let resolved = Resolved::load(settings).expect("settings");
    let native = Native::new(runtime);
    let ports = Ports { http: &native, clock: &native, random: &native };
    let mut sides = Sides {
        runtime,
        component: runtime.block_on(plugin.instance()).expect("an instance"),
        native: Store::new(Client::new(ports, &resolved)),
    };
    sides.native.init().expect("the tables");
    let stored = state(0);
    sides.native.set(&stored).expect("a state");

    let rounds = if protocol == "settle" { SLOW_ROUNDS } else { ROUNDS };
    if protocol == "ticket" {
        report.add(sides.compare("get", rounds, GET));
        report.add(sides.compare("set", rounds, SET));
    }
    report.add(sides.compare(&format!("acquire + release, {protocol}"), rounds, SECTION));
    report.add(sides.compare(&format!("update, {protocol}"), rounds, UPDATE));
}

/// One thing to do, by either side.
struct Task {
    component: fn(&Runtime, &mut Instance, usize),
    native: fn(&Store, usize),
}

const GET: Task = Task {
    component: |runtime, instance, _| drop(runtime.block_on(instance.get("bench")).expect("get")),
    native: |store, _| drop(store.get("bench").expect("get")),
};

const SET: Task = Task {
    component: |runtime, instance, n| runtime.block_on(instance.set(&state(n))).expect("set"),
    native: |store, n| store.set(&state(n)).expect("set"),
};

const UPDATE: Task = Task {
    component: |runtime, instance, n| runtime.block_on(instance.update(&state(n))).expect("update"),
    native: |store, n| store.update(&state(n)).expect("update"),
};

const SECTION: Task = Task {
    component: |runtime, instance, _| {
        runtime.block_on(async {
            let lock = instance.acquire("bench", &Acquire::default()).await.expect("acquire");
            instance.release(lock).await.expect("release");
        });
    },
    native: |store, _| {
        let lock = store.acquire("bench", &Acquire::default()).expect("acquire");
        lock.release(store.locks()).expect("release");
    },
};

impl Sides<'_> {
    fn compare(&mut self, name: &str, rounds: usize, task: Task) -> Row {
        let (mut component, mut native) = (Vec::new(), Vec::new());
        for round in 0..rounds + WARM_UP.min(rounds) {
            // Who begins alternates, so that neither always finds the caches warm.
            let mut run_component =
                || component.push(timed(|| (task.component)(self.runtime, &mut self.component, round)));
            let mut run_native = || native.push(timed(|| (task.native)(&self.native, round)));
            if round % 2 == 0 {
                run_component();
                run_native();
            } else {
                run_native();
                run_component();
            }
        }
        let counted = |times: Vec<Duration>| times.into_iter().skip(WARM_UP.min(rounds)).collect();
        Row::new(name, counted(component), counted(native))
    }
}

fn timed(action: impl FnOnce()) -> Duration {
    let start = Instant::now();
    action();
    start.elapsed()
}

fn state(n: usize) -> State {
    State {
        state_id: "bench".to_owned(),
        partial_state: Some(format!("{{\"singer_state\":{{\"bookmarks\":{{\"issues\":{{\"page\":{n}}}}}}}}}")),
        completed_state: None,
    }
}

/// The add-on's workflow over its own driver.
fn published(python: &std::ffi::OsStr, uri: &str, report: &mut Report) {
    let uri = url::Url::parse(uri).expect("a URI");
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/addon.py"))
        .args([uri.host_str().unwrap_or("localhost"), &uri.port().unwrap_or(8123).to_string()])
        .args([uri.username(), uri.password().unwrap_or_default(), "bench_published", "bench"])
        .output()
        .expect("the Python add-on's workflow runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let times: std::collections::BTreeMap<String, Vec<f64>> =
        serde_json::from_slice(&output.stdout).expect("it prints its times");
    for (name, seconds) in times {
        report.published(&name, seconds.into_iter().map(Duration::from_secs_f64).collect());
    }
}
