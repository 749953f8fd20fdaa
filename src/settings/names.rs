//! The names of the settings.

/// The full name of the setting that holds the URI.
pub const URI: &str = "state_backend.uri";
/// What the full names of nearly all other settings begin with.
pub const PREFIX: &str = "state_backend.clickhouse.";

/// The short names of all settings but the URI: as they stand in the URI's query.
pub const NAMES: [&str; 17] = [
    "host",
    "port",
    "user",
    "password",
    "database",
    "secure",
    "schema",
    "table",
    "cluster",
    "lock_protocol",
    "lock_settle_seconds",
    "lock_stale_seconds",
    "lock_wait_seconds",
    "lock_retry_seconds",
    "history_days",
    "connect_timeout_seconds",
    "request_timeout_seconds",
];

/// The full dotted name of a setting of [`NAMES`].
#[must_use]
pub fn full_name(name: &str) -> String {
    match name {
        // Meltano's own, for backends of every kind.
        "lock_retry_seconds" => format!("state_backend.{name}"),
        _ => format!("{PREFIX}{name}"),
    }
}

/// The environment variable from which Meltano reads the setting with that full name.
#[must_use]
pub fn environment_variable(full_name: &str) -> String {
    format!("MELTANO_{}", full_name.replace('.', "_").to_ascii_uppercase())
}
