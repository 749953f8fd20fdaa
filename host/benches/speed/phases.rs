//! Where the time of a cold `get` goes: a fresh process does what the command does, and notes when it has done what.

use std::fmt::Debug;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use meltano_state_host::settings::Sources;
use meltano_state_host::{Cache, Plugin};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cold::{SCHEMA_VARIABLE, process, store_one};
use crate::report::{Report, Row};
use crate::sides::{Setup, URI};
use crate::states::ID;
use crate::times::Times;

const CHILD: &str = "BENCH_PHASES";
const ROUNDS: usize = 100;

pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Prints a line for every phase that ended: nanoseconds since 1970, and its name.
pub(crate) fn child() {
    let ended = Ended::default();
    ended.note("process start");
    tracing_subscriber::registry().with(ended.clone()).init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let settings = Sources::of_process().gather().expect("settings");
        ended.note("settings");
        let cache = Cache::of_user().expect("a cache");
        let plugin = Plugin::builder().settings(settings).cache(cache).build().expect("a plugin");
        ended.note("HTTP client");
        let mut instance = plugin.instance().await.expect("an instance");
        ended.note("instance");
        instance.get(ID).await.expect("get");
        ended.note("answer in the component");
    });
    for (time, name) in &*ended.0.lock().expect("its times") {
        println!("{} {name}", time.as_nanos());
    }
}

/// The phases that have ended, and when.
#[derive(Clone, Default)]
struct Ended(Arc<Mutex<Vec<(Duration, String)>>>);

impl Ended {
    fn note(&self, name: impl Into<String>) {
        self.0.lock().expect("its times").push((now(), name.into()));
    }
}

/// The host says in its log what it has done.
impl<S: tracing::Subscriber> Layer<S> for Ended {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let ended = match message(event).as_str() {
            "the engine is made" => "engine",
            "the component is loaded" => "compiled component",
            "the component is linked" => "linking",
            "connected" => "request made, connection",
            text if text.starts_with("POST") => "answer of the server",
            _ => return,
        };
        self.note(ended);
    }
}

fn message(event: &tracing::Event<'_>) -> String {
    struct Message(String);
    impl tracing::field::Visit for Message {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
            if field.name() == "message" {
                self.0 = format!("{value:?}");
            }
        }
    }
    let mut message = Message(String::new());
    event.record(&mut message);
    message.0
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

pub(crate) fn measure(setup: &Setup, report: &mut Report) {
    store_one(setup);
    let directory = tempfile::tempdir().expect("a directory");
    let mut phases: Vec<(String, Vec<Duration>)> = Vec::new();
    eprintln!("phases of a cold get: {ROUNDS} rounds");
    // The first one fills the cache.
    for round in 0..=ROUNDS {
        let mut command = process(std::env::current_exe().expect("this program"), directory.path());
        command.env(CHILD, "1").env(URI, &setup.uri).env(SCHEMA_VARIABLE, "bench_cold").stdout(Stdio::piped());
        let mut last = now();
        let output = command.output().expect("the process runs");
        let end = now();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ended = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(time, name)| (Duration::from_nanos(time.parse().expect("nanoseconds")), name.to_owned()));
        for (n, (time, name)) in ended.chain([(end, "process end".to_owned())]).enumerate() {
            if n == phases.len() {
                phases.push((name, Vec::new()));
            }
            if round > 0 {
                phases[n].1.push(time.saturating_sub(last));
            }
            last = time;
        }
    }
    for (name, times) in phases {
        report.add(Row::new(format!("cold get: {name}"), vec![Times::new(times)]));
    }
}
