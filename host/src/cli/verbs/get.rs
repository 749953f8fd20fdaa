//! `get`.

use std::io::{self, Write as _};

use meltano_state_host::RawState;
use serde_json::{Value, json};

use crate::cli::arguments::{Format, Get};
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::{human, output, stored};

/// What Meltano prints where there is no state.
const NOTHING: &str = "{}";

pub(in crate::cli) async fn get(call: &mut Call, get: Get) -> Result<(), Failure> {
    let Get { state_id, raw } = get;
    if raw {
        let state = call.run(async |instance| instance.get_raw(&state_id).await).await?;
        let state = state.ok_or_else(|| stored::missing(&state_id))?;
        return output::written(match call.format {
            Format::Text => write_raw(&state),
            Format::Json => output::line(&json(&state_id, &state).to_string()),
        });
    }
    let merged = call.run(async |instance| instance.get_merged(&state_id).await).await?;
    output::written(output::line(merged.as_deref().unwrap_or(NOTHING)))
}

/// Each column with its name; into a pipe or a file byte for byte.
fn write_raw(state: &RawState) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "updated_at: {} (version {})", human::time(state.updated_at), state.updated_at)?;
    for (name, column) in [("completed_state", &state.completed_state), ("partial_state", &state.partial_state)] {
        let Some(bytes) = column else {
            writeln!(out, "{name}: NULL")?;
            continue;
        };
        writeln!(out, "{name}, {} bytes:", bytes.len())?;
        if output::on_terminal() {
            out.write_all(output::visible(&String::from_utf8_lossy(bytes)).as_bytes())?;
        } else {
            out.write_all(bytes)?;
        }
        writeln!(out)?;
    }
    out.flush()
}

/// JSON holds text alone: where a column is none, what cannot be shown is replaced, and that is said.
fn json(state_id: &str, state: &RawState) -> Value {
    let text = |column: &Option<Vec<u8>>| column.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let lossy = |column: &Option<Vec<u8>>| column.as_deref().is_some_and(|bytes| str::from_utf8(bytes).is_err());
    json!({
        "state_id": state_id,
        "version": state.updated_at,
        "updated_at": human::time(state.updated_at),
        "completed_state": text(&state.completed_state),
        "partial_state": text(&state.partial_state),
        "lossy": lossy(&state.completed_state) || lossy(&state.partial_state),
    })
}
