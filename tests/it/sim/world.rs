//! One run: clients come and go while things go wrong, and then, when all is quiet, two more have to get the lock.

use super::client::Client;
use super::kernel::{Event, Kernel, Wake};
use super::monitor::Violation;
use super::peer::Peer;
use super::scenario::{Clock, Pace, Scenario};
use super::times::Weather;

enum Actor {
    Ours(Box<Client>),
    Peer(Peer),
}

/// One run of a scenario.
pub(super) struct World {
    kernel: Kernel,
    actors: Vec<Actor>,
    /// Until when each process is stopped.
    stopped_until: Vec<u64>,
    dead: Vec<bool>,
}

/// How a run ended.
pub(super) struct Run {
    pub(super) violation: Option<Violation>,
    /// What happened, if that was wanted.
    pub(super) trace: Vec<String>,
    /// How often the lock was taken.
    pub(super) taken: usize,
}

impl World {
    pub(super) fn run(scenario: Scenario, seed: u64, traced: bool) -> Run {
        let kernel = Kernel::new(scenario, seed, traced);
        let mut world = Self { kernel, actors: Vec::new(), stopped_until: Vec::new(), dead: Vec::new() };
        world.gather();
        world.drain();
        world.kernel.monitor.left(world.kernel.locks.rows.iter().map(|row| row.lock_id));
        world.calm_end();
        let Kernel { monitor, trace, .. } = world.kernel;
        Run { taken: monitor.taken.len(), violation: monitor.violation, trace: trace.unwrap_or_default() }
    }

    /// Those who take part, and the steps of the server's clock.
    fn gather(&mut self) {
        let Scenario { ours, peers, times, .. } = self.kernel.scenario;
        let count = |kernel: &mut Kernel, (least, most): (u64, u64)| least + kernel.rng.below(most - least + 1);
        for _ in 0..count(&mut self.kernel, ours) {
            let calls = 1 + self.kernel.rng.below(3);
            let wait = self.kernel.rng.pick(&[times.wait, times.stale * 2]);
            self.add_ours(calls, wait);
        }
        for _ in 0..count(&mut self.kernel, peers) {
            let calls = 1 + self.kernel.rng.below(2);
            let actor = self.add();
            let peer = Peer::new(&mut self.kernel, actor, calls);
            self.actors.push(Actor::Peer(peer));
        }
        if self.kernel.weather.merge > 0 {
            for _ in 0..self.kernel.rng.below(10) {
                let at = self.kernel.rng.below(4 * times.settle);
                self.kernel.after(at, Event::Merge);
            }
        }
        match self.kernel.scenario.clock {
            Clock::Steady => {}
            Clock::Steps => self.plan_clock_steps(times.request - 1),
            Clock::Jumps => self.plan_clock_steps(times.stale * 2),
        }
    }

    /// Back by no more than a time, all together; forward by any.
    fn plan_clock_steps(&mut self, mut back: u64) {
        for _ in 0..self.kernel.rng.below(3) {
            let at = self.kernel.rng.below(30_000);
            let by = match self.kernel.rng.chance(500) {
                true => self.kernel.long().cast_signed(),
                false => {
                    let by = self.kernel.rng.below(back);
                    back -= by;
                    -by.cast_signed()
                }
            };
            self.kernel.after(at, Event::ClockStep(by));
        }
    }

    fn add(&mut self) -> usize {
        self.kernel.steps.push(0);
        let slow = if self.kernel.quiet { 0 } else { self.kernel.rng.pick(self.kernel.scenario.slow) };
        self.kernel.slow.push(slow);
        self.stopped_until.push(0);
        self.dead.push(false);
        self.actors.len()
    }

    fn add_ours(&mut self, calls: u64, wait: u64) {
        let actor = self.add();
        let client = Client::new(&mut self.kernel, actor, calls, wait);
        self.actors.push(Actor::Ours(Box::new(client)));
    }

    /// Until nothing is left to happen.
    fn drain(&mut self) {
        while self.kernel.monitor.violation.is_none()
            && let Some(event) = self.kernel.next()
        {
            match event {
                Event::Wake { actor, step, wake } => self.wake(actor, step, wake),
                Event::Job(job, stage) => self.kernel.run(job, stage),
                Event::Merge => self.kernel.merge(),
                Event::ClockStep(by) => self.kernel.clock_step(by),
            }
        }
    }

    fn wake(&mut self, index: usize, step: u32, wake: Wake) {
        let kernel = &mut self.kernel;
        if self.dead[index] || kernel.steps[index] != step {
            return;
        }
        let actor = &mut self.actors[index];
        let Weather { stall, crash, .. } = kernel.weather;
        let prompt = matches!(actor, Actor::Peer(_)) && kernel.scenario.peer_pace == Pace::Prompt;
        if self.stopped_until[index] <= kernel.now && !prompt && kernel.rng.chance(stall) {
            let time = kernel.long();
            kernel.note(|| format!("{index} stops for {time} ms"));
            self.stopped_until[index] = kernel.now + time;
        }
        if let Some(rest) = self.stopped_until[index].checked_sub(kernel.now).filter(|rest| *rest > 0) {
            // What was queued first is handled first when it goes on.
            return kernel.after(rest, Event::Wake { actor: index, step, wake });
        }
        if kernel.rng.chance(crash) {
            self.dead[index] = true;
            match actor {
                Actor::Ours(client) => client.die(kernel),
                Actor::Peer(peer) => peer.die(kernel),
            }
            return;
        }
        match actor {
            Actor::Ours(client) => client.wake(kernel, wake),
            Actor::Peer(peer) => peer.wake(kernel, wake),
        }
    }

    /// Whatever was left behind, two that keep trying get the lock: the first as soon as the rows of the dead are stale,
    /// and a few requests and pauses later.
    fn calm_end(&mut self) {
        let times = self.kernel.scenario.times;
        let began = self.kernel.now;
        self.kernel.weather = Weather::CALM;
        self.kernel.quiet = true;
        self.kernel.note(|| "all is quiet".to_owned());
        let first = self.actors.len();
        for _ in 0..2 {
            self.add_ours(1, times.stale * 2);
        }
        self.drain();
        let bound = began + times.stale + 5 * times.retry + 3 * times.settle;
        let acquired = self.actors[first..].iter().filter_map(|actor| match actor {
            Actor::Ours(client) => client.acquired_at,
            Actor::Peer(_) => None,
        });
        if acquired.min().is_none_or(|at| at > bound) {
            self.kernel.monitor.no_progress("nobody got the lock though all was quiet");
        }
        let Self { kernel, .. } = self;
        kernel.monitor.left(kernel.locks.rows.iter().map(|row| row.lock_id));
    }
}
