//! Each exported function calls the imported one of the same name.

use bindings::exports::meltano::state_backend::store::Guest;
use bindings::meltano::state_backend::store;
use bindings::meltano::state_backend::types::{Entry, Error, Prepared, RawState, State, Warning};

#[allow(unsafe_code, missing_docs, unused_qualifications, unreachable_pub, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package test:relay@0.1.0;

            world relay {
                import meltano:state-backend/store@0.1.0;
                export meltano:state-backend/store@0.1.0;
            }
        ",
        generate_all,
    });
}

struct Relay;

impl Guest for Relay {
    fn init(dry_run: bool) -> Result<Vec<Prepared>, Error> {
        store::init(dry_run)
    }

    fn get(state_id: String) -> Result<Option<State>, Error> {
        store::get(&state_id)
    }

    fn get_merged(state_id: String) -> Result<Option<String>, Error> {
        store::get_merged(&state_id)
    }

    fn get_raw(state_id: String) -> Result<Option<RawState>, Error> {
        store::get_raw(&state_id)
    }

    fn get_all(pattern: Option<String>, after: Option<String>, limit: Option<u32>) -> Result<Vec<Entry>, Error> {
        store::get_all(pattern.as_deref(), after.as_deref(), limit)
    }

    fn get_state_ids(pattern: Option<String>) -> Result<Vec<String>, Error> {
        store::get_state_ids(pattern.as_deref())
    }

    fn set(state: State) -> Result<(), Error> {
        store::set(&state)
    }

    fn set_all(states: Vec<State>) -> Result<u64, Error> {
        store::set_all(&states)
    }

    fn update(state: State) -> Result<Vec<Warning>, Error> {
        store::update(&state)
    }

    fn delete(state_id: String) -> Result<(), Error> {
        store::delete(&state_id)
    }

    fn clear(state_id: String) -> Result<Vec<Warning>, Error> {
        store::clear(&state_id)
    }

    fn copy(source: String, destination: String, keep_parts: bool) -> Result<Vec<Warning>, Error> {
        store::copy(&source, &destination, keep_parts)
    }

    fn move_state(source: String, destination: String, keep_parts: bool) -> Result<Vec<Warning>, Error> {
        store::move_state(&source, &destination, keep_parts)
    }

    fn clear_all() -> Result<u64, Error> {
        store::clear_all()
    }
}

bindings::export!(Relay with_types_in bindings);
