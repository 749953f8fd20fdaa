//! `set` and `merge`.

use meltano_state_backend_clickhouse::state;
use meltano_state_host::{CallError, Entry, State};
use serde_json::json;

use crate::cli::arguments::{Consent, Merge, MergeSource, Set};
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::plan::{self, Plan};
use crate::cli::{output, payload, stored};

pub(in crate::cli) async fn set(call: &mut Call, set: Set) -> Result<(), Failure> {
    let Set { state_id, given, consent } = set;
    let completed = payload::read(given.json.as_deref(), given.input_file.as_deref())?;
    let state = State { completed_state: Some(completed), partial_state: None, state_id };
    if !replace(call, &state, consent).await? {
        return Ok(());
    }
    // As Meltano: under the lock, so that a run that is going on does not write in between.
    call.change_locked(async |instance| instance.update(&state).await).await?;
    let id = &state.state_id;
    call.done(json!({"set": id}), &format!("the state of {} is set", output::name(id)))
}

/// Whether to store the state in place of any that its id has.
pub(super) async fn replace(call: &mut Call, state: &State, consent: Consent) -> Result<bool, Failure> {
    if consent.force && !consent.dry_run {
        return Ok(true);
    }
    let stored = stored::read(call, &state.state_id).await?;
    Plan::new(&state.state_id, stored.as_ref(), Some(state)).settle(call, consent)
}

pub(in crate::cli) async fn merge(call: &mut Call, merge: Merge) -> Result<(), Failure> {
    let Merge { state_id, source, dry_run } = merge;
    let partial = laid_over(call, &source).await?;
    let state = State { partial_state: Some(partial), completed_state: None, state_id };
    let id = &state.state_id;
    if dry_run {
        let stored = stored::read(call, id).await?;
        let after = merged(&state, stored.as_ref())?;
        return plan::show(call, [&Plan::new(id, stored.as_ref(), Some(&after))]);
    }
    call.change_locked(async |instance| instance.update(&state).await).await?;
    call.done(json!({"merged": id}), &format!("the state of {} is merged", output::name(id)))
}

/// What is to be laid over the stored state.
async fn laid_over(call: &mut Call, source: &MergeSource) -> Result<String, Failure> {
    let Some(source_id) = &source.from_state_id else {
        return payload::read(source.json.as_deref(), source.input_file.as_deref());
    };
    let state = stored::expect(call, source_id).await?;
    stored::merged(state)?.ok_or_else(|| {
        let message = format!("the state of {} is empty: there is nothing to merge", output::name(source_id));
        Failure::refused(message, "name another state")
    })
}

/// As the component's `update` does.
fn merged(state: &State, stored: Option<&Entry>) -> Result<State, Failure> {
    let Some(entry) = stored else { return Ok(state.clone()) };
    let stored = entry.content.clone().map_err(CallError::Error)?;
    let partial = match (&state.partial_state, &stored.partial_state) {
        (Some(new), Some(old)) => Some(state::merge(new, old).map_err(|error| {
            let message = format!("the states cannot be merged: {error:?}");
            Failure::refused(message, "look at the stored one with: meltano-state get --raw")
        })?),
        (new, old) => new.as_ref().or(old.as_ref()).cloned(),
    };
    Ok(State { partial_state: partial, ..stored })
}
