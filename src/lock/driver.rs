//! Carries out what the lock's state machine decides.

use std::time::Duration;

use crate::clickhouse::Client;
use crate::error::{Error, ErrorKind};
use crate::lock::settle::{Action, Event, Obstacle, Settle};
use crate::lock::{LockRow, lock_id};
use crate::seconds::Seconds;
use crate::settings::PREFIX;

/// A lock that is held until [`Lock::release`].
#[derive(Debug)]
pub struct Lock {
    state_id: String,
    lock_id: String,
}

impl Lock {
    /// The id of the row that holds the lock.
    #[must_use]
    pub fn lock_id(&self) -> &str {
        &self.lock_id
    }

    /// Gives the lock up.
    ///
    /// # Errors
    /// As [`Client::run`]. The lock then lasts until it is stale.
    pub fn release(self, client: &Client) -> Result<(), Error> {
        client.delete(client.tables().delete_lock(&self.state_id, &self.lock_id))
    }
}

/// Takes the lock of a state id.
///
/// # Errors
/// [`ErrorKind::Locked`] if another process holds it for longer than the wait limit; otherwise as [`Client::run`].
/// After any error the lock is not held and no row of this call is left, unless removing it failed too.
pub fn acquire(client: &Client, state_id: &str) -> Result<Lock, Error> {
    let clock = client.ports().clock;
    let mut machine = Settle::new(client.settings().lock.clone(), clock.now());
    let mut event = Event::Wanted;
    loop {
        event = match machine.next(clock.now(), event) {
            Action::Insert => insert(client, state_id),
            Action::Read => {
                let answer = client.run(&client.tables().lock_rows(state_id));
                event_of(answer.and_then(|answer| LockRow::decode(&answer)), Event::Rows)
            }
            Action::Sleep(duration) => sleep(client, duration),
            Action::Retry(duration) => sleep(client, client.jittered(duration)),
            Action::DeleteStale => event_of(client.delete(client.tables().delete_stale(state_id)), |()| Event::Deleted),
            Action::DeleteOwn(lock_id) => {
                event_of(client.delete(client.tables().delete_lock(state_id, &lock_id)), |()| Event::Deleted)
            }
            Action::Acquired(lock_id) => {
                return Ok(Lock { state_id: state_id.to_owned(), lock_id });
            }
            Action::Locked(obstacle) => return Err(locked(client, state_id, obstacle)),
            Action::Fail(error) => return Err(error),
        };
    }
}

fn insert(client: &Client, state_id: &str) -> Event {
    let ports = client.ports();
    let lock_id = lock_id(ports.clock.unix_time(), ports.random.random()).to_string();
    let statement = client.tables().insert_candidate(state_id, &lock_id);
    let start = ports.clock.now();
    match client.run_creating(&statement) {
        Ok(answer) => Event::Inserted {
            lock_id,
            // A server or proxy that does not say is believed to have written: reading the rows will show it.
            written: answer.written_rows != Some(0),
            took: ports.clock.now() - start,
        },
        Err(error) if error.kind == ErrorKind::OutcomeUnknown => Event::InsertUncertain { lock_id, error },
        Err(error) => Event::Failed(error),
    }
}

fn sleep(client: &Client, duration: Duration) -> Event {
    client.ports().clock.sleep(duration);
    Event::Slept
}

fn event_of<T>(result: Result<T, Error>, event: impl FnOnce(T) -> Event) -> Event {
    result.map_or_else(Event::Failed, event)
}

fn locked(client: &Client, state_id: &str, obstacle: Obstacle) -> Error {
    let limits = &client.settings().lock;
    let (reason, hint) = match obstacle {
        Obstacle::Holder(row) => (
            format!(
                "lock {} holds it since {} ({} ago) and expires in {}",
                row.lock_id,
                row.locked_at,
                Seconds(row.age),
                Seconds(limits.stale.saturating_sub(row.age)),
            ),
            format!(
                "another run of this pipeline is writing its state; wait for it, or raise {PREFIX}lock_wait_seconds"
            ),
        ),
        Obstacle::Rivals => (
            "rivals took turns in holding it".to_owned(),
            format!(
                "other runs of this pipeline are writing its state; wait for them, or raise {PREFIX}lock_wait_seconds"
            ),
        ),
        Obstacle::SlowInsert(took) => (
            format!("the server took {} to insert a row, longer than lock_settle_seconds", Seconds(took)),
            format!("raise {PREFIX}lock_settle_seconds, or look at the server's load"),
        ),
    };
    let wait = Seconds(limits.wait);
    Error::new(ErrorKind::Locked, format!("no lock for state id {state_id:?} within {wait}: {reason}")).with_hint(hint)
}
