//! The server that demo and benchmark run against.

use std::env;

use anyhow::Result;

use crate::clickhouse::Embedded;

/// The environment variable that names a server to use instead of an embedded one.
pub(crate) const URI: &str = "MELTANO_STATE_BACKEND_URI";

/// A server of the user's own, or an embedded one that ends with this value.
pub(crate) struct Server {
    /// Its `state_backend.uri`.
    pub(crate) uri: String,
    /// The embedded server, if it is one.
    pub(crate) embedded: Option<Embedded>,
}

/// The URI of the server that the environment names, if it names one.
pub(crate) fn named() -> Option<String> {
    env::var(URI).ok().filter(|uri| !uri.is_empty())
}

impl Server {
    /// The server that the environment names, or else an embedded one.
    pub(crate) fn choose() -> Result<Self> {
        if let Some(uri) = named() {
            return Ok(Self { uri, embedded: None });
        }
        let server = Embedded::start()?;
        Ok(Self { uri: server.uri(), embedded: Some(server) })
    }
}
