//! `meltano-state config`.

use meltano_state_host::settings::{Effective, Settings};
use meltano_state_host::{CallError, Error};
use serde_json::{Value, json};

use crate::cli::arguments::Format;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::table::Table;

/// Writes every setting with its value, secrets masked, and where it came from. Fails after that if the settings cannot
/// be used.
pub(in crate::cli) fn config(settings: &Settings, format: Format) -> Result<(), Failure> {
    let (settings, error) = settings.effective();
    output::written(match format {
        Format::Text => output::lines(table(&settings).to_string().lines()),
        Format::Json => output::line(&Value::from_iter(settings.iter().map(json)).to_string()),
    })?;
    error.map_or(Ok(()), |error: Error| Err(CallError::Error(error).into()))
}

fn table(settings: &[Effective]) -> Table {
    let mut table = Table::new(["setting", "value", "source"]);
    for setting in settings {
        table.row([&setting.name, setting.value.as_deref().unwrap_or("-"), &setting.source]);
    }
    table
}

fn json(setting: &Effective) -> Value {
    json!({"name": setting.name, "value": setting.value, "source": setting.source})
}
