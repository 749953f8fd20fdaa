//! Operations on ten thousand states.

use std::sync::LazyLock;

use meltano_state_host::State;

use crate::addon::Addon;
use crate::native::Native;
use crate::report::Report;
use crate::sides::{Setup, Sides, Task, resolved};
use crate::states::{id, state};

const COUNT: usize = 10_000;
const ROUNDS: usize = 20;
/// How many states the add-on, which handles them one by one, is given, and what its time is multiplied by.
const GET_ALL_OF_ADDON: &str = "get_all 200";
const SET_ALL_OF_ADDON: &str = "set_all 200";
const SHARE: u32 = 50;

static STATES: LazyLock<Vec<State>> = LazyLock::new(|| (0..COUNT).map(|n| state(&id(n), n)).collect());

pub(crate) fn measure(setup: &Setup, mut addon: Option<&mut Addon>, report: &mut Report) {
    let settings = setup.settings("bench_bulk", &[]);
    let (native, resolved) = (Native::new(&setup.runtime), resolved(&settings));
    let mut sides = Sides::new(setup, &settings, &resolved, &native);
    sides.native.set_all(&STATES).expect("states");
    if let Some(addon) = addon.as_deref_mut() {
        addon.run(&format!("fill {COUNT}"));
    }
    for task in [IDS, GET_ALL, SET_ALL] {
        let name = format!("{} of {COUNT}", task.name);
        report.add(sides.compare(name, ROUNDS, &task, addon.as_deref_mut()));
    }
}

const IDS: Task = Task {
    name: "get-state-ids",
    component: |runtime, instance, _| {
        assert_eq!(runtime.block_on(instance.get_state_ids(None)).expect("ids").len(), COUNT);
    },
    native: |store, _| assert_eq!(store.get_state_ids(None).expect("ids").len(), COUNT),
    addon: Some(("list", 1)),
};

const GET_ALL: Task = Task {
    name: "get-all",
    component: |runtime, instance, _| {
        let page = instance.get_all(None, None, None);
        assert_eq!(runtime.block_on(page).expect("states").len(), COUNT);
    },
    native: |store, _| assert_eq!(store.get_all(None, None, None).expect("states").len(), COUNT),
    addon: Some((GET_ALL_OF_ADDON, SHARE)),
};

const SET_ALL: Task = Task {
    name: "set-all",
    component: |runtime, instance, _| {
        runtime.block_on(instance.set_all(&STATES)).expect("states");
    },
    native: |store, _| {
        store.set_all(&STATES).expect("states");
    },
    addon: Some((SET_ALL_OF_ADDON, SHARE)),
};
