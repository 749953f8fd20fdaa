//! What SIGINT, SIGTERM and SIGHUP do.
//!
//! The first one ends the command at once, unless it holds a lock or changes something: then what was begun is ended first,
//! and what was taken is given back. A second one ends it at once in any case. While another program runs under a lock, the
//! first is passed on to it, and the second kills it. However it ends, files that are not complete are removed, and the
//! command dies of the signal, as its caller's shell expects.
//!
//! A thread of its own does this: the others may be stuck in a question, or in a pipe that nobody reads.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use meltano_state_host::Instance;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;
use signal_hook::low_level::{emulate_default_handler, signal_name};
use tokio::process::Child;
use tokio::sync::watch;

use super::arguments::Format;
use super::failure::Failure;
use super::progress;

/// How long requests may still take once the command is to end. Whoever asked for that commonly kills after 10 s.
const GRACE: Duration = Duration::from_secs(5);

/// After what part of it a person is told that something is still going on.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a lock may take to be given up after a second signal has killed the program that ran under it.
const LAST_GRACE: Duration = Duration::from_secs(1);

/// The same signal again within this time is the same request: it was sent to the process and to its group.
const ECHO: Duration = Duration::from_millis(100);

struct State {
    format: Format,
    /// The signal that told the command to end, and when it came.
    told: Option<(i32, Instant)>,
    /// How many locks are held and changes being made.
    busy: usize,
    /// The program that runs under a lock.
    program: Option<Program>,
    /// What to do to leftovers before the end, by their numbers.
    leftovers: BTreeMap<usize, Box<dyn Fn() + Send>>,
    next_leftover: usize,
}

struct Program {
    pid: Pid,
    /// Whether the terminal has interrupted it. What that means is the program's business.
    interrupted: bool,
}

static STATE: Mutex<State> = Mutex::new(State {
    format: Format::Text,
    told: None,
    busy: 0,
    program: None,
    leftovers: BTreeMap::new(),
    next_leftover: 0,
});

/// Whether calls have to come to their end now.
static HURRY: LazyLock<watch::Sender<bool>> = LazyLock::new(watch::Sender::default);

/// Starts to listen.
pub(super) fn listen(format: Format) -> io::Result<()> {
    state().format = format;
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = SignalsInfo::<WithOrigin>::new(wanted)?;
    let listen = move || signals.forever().for_each(|origin| act(&origin));
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}

/// The signals that are not to end this process, as a bit each: `nohup`, and a shell without job control for a command in
/// the background, have it so. Where the system does not say, none.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn act(origin: &Origin) {
    let mut state = state();
    let signal = origin.signal;
    // What no process has sent comes from the terminal, and has gone to all programs in its foreground.
    let of_terminal = origin.process.is_none();
    let now = Instant::now();
    if state.told.is_some_and(|(told, at)| told == signal && now.duration_since(at) < ECHO) {
        return;
    }
    let is_first = state.told.is_none();
    let Some(program) = &mut state.program else {
        if state.busy == 0 || !is_first {
            end(state, signal);
        }
        state.told = Some((signal, now));
        HURRY.send_replace(true);
        return;
    };
    if of_terminal && signal == SIGINT {
        program.interrupted = true;
    } else if is_first {
        if !of_terminal {
            send(program.pid, signal);
        }
        state.told = Some((signal, now));
    } else {
        let _ = kill_process(program.pid, Signal::KILL);
        drop(state);
        // Meanwhile the lock is given up, and the process ends by itself.
        thread::sleep(LAST_GRACE);
        end(self::state(), signal);
    }
}

/// A program that has just ended needs no signal.
fn send(pid: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(pid, signal);
    }
}

/// Ends the process. Who waits for the state waits for ever.
fn end(mut state: MutexGuard<'_, State>, signal: i32) -> ! {
    for leftover in std::mem::take(&mut state.leftovers).into_values() {
        leftover();
    }
    if state.busy > 0 {
        Failure::cut_short(signal).report(state.format);
    }
    let _ = emulate_default_handler(signal);
    std::process::exit(128 + signal)
}

/// Ends the process as the signal that told it to end would have.
pub(super) fn die_of(signal: i32) -> ! {
    let mut state = state();
    state.busy = 0;
    end(state, signal)
}

/// The signal that told the command to end, if any did.
pub(super) fn told() -> Option<i32> {
    state().told.map(|(signal, _)| signal)
}

/// An error once the command was told to end: nothing more is to be begun.
pub(super) fn check() -> Result<(), Failure> {
    told().map_or(Ok(()), |signal| Err(Failure::told(signal)))
}

/// Such as `SIGTERM`.
pub(super) fn name(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("a signal")
}

/// A lock that is held, or a change that is being made: until this is dropped the first signal does not end the process.
pub(super) struct Busy(());

impl Busy {
    /// An error if the command was told to end.
    pub(super) fn begin() -> Result<Self, Failure> {
        let mut state = state();
        match state.told {
            Some((signal, _)) => Err(Failure::told(signal)),
            None => {
                state.busy += 1;
                Ok(Self(()))
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        state().busy -= 1;
    }
}

/// Something to remove before the end, until this is dropped.
pub(super) struct Leftover(usize);

impl Leftover {
    /// Calls `remove` if a signal ends the process.
    pub(super) fn new(remove: impl Fn() + Send + 'static) -> Self {
        let mut state = state();
        let number = state.next_leftover;
        state.next_leftover += 1;
        state.leftovers.insert(number, Box::new(remove));
        Self(number)
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        state().leftovers.remove(&self.0);
    }
}

/// Waits for a program with `wait`, and meanwhile passes signals on to it.
pub(super) async fn while_running(
    child: &mut Child,
    wait: impl AsyncFnOnce(&mut Child) -> io::Result<ExitStatus>,
) -> io::Result<ExitStatus> {
    if let Some(pid) = pid(child) {
        let mut state = state();
        state.program = Some(Program { pid, interrupted: false });
        // Since it was started.
        if let Some((signal, _)) = state.told {
            send(pid, signal);
        }
    }
    let status = wait(child).await;
    let mut state = state();
    let program = state.program.take();
    if let Ok(status) = &status
        && program.is_some_and(|program| program.interrupted)
        && status.signal() == Some(SIGINT)
    {
        state.told.get_or_insert((SIGINT, Instant::now()));
    }
    if state.told.is_some() {
        HURRY.send_replace(true);
    }
    status
}

pub(super) fn pid(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// Carries out a call. Once the command is to end it waits for nothing but the answers to its requests, and for those not
/// long: none then.
pub(super) async fn patiently<T>(instance: &mut Instance, call: impl AsyncFnOnce(&mut Instance) -> T) -> Option<T> {
    let activity = instance.activity();
    let mut call = std::pin::pin!(call(instance));
    let mut hurry = HURRY.subscribe();
    tokio::select! {
        biased;
        result = &mut call => return Some(result),
        _ = hurry.wait_for(|hurry| *hurry) => activity.call_off(),
    }
    if let Ok(result) = tokio::time::timeout(PATIENCE, &mut call).await {
        return Some(result);
    }
    if progress::aloud(state().format) {
        // Nothing depends on this line being seen.
        let _ = writeln!(io::stderr(), "ending when the server has answered; another signal ends at once");
    }
    tokio::time::timeout(GRACE - PATIENCE, call).await.ok()
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
