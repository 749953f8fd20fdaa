//! Runs the component `meltano-state-backend-clickhouse`, which keeps the state of Meltano pipelines in ClickHouse.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use meltano_state_host::{Plugin, Settings};
//!
//! let settings = Settings::new().with("state_backend.uri", "clickhouse://meltano:secret@localhost:8123/warehouse")?;
//! let plugin = Plugin::builder().settings(settings).build()?;
//! let mut instance = plugin.instance().await?;
//! for state_id in instance.get_state_ids(Some("prod:*")).await? {
//!     let start = instance.get_merged(&state_id).await?;
//!     println!("{state_id} goes on from {}", start.as_deref().unwrap_or("the beginning"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [`Plugin`] is the component compiled and linked; it makes [`Instance`]s, each with memory of its own, which share
//! one pool of connections. The component gets clocks, randomness, its settings and HTTP, no files, sockets,
//! environment or standard streams, and HTTP reaches only the server that the settings name. [`Limits`] bound time,
//! memory and the size of answers.
//!
//! [`Settings`] are gathered from flags, the environment, `.env` and `meltano.yml`, as Meltano does. A [`Transport`]
//! carries the requests: [`PooledClient`] by default, [`Faults`] around it in tests.
//!
//! Calls have to run inside a tokio runtime with I/O and time enabled.

#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod activity;
mod bindings;
mod cache;
mod clock;
mod component;
mod context;
mod egress;
mod error;
mod explained;
mod instance;
mod limits;
mod lock;
mod outgoing_handler;
mod plugin;
mod response_body;
pub mod settings;
mod surroundings;
mod ticker;
mod transport;

pub use activity::Activity;
pub use cache::Cache;
pub use component::COMPONENT;
pub use error::{BuildError, CallError};
pub use instance::Instance;
pub use limits::{Limit, Limits};
pub use lock::{Holder, Lock};
pub use meltano_state_backend_clickhouse::diagnose::{Report, Status, Step};
pub use meltano_state_backend_clickhouse::lock::Acquire;
pub use meltano_state_backend_clickhouse::prepare::{Deed, Prepared, Thing};
pub use meltano_state_backend_clickhouse::state::{Entry, RawState, State};
pub use meltano_state_backend_clickhouse::store::Keeping;
pub use meltano_state_backend_clickhouse::{Details, Error, ErrorKind, ServerError, Warning};
pub use plugin::{Builder, Plugin};
pub use settings::{Settings, SettingsError};
pub use surroundings::Surroundings;
pub use transport::{DEFAULT_TIMEOUT, Fault, Faults, PooledClient, Seen, Sending, Tls, TlsError, Transport};

/// The types of WASI HTTP that a [`Transport`] deals in.
pub mod wasi_http {
    pub use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};
}
