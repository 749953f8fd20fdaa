//! Time, the queue of what is to happen, and the server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::monitor::Monitor;
use super::rng::Rng;
use super::scenario::Scenario;
use super::state::Version;
use super::statement::{Answer, Judged, Statement};
use super::table::LockTable;
use super::times::{Weather, delay, long};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Judge,
    Compare,
    Commit,
}

/// A statement on its way through the server.
struct Job {
    actor: usize,
    step: u32,
    /// The same for all repetitions.
    query: u64,
    statement: Statement,
    stale: u64,
    /// The rest of the way, drawn beforehand.
    compare: u64,
    commit: u64,
    back: u64,
    running: bool,
    judged: Judged,
    answer: Option<Answer>,
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
    offset: i64,
    latest: i64,
    pub(super) locks: LockTable,
    pub(super) state: Version,
    jobs: Vec<Job>,
    queries: u64,
    /// Fenced statements between judging and commit.
    fenced: usize,
    /// At which step each client is; what it waited for in an earlier one does not concern it any more.
    pub(super) steps: Vec<u32>,
    /// How often each client is slow, in times of a thousand: one that is among others that are not shows the most.
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
        let mut weather = Weather::draw(&mut rng);
        if !scenario.faults {
            (weather.cut, weather.crash) = (0, 0);
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
            jobs: Vec::with_capacity(128),
            queries: 0,
            fenced: 0,
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

    /// Sends a statement, whose four ways take the given times: to the server, between its looks, to its commit, back.
    pub(super) fn send(&mut self, actor: usize, query: u64, statement: Statement, stale: u64, ways: [u64; 4]) {
        let [there, compare, commit, back] = ways;
        let step = self.steps[actor];
        let (running, judged, answer) = (false, Judged::Nothing, None);
        self.jobs.push(Job { actor, step, query, statement, stale, compare, commit, back, running, judged, answer });
        self.after(there, Event::Job(self.jobs.len() - 1, Stage::Judge));
    }

    pub(super) fn new_query(&mut self) -> u64 {
        self.queries += 1;
        self.queries
    }

    pub(super) fn take_answer(&mut self, job: usize) -> Answer {
        self.jobs[job].answer.take().expect("an answer is taken once")
    }

    /// Carries the next stage of a statement out.
    pub(super) fn run(&mut self, index: usize, stage: Stage) {
        let Job { actor, statement, stale, compare, commit, .. } = self.jobs[index];
        match stage {
            Stage::Judge => {
                let query = self.jobs[index].query;
                if self.scenario.rules.one_at_a_time && self.jobs.iter().any(|job| job.running && job.query == query) {
                    return self.answer(index, Answer::Busy);
                }
                self.jobs[index].running = true;
                let judged = statement.judge(self, stale);
                self.note(|| format!("server: {statement:?} of {actor}: {judged:?}"));
                self.jobs[index].judged = judged;
                self.fenced += usize::from(statement.is_limited(&self.scenario.rules));
                match statement.looks_twice() {
                    true => self.after(compare, Event::Job(index, Stage::Compare)),
                    false => self.run(index, Stage::Compare),
                }
            }
            Stage::Compare => {
                let judged = std::mem::replace(&mut self.jobs[index].judged, Judged::Nothing);
                self.jobs[index].judged = statement.compare(self, judged);
                match statement.commits() {
                    true => self.after(commit, Event::Job(index, Stage::Commit)),
                    false => self.run(index, Stage::Commit),
                }
            }
            Stage::Commit => self.commit(index),
        }
    }

    fn commit(&mut self, index: usize) {
        let Job { actor, step, statement, stale, compare, commit, .. } = self.jobs[index];
        let limited = statement.is_limited(&self.scenario.rules);
        self.fenced -= usize::from(limited);
        self.jobs[index].running = false;
        let judged = std::mem::replace(&mut self.jobs[index].judged, Judged::Nothing);
        let answer = match limited && compare + commit > self.scenario.times.request {
            true => Answer::Aborted,
            false => statement.commit(self, actor, stale, judged),
        };
        if let (Statement::Candidate(lock_id) | Statement::Renew(lock_id), Answer::Written(true)) = (statement, &answer)
            && self.steps[actor] != step
        {
            self.monitor.excuse(lock_id);
        }
        self.answer(index, answer);
        if statement.commits() && self.rng.chance(self.weather.merge) {
            let delay = self.delay(actor);
            self.after(delay, Event::Merge);
        }
    }

    fn answer(&mut self, index: usize, answer: Answer) {
        let Job { actor, step, statement, back, .. } = self.jobs[index];
        self.note(|| format!("server: {statement:?} of {actor} ends: {answer:?}"));
        self.jobs[index].answer = Some(answer);
        self.after(back, Event::Wake { actor, step, wake: Wake::Answered(index) });
    }

    pub(super) fn merge(&mut self) {
        let rows = self.locks.rows.len() as u64;
        let first = self.rng.below(rows);
        let end = first + 1 + self.rng.below(rows - first.min(rows));
        if rows > 0 {
            let index = |number: u64| usize::try_from(number).expect("an index");
            let now = self.server_now();
            self.locks.merge(index(first), index(end), now);
            let left: Vec<u128> = self.locks.rows.iter().map(|row| row.lock_id).collect();
            self.note(|| format!("server: a merge leaves {left:x?}"));
        }
    }

    /// The server's clock steps. Not forward while a fenced write is carried out: its margin is no longer than its time
    /// limit.
    pub(super) fn clock_step(&mut self, by: i64) {
        if by > 0 && self.fenced > 0 {
            return self.after(1, Event::ClockStep(by));
        }
        self.latest = self.server_latest();
        self.offset += by;
        self.note(|| format!("server: its clock steps by {by} ms"));
    }
}

impl Kernel {
    /// Until when a lock's row is fresh by the server's clock; the past if it has none.
    pub(super) fn fresh_until(&self, lock_id: u128, stale: u64) -> i64 {
        self.locks.locked_at(lock_id).map_or(0, |locked_at| locked_at * 1000 + stale.cast_signed())
    }
}
