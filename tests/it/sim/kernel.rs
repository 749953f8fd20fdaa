//! Time, the queue of what is to happen, and the server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::monitor::Monitor;
use super::scenario::Scenario;
use super::server::{Server, Stage};
use super::state::Version;
use super::table::LockTable;
use super::times::{Weather, delay, long};
use crate::rng::Rng;

/// What happens to a client, which it handles in the order in which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wake {
    /// The time it waited for has come.
    Timer,
    /// A statement was answered.
    Answered(usize),
    /// The connection was lost.
    Cut,
    /// The client's time limit for a statement is over.
    TimedOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// For a client, if it is still at the step in which it waited for this.
    Wake {
        actor: usize,
        step: u32,
        wake: Wake,
    },
    /// A statement goes on at the server.
    Job(usize, Stage),
    Merge,
    /// The server's clock steps by so much.
    ClockStep(i64),
}

pub(super) struct Kernel {
    pub(super) scenario: Scenario,
    pub(super) weather: Weather,
    pub(super) quiet: bool,
    pub(super) rng: Rng,
    pub(super) now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    queued: u64,
    /// How far the server's clock is from the time of the simulation.
    pub(super) offset: i64,
    pub(super) latest: i64,
    pub(super) locks: LockTable,
    pub(super) state: Version,
    pub(super) server: Server,
    /// At which step each client is; what it waited for in an earlier one does not concern it any more.
    pub(super) steps: Vec<u32>,
    /// How often each client is slow, in times of a thousand.
    pub(super) slow: Vec<u64>,
    pub(super) tokens: u32,
    pub(super) monitor: Monitor,
    pub(super) trace: Option<Vec<String>>,
}

/// 2026-01-01, so that no time is negative.
const EPOCH: i64 = 1_767_225_600_000;

impl Kernel {
    pub(super) fn new(scenario: Scenario, seed: u64, traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let mut weather = Weather::draw(&mut rng, scenario.cuts);
        if !scenario.crashes {
            weather.crash = 0;
        }
        if !scenario.stalls {
            weather.stall = 0;
        }
        if !scenario.merges {
            weather.merge = 0;
        }
        let offset = EPOCH + rng.below(1000).cast_signed();
        Self {
            locks: LockTable::new(scenario.layout, scenario.rules.block_order),
            monitor: Monitor::new(scenario.claims),
            scenario,
            weather,
            quiet: false,
            rng,
            now: 0,
            queue: BinaryHeap::with_capacity(64),
            queued: 0,
            offset,
            latest: offset,
            state: Version::default(),
            server: Server::default(),
            steps: Vec::new(),
            slow: Vec::new(),
            tokens: 0,
            trace: traced.then(Vec::new),
        }
    }

    pub(super) fn server_now(&self) -> i64 {
        self.offset + self.now.cast_signed()
    }

    /// The latest time that the server's clock has ever shown.
    pub(super) fn server_latest(&self) -> i64 {
        self.latest.max(self.server_now())
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>9.3} s  {}", self.now as f64 / 1000.0, text()));
        }
    }

    pub(super) fn after(&mut self, delay: u64, event: Event) {
        self.queued += 1;
        self.queue.push(Reverse((self.now + delay, self.queued, event)));
    }

    /// The next event, at its time.
    pub(super) fn next(&mut self) -> Option<Event> {
        let Reverse((time, _, event)) = self.queue.pop()?;
        self.latest = self.server_latest();
        self.now = time;
        Some(event)
    }

    /// How long a step of a client's, or of a statement of its, takes.
    pub(super) fn delay(&mut self, actor: usize) -> u64 {
        let slow = self.slow[actor];
        delay(&mut self.rng, &self.scenario.times, slow)
    }

    pub(super) fn long(&mut self) -> u64 {
        long(&mut self.rng, &self.scenario.times)
    }

    /// A client goes on to its next step, in which it waits for something else.
    pub(super) fn step(&mut self, actor: usize) -> u32 {
        self.steps[actor] += 1;
        self.steps[actor]
    }

    pub(super) fn wake(&mut self, actor: usize, delay: u64, wake: Wake) {
        let step = self.steps[actor];
        self.after(delay, Event::Wake { actor, step, wake });
    }

    /// Until when a lock's row is fresh by the server's clock; the past if it has none.
    pub(super) fn fresh_until(&self, lock_id: u128, stale: u64) -> i64 {
        self.locks.locked_at(lock_id).map_or(0, |locked_at| locked_at * 1000 + stale.cast_signed())
    }
}
