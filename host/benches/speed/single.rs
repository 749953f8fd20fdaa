//! Operations on one state.

use meltano_state_backend_clickhouse::lock::Acquire;

use crate::addon::Addon;
use crate::native::Native;
use crate::report::Report;
use crate::sides::{Setup, Sides, Task, resolved};
use crate::states::{ID, OTHER_ID, state};

const ROUNDS: usize = 300;
/// For what takes some milliseconds and is compared within a few hundredths.
const MANY_ROUNDS: usize = 1_000;
/// For what takes a second.
const SLOW_ROUNDS: usize = 3;

pub(crate) fn measure(setup: &Setup, protocol: &str, mut addon: Option<&mut Addon>, report: &mut Report) {
    let settings = setup.settings(&format!("bench_{protocol}"), &[("lock_protocol", protocol)]);
    let (native, resolved) = (Native::new(&setup.runtime), resolved(&settings));
    let mut sides = Sides::new(setup, &settings, &resolved, &native);
    sides.native.set(&state(ID, 0)).expect("a state");
    if protocol == "ticket" {
        for task in [GET, SET] {
            report.add(sides.compare(task.name.to_owned(), MANY_ROUNDS, &task, addon.as_deref_mut()));
        }
    }
    let waits = protocol == "settle";
    for task in [SECTION, UPDATE] {
        // The add-on has one way, which waits.
        let addon = addon.as_deref_mut().filter(|_| waits);
        let rounds = if waits { SLOW_ROUNDS } else { ROUNDS };
        report.add(sides.compare(format!("{}, {protocol}", task.name), rounds, &task, addon));
    }
}

const GET: Task = Task {
    name: "get",
    component: |runtime, instance, _| drop(runtime.block_on(instance.get(ID)).expect("get")),
    native: |store, _| drop(store.get(ID).expect("get")),
    addon: Some(("get", 1)),
};

const SET: Task = Task {
    name: "set",
    component: |runtime, instance, n| runtime.block_on(instance.set(&state(ID, n))).expect("set"),
    native: |store, n| store.set(&state(ID, n)).expect("set"),
    addon: Some(("set", 1)),
};

const UPDATE: Task = Task {
    name: "update",
    component: |runtime, instance, n| drop(runtime.block_on(instance.update(&state(ID, n))).expect("update")),
    // A state of its own: each side knows the state that it wrote last.
    native: |store, n| drop(store.update(&state(OTHER_ID, n)).expect("update")),
    addon: Some(("update", 1)),
};

const SECTION: Task = Task {
    name: "acquire + release",
    component: |runtime, instance, _| {
        runtime.block_on(async {
            let lock = instance.acquire(ID, &Acquire::default()).await.expect("acquire");
            instance.release(lock).await.expect("release");
        });
    },
    native: |store, _| {
        let lock = store.acquire(ID, &Acquire::default()).expect("acquire");
        lock.release(store.locks()).expect("release");
    },
    addon: Some(("section", 1)),
};
