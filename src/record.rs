//! States on their way into the table and out of it: what is accepted, what is corrupt, how an update merges.

use crate::error::{Error, ErrorKind};
use crate::state::{self, MergeError, State};

/// A row of the state table: when it was written in milliseconds since 1970, its partial and its completed part.
pub(crate) type Row = [Option<Vec<u8>>; 3];

/// The state in a row.
pub(crate) fn stored(state_id: &str, row: Row) -> Result<State, Error> {
    let [_, partial, completed] = row;
    Ok(State {
        state_id: state_id.to_owned(),
        partial_state: stored_part(state_id, "partial", partial)?,
        completed_state: stored_part(state_id, "completed", completed)?,
    })
}

pub(crate) fn check_state_id(state_id: &str) -> Result<(), Error> {
    if state_id.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "the state id is empty")
            .with_hint("a state id names a pipeline, such as dev:tap-gitlab-to-target-jsonl"));
    }
    Ok(())
}

/// The state as it is stored: an empty object is no value.
pub(crate) fn checked(state: &State) -> Result<State, Error> {
    check_state_id(&state.state_id)?;
    let length = |part: &Option<String>| part.as_deref().map_or(0, str::len);
    check_size(&state.state_id, length(&state.partial_state) + length(&state.completed_state))?;
    let part = |name: &str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        match state::has_members(text) {
            Ok(true) => Ok(Some(text.clone())),
            Ok(false) => Ok(None),
            Err(error) => Err(invalid_state(&state.state_id, name, &error)),
        }
    };
    Ok(State {
        state_id: state.state_id.clone(),
        partial_state: part("partial", &state.partial_state)?,
        completed_state: part("completed", &state.completed_state)?,
    })
}

/// A stored part; an empty object, which others may store, is no value.
fn stored_part(state_id: &str, name: &str, field: Option<Vec<u8>>) -> Result<Option<String>, Error> {
    let Some(bytes) = field else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|error| corrupt_state(state_id, name, &error))?;
    match state::has_members(&text) {
        Ok(members) => Ok(members.then_some(text)),
        Err(error) => Err(corrupt_state(state_id, name, &error)),
    }
}

/// The state with its partial part laid over the stored one; the stored completed part stays.
pub(crate) fn merge_partial(state: &State, stored: State) -> Result<State, Error> {
    let partial_state = match (&state.partial_state, &stored.partial_state) {
        (Some(new), Some(old)) => {
            check_size(&state.state_id, new.len() + old.len())?;
            let merged = state::merge(new, old).map_err(|error| match error {
                MergeError::Source(error) => invalid_state(&state.state_id, "partial", &error),
                MergeError::Destination(error) => corrupt_state(&state.state_id, "partial", &error),
                MergeError::TooDeep => {
                    invalid_state(&state.state_id, "partial", &"objects lie too deep within each other")
                }
            })?;
            Some(merged)
        }
        (new, old) => new.as_ref().or(old.as_ref()).cloned(),
    };
    Ok(State { partial_state, ..stored })
}

/// What one write may hold, and what two states that are merged may hold together: the memory that hosts commonly give a
/// component has room for a few copies of it, and to run out of memory under a lock would leave the lock behind.
const LARGEST_STATE: usize = 24 << 20;

fn check_size(state_id: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= LARGEST_STATE {
        return Ok(());
    }
    let (mib, most) = (bytes.div_ceil(1 << 20), LARGEST_STATE >> 20);
    Err(Error::new(
        ErrorKind::InvalidState,
        format!(
            "the state of {state_id:?} would hold {mib} MiB, more than the {most} MiB that one may; nothing was written"
        ),
    )
    .with_hint("keep data out of states: they are for bookmarks"))
}

fn invalid_state(state_id: &str, part: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidState, format!("the {part} state given for {state_id:?} is no JSON object: {error}"))
        .with_hint("a state is a JSON object, such as {\"singer_state\": {\"bookmarks\": {}}}")
}

fn corrupt_state(state_id: &str, part: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::CorruptState, format!("the stored {part} state of {state_id:?} is no JSON object: {error}"))
        .with_hint("nothing was changed; set or delete this state to repair it")
}
