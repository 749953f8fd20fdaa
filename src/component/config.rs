//! Settings, from `wasi:config`.

use super::bindings::wasi::config::store;
use crate::ports::SettingsSource;

/// The host's configuration.
pub(super) struct WasiConfig;

impl SettingsSource for WasiConfig {
    fn get(&self, name: &str) -> Result<Option<String>, String> {
        store::get(name).map_err(|error| match error {
            store::Error::Upstream(reason) | store::Error::Io(reason) => reason,
        })
    }
}
