//! The published add-on, step by step: its limits are fixed, its rows never go stale for its own final look, its writes
//! have no condition.

use super::client::parsed;
use super::kernel::{Kernel, Wake};
use super::scenario::Pace;
use super::state::Version;
use super::statement::{Answer, Statement};

const WAIT: u64 = 30_000;
const STALE: u64 = 300_000;
const SETTLE: u64 = 1_000;
const RETRY: u64 = 1_000;

/// One process that uses the add-on to update the state a few times.
pub(super) struct Peer {
    pub(super) actor: usize,
    lock_id: u128,
    calls: u64,
    waited: u64,
    task: Task,
    read: Version,
    pub(super) own: bool,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Idle,
    LookingForHolder,
    DeletingStale,
    LookingAgain,
    Inserting,
    Settling,
    Deciding,
    Withdrawing,
    Retrying,
    Reading,
    Holding,
    Writing,
    Releasing,
    Ended,
}

impl Peer {
    pub(super) fn new(kernel: &mut Kernel, actor: usize, calls: u64) -> Self {
        let delay = kernel.delay(actor);
        kernel.wake(actor, delay, Wake::Timer);
        Self { actor, lock_id: 0, calls, waited: 0, task: Task::Idle, read: Version::default(), own: false }
    }

    fn ask(&mut self, kernel: &mut Kernel, task: Task, statement: Statement) {
        kernel.note(|| format!("{} (peer) sends {statement:x?}", self.actor));
        self.task = task;
        kernel.step(self.actor);
        let ways = match kernel.scenario.peer_pace {
            // Look and insert with two ways each to and from the server, and the insert's commit: half a second at most.
            Pace::Prompt => [0; 4].map(|_| kernel.rng.below(SETTLE / 10)),
            Pace::Any => [0; 4].map(|_| kernel.delay(self.actor)),
        };
        let query = kernel.new_query();
        kernel.send(self.actor, query, statement, STALE, ways);
    }

    fn sleep(&mut self, kernel: &mut Kernel, task: Task, pause: u64) {
        self.task = task;
        kernel.step(self.actor);
        kernel.wake(self.actor, pause, Wake::Timer);
    }

    pub(super) fn wake(&mut self, kernel: &mut Kernel, wake: Wake) {
        let answer = match wake {
            Wake::Answered(job) => Some(kernel.take_answer(job)),
            _ => None,
        };
        match (self.task, answer) {
            (Task::Idle | Task::Retrying, _) => self.ask(kernel, Task::LookingForHolder, Statement::PeerHolder),
            (Task::LookingForHolder, Some(Answer::Holder(Some(_)))) => {
                self.ask(kernel, Task::DeletingStale, Statement::DeleteStale);
            }
            (Task::DeletingStale, _) => self.ask(kernel, Task::LookingAgain, Statement::PeerHolder),
            (Task::LookingForHolder | Task::LookingAgain, Some(Answer::Holder(None))) => {
                // A random UUID, of version 4 but for what does not matter to its order.
                self.lock_id = kernel.rng.bits();
                self.own = true;
                self.ask(kernel, Task::Inserting, Statement::PeerInsert(self.lock_id));
            }
            (Task::LookingAgain, _) => self.retry(kernel),
            (Task::Inserting, _) => self.sleep(kernel, Task::Settling, SETTLE),
            (Task::Settling, _) => self.ask(kernel, Task::Deciding, Statement::Rows),
            (Task::Deciding, Some(Answer::Rows(rows, _))) => match rows.iter().map(|row| parsed(&row.lock_id)).min() {
                Some(lowest) if lowest == self.lock_id => self.acquired(kernel),
                _ => self.ask(kernel, Task::Withdrawing, Statement::Delete(self.lock_id)),
            },
            (Task::Withdrawing, _) => {
                self.own = false;
                self.waited += SETTLE;
                self.retry(kernel);
            }
            (Task::Reading, Some(Answer::State(version))) => {
                self.read = version;
                let pause = kernel.delay(self.actor);
                self.sleep(kernel, Task::Holding, pause.min(STALE / 10));
            }
            (Task::Holding, _) if kernel.tokens < u64::BITS => {
                let token = 1 << kernel.tokens;
                kernel.tokens += 1;
                self.read.tokens |= token;
                let (lock_id, tokens) = (self.lock_id, self.read.tokens);
                self.ask(kernel, Task::Writing, Statement::PeerWrite { lock_id, tokens });
            }
            (Task::Holding | Task::Writing, _) => {
                kernel.monitor.ended(self.actor);
                self.ask(kernel, Task::Releasing, Statement::Delete(self.lock_id));
            }
            (Task::Releasing, _) => {
                self.own = false;
                self.end_call(kernel);
            }
            _ => {}
        }
    }

    fn acquired(&mut self, kernel: &mut Kernel) {
        kernel.note(|| format!("{} (peer) holds the lock", self.actor));
        let (fresh_until, latest) = (kernel.fresh_until(self.lock_id, STALE), kernel.server_latest());
        kernel.monitor.acquired(self.actor, true, self.lock_id, fresh_until, latest);
        self.ask(kernel, Task::Reading, Statement::State);
    }

    fn retry(&mut self, kernel: &mut Kernel) {
        self.waited += RETRY;
        if self.waited >= WAIT {
            return self.end_call(kernel);
        }
        self.sleep(kernel, Task::Retrying, RETRY);
    }

    fn end_call(&mut self, kernel: &mut Kernel) {
        self.waited = 0;
        self.calls -= 1;
        if self.calls == 0 {
            self.task = Task::Ended;
            return;
        }
        let delay = kernel.delay(self.actor);
        self.sleep(kernel, Task::Idle, delay);
    }

    pub(super) fn die(&mut self, kernel: &mut Kernel) {
        kernel.note(|| format!("{} (peer) dies", self.actor));
        kernel.step(self.actor);
        kernel.monitor.ended(self.actor);
        if self.own {
            kernel.monitor.excuse(self.lock_id);
        }
        self.task = Task::Ended;
    }
}
