//! `restore`.

use meltano_state_host::{CallError, State};
use serde_json::json;

use super::set;
use crate::cli::arguments::Restore;
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::{human, output, stored};

pub(in crate::cli) async fn restore(call: &mut Call, restore: Restore) -> Result<(), Failure> {
    let Restore { state_id, version, consent } = restore;
    stored::named(&state_id)?;
    if !consent.force || consent.dry_run {
        let state = kept(call, &state_id, version).await?;
        if !set::replace(call, &state, consent).await? {
            return Ok(());
        }
    }
    call.change_locked(async |instance| instance.restore(&state_id, version).await).await?;
    let sentence = format!("the state of {} is again as at {}", output::name(&state_id), human::time(version));
    call.done(json!({"restored": state_id, "version": version}), &sentence)
}

/// The state as it was in that version.
async fn kept(call: &mut Call, state_id: &str, version: i64) -> Result<State, Failure> {
    let before = Some(version.saturating_add(1));
    let page = call.run(async |instance| instance.versions(state_id, before, Some(1)).await).await?;
    match page.into_iter().next() {
        Some(entry) if entry.updated_at == version => entry.content.map_err(|error| CallError::Error(error).into()),
        _ => Err(Failure::refused(
            format!("the state of {} has no version {version}", output::name(state_id)),
            "meltano-state history shows those that are kept",
        )),
    }
}
