//! Locks that a caller holds across calls.

use std::time::Duration;

use meltano_state_backend_clickhouse::lock::Acquire;
use meltano_state_backend_clickhouse::state::State;
use meltano_state_backend_clickhouse::{Error, ErrorKind};
use wasmtime::component::ResourceAny;

use crate::error::CallError;
use crate::instance::{Instance, call};

/// A lock that an instance holds, until [`Instance::release`].
///
/// Dropping this value does not release the lock, which then lasts until it is stale; neither does dropping the instance.
#[derive(Debug)]
pub struct Lock {
    resource: ResourceAny,
    generation: u64,
    state_id: String,
    lock_id: String,
}

impl Lock {
    /// Whose state is locked.
    #[must_use]
    pub fn state_id(&self) -> &str {
        &self.state_id
    }

    /// The id of the row that holds the lock.
    #[must_use]
    pub fn lock_id(&self) -> &str {
        &self.lock_id
    }
}

/// A lock, as others see it. Times are by the server's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Whose state is locked.
    pub state_id: String,
    /// The id of the row.
    pub lock_id: String,
    /// Who took it, in their own words; empty if they did not say.
    pub owner: String,
    /// When it was taken or last renewed, in seconds since 1970.
    pub locked_at: i64,
    /// The time since then.
    pub age: Duration,
    /// The time until it counts as abandoned.
    pub expires_in: Duration,
    /// Whether it is too old to count.
    pub stale: bool,
}

/// Calls a method of the lock's resource.
macro_rules! call_lock {
    ($instance:ident, $lock:ident, $method:ident $(, $argument:expr)*) => {{
        let resource = $instance.resource($lock).await?;
        call!($instance, |exports, store| async {
            exports.meltano_state_backend_locking().lock().$method(store, resource $(, $argument)*).await
        })
    }};
}

impl Instance {
    /// Takes the lock of a state id and keeps it.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn acquire(&mut self, state_id: &str, options: &Acquire) -> Result<Lock, CallError> {
        let options = options.into();
        let resource: ResourceAny = call!(self, |exports, store| exports
            .meltano_state_backend_locking()
            .call_acquire(store, state_id, &options))?;
        let lock_id = call!(self, |exports, store| async {
            exports.meltano_state_backend_locking().lock().call_lock_id(store, resource).await.map(Ok)
        })?;
        Ok(Lock { resource, generation: self.generation(), state_id: state_id.to_owned(), lock_id })
    }

    /// Makes a lock as fresh as new. Call it at a third of the stale time.
    ///
    /// # Errors
    /// See [`Instance`]; [`ErrorKind::LockLost`] if it is no longer held.
    pub async fn renew(&mut self, lock: &Lock) -> Result<(), CallError> {
        call_lock!(self, lock, call_renew)
    }

    /// [`Instance::set`] under a lock that is kept.
    ///
    /// # Errors
    /// See [`Instance`]; [`ErrorKind::LockLost`] if it is no longer held.
    pub async fn set_locked(&mut self, lock: &Lock, state: &State) -> Result<(), CallError> {
        let state = state.into();
        call_lock!(self, lock, call_set, &state)
    }

    /// [`Instance::update`] under a lock that is kept.
    ///
    /// # Errors
    /// See [`Instance`]; [`ErrorKind::LockLost`] if it is no longer held.
    pub async fn update_locked(&mut self, lock: &Lock, state: &State) -> Result<(), CallError> {
        let state = state.into();
        call_lock!(self, lock, call_update, &state)
    }

    /// Gives a lock up.
    ///
    /// # Errors
    /// See [`Instance`]. The lock then lasts until it is stale.
    pub async fn release(&mut self, lock: Lock) -> Result<(), CallError> {
        let lock = &lock;
        let released = call_lock!(self, lock, call_release);
        let dropped = call!(self, |_exports, store| async { lock.resource.resource_drop_async(store).await.map(Ok) });
        released.and(dropped)
    }

    /// The locks of all state ids that match a shell glob (no pattern: of all), stale ones included.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn holders(&mut self, pattern: Option<&str>) -> Result<Vec<Holder>, CallError> {
        let holders =
            call!(self, |exports, store| exports.meltano_state_backend_locking().call_holders(store, pattern))?;
        Ok(holders.into_iter().map(Into::into).collect())
    }

    /// Removes a lock, whoever holds it, and says whether it was there.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn force_release(&mut self, state_id: &str, lock_id: &str) -> Result<bool, CallError> {
        call!(self, |exports, store| exports
            .meltano_state_backend_locking()
            .call_force_release(store, state_id, lock_id))
    }

    /// The lock's resource, unless the store that it lived in is gone.
    async fn resource(&mut self, lock: &Lock) -> Result<ResourceAny, CallError> {
        self.ensure_running().await?;
        if lock.generation == self.generation() {
            return Ok(lock.resource);
        }
        Err(CallError::Error(
            Error::new(
                ErrorKind::LockLost,
                format!("the lock of state id {:?} is gone: a call of its instance was cut short", lock.state_id),
            )
            .with_hint("take the lock again"),
        ))
    }
}
