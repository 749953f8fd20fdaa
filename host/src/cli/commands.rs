//! What each verb does.

use std::io::{self, Write as _};

use meltano_state_backend_clickhouse::state::merge;
use meltano_state_host::{CallError, Error, ErrorKind, Instance, Plugin, State};
use serde_json::{Value, json};

use super::arguments::{Format, LockVerb, Verb};
use super::failure::Failure;
use super::lock_run::Renewal;
use super::progress::Waits;
use super::{check, lock, lock_run, output, payload, progress, prompt};

/// Carries a verb out and writes its result. Returns the exit code.
pub(super) async fn execute(plugin: &Plugin, verb: Verb, format: Format) -> Result<u8, Failure> {
    let mut call = Call::new(plugin, &verb, format).await?;
    let result = match verb {
        Verb::Check => check::show(&call.run(async |instance| instance.check().await).await?, format),
        // Shown before there is a plugin.
        Verb::Config => Ok(()),
        Verb::Init => {
            call.run(async |instance| instance.init().await).await?;
            done(format, json!({"initialized": true}), "the tables are ready")
        }
        Verb::List { pattern } => {
            let ids = call.run(async |instance| instance.get_state_ids(pattern.as_deref()).await).await?;
            output::written(match format {
                Format::Text => output::lines(ids.iter().map(String::as_str)),
                Format::Json => output::line(&Value::from(ids).to_string()),
            })
        }
        Verb::Get { state_id } => {
            let state = call.run(async |instance| instance.get(&state_id).await).await?;
            output::written(output::line(&merged(state)?))
        }
        Verb::Set { state_id, payload } => {
            // As Meltano: under the lock, so that a run that is going on does not write in between.
            let state = State { completed_state: Some(payload::read(&payload)?), partial_state: None, state_id };
            call.run(async |instance| instance.update(&state).await).await?;
            let id = &state.state_id;
            done(format, json!({"set": id}), &format!("the state of {id} is set"))
        }
        Verb::Merge { state_id, payload } => {
            let state = State { partial_state: Some(payload::read(&payload)?), completed_state: None, state_id };
            call.run(async |instance| instance.update(&state).await).await?;
            let id = &state.state_id;
            done(format, json!({"merged": id}), &format!("the state of {id} is merged"))
        }
        Verb::Clear { state_id: Some(id), force, .. } => {
            if !force && !prompt::confirm(&format!("Remove the state of {}?", output::visible(&id)))? {
                return Err(kept());
            }
            call.run(async |instance| instance.clear(&id).await).await?;
            done(format, json!({"cleared": id}), &format!("the state of {id} is removed"))
        }
        Verb::Clear { state_id: None, force, .. } => {
            if !force && !prompt::confirm("Remove ALL states?")? {
                return Err(kept());
            }
            let count = call.run(async |instance| instance.clear_all().await).await?;
            done(format, json!({"cleared_count": count}), &format!("{count} states are removed"))
        }
        Verb::Lock(LockVerb::Run { state_id, command }) => {
            return lock_run::run(&mut call, &state_id, Renewal::of(plugin), &command).await;
        }
        Verb::Lock(LockVerb::List { pattern }) => lock::list(&mut call, pattern.as_deref(), format).await,
        Verb::Unlock { state_id, lock_id, force } => {
            lock::unlock(&mut call, &state_id, lock_id.as_deref(), force, format).await
        }
    };
    result.map(|()| 0)
}

/// The id whose lock the verb takes.
fn locked_by(verb: &Verb) -> Option<String> {
    match verb {
        Verb::Set { state_id, .. } | Verb::Merge { state_id, .. } | Verb::Lock(LockVerb::Run { state_id, .. }) => {
            Some(state_id.clone())
        }
        Verb::Clear { state_id, .. } => state_id.clone(),
        Verb::Check | Verb::Config | Verb::Init | Verb::List { .. } | Verb::Get { .. } => None,
        Verb::Lock(_) | Verb::Unlock { .. } => None,
    }
}

/// An instance, and what to say while its calls take long.
pub(super) struct Call {
    pub(super) instance: Instance,
    waits: Waits,
}

impl Call {
    async fn new(plugin: &Plugin, verb: &Verb, format: Format) -> Result<Self, Failure> {
        let waits = Waits {
            for_answer_from: plugin.destination(),
            for_lock_of: locked_by(verb),
            aloud: progress::aloud(format),
        };
        Ok(Self { instance: plugin.instance().await?, waits })
    }

    pub(super) async fn run<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut Instance) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let activity = self.instance.activity();
        Ok(progress::watch(&activity, &self.waits, call(&mut self.instance)).await?)
    }
}

/// What the next run starts from: the partial state laid over the completed one.
fn merged(state: Option<State>) -> Result<String, Failure> {
    const NOTHING: &str = "{}";
    let Some(state) = state else { return Ok(NOTHING.to_owned()) };
    let (completed, partial) = match (state.completed_state.as_deref(), state.partial_state.as_deref()) {
        (Some(completed), Some(partial)) => (completed, partial),
        (one, other) => return Ok(one.or(other).unwrap_or(NOTHING).to_owned()),
    };
    merge(partial, completed).map_err(|error| {
        // The component has read both as JSON objects.
        let message = format!("the stored state of {} cannot be merged: {error:?}", state.state_id);
        CallError::Error(Error::new(ErrorKind::CorruptState, message)).into()
    })
}

/// Confirms a change: to people on standard error, as Meltano does, to programs on standard output.
#[expect(clippy::needless_pass_by_value, reason = "a value made for this call")]
pub(super) fn done(format: Format, result: Value, sentence: &str) -> Result<(), Failure> {
    output::written(match format {
        Format::Text => writeln!(io::stderr(), "{}", output::visible(sentence)),
        Format::Json => output::line(&result.to_string()),
    })
}

pub(super) fn kept() -> Failure {
    Failure::io("nothing was removed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(completed: Option<&str>, partial: Option<&str>, result: &str) {
        let state = State {
            state_id: "dev:a".to_owned(),
            completed_state: completed.map(str::to_owned),
            partial_state: partial.map(str::to_owned),
        };
        assert_eq!(merged(Some(state)).unwrap(), result);
    }

    #[test]
    fn what_get_prints() {
        assert_eq!(merged(None).unwrap(), "{}");
        check(None, None, "{}");
        check(Some("{\"a\": 1.0}"), None, "{\"a\": 1.0}");
        check(None, Some("{\"a\":1}"), "{\"a\":1}");
        check(Some("{\"a\":1,\"b\":1}"), Some("{\"b\":2}"), "{\"a\":1,\"b\":2}");
    }
}
