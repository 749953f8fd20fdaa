//! The exported interfaces.

use std::cell::OnceCell;

use super::bindings::exports::meltano::state_backend::diagnostics;
use super::bindings::exports::meltano::state_backend::store::Guest;
use super::bindings::meltano::state_backend::types::{Error, State};
use super::clock::WasiClock;
use super::config::WasiConfig;
use super::http::WasiHttp;
use super::random::WasiRandom;
use crate::clickhouse::Client;
use crate::diagnose;
use crate::error;
use crate::ports::Ports;
use crate::settings::Settings;
use crate::store::Store;

/// What the exports are implemented on.
pub(super) struct Component;

#[allow(unsafe_code, reason = "the macro exports functions by name")]
mod export {
    super::super::bindings::export!(Component with_types_in super::super::bindings);
    use super::Component;
}

thread_local! {
    /// The configuration does not change during the life of an instance; only a checked one is kept.
    static STORE: OnceCell<Store<'static>> = const { OnceCell::new() };
}

/// Runs an operation on the store.
pub(super) fn with_store<T>(operation: impl FnOnce(&Store<'static>) -> Result<T, error::Error>) -> Result<T, Error> {
    STORE.with(|cell| {
        let store = match cell.get() {
            Some(store) => store,
            None => {
                // Settings live as long as the instance, so they are given to it for good.
                let settings: &'static Settings = Box::leak(Box::new(Settings::load(&WasiConfig)?));
                cell.get_or_init(|| Store::new(Client::new(PORTS, settings)))
            }
        };
        Ok(operation(store)?)
    })
}

const PORTS: Ports = Ports { http: &WasiHttp, clock: &WasiClock, random: &WasiRandom };

impl Guest for Component {
    fn init() -> Result<(), Error> {
        with_store(Store::init)
    }

    fn get(state_id: String) -> Result<Option<State>, Error> {
        with_store(|store| Ok(store.get(&state_id)?.map(Into::into)))
    }

    fn get_state_ids(pattern: Option<String>) -> Result<Vec<String>, Error> {
        with_store(|store| store.get_state_ids(pattern.as_deref()))
    }

    fn set(state: State) -> Result<(), Error> {
        with_store(|store| store.set(&state.into()))
    }

    fn update(state: State) -> Result<(), Error> {
        with_store(|store| store.update(&state.into()))
    }

    fn delete(state_id: String) -> Result<(), Error> {
        with_store(|store| store.delete(&state_id))
    }

    fn clear(state_id: String) -> Result<(), Error> {
        with_store(|store| store.clear(&state_id))
    }

    fn clear_all() -> Result<u64, Error> {
        with_store(Store::clear_all)
    }
}

impl diagnostics::Guest for Component {
    fn check() -> diagnostics::Report {
        diagnose::check(&WasiConfig, PORTS).into()
    }
}
