//! `lock run`: holds a lock while a command runs.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;

use meltano_state_host::{Acquire, CallError, ErrorKind, Instance, Lock};
use tokio::process::Command;

use crate::cli::call::Call;
use crate::cli::ending::{self, Busy};
use crate::cli::failure::Failure;
use crate::cli::held::{self, Renewal, WhenLost};

/// Takes the lock, runs the command, renews the lock meanwhile, and releases it on every way out. Returns how the command
/// ended.
pub(in crate::cli) async fn lock_run(
    call: &mut Call,
    state_id: &str,
    renewal: Renewal,
    command: &[OsString],
) -> Result<ExitStatus, Failure> {
    let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let _busy = Busy::begin()?;
    let lock = take(call, state_id, &program.to_string_lossy()).await?;
    let result = while_held(&mut call.instance, &lock, renewal, command).await;
    give_back(call, lock).await;
    result
}

/// Takes a lock in the name of a program: others read it while they wait. Its arguments may hold secrets.
pub(super) async fn take(call: &mut Call, state_id: &str, program: &str) -> Result<Lock, Failure> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let owner = format!("process {} on {host}, which runs {program}", std::process::id());
    let options = Acquire { owner, ..Acquire::default() };
    call.change(async |instance| instance.acquire(state_id, &options).await).await
}

/// What was done under the lock stands; only the next one may have to wait.
pub(super) async fn give_back(call: &mut Call, lock: Lock) {
    let unlock = format!("meltano-state unlock {} {} removes it", lock.state_id(), lock.lock_id());
    let released = ending::patiently(&mut call.instance, async |instance| instance.release(lock).await).await;
    let reason = match released {
        Some(Ok(())) => return,
        Some(Err(error)) => error.to_string(),
        None => "the server has not answered".to_owned(),
    };
    call.warn(&format!("the lock was not released and lasts until it is stale: {reason}"), &unlock);
}

async fn while_held(
    instance: &mut Instance,
    lock: &Lock,
    renewal: Renewal,
    command: &[OsString],
) -> Result<ExitStatus, Failure> {
    ending::check()?;
    let (program, arguments) =
        command.split_first().ok_or_else(|| Failure::unusable("no command", "name one after --"))?;
    let child = Command::new(program)
        .args(arguments)
        .spawn()
        .map_err(|error| Failure::io(format!("{} does not start: {error}", program.display())))?;
    let (status, kept) = held::run(instance, lock, renewal, child, WhenLost::Stop).await;
    // A lock that was lost since the last renewal, too.
    let kept = match kept {
        Ok(()) => held::renew(instance, lock).await,
        lost => lost,
    };
    kept.map_err(|error| match error {
        CallError::Error(error) if error.kind == ErrorKind::LockLost => Failure::lost_while_running(lock.state_id()),
        other => other.into(),
    })?;
    status.map_err(|error| Failure::io(error.to_string()))
}
