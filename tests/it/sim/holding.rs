//! What one of ours does while it holds the lock: updates, renewals, pauses, and at last the release.

use super::client::{Client, parsed};
use super::kernel::{Kernel, Wake};
use super::request::{Outcome, Request};
use super::state::Version;
use super::statement::{Answer, Over, Statement};

/// How often an update is merged anew because the state has changed meanwhile.
const MERGE_ATTEMPTS: u32 = 5;

/// A lock that is held.
pub(super) struct Hold {
    actor: usize,
    lock_id: u128,
    /// What is still to be done.
    steps: u64,
    task: Task,
    request: Option<Request>,
    /// The state that was read with the lock, for the first update.
    read: Option<Version>,
    /// The tokens of the update that is being written.
    writing: u64,
    /// Whether a renewal failed, which the server may still carry out.
    is_uncertain: bool,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Pausing,
    /// Reads what an update has to be merged with.
    Reading {
        token: u64,
    },
    /// Writes over what it wrote last.
    WritingAgain {
        token: u64,
    },
    Writing {
        token: u64,
        attempt: u32,
    },
    /// Nothing was written: is the lock lost?
    Looking {
        token: u64,
        attempt: u32,
    },
    /// Removes stale rows, which may have been in the way.
    Tidying {
        token: u64,
        attempt: u32,
        read: Version,
    },
    Renewing,
    Releasing,
}

impl Hold {
    pub(super) fn new(kernel: &mut Kernel, client: &Client, lock_id: u128, read: Version) -> Self {
        let actor = client.actor;
        let steps = kernel.rng.below(4);
        let mut hold = Self {
            actor,
            lock_id,
            steps,
            task: Task::Pausing,
            request: None,
            read: Some(read),
            writing: 0,
            is_uncertain: false,
        };
        hold.pause(kernel, client);
        hold
    }

    fn pause(&mut self, kernel: &mut Kernel, client: &Client) {
        // Some hold it for long, and some until it is all but stale, or all but too old to be written under.
        let stale = kernel.fresh_until(self.lock_id, client.stale) - kernel.server_now();
        let too_old = stale - kernel.scenario.times.request.cast_signed();
        let edges = kernel.scenario.edges;
        let pause = match kernel.rng.below(20) {
            _ if kernel.rng.chance(edges) => about(kernel, stale),
            _ if kernel.rng.chance(edges) => about(kernel, too_old),
            0 => kernel.long(),
            1..=5 => kernel.rng.below(3000),
            _ => kernel.delay(self.actor),
        };
        kernel.step(self.actor);
        kernel.wake(self.actor, pause, Wake::Timer);
        self.task = Task::Pausing;
    }

    /// Goes on. Says whether the lock is given up.
    pub(super) fn wake(&mut self, kernel: &mut Kernel, client: &mut Client, wake: Wake) -> bool {
        let Some(mut request) = self.request.take() else {
            self.next(kernel, client);
            return false;
        };
        match request.handle(kernel, wake) {
            Some(outcome) => self.ended(kernel, client, outcome),
            None => {
                self.request = Some(request);
                false
            }
        }
    }

    fn send(&mut self, kernel: &mut Kernel, client: &Client, task: Task, statement: Statement) {
        self.task = task;
        self.request = Some(Request::send(kernel, self.actor, statement, client.stale));
    }

    /// The next thing to do.
    fn next(&mut self, kernel: &mut Kernel, client: &Client) {
        if self.steps == 0 || kernel.tokens == u64::BITS {
            return self.release(kernel, client);
        }
        self.steps -= 1;
        if kernel.rng.chance(300) {
            return self.send(kernel, client, Task::Renewing, Statement::Renew(self.lock_id));
        }
        let token = 1 << kernel.tokens;
        kernel.tokens += 1;
        match (self.read.take(), client.known) {
            (Some(read), _) => self.write(kernel, client, token, 1, read),
            (None, Some(known)) => {
                let (lock_id, over) = (self.lock_id, Over::Content(known));
                self.writing = known | token;
                let statement = Statement::Write { lock_id, over, tokens: self.writing };
                self.send(kernel, client, Task::WritingAgain { token }, statement);
            }
            (None, None) => self.send(kernel, client, Task::Reading { token }, Statement::State),
        }
    }

    fn write(&mut self, kernel: &mut Kernel, client: &Client, token: u64, attempt: u32, read: Version) {
        let (lock_id, over) = (self.lock_id, Over::Version(read.updated_at));
        self.writing = read.tokens | token;
        let statement = Statement::Write { lock_id, over, tokens: self.writing };
        self.send(kernel, client, Task::Writing { token, attempt }, statement);
    }

    fn release(&mut self, kernel: &mut Kernel, client: &Client) {
        kernel.monitor.ended(self.actor);
        let statement = match self.is_uncertain {
            true => Statement::DeleteAfter(self.lock_id),
            false => Statement::Delete(self.lock_id),
        };
        self.send(kernel, client, Task::Releasing, statement);
    }

    fn ended(&mut self, kernel: &mut Kernel, client: &mut Client, outcome: Outcome) -> bool {
        match (self.task, outcome) {
            (Task::Releasing, outcome) => {
                if matches!(outcome, Outcome::Answered(_)) {
                    client.removed(self.lock_id);
                }
                return true;
            }
            (Task::Reading { token }, Outcome::Answered(Answer::State(version))) => {
                self.write(kernel, client, token, 1, version);
            }
            (Task::Writing { token, .. } | Task::WritingAgain { token }, Outcome::Answered(Answer::Written(true))) => {
                client.known = Some(self.writing);
                let newest = kernel.state;
                kernel.monitor.done(self.actor, token, newest);
                self.pause(kernel, client);
            }
            (Task::Writing { token, attempt }, Outcome::Answered(Answer::Written(false))) => {
                self.send(kernel, client, Task::Looking { token, attempt }, Statement::Rows);
            }
            (Task::WritingAgain { token }, Outcome::Answered(Answer::Written(false))) => {
                self.send(kernel, client, Task::Reading { token }, Statement::State);
            }
            (Task::Looking { token, attempt }, Outcome::Answered(Answer::Rows(rows, state))) => {
                let reading = meltano_state_backend_clickhouse::lock::Reading::new(rows, true);
                let held = reading.holder().is_some_and(|row| parsed(&row.lock_id) == self.lock_id);
                match held && attempt < MERGE_ATTEMPTS {
                    true if reading.any_stale() => {
                        self.send(
                            kernel,
                            client,
                            Task::Tidying { token, attempt, read: state },
                            Statement::DeleteStale,
                        );
                    }
                    true => self.write(kernel, client, token, attempt + 1, state),
                    false => self.release(kernel, client),
                }
            }
            (Task::Tidying { token, attempt, read }, Outcome::Answered(_)) => {
                self.write(kernel, client, token, attempt + 1, read);
            }
            (Task::Renewing, Outcome::Answered(Answer::Written(true))) => {
                let (fresh_until, latest) = (kernel.fresh_until(self.lock_id, client.stale), kernel.server_latest());
                kernel.monitor.renewed(self.actor, fresh_until, latest);
                self.pause(kernel, client);
            }
            // Lost: it has to be given up. A failed renewal may be tried again.
            (Task::Renewing, Outcome::Answered(_)) => self.release(kernel, client),
            (Task::Renewing, _) => {
                self.is_uncertain = true;
                self.pause(kernel, client);
            }
            (Task::Writing { .. } | Task::WritingAgain { .. }, Outcome::Unknown) if kernel.scenario.rules.keep => {
                return true;
            }
            // A failed update gives the lock up, as every other.
            _ => self.release(kernel, client),
        }
        false
    }
}

/// A little before a moment, or after it.
fn about(kernel: &mut Kernel, time: i64) -> u64 {
    let spread = kernel.rng.pick(&[30, 500]);
    u64::try_from(time + kernel.rng.below(spread).cast_signed() - (spread / 2).cast_signed()).unwrap_or(0)
}
