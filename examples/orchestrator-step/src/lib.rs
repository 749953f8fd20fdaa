//! A step of a pipeline that remembers how far it got: it reads a bookmark, works, and moves the bookmark on.
//!
//! It is a component that imports `meltano:state-backend/store` and knows nothing of ClickHouse. `cargo xtask compose`
//! plugs the state backend into that import.

#[cfg(target_family = "wasm")]
mod step;
