//! The server: statements on their way through it, merges, the steps of its clock.

use super::kernel::{Event, Kernel, Wake};
use super::scenario::Clock;
use super::statement::{Answer, Judged, Statement};

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
    query: u128,
    statement: Statement,
    stale: u64,
    /// The rest of the way, drawn beforehand.
    compare: u64,
    commit: u64,
    back: u64,
    judged: Judged,
    answer: Option<Answer>,
}

/// What the server has at work.
#[derive(Default)]
pub(super) struct Server {
    jobs: Vec<Job>,
    queries: u128,
    /// The queries that are being carried out.
    running: Vec<u128>,
    /// Fenced statements between judging and commit.
    fenced: usize,
}

impl Kernel {
    /// Sends a statement, whose four ways take the given times: to the server, between its looks, to its commit, back.
    pub(super) fn send(&mut self, actor: usize, query: u128, statement: Statement, stale: u64, ways: [u64; 4]) {
        let [there, compare, commit, back] = ways;
        let step = self.steps[actor];
        let (judged, answer) = (Judged::Nothing, None);
        self.server.jobs.push(Job { actor, step, query, statement, stale, compare, commit, back, judged, answer });
        self.after(there, Event::Job(self.server.jobs.len() - 1, Stage::Judge));
    }

    pub(super) fn new_query(&mut self) -> u128 {
        self.server.queries += 1;
        self.server.queries
    }

    pub(super) fn take_answer(&mut self, job: usize) -> Answer {
        self.server.jobs[job].answer.take().expect("an answer is taken once")
    }

    /// Carries the next stage of a statement out.
    pub(super) fn run(&mut self, index: usize, stage: Stage) {
        let Job { actor, step, statement, stale, compare, commit, .. } = self.server.jobs[index];
        match stage {
            Stage::Judge => {
                let query = self.server.jobs[index].query;
                if self.scenario.rules.one_at_a_time && self.server.running.contains(&query) {
                    return self.answer(index, Answer::Busy);
                }
                self.server.running.push(query);
                // One that arrives when its sender has given it up may come after the removal of what it adds.
                if let Statement::Candidate(lock_id) | Statement::Claim(lock_id) | Statement::Renew(lock_id) = statement
                    && self.steps[actor] != step
                {
                    self.monitor.excuse(lock_id);
                }
                let judged = statement.judge(self, stale);
                self.note(|| format!("server: {statement:x?} of {actor}: {judged:x?}"));
                if let Some(lock_id) = statement.held(self, stale) {
                    self.monitor.counts(lock_id);
                }
                self.server.jobs[index].judged = judged;
                self.server.fenced += usize::from(statement.is_limited(&self.scenario.rules));
                match statement.looks_twice() {
                    true => self.after(compare, Event::Job(index, Stage::Compare)),
                    false => self.run(index, Stage::Compare),
                }
            }
            Stage::Compare => {
                let judged = std::mem::replace(&mut self.server.jobs[index].judged, Judged::Nothing);
                self.server.jobs[index].judged = statement.compare(self, stale, judged);
                match statement.commits() {
                    true => self.after(commit, Event::Job(index, Stage::Commit)),
                    false => self.run(index, Stage::Commit),
                }
            }
            Stage::Commit => self.commit(index),
        }
    }

    fn commit(&mut self, index: usize) {
        let Job { actor, query, statement, stale, compare, commit, .. } = self.server.jobs[index];
        let limited = statement.is_limited(&self.scenario.rules);
        self.server.fenced -= usize::from(limited);
        if let Some(place) = self.server.running.iter().position(|running| *running == query) {
            self.server.running.swap_remove(place);
        }
        let judged = std::mem::replace(&mut self.server.jobs[index].judged, Judged::Nothing);
        let answer = match limited && compare + commit > self.scenario.times.limit {
            true => Answer::Aborted,
            false => statement.commit(self, actor, stale, judged),
        };
        self.answer(index, answer);
        if statement.commits() && self.rng.chance(self.weather.merge) {
            let delay = self.delay(actor);
            self.after(delay, Event::Merge);
        }
    }

    fn answer(&mut self, index: usize, answer: Answer) {
        let Job { actor, step, statement, back, .. } = self.server.jobs[index];
        self.note(|| format!("server: {statement:x?} of {actor} ends: {answer:x?}"));
        self.server.jobs[index].answer = Some(answer);
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

    pub(super) fn clock_step(&mut self, by: i64) {
        if by > 0 && self.server.fenced > 0 && self.scenario.clock == Clock::Steps {
            return self.after(1, Event::ClockStep(by));
        }
        self.latest = self.server_latest();
        self.offset += by;
        self.note(|| format!("server: its clock steps by {by} ms"));
    }
}
