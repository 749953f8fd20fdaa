//! Questions to a server on this machine.

use std::time::Duration;

use anyhow::{Context, Result};
use ureq::Agent;

use super::config::INSTANCE_MACRO;

/// How long one answer may take; these questions take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A server's HTTP interface, used as the user `default`.
pub(super) struct Http {
    agent: Agent,
    url: String,
}

impl Http {
    /// The server at `url`, which is plain HTTP.
    pub(super) fn new(url: impl Into<String>) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            // Whatever the environment says, this machine is not behind a proxy.
            .proxy(None)
            .build();
        Self { agent: config.into(), url: url.into() }
    }

    /// Whether the embedded server called `instance` answers here. Another server on the same port is not it.
    pub(super) fn is_ready(&self, instance: &str) -> bool {
        let answers = || -> Result<bool> {
            self.agent.get(format!("{}/ping", self.url)).call()?;
            Ok(self.query(&format!("SELECT getMacro('{INSTANCE_MACRO}')"))? == instance)
        };
        answers().unwrap_or(false)
    }

    /// The single value that `statement` selects.
    pub(super) fn query(&self, statement: &str) -> Result<String> {
        let mut answer = self
            .agent
            .get(&self.url)
            .query("query", statement)
            .call()
            .with_context(|| format!("the server at {} does not answer", self.url))?;
        Ok(answer.body_mut().read_to_string()?.trim_end().to_owned())
    }
}
