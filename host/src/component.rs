//! The component that this crate embeds.

/// The component `meltano-state-backend-clickhouse` as WebAssembly: built together with this crate, or the file that the
/// environment variable `MELTANO_STATE_COMPONENT` named during the build.
pub const COMPONENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/meltano_state_backend_clickhouse.wasm"));
