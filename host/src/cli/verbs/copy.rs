//! `copy` and `move`.

use meltano_state_host::State;
use serde_json::json;

use crate::cli::arguments::Copy;
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::plan::{self, Plan};
use crate::cli::{output, stored};

pub(in crate::cli) async fn copy(call: &mut Call, copy: Copy) -> Result<(), Failure> {
    let Copy { source, destination, keep_parts, .. } = &copy;
    if !settle(call, &copy, false).await? {
        return Ok(());
    }
    call.change_locked(async |instance| instance.copy(source, destination, *keep_parts).await).await?;
    let sentence = format!("the state of {} is copied to {}", output::name(source), output::name(destination));
    call.done(json!({"copied": source, "to": destination}), &sentence)
}

pub(in crate::cli) async fn move_state(call: &mut Call, copy: Copy) -> Result<(), Failure> {
    let Copy { source, destination, keep_parts, .. } = &copy;
    if !settle(call, &copy, true).await? {
        return Ok(());
    }
    call.change_locked(async |instance| instance.move_state(source, destination, *keep_parts).await).await?;
    let sentence = format!("the state of {} is moved to {}", output::name(source), output::name(destination));
    call.done(json!({"moved": source, "to": destination}), &sentence)
}

/// Whether to go on.
async fn settle(call: &mut Call, copy: &Copy, removes_source: bool) -> Result<bool, Failure> {
    let Copy { source, destination, keep_parts, consent } = copy;
    if source == destination {
        let message = format!("{} is both source and destination", output::name(source));
        return Err(Failure::unusable(message, "nothing was changed; name two ids"));
    }
    stored::named(destination)?;
    let state = stored::expect(call, source).await?;
    if !keep_parts && state.partial_state.is_some() {
        let (from, to) = (output::name(source), output::name(destination));
        call.remark(&format!(
            "warning: the partial state of {from} becomes a part of the completed state of {to}; \
             --keep-parts keeps the two apart"
        ));
    }
    let after = copied(state, destination, *keep_parts)?;
    if consent.dry_run {
        let stored = stored::read(call, destination).await?;
        let mut plans = vec![Plan::new(destination, stored.as_ref(), Some(&after))];
        if removes_source {
            plans.push(Plan::new(source, stored::read(call, source).await?.as_ref(), None));
        }
        return plan::show(call, &plans).map(|()| false);
    }
    super::set::replace(call, &after, *consent).await
}

/// As the component's `copy` does.
fn copied(state: State, destination: &str, keep_parts: bool) -> Result<State, Failure> {
    let state_id = destination.to_owned();
    if keep_parts {
        return Ok(State { state_id, ..state });
    }
    Ok(State { state_id, completed_state: stored::merged(state)?, partial_state: None })
}
