//! One of ours: the real state machine, and around it what its driver does.

use meltano_state_backend_clickhouse::lock::machine::{Action, Event, Machine};
use meltano_state_backend_clickhouse::lock::{Reading, lock_id};
use meltano_state_backend_clickhouse::settings::LockProtocol;
use meltano_state_backend_clickhouse::{Error, ErrorKind};

use super::holding::Hold;
use super::kernel::{Kernel, Wake};
use super::request::{Outcome, Request};
use super::scenario::Scenario;
use super::state::Version;
use super::statement::{Answer, Over, Statement};
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
    /// The tokens that it wrote last.
    pub(super) known: Option<u64>,
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
    /// Waits for the row of an update that reads nothing.
    Claiming(Request),
    /// Waits for its write.
    WritingAtOnce(Request, Claim),
    /// Waits for the removal of its row.
    Releasing(Request),
    Holding(Hold),
    Ended,
}

/// An update that reads nothing.
#[derive(Clone, Copy)]
struct Claim {
    lock_id: u128,
    token: u64,
    tokens: u64,
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
            known: None,
            acquired_at: None,
        }
    }

    pub(super) fn wake(&mut self, kernel: &mut Kernel, wake: Wake) {
        match std::mem::replace(&mut self.task, Task::Ended) {
            Task::Idle if self.may_claim(kernel) => {
                let statement = Statement::Claim(self.new_lock_id(kernel));
                self.task = Task::Claiming(Request::send(kernel, self.actor, statement, self.stale));
            }
            Task::Idle => {
                let machine = self.machine(kernel);
                self.drive(kernel, machine, Event::Wanted);
            }
            Task::Claiming(mut request) => match request.handle(kernel, wake) {
                Some(outcome) => self.claimed(kernel, &request, outcome),
                None => self.task = Task::Claiming(request),
            },
            Task::WritingAtOnce(mut request, claim) => match request.handle(kernel, wake) {
                Some(outcome) => self.written_at_once(kernel, claim, outcome),
                None => self.task = Task::WritingAtOnce(request, claim),
            },
            Task::Releasing(mut request) => match request.handle(kernel, wake) {
                Some(outcome) => {
                    if let (Statement::Delete(id) | Statement::DeleteAfter(id), Outcome::Answered(_)) =
                        (request.statement, outcome)
                    {
                        self.removed(id);
                    }
                    self.next_call(kernel);
                }
                None => self.task = Task::Releasing(request),
            },
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

    fn machine(&self, kernel: &Kernel) -> Machine {
        let limits = kernel.scenario.times.limits(kernel.scenario.protocol, self.stale, self.wait);
        Machine::new(limits, millis(kernel.now))
    }

    /// Whether an update reads nothing: it knows the state, and that the order of insertion decides, as far as it has
    /// looked lately.
    fn may_claim(&self, kernel: &mut Kernel) -> bool {
        let Scenario { layout, protocol, rules, .. } = kernel.scenario;
        let decides = layout == Layout::Ordered && protocol != LockProtocol::Settle || !rules.ordered_claims;
        decides && self.known.is_some() && kernel.tokens < u64::BITS && kernel.rng.chance(700)
    }

    fn claimed(&mut self, kernel: &mut Kernel, request: &Request, outcome: Outcome) {
        let (Statement::Claim(lock_id), Outcome::Answered(_), Some(known)) = (request.statement, &outcome, self.known)
        else {
            let machine = self.machine(kernel);
            let event = self.event(kernel, request, outcome);
            return self.drive(kernel, machine, event);
        };
        let token = 1 << kernel.tokens;
        kernel.tokens += 1;
        let tokens = known | token;
        let statement = Statement::Write { lock_id, over: Over::Content(known), tokens };
        let request = Request::send(kernel, self.actor, statement, self.stale);
        self.task = Task::WritingAtOnce(request, Claim { lock_id, token, tokens });
    }

    fn written_at_once(&mut self, kernel: &mut Kernel, claim: Claim, outcome: Outcome) {
        match outcome {
            Outcome::Answered(Answer::Written(true)) => {
                let newest = kernel.state;
                kernel.monitor.done(self.actor, claim.token, newest);
                self.known = Some(claim.tokens);
                self.acquired_at = Some(kernel.now);
            }
            Outcome::Answered(_) => {
                let machine = self.machine(kernel);
                return self.drive(kernel, machine, Event::Claimed { lock_id: formatted(claim.lock_id) });
            }
            Outcome::Unknown if kernel.scenario.rules.keep => return self.next_call(kernel),
            Outcome::Failed | Outcome::Unknown => {}
        }
        let statement = Statement::Delete(claim.lock_id);
        self.task = Task::Releasing(Request::send(kernel, self.actor, statement, self.stale));
    }

    fn drive(&mut self, kernel: &mut Kernel, mut machine: Machine, event: Event) {
        let is_uncertain = matches!(event, Event::InsertUncertain { .. });
        let statement = match machine.next(millis(kernel.now), event) {
            Action::Insert => Statement::Candidate(self.new_lock_id(kernel)),
            Action::Read => Statement::Rows,
            Action::DeleteStale => Statement::DeleteStale,
            Action::DeleteOwn(id) if is_uncertain => Statement::DeleteAfter(parsed(&id)),
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
            (Statement::Candidate(id) | Statement::Claim(id), Outcome::Unknown) => {
                Event::InsertUncertain { lock_id: formatted(id), error: failure(ErrorKind::OutcomeUnknown) }
            }
            (Statement::Rows, Outcome::Answered(Answer::Rows(rows, state))) => {
                self.read = state;
                Event::Read(Reading::new(rows, kernel.scenario.layout == Layout::Ordered))
            }
            (Statement::Delete(id) | Statement::DeleteAfter(id), Outcome::Answered(_)) => {
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
