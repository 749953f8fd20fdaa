//! The names of the settings.

use meltano_state_backend_clickhouse::settings::{NAMES, URI, full_name};

/// What all full names begin with.
const ROOT: &str = "state_backend.";

/// The settings of the add-on for Meltano that the component does not know. They stand in the same place.
const OF_THE_ADD_ON: [&str; 1] = ["state_backend.clickhouse.lock_per_run"];

/// Whether a setting is none of the component's business, though its name is one of ours.
pub(super) fn is_of_the_add_on(name: &str) -> bool {
    OF_THE_ADD_ON.contains(&name)
}

/// The full names of all settings.
pub(super) fn all() -> impl Iterator<Item = String> {
    std::iter::once(URI.to_owned()).chain(NAMES.into_iter().map(full_name))
}

/// The full name for a name with or without its beginning: `state_backend.clickhouse.host`, `clickhouse.host` and
/// `host` are one. None for a name that does not exist.
pub(super) fn complete(name: &str) -> Option<String> {
    all().find(|full| full == name || full.strip_prefix(ROOT) == Some(name) || full.rsplit('.').next() == Some(name))
}
