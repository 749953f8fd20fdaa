//! How a client sends: it repeats what may be repeated when the connection was lost, within the time limit.

use super::kernel::{Kernel, Wake};
use super::statement::{Answer, Statement};

/// One statement with its repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    actor: usize,
    query: u128,
    pub(super) statement: Statement,
    stale: u64,
    pub(super) began: u64,
    pause: u64,
    may_have_arrived: bool,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered(Answer),
    /// It failed and changed nothing.
    Failed,
    /// It may have been carried out, or may yet be.
    Unknown,
}

impl Request {
    pub(super) fn send(kernel: &mut Kernel, actor: usize, statement: Statement, stale: u64) -> Self {
        kernel.note(|| format!("{actor} sends {statement:x?}"));
        let began = kernel.now;
        let query = statement.query_id(&kernel.scenario.rules).unwrap_or_else(|| kernel.new_query());
        let mut request = Self { actor, query, statement, stale, began, pause: 100, may_have_arrived: false };
        request.attempt(kernel);
        request
    }

    fn attempt(&mut self, kernel: &mut Kernel) {
        kernel.step(self.actor);
        let left = (self.began + kernel.scenario.times.request).saturating_sub(kernel.now);
        kernel.wake(self.actor, left, Wake::TimedOut);
        let mut arrives = true;
        let cut = kernel.weather.cut;
        if kernel.rng.chance(cut) {
            arrives = kernel.rng.chance(700);
            let delay = kernel.delay(self.actor);
            kernel.wake(self.actor, delay, Wake::Cut);
        }
        if arrives {
            let ways = [
                kernel.delay(self.actor),
                kernel.delay(self.actor),
                kernel.delay(self.actor),
                kernel.delay(self.actor),
            ];
            kernel.send(self.actor, self.query, self.statement, self.stale, ways);
        }
    }

    /// What has happened; none if it goes on.
    pub(super) fn handle(&mut self, kernel: &mut Kernel, wake: Wake) -> Option<Outcome> {
        match wake {
            Wake::Answered(job) => match kernel.take_answer(job) {
                Answer::Aborted if !self.may_have_arrived => Some(Outcome::Failed),
                Answer::Aborted => Some(Outcome::Unknown),
                Answer::Busy => self.repeat(kernel),
                answer => Some(Outcome::Answered(answer)),
            },
            Wake::Timer => {
                self.attempt(kernel);
                None
            }
            Wake::Cut => {
                self.may_have_arrived = true;
                self.repeat(kernel)
            }
            Wake::TimedOut => Some(self.given_up()),
        }
    }

    fn repeat(&mut self, kernel: &mut Kernel) -> Option<Outcome> {
        let rest = self.pause / 2 + kernel.rng.below(self.pause / 2);
        let in_time = kernel.now - self.began + rest < kernel.scenario.times.request;
        if !self.statement.is_repeated() || !in_time {
            return Some(self.given_up());
        }
        self.pause = (self.pause * 2).min(5000);
        kernel.step(self.actor);
        kernel.wake(self.actor, rest, Wake::Timer);
        None
    }

    /// Nothing is known, or, of what only reads, enough.
    fn given_up(&self) -> Outcome {
        match self.statement {
            Statement::Rows | Statement::State => Outcome::Failed,
            _ => Outcome::Unknown,
        }
    }
}
