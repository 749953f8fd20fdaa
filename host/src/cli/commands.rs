//! Which code carries a verb out.

use std::process::ExitStatus;

use meltano_state_host::Plugin;

use super::arguments::{Clear, Format, LockVerb, Verb};
use super::call::Call;
use super::failure::Failure;
use super::held::Renewal;
use super::verbs;

/// Carries a verb out and writes its result. Returns how the command ended that `lock run` ran.
pub(super) async fn execute(plugin: &Plugin, verb: Verb, format: Format) -> Result<Option<ExitStatus>, Failure> {
    let mut call = Call::new(plugin, locked_by(&verb), format).await?;
    let call = &mut call;
    let result = match verb {
        Verb::Check => verbs::check(call).await,
        // Shown before there is a plugin.
        Verb::Config => Ok(()),
        Verb::Init { dry_run } => verbs::init(call, dry_run).await,
        Verb::List(list) => verbs::list(call, list).await,
        Verb::Get(get) => verbs::get(call, get).await,
        Verb::Set(set) => verbs::set(call, set).await,
        Verb::Merge(merge) => verbs::merge(call, merge).await,
        Verb::Copy(copy) => verbs::copy(call, copy).await,
        Verb::Move(copy) => verbs::move_state(call, copy).await,
        Verb::Clear(clear) => verbs::clear(call, clear).await,
        Verb::Edit(edit) => verbs::edit(call, edit, Renewal::of(plugin)).await,
        Verb::Export(export) => verbs::export(call, export).await,
        Verb::Import(import) => verbs::import(call, import).await,
        Verb::History(history) => verbs::history(call, history).await,
        Verb::Restore(restore) => verbs::restore(call, restore).await,
        Verb::Lock(LockVerb::List { pattern }) => verbs::lock_list(call, pattern.as_deref()).await,
        Verb::Lock(LockVerb::Run { state_id, command }) => {
            return verbs::lock_run(call, &state_id, Renewal::of(plugin), &command).await.map(Some);
        }
        Verb::Unlock(unlock) => verbs::unlock(call, unlock).await,
    };
    result.map(|()| None)
}

/// The id whose lock the verb may wait for.
fn locked_by(verb: &Verb) -> Option<String> {
    let id = match verb {
        Verb::Set(set) => &set.state_id,
        Verb::Merge(merge) => &merge.state_id,
        Verb::Copy(copy) => &copy.destination,
        Verb::Move(copy) => return Some(format!("{} or {}", copy.source, copy.destination)),
        Verb::Clear(Clear { state_id, .. }) => return state_id.clone(),
        Verb::Edit(edit) => &edit.state_id,
        Verb::Restore(restore) => &restore.state_id,
        Verb::Lock(LockVerb::Run { state_id, .. }) => state_id,
        _ => return None,
    };
    Some(id.clone())
}
