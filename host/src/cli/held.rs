//! A lock that is held while another program runs.

use std::io::{self, Write as _};
use std::process::ExitStatus;
use std::time::Duration;

use meltano_state_host::{CallError, ErrorKind, Instance, Lock, Plugin};
use rustix::process::{Signal, kill_process};
use tokio::process::Child;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ending;

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
    let never = Notify::new();
    let stop_when = if when_lost == WhenLost::Stop { &lost } else { &never };
    // Neither is dropped half-way: a renewal that is cut short would cost the instance, and the lock with it.
    let program = async {
        let status = ending::while_running(&mut program, async |program| {
            tokio::select! {
                status = program.wait() => status,
                () = stop_when.notified() => stop(program).await,
            }
        });
        let status = status.await;
        ended.notify_one();
        status
    };
    tokio::join!(program, keep(instance, lock, renewal, &ended, &lost))
}

/// Waits for a program that runs under no lock.
pub(super) async fn wait_for(mut program: Child) -> io::Result<ExitStatus> {
    ending::while_running(&mut program, async |program| program.wait().await).await
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
        match renew(instance, lock).await {
            Ok(()) => fresh_since = begun,
            Err(error) => {
                let gone = matches!(&error, CallError::Error(error) if error.kind == ErrorKind::LockLost);
                // Some renewals may fail in passing; in the end another may soon take the lock.
                let cut_short = matches!(error, CallError::TimedOut(_));
                if gone || cut_short || fresh_since.elapsed() + renewal.every >= renewal.stale {
                    lost.notify_one();
                    return Err(error);
                }
                // Nobody may read this any more, and the program runs on.
                let _ = writeln!(io::stderr(), "warning: the lock was not renewed, and will be tried again: {error}");
            }
        }
    }
}

/// Renews the lock. If the command is to end and the server does not answer, the call is cut short, and costs the instance.
pub(super) async fn renew(instance: &mut Instance, lock: &Lock) -> Result<(), CallError> {
    let begun = Instant::now();
    let renewed = ending::patiently(instance, async |instance| instance.renew(lock).await).await;
    renewed.unwrap_or_else(|| Err(CallError::TimedOut(begun.elapsed())))
}

async fn stop(child: &mut Child) -> io::Result<ExitStatus> {
    if let Some(pid) = ending::pid(child) {
        // One that has just ended needs no signal.
        let _ = kill_process(pid, Signal::TERM);
    }
    if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
        return status;
    }
    child.kill().await?;
    child.wait().await
}
