//! What is stored of a state.

use meltano_state_backend_clickhouse::state::merge;
use meltano_state_host::{CallError, Entry, Error, ErrorKind, State};
use serde::Serialize;

use super::call::Call;
use super::failure::Failure;
use super::human;

/// What is stored under an id, in one request that transfers nothing else.
pub(super) async fn read(call: &mut Call, state_id: &str) -> Result<Option<Entry>, Failure> {
    named(state_id)?;
    let pattern = literal(state_id);
    let page = call.run(async |instance| instance.get_all(Some(&pattern), None, Some(1)).await).await?;
    Ok(page.into_iter().next())
}

/// As [`read`], and an error if nothing is there or it is no state.
pub(super) async fn expect(call: &mut Call, state_id: &str) -> Result<State, Failure> {
    let entry = read(call, state_id).await?.ok_or_else(|| missing(state_id))?;
    entry.content.map_err(|error| CallError::Error(error).into())
}

pub(super) fn missing(state_id: &str) -> Failure {
    Failure::refused(format!("there is no state of {state_id}"), "meltano-state list shows all ids")
}

/// An empty id names nothing, and as a pattern it would match everything.
pub(super) fn named(state_id: &str) -> Result<(), Failure> {
    if state_id.is_empty() {
        let hint = "a state id names a pipeline, such as dev:tap-gitlab-to-target-jsonl";
        return Err(Failure::unusable("the state id is empty", hint));
    }
    Ok(())
}

/// The glob that matches this id alone.
pub(super) fn literal(state_id: &str) -> String {
    state_id.chars().fold(String::new(), |mut glob, c| {
        match c {
            '*' | '?' | '[' => glob.extend(['[', c, ']']),
            c => glob.push(c),
        }
        glob
    })
}

/// Which parts a stored state has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Parts {
    Complete,
    Partial,
    Both,
    Empty,
    Unreadable,
}

impl Parts {
    pub(super) fn of(content: &Result<State, Error>) -> Self {
        let Ok(state) = content else { return Self::Unreadable };
        match (&state.completed_state, &state.partial_state) {
            (Some(_), Some(_)) => Self::Both,
            (Some(_), None) => Self::Complete,
            (None, Some(_)) => Self::Partial,
            (None, None) => Self::Empty,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Both => "both",
            Self::Empty => "empty",
            Self::Unreadable => "unreadable",
        }
    }
}

/// What a program is told of a stored state.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) status: Parts,
    pub(super) version: i64,
    pub(super) updated_at: String,
    pub(super) age_seconds: u64,
    pub(super) size: u64,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Summary {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            status: Parts::of(&entry.content),
            version: entry.updated_at,
            updated_at: human::time(entry.updated_at),
            age_seconds: entry.age.as_secs(),
            size: entry.size,
            error: entry.content.as_ref().err().map(|error| error.message.clone()),
        }
    }
}

/// For people, such as `both, 1.2 KiB, 3 d old`.
pub(super) fn describe(entry: &Entry) -> String {
    let parts = match Parts::of(&entry.content) {
        Parts::Both => "complete and partial",
        other => other.name(),
    };
    format!("{parts}, {}, {} old", human::size(entry.size), human::age(entry.age))
}

/// What the next run starts from: the partial state laid over the completed one.
pub(super) fn merged(state: State) -> Result<Option<String>, Failure> {
    let (completed, partial) = match (state.completed_state, state.partial_state) {
        (Some(completed), Some(partial)) => (completed, partial),
        (one, other) => return Ok(one.or(other)),
    };
    merge(&partial, &completed).map(Some).map_err(|error| {
        // The component has read both as JSON objects.
        let message = format!("the stored state of {} cannot be merged: {error:?}", state.state_id);
        CallError::Error(Error::new(ErrorKind::CorruptState, message)).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(completed: Option<&str>, partial: Option<&str>, parts: Parts, result: Option<&str>) {
        let state = State {
            state_id: "dev:a".to_owned(),
            completed_state: completed.map(str::to_owned),
            partial_state: partial.map(str::to_owned),
        };
        assert_eq!(Parts::of(&Ok(state.clone())), parts);
        assert_eq!(merged(state).unwrap().as_deref(), result);
    }

    #[test]
    fn parts_and_what_they_make_together() {
        check(None, None, Parts::Empty, None);
        check(Some("{\"a\": 1.0}"), None, Parts::Complete, Some("{\"a\": 1.0}"));
        check(None, Some("{\"a\":1}"), Parts::Partial, Some("{\"a\":1}"));
        check(Some("{\"a\":1,\"b\":1}"), Some("{\"b\":2}"), Parts::Both, Some("{\"a\":1,\"b\":2}"));
    }

    #[test]
    fn an_id_as_a_glob() {
        assert_eq!(literal("a*b?[c]"), "a[*]b[?][[]c]");
    }
}
