//! A consumer that passes every call on: it imports `meltano:state-backend/store` and exports the same.
//!
//! Composed with the state backend it has the backend's own surface, so the contract of all hosts can be run through it.

#[cfg(target_family = "wasm")]
mod relay;
