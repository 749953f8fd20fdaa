//! What is said when a lock is not taken, or not given up.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::lock::machine::Obstacle;
use crate::seconds::Seconds;
use crate::settings::{LockSettings, PREFIX};
use crate::warning::Warning;

/// An insert of a lock row is no write of a state: of that the outcome is known.
pub(super) fn not_taken(state_id: &str, mut error: Error) -> Error {
    error.message = format!("the lock of state id {state_id:?} was not taken, and nothing was written: {error}");
    if error.hint.is_some() {
        error
    } else {
        error.with_hint("try again; if it stays so, meltano-state check finds out why")
    }
}

/// The host wants the call to end.
pub(super) fn called_off(state_id: &str) -> Error {
    Error::new(
        ErrorKind::Locked,
        format!("the wait for the lock of {state_id:?} was called off, and nothing was written"),
    )
}

/// Another holds it, or others do in turns, for longer than the wait limit.
pub(super) fn locked(state_id: &str, limits: &LockSettings, obstacle: Obstacle) -> Error {
    let waited = Seconds(limits.wait);
    let (reason, hint) = match obstacle {
        Obstacle::Holder(row) => {
            let owner = if row.owner.is_empty() { "another process" } else { &row.owner };
            let expires = Seconds(row.lasts.saturating_sub(row.age));
            (
                format!("is locked by {owner}: lock {}, {} old, expires in {expires}", row.lock_id, Seconds(row.age)),
                format!(
                    "wait until it has ended, or raise {PREFIX}lock_wait_seconds; \
                     if it was killed, meltano-state unlock removes its lock"
                ),
            )
        }
        Obstacle::Rivals => (
            "is locked by others in turns".to_owned(),
            format!("wait until they have written their state, or raise {PREFIX}lock_wait_seconds"),
        ),
        Obstacle::SlowInsert(took) => (
            format!("cannot be locked: inserting a row took {}, longer than lock_settle_seconds", Seconds(took)),
            format!("raise {PREFIX}lock_settle_seconds, or look at the server's load"),
        ),
    };
    Error::new(ErrorKind::Locked, format!("the state of {state_id:?} {reason}; gave up after {waited}")).with_hint(hint)
}

/// A row could not be removed, and why.
pub(super) fn left_behind(state_id: &str, lock_id: &str, stale: Duration, error: &Error) -> Warning {
    let unlock = format!("meltano-state unlock {state_id} {lock_id} removes it");
    Warning {
        message: format!(
            "lock {lock_id} of state id {state_id:?} could not be removed, and blocks others for up to {}: {error}",
            Seconds(stale)
        ),
        hint: Some(match &error.hint {
            Some(hint) => format!("{hint}; then {unlock}"),
            None => unlock,
        }),
    }
}
