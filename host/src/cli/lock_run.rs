//! `lock run`: holds a lock while a command runs.

use std::io::{self, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use meltano_state_host::{Acquire, CallError, ErrorKind, Instance, Lock, Plugin};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::commands::Call;
use super::failure::Failure;

/// How long a command that lost its lock may take to end before it is killed.
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

/// Takes the lock, runs the command, renews the lock meanwhile, and releases it on every way out. Returns the exit code
/// of the command.
pub(super) async fn run(call: &mut Call, state_id: &str, renewal: Renewal, command: &[String]) -> Result<u8, Failure> {
    let options = Acquire { owner: owner(command), ..Acquire::default() };
    let lock = call.run(async |instance| instance.acquire(state_id, &options).await).await?;
    let result = while_held(&mut call.instance, &lock, renewal, command).await;
    let released = call.instance.release(lock).await;
    let code = result?;
    // What the command did stands; only the next one may have to wait.
    if let Err(error) = released {
        eprintln!("warning: the lock was not released and lasts until it is stale: {error}");
    }
    Ok(code)
}

async fn while_held(instance: &mut Instance, lock: &Lock, renewal: Renewal, command: &[String]) -> Result<u8, Failure> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| Failure::unusable("no command", "name one after --"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .spawn()
        .map_err(|error| Failure::io(format!("{program} does not start: {error}")))?;
    let (ended, lost) = (Notify::new(), Notify::new());
    // Neither is dropped half-way: a renewal that is cut short would cost the instance, and the lock with it.
    let (kept, status) = tokio::join!(keep(instance, lock, renewal, &ended, &lost), wait(&mut child, &ended, &lost));
    kept?;
    Ok(exit_code(status.map_err(|error| Failure::io(error.to_string()))?))
}

/// Renews the lock until the command has ended. Says so when the lock is lost.
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

/// Waits for the command, passes signals on to it, and stops it when the lock is lost.
async fn wait(child: &mut Child, ended: &Notify, lost: &Notify) -> io::Result<ExitStatus> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            () = lost.notified() => break stop(child).await,
            _ = terminate.recv() => send(child, Signal::TERM),
            _ = hang_up.recv() => send(child, Signal::HUP),
            // A terminal sends this one to the command too.
            _ = interrupt.recv() => if !io::stdin().is_terminal() { send(child, Signal::INT) },
        }
    };
    ended.notify_one();
    status
}

async fn stop(child: &mut Child) -> io::Result<ExitStatus> {
    send(child, Signal::TERM);
    if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
        return status;
    }
    child.kill().await?;
    child.wait().await
}

/// A command that has just ended needs no signal.
fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}

/// As a shell has it: of a command that a signal ended 128 and the signal.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// What others read while they wait: the program's name, but not its arguments, which may hold secrets.
fn owner(command: &[String]) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let program = command.first().map(std::path::Path::new).and_then(std::path::Path::file_name);
    let program = program.unwrap_or_default().to_string_lossy();
    format!("process {} on {host}, which runs {program}", std::process::id())
}
