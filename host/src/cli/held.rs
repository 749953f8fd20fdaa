//! A lock that is held while another program runs.

use std::io::{self, IsTerminal as _};
use std::process::ExitStatus;
use std::time::Duration;

use meltano_state_host::{CallError, ErrorKind, Instance, Lock, Plugin};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a program that lost its lock may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// When a lock has to be renewed.
#[derive(Clone, Copy)]
pub(super) struct Renewal {
    every: Duration,
    /// After this it may pass on.
    stale: Duration,
}

impl Renewal {
    pub(super) fn of(plugin: &Plugin) -> Self {
        Self { every: plugin.lock_renewal(), stale: plugin.lock_stale() }
    }
}

/// What becomes of a program whose lock is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenLost {
    Stop,
    /// It ends by itself, as a person's editor does.
    GoOn,
}

/// Waits for a program and renews the lock meanwhile. How the program ended, and whether the lock was held all the time.
pub(super) async fn run(
    instance: &mut Instance,
    lock: &Lock,
    renewal: Renewal,
    mut program: Child,
    when_lost: WhenLost,
) -> (io::Result<ExitStatus>, Result<(), CallError>) {
    let (ended, lost) = (Notify::new(), Notify::new());
    let stop = Notify::new();
    let stop_when = if when_lost == WhenLost::Stop { &lost } else { &stop };
    // Neither is dropped half-way: a renewal that is cut short would cost the instance, and the lock with it.
    let program = async {
        let status = wait(&mut program, stop_when).await;
        ended.notify_one();
        status
    };
    tokio::join!(program, keep(instance, lock, renewal, &ended, &lost))
}

/// Waits for a program that holds no lock, and passes signals on to it.
pub(super) async fn wait_for(mut program: Child) -> io::Result<ExitStatus> {
    wait(&mut program, &Notify::new()).await
}

/// Renews the lock until the program has ended. Says so when the lock is lost.
async fn keep(
    instance: &mut Instance,
    lock: &Lock,
    renewal: Renewal,
    ended: &Notify,
    lost: &Notify,
) -> Result<(), CallError> {
    let mut fresh_since = Instant::now();
    loop {
        tokio::select! {
            () = ended.notified() => return Ok(()),
            () = tokio::time::sleep(renewal.every) => {}
        }
        let begun = Instant::now();
        match instance.renew(lock).await {
            Ok(()) => fresh_since = begun,
            Err(error) => {
                let gone = matches!(&error, CallError::Error(error) if error.kind == ErrorKind::LockLost);
                // Some renewals may fail in passing; in the end another may soon take the lock.
                if gone || fresh_since.elapsed() + renewal.every >= renewal.stale {
                    lost.notify_one();
                    return Err(error);
                }
                eprintln!("warning: the lock was not renewed, and will be tried again: {error}");
            }
        }
    }
}

/// Waits for a program, passes signals on to it, and stops it when the lock is lost.
async fn wait(child: &mut Child, lost: &Notify) -> io::Result<ExitStatus> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            status = child.wait() => return status,
            () = lost.notified() => return stop(child).await,
            _ = terminate.recv() => send(child, Signal::TERM),
            _ = hang_up.recv() => send(child, Signal::HUP),
            // A terminal sends this one to the program too.
            _ = interrupt.recv() => if !io::stdin().is_terminal() { send(child, Signal::INT) },
        }
    }
}

async fn stop(child: &mut Child) -> io::Result<ExitStatus> {
    send(child, Signal::TERM);
    if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
        return status;
    }
    child.kill().await?;
    child.wait().await
}

/// A program that has just ended needs no signal.
fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}
