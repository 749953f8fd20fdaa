//! The exported interface `locking`.

use std::cell::RefCell;

use super::bindings::exports::meltano::state_backend::locking::{
    AcquireOptions, Guest, GuestLock, Holder, Lock as LockHandle,
};
use super::bindings::meltano::state_backend::types::{Error, State};
use super::exports::{Component, with_store};
use crate::error;
use crate::lock::{Acquire, Lock};
use crate::store::Store;

/// A lock, until it is released.
pub(super) struct HeldLock {
    lock: Lock,
    released: RefCell<bool>,
}

impl HeldLock {
    fn with<T>(&self, operation: impl FnOnce(&Store<'static>, &Lock) -> Result<T, error::Error>) -> Result<T, Error> {
        with_store(|store| {
            if *self.released.borrow() {
                return Err(self.lock.lost());
            }
            operation(store, &self.lock)
        })
    }

    fn give_up(&self) -> Result<(), Error> {
        self.with(|store, lock| lock.release(store.locks()))?;
        self.released.replace(true);
        Ok(())
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Best effort: there is nobody left to tell.
        let _ = self.give_up();
    }
}

impl GuestLock for HeldLock {
    fn lock_id(&self) -> String {
        self.lock.lock_id().to_owned()
    }

    fn renew(&self) -> Result<(), Error> {
        self.with(|store, lock| lock.renew(store.locks()))
    }

    fn set(&self, state: State) -> Result<(), Error> {
        self.with(|store, lock| store.set_held(lock, &state.into()))
    }

    fn update(&self, state: State) -> Result<(), Error> {
        self.with(|store, lock| store.update_held(lock, &state.into()))
    }

    fn release(&self) -> Result<(), Error> {
        self.give_up()
    }
}

impl Guest for Component {
    type Lock = HeldLock;

    fn acquire(state_id: String, options: AcquireOptions) -> Result<LockHandle, Error> {
        let options = Acquire {
            wait_seconds: options.wait_seconds,
            retry_seconds: options.retry_seconds,
            stale_seconds: options.stale_seconds,
            owner: options.owner.unwrap_or_default(),
        };
        let lock = with_store(|store| store.acquire(&state_id, &options))?;
        Ok(LockHandle::new(HeldLock { lock, released: RefCell::new(false) }))
    }

    fn holders(pattern: Option<String>) -> Result<Vec<Holder>, Error> {
        with_store(|store| Ok(store.holders(pattern.as_deref())?.into_iter().map(Into::into).collect()))
    }

    fn force_release(state_id: String, lock_id: String) -> Result<bool, Error> {
        with_store(|store| store.force_release(&state_id, &lock_id))
    }
}
