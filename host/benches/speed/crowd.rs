//! Many ids at once: each of 64 tasks reads or writes a state of its own, in one process.

use std::time::Duration;

use meltano_state_backend_clickhouse::ports::Request;
use meltano_state_host::{Instance, Plugin};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::native::{Native, Sender};
use crate::report::{Report, Row};
use crate::sides::{Setup, resolved};
use crate::states::{id, state};
use crate::times::{Side, in_turns, timed};

const TASKS: usize = 64;
/// How often each task does its thing in a round.
const REPEATED: usize = 2;
const ROUNDS: usize = 10;

pub(crate) fn measure(setup: &Setup, report: &mut Report) {
    // As a service would: the tasks move between threads.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let settings = setup.settings("bench_crowd", &[]);
    let resolved = resolved(&settings);
    let native = Native::new(&runtime);
    native.requests(&resolved, |store| drop(store.init(false).expect("the tables")));
    let plugin = Plugin::builder().settings(settings).build().expect("a plugin");
    for (name, write) in [("get", false), ("set", true)] {
        let mut instances: Vec<_> =
            (0..TASKS).map(|_| runtime.block_on(plugin.instance()).expect("an instance")).collect();
        // What the component sends, without what it computes: even less than the backend's own logic.
        let requests: Vec<_> = (0..TASKS)
            .map(|task| {
                native.requests(&resolved, |store| store.set(&state(&id(task), 0)).expect("a state"));
                let sent = native.requests(&resolved, |store| {
                    if write {
                        store.set(&state(&id(task), 1)).expect("set");
                    } else {
                        assert!(store.get(&id(task)).expect("get").is_some());
                    }
                });
                sent.into_iter().next().expect("a request")
            })
            .collect();
        let name = format!("{name}, {TASKS} ids × {REPEATED} at once");
        eprintln!("{name}: {ROUNDS} rounds");
        let (runtime, sender) = (&runtime, native.sender());
        let mut sides: Vec<Side> = vec![
            Box::new(|_| of_component(runtime, &mut instances, write)),
            Box::new(|_| of_native(runtime, &sender, &requests)),
        ];
        let times = in_turns(ROUNDS, &mut sides);
        drop(sides);
        report.add(Row::new(name, times));
    }
}

fn of_component(runtime: &Runtime, instances: &mut Vec<Instance>, write: bool) -> Duration {
    let mut tasks = JoinSet::new();
    let (time, ended) = timed(|| {
        for (task, mut instance) in instances.drain(..).enumerate() {
            let work = async move {
                let state = state(&id(task), 1);
                for _ in 0..REPEATED {
                    if write {
                        instance.set(&state).await.expect("set");
                    } else {
                        instance.get(&state.state_id).await.expect("get");
                    }
                }
                (task, instance)
            };
            tasks.spawn_on(work, runtime.handle());
        }
        runtime.block_on(tasks.join_all())
    });
    let mut ended = ended;
    ended.sort_by_key(|(task, _)| *task);
    instances.extend(ended.into_iter().map(|(_, instance)| instance));
    time
}

fn of_native(runtime: &Runtime, sender: &Sender, requests: &[Request]) -> Duration {
    let mut tasks = JoinSet::new();
    let requests: Vec<[Request; REPEATED]> =
        requests.iter().map(|request| std::array::from_fn(|_| with_other_id(request))).collect();
    timed(|| {
        for requests in requests {
            let sender = sender.clone();
            let work = async move {
                for request in requests {
                    assert_eq!(sender.send(&request).await.expect("an answer").status, 200);
                }
            };
            tasks.spawn_on(work, runtime.handle());
        }
        runtime.block_on(tasks.join_all());
    })
    .0
}

/// The server refuses a statement with the id of one that still runs, if only to its last moment.
fn with_other_id(request: &Request) -> Request {
    let (before, id) = request.path_and_query.split_once("query_id=").expect("an id");
    let after = id.split_once('&').map_or("", |(_, after)| after);
    let path_and_query = format!("{before}query_id={:032x}&{after}", rand::random::<u128>());
    Request { path_and_query, ..request.clone() }
}
