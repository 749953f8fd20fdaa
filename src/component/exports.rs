//! The exported interfaces.

use std::cell::Cell;

use super::bindings::exports::meltano::state_backend::store::Guest;
use super::bindings::exports::meltano::state_backend::{diagnostics, history};
use super::bindings::meltano::state_backend::types::{Entry, Error, Prepared, RawState, State, Warning};
use super::clock::WasiClock;
use super::config::WasiConfig;
use super::http::WasiHttp;
use super::random::WasiRandom;
use crate::clickhouse::Client;
use crate::diagnose;
use crate::error;
use crate::ports::Ports;
use crate::settings::Settings;
use crate::state;
use crate::store::{Copy, Store};

/// What the exports are implemented on.
pub(super) struct Component;

#[allow(unsafe_code, reason = "the macro exports functions by name")]
mod export {
    super::super::bindings::export!(Component with_types_in super::super::bindings);
    use super::Component;
}

thread_local! {
    /// The configuration does not change during the life of an instance; only a checked one is kept.
    static STORE: Cell<Option<&'static Store<'static>>> = const { Cell::new(None) };
}

/// Runs an operation on the store.
pub(super) fn with_store<T>(operation: impl FnOnce(&Store<'static>) -> Result<T, error::Error>) -> Result<T, Error> {
    Ok(operation(store()?)?)
}

/// The store on the configured tables. It and the settings live as long as the instance, so they are given to it for good.
fn store() -> Result<&'static Store<'static>, error::Error> {
    if let Some(store) = STORE.get() {
        return Ok(store);
    }
    let settings = Box::leak(Box::new(Settings::load(&WasiConfig)?));
    let store = Box::leak(Box::new(Store::new(Client::new(PORTS, settings))));
    STORE.set(Some(store));
    Ok(store)
}

const PORTS: Ports = Ports { http: &WasiHttp, clock: &WasiClock, random: &WasiRandom };

impl Guest for Component {
    fn init(dry_run: bool) -> Result<Vec<Prepared>, Error> {
        with_store(|store| Ok(store.init(dry_run)?.into_iter().map(Into::into).collect()))
    }

    fn get(state_id: String) -> Result<Option<State>, Error> {
        with_store(|store| Ok(store.get(&state_id)?.map(Into::into)))
    }

    fn get_merged(state_id: String) -> Result<Option<String>, Error> {
        with_store(|store| store.get_merged(&state_id))
    }

    fn get_raw(state_id: String) -> Result<Option<RawState>, Error> {
        with_store(|store| Ok(store.get_raw(&state_id)?.map(Into::into)))
    }

    fn get_all(pattern: Option<String>, after: Option<String>, limit: Option<u32>) -> Result<Vec<Entry>, Error> {
        with_store(|store| Ok(entries(store.get_all(pattern.as_deref(), after.as_deref(), limit)?)))
    }

    fn get_state_ids(pattern: Option<String>) -> Result<Vec<String>, Error> {
        with_store(|store| store.get_state_ids(pattern.as_deref()))
    }

    fn set(state: State) -> Result<(), Error> {
        with_store(|store| store.set(&state.into()))
    }

    fn set_all(states: Vec<State>) -> Result<u64, Error> {
        let states: Vec<_> = states.into_iter().map(Into::into).collect();
        with_store(|store| store.set_all(&states))
    }

    fn update(state: State) -> Result<Vec<Warning>, Error> {
        with_store(|store| store.update(&state.into()).map(warnings))
    }

    fn delete(state_id: String) -> Result<(), Error> {
        with_store(|store| store.delete(&state_id))
    }

    fn clear(state_id: String) -> Result<Vec<Warning>, Error> {
        with_store(|store| store.clear(&state_id).map(warnings))
    }

    fn copy(source: String, destination: String, keep_parts: bool) -> Result<Vec<Warning>, Error> {
        let copy = Copy { source: &source, destination: &destination, keep_parts };
        with_store(|store| store.copy(copy).map(warnings))
    }

    fn move_state(source: String, destination: String, keep_parts: bool) -> Result<Vec<Warning>, Error> {
        let copy = Copy { source: &source, destination: &destination, keep_parts };
        with_store(|store| store.move_state(copy).map(warnings))
    }

    fn clear_all() -> Result<u64, Error> {
        with_store(Store::clear_all)
    }
}

impl history::Guest for Component {
    fn kept() -> Result<Option<history::Keeping>, Error> {
        with_store(|store| Ok(store.keeping()?.map(Into::into)))
    }

    fn versions(state_id: String, before: Option<i64>, limit: Option<u32>) -> Result<Vec<Entry>, Error> {
        with_store(|store| Ok(entries(store.versions(&state_id, before, limit)?)))
    }

    fn restore(state_id: String, version: i64) -> Result<Vec<Warning>, Error> {
        with_store(|store| store.restore(&state_id, version).map(warnings))
    }
}

fn entries(entries: Vec<state::Entry>) -> Vec<Entry> {
    entries.into_iter().map(Into::into).collect()
}

fn warnings(warnings: Vec<crate::Warning>) -> Vec<Warning> {
    warnings.into_iter().map(Into::into).collect()
}

impl diagnostics::Guest for Component {
    fn check() -> diagnostics::Report {
        diagnose::check(&WasiConfig, PORTS).into()
    }
}
