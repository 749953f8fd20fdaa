//! Settings with their values and where each came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use meltano_state_backend_clickhouse::ports::SettingsSource;
use meltano_state_backend_clickhouse::settings::Settings as Resolved;
use wasmtime_wasi_config::WasiConfigVariables;

use super::error::SettingsError;
use super::{names, redact};

/// The settings that are set, by full name. `Debug` shows no secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Eq)]
struct Value {
    text: String,
    source: Source,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The command line, or the program that embeds the plugin.
    Given,
    /// That environment variable.
    Environment(String),
    /// That variable in a `.env` file.
    DotEnv(PathBuf, String),
    /// That `meltano.yml`.
    MeltanoYml(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => f.write_str("given"),
            Self::Environment(variable) => write!(f, "environment variable {variable}"),
            Self::DotEnv(path, variable) => write!(f, "{variable} in {}", path.display()),
            Self::MeltanoYml(path) => path.display().fmt(f),
        }
    }
}

impl Settings {
    /// Nothing is set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value. The name may lack its beginning: `state_backend.clickhouse.host`, `clickhouse.host` and `host`
    /// are one. An empty value counts as not set.
    ///
    /// # Errors
    /// [`SettingsError::UnknownName`] if there is no setting of that name.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Result<Self, SettingsError> {
        let name = names::complete(name).ok_or_else(|| SettingsError::unknown(name, None))?;
        self.insert_if_absent(name, value.into(), Source::Given);
        Ok(self)
    }

    /// The value of a setting by its full name.
    #[must_use]
    pub fn get(&self, full_name: &str) -> Option<&str> {
        self.values.get(full_name).map(|value| value.text.as_str())
    }

    /// Where the value of a setting came from.
    #[must_use]
    pub fn source(&self, full_name: &str) -> Option<&Source> {
        self.values.get(full_name).map(|value| &value.source)
    }

    /// Keeps the value that stands there already: places are asked in the order of their precedence.
    pub(super) fn insert_if_absent(&mut self, full_name: String, text: String, source: Source) {
        if !text.is_empty() {
            self.values.entry(full_name).or_insert(Value { text, source });
        }
    }

    pub(crate) fn to_wasi_config(&self) -> WasiConfigVariables {
        let pairs = self.values.iter().map(|(name, value)| (name.as_str(), value.text.as_str()));
        pairs.collect()
    }
}

impl SettingsSource for Settings {
    fn get(&self, name: &str) -> Result<Option<String>, String> {
        Ok(Self::get(self, name).map(str::to_owned))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resolution = Resolved::resolve(self);
        let shown = self.values.iter().map(|(name, value)| {
            let text = redact::value(name, &value.text, &resolution);
            (name, format!("{text} ({})", value.source))
        });
        f.debug_map().entries(shown).finish()
    }
}
