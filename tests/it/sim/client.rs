//! One of ours: the real state machine, and around it what its driver does.

use meltano_state_backend_clickhouse::lock::machine::{Action, Event, Machine};
use meltano_state_backend_clickhouse::lock::{Reading, lock_id};
use meltano_state_backend_clickhouse::{Error, ErrorKind};

use super::holding::Hold;
use super::kernel::{Kernel, Wake};
use super::request::{Outcome, Request};
use super::state::Version;
use super::statement::{Answer, Statement};
use super::table::Layout;
use super::times::millis;

/// One of ours, which takes the lock a few times.
pub(super) struct Client {
    pub(super) actor: usize,
    /// How far its wall clock is from the truth; lock ids are made from it.
    wall_clock: i64,
    pub(super) stale: u64,
    wait: u64,
    calls: u64,
    task: Task,
    /// The row that it has to remove before it ends.
    pub(super) own: Option<u128>,
    /// The state as it was read when the lock was taken.
    read: Version,
    /// When it last took the lock.
    pub(super) acquired_at: Option<u64>,
}

enum Task {
    /// Waits for its next call.
    Idle,
    /// Waits because the machine says so.
    Asleep(Machine),
    /// Waits for a statement of the machine's.
    Asking(Machine, Request),
    Holding(Hold),
    Ended,
}

impl Client {
    pub(super) fn new(kernel: &mut Kernel, actor: usize, calls: u64, wait: u64) -> Self {
        // Any wrong time will do: within a second of each other, and years apart.
        let range = kernel.rng.pick(&[1, 2_000, 100_000_000_000]);
        let wall_clock = 1_767_225_600_000 + kernel.rng.below(range).cast_signed();
        let stale = match kernel.scenario.stales {
            [] => kernel.scenario.times.stale,
            stales => kernel.rng.pick(stales),
        };
        let delay = kernel.delay(actor);
        kernel.wake(actor, delay, Wake::Timer);
        Self {
            actor,
            wall_clock,
            stale,
            wait,
            calls,
            task: Task::Idle,
            own: None,
            read: Version::default(),
            acquired_at: None,
        }
    }

    pub(super) fn wake(&mut self, kernel: &mut Kernel, wake: Wake) {
        match std::mem::replace(&mut self.task, Task::Ended) {
            Task::Idle => {
                let limits = kernel.scenario.times.limits(kernel.scenario.protocol, self.stale, self.wait);
                let machine = Machine::new(limits, millis(kernel.now));
                self.drive(kernel, machine, Event::Wanted);
            }
            Task::Asleep(machine) => self.drive(kernel, machine, Event::Slept),
            Task::Asking(machine, mut request) => match request.handle(kernel, wake) {
                Some(outcome) => {
                    let event = self.event(kernel, &request, outcome);
                    self.drive(kernel, machine, event);
                }
                None => self.task = Task::Asking(machine, request),
            },
            Task::Holding(mut hold) => {
                if hold.wake(kernel, self, wake) {
                    self.next_call(kernel);
                } else {
                    self.task = Task::Holding(hold);
                }
            }
            Task::Ended => {}
        }
    }

    fn drive(&mut self, kernel: &mut Kernel, mut machine: Machine, event: Event) {
        let statement = match machine.next(millis(kernel.now), event) {
            Action::Insert => Statement::Candidate(self.new_lock_id(kernel)),
            Action::Read => Statement::Rows,
            Action::DeleteStale => Statement::DeleteStale,
            Action::DeleteOwn(id) => Statement::Delete(parsed(&id)),
            Action::Sleep(duration) => return self.sleep(kernel, machine, whole(duration)),
            Action::Retry(duration) => {
                let half = whole(duration) / 2;
                let pause = half + kernel.rng.below(half + 1);
                return self.sleep(kernel, machine, pause);
            }
            Action::Acquired(id) => return self.acquired(kernel, parsed(&id)),
            action @ (Action::Locked(_) | Action::Fail(_)) => {
                kernel.note(|| format!("{} gives up: {action:?}", self.actor));
                return self.next_call(kernel);
            }
        };
        let request = Request::send(kernel, self.actor, statement, self.stale);
        self.task = Task::Asking(machine, request);
    }

    fn sleep(&mut self, kernel: &mut Kernel, machine: Machine, pause: u64) {
        kernel.step(self.actor);
        kernel.wake(self.actor, pause, Wake::Timer);
        self.task = Task::Asleep(machine);
    }

    fn new_lock_id(&mut self, kernel: &mut Kernel) -> u128 {
        let unix_time = self.wall_clock + kernel.now.cast_signed();
        let id = lock_id(millis(unix_time.unsigned_abs()), kernel.rng.bits()).as_u128();
        self.own = Some(id);
        id
    }

    /// What the driver makes of a statement's end.
    fn event(&mut self, kernel: &Kernel, request: &Request, outcome: Outcome) -> Event {
        match (request.statement, outcome) {
            (Statement::Candidate(id), Outcome::Answered(Answer::Written(written))) => {
                if !written {
                    self.own = None;
                }
                let took = if kernel.scenario.rules.round_trip { kernel.now - request.began } else { 0 };
                Event::Inserted { lock_id: formatted(id), written, took: millis(took) }
            }
            (Statement::Candidate(id), Outcome::Unknown) => {
                Event::InsertUncertain { lock_id: formatted(id), error: failure(ErrorKind::OutcomeUnknown) }
            }
            (Statement::Rows, Outcome::Answered(Answer::Rows(rows, state))) => {
                self.read = state;
                Event::Read(Reading::new(rows, kernel.scenario.layout == Layout::Ordered))
            }
            (Statement::Delete(id), Outcome::Answered(_)) => {
                self.removed(id);
                Event::Deleted
            }
            (_, Outcome::Answered(_)) => Event::Deleted,
            (_, Outcome::Failed | Outcome::Unknown) => Event::Failed(failure(ErrorKind::Unreachable)),
        }
    }

    pub(super) fn removed(&mut self, lock_id: u128) {
        if self.own == Some(lock_id) {
            self.own = None;
        }
    }

    fn acquired(&mut self, kernel: &mut Kernel, lock_id: u128) {
        kernel.note(|| format!("{} holds the lock", self.actor));
        let fresh_until = kernel.fresh_until(lock_id, self.stale);
        let latest = kernel.server_latest();
        kernel.monitor.acquired(self.actor, false, lock_id, fresh_until, latest);
        self.acquired_at = Some(kernel.now);
        self.task = Task::Holding(Hold::new(kernel, self, lock_id, self.read));
    }

    /// What was left of a call that is over stays until it is stale.
    fn next_call(&mut self, kernel: &mut Kernel) {
        kernel.step(self.actor);
        kernel.monitor.ended(self.actor);
        if let Some(own) = self.own.take() {
            kernel.monitor.excuse(own);
        }
        self.calls -= 1;
        if self.calls == 0 {
            return;
        }
        let delay = kernel.delay(self.actor);
        kernel.wake(self.actor, delay, Wake::Timer);
        self.task = Task::Idle;
    }

    pub(super) fn die(&mut self, kernel: &mut Kernel) {
        kernel.note(|| format!("{} dies", self.actor));
        self.calls = 1;
        self.next_call(kernel);
        self.task = Task::Ended;
    }
}

fn whole(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("a short time")
}

fn formatted(lock_id: u128) -> String {
    format!("{lock_id:032x}")
}

pub(super) fn parsed(lock_id: &str) -> u128 {
    u128::from_str_radix(lock_id, 16).expect("one of our ids")
}

fn failure(kind: ErrorKind) -> Error {
    Error::new(kind, String::new())
}
