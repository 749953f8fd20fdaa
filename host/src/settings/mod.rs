//! Where the component's settings come from.
//!
//! The names are Meltano's dotted ones, such as `state_backend.clickhouse.host`; the component's documentation lists
//! them. For each, the first of these places that has a value which is not empty counts:
//!
//! 1. command-line flags, or what the embedding program sets;
//! 2. the environment: `MELTANO_STATE_BACKEND_URI`, `MELTANO_STATE_BACKEND_CLICKHOUSE_HOST`, …;
//! 3. the same names in the file `.env` of the Meltano project;
//! 4. the block `state_backend` of its `meltano.yml`, with `$VAR` and `${VAR}` replaced from the environment and `.env`.
//!
//! Values are only gathered here; the component checks them.

mod dotenv;
mod effective;
mod error;
mod expand;
mod gather;
mod meltano_yml;
mod names;
mod redact;
mod values;

pub use effective::Effective;
pub use error::SettingsError;
pub use gather::Sources;
pub use values::{Settings, Source};
