//! Many runs on all cores.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::monitor::{Kind, Violation};
use super::scenario::Scenario;
use super::world::{Run, World};

/// The lowest seed of those that were tried whose run shows a violation.
fn explore(scenario: Scenario, seeds: Range<u64>) -> Option<(u64, Violation)> {
    let next = AtomicU64::new(seeds.start);
    let found = AtomicU64::new(u64::MAX);
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end.min(found.load(Ordering::Relaxed)) {
                        return;
                    }
                    let run = World::run(scenario, seed, false);
                    taken.fetch_add(run.taken, Ordering::Relaxed);
                    if run.violation.is_some() {
                        found.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seed = found.into_inner();
    if seed == u64::MAX {
        // A simulation in which nobody gets anything would show nothing.
        let (taken, runs) = (taken.into_inner() as u64, seeds.end - seeds.start);
        assert!(taken > runs * 2, "the lock was taken only {taken} times in {runs} runs");
        return None;
    }
    World::run(scenario, seed, false).violation.map(|violation| (seed, violation))
}

/// Nothing that is claimed is violated within so many schedules.
pub(super) fn check(scenario: Scenario, schedules: u64) {
    if replay(scenario) {
        return;
    }
    if let Some((seed, violation)) = explore(scenario, 0..schedules) {
        let run = World::run(scenario, seed, true);
        panic!("{:?}: {}\n{}", violation.kind, violation.text, shown(seed, &run));
    }
}

/// The violation shows within so many schedules.
pub(super) fn check_caught(scenario: Scenario, kind: Kind, schedules: u64) {
    if replay(scenario) {
        return;
    }
    match explore(scenario, 0..schedules) {
        Some((seed, violation)) => {
            assert_eq!(violation.kind, kind);
            println!("{kind:?} caught in schedule {seed} of {schedules}: {}", violation.text);
        }
        None => panic!("{kind:?} was not noticed in {schedules} schedules"),
    }
}

/// Runs the one schedule that the environment names, if it names one.
fn replay(scenario: Scenario) -> bool {
    let Ok(seed) = std::env::var("SIM_SEED") else { return false };
    let seed = seed.parse().expect("SIM_SEED is a number");
    let run = World::run(scenario, seed, true);
    println!("{}", shown(seed, &run));
    assert!(run.violation.is_none(), "{:?}", run.violation);
    true
}

fn shown(seed: u64, run: &Run) -> String {
    let mut text = format!("SIM_SEED={seed}\n");
    for line in &run.trace {
        let _ = writeln!(text, "{line}");
    }
    text
}
