//! States on their way into the table and out of it: what is accepted, what is corrupt, how an update merges.

use std::str::FromStr;
use std::time::Duration;

use crate::clickhouse::{incomplete, text};
use crate::error::{Error, ErrorKind};
use crate::state::{Entry, LARGEST, LONGEST_ID, MergeError, RawState, State, check_object, merge};

/// A row of the state table: when it was written in milliseconds since 1970, its partial and its completed part.
pub(crate) type Row = [Option<Vec<u8>>; 3];

/// A row of a page: when it was written, its age in seconds, the size of its parts, its id, and the parts, which are absent
/// where they are too large.
pub(crate) type PageRow = [Option<Vec<u8>>; 6];

/// The state in a row.
pub(crate) fn stored(state_id: &str, row: Row) -> Result<State, Error> {
    let [_, partial, completed] = row;
    let length = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
    stored_parts(state_id, length(&partial) + length(&completed), partial, completed)
}

/// What is in a row, whatever it is.
pub(crate) fn raw([updated_at, partial_state, completed_state]: Row) -> Result<RawState, Error> {
    Ok(RawState { updated_at: number(updated_at)?, partial_state, completed_state })
}

/// What is in a row of a page.
pub(crate) fn entry([updated_at, age, size, state_id, partial, completed]: PageRow) -> Result<Entry, Error> {
    let state_id = text(state_id)?;
    let size = number(size)?;
    let bytes = usize::try_from(size).unwrap_or(usize::MAX);
    let content = stored_parts(&state_id, bytes, partial, completed);
    Ok(Entry { updated_at: number(updated_at)?, age: Duration::from_secs(number(age)?), size, content, state_id })
}

fn stored_parts(
    state_id: &str,
    size: usize,
    partial: Option<Vec<u8>>,
    completed: Option<Vec<u8>>,
) -> Result<State, Error> {
    if size > LARGEST {
        let (mib, most) = (size.div_ceil(1 << 20), LARGEST >> 20);
        return Err(corrupt_state(format!(
            "the stored state of {state_id:?} holds {mib} MiB, more than the {most} MiB that one may"
        )));
    }
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
    if state_id.len() > LONGEST_ID {
        let message = format!("the state id has {} bytes, more than the {LONGEST_ID} that one may", state_id.len());
        return Err(Error::new(ErrorKind::InvalidArgument, message).with_hint("choose a shorter id"));
    }
    Ok(())
}

/// The state as it is stored: an empty object is no value.
pub(crate) fn checked(state: &State) -> Result<State, Error> {
    check_state_id(&state.state_id)?;
    check_size(&state.state_id, state.size())?;
    let part = |name: &str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        match check_object(text) {
            Ok(true) => Ok(Some(text.clone())),
            Ok(false) => Ok(None),
            Err(reason) => Err(invalid_state(&state.state_id, name, &reason)),
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
    let text = String::from_utf8(bytes).map_err(|error| corrupt_part(state_id, name, &error.to_string()))?;
    match check_object(&text) {
        Ok(members) => Ok(members.then_some(text)),
        Err(reason) => Err(corrupt_part(state_id, name, &reason)),
    }
}

/// The state with its partial part laid over the stored one; the stored completed part stays.
pub(crate) fn merge_partial(state: &State, stored: State) -> Result<State, Error> {
    let partial_state = merge_parts(&state.state_id, state.partial_state.as_deref(), stored.partial_state)?;
    let merged = State { partial_state, ..stored };
    check_size(&merged.state_id, merged.size())?;
    Ok(merged)
}

/// What a run starts from: the partial part laid over the completed one.
pub(crate) fn merged(state: State) -> Result<Option<String>, Error> {
    merge_parts(&state.state_id, state.partial_state.as_deref(), state.completed_state)
}

fn merge_parts(state_id: &str, new: Option<&str>, old: Option<String>) -> Result<Option<String>, Error> {
    let (new, old) = match (new, old) {
        (Some(new), Some(old)) => (new, old),
        (new, old) => return Ok(new.map(str::to_owned).or(old)),
    };
    check_size(state_id, new.len() + old.len())?;
    match merge(new, &old) {
        Ok(merged) => Ok(Some(merged)),
        Err(MergeError::Source(reason)) => Err(invalid_state(state_id, "partial", &reason)),
        Err(MergeError::Destination(reason)) => Err(corrupt_part(state_id, "partial", &reason)),
    }
}

fn check_size(state_id: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= LARGEST {
        return Ok(());
    }
    let (mib, most) = (bytes.div_ceil(1 << 20), LARGEST >> 20);
    Err(Error::new(
        ErrorKind::InvalidState,
        format!(
            "the state of {state_id:?} would hold {mib} MiB, more than the {most} MiB that one may; nothing was written"
        ),
    )
    .with_hint("keep data out of states: they are for bookmarks"))
}

fn invalid_state(state_id: &str, part: &str, reason: &str) -> Error {
    Error::new(ErrorKind::InvalidState, format!("the {part} state given for {state_id:?} cannot be used: {reason}"))
        .with_hint("a state is a JSON object, such as {\"singer_state\": {\"bookmarks\": {}}}")
}

fn corrupt_part(state_id: &str, part: &str, reason: &str) -> Error {
    corrupt_state(format!("the stored {part} state of {state_id:?} cannot be used: {reason}"))
}

fn corrupt_state(message: String) -> Error {
    Error::new(ErrorKind::CorruptState, message).with_hint(
        "nothing was changed; meltano-state get --raw (get-raw) shows what is stored; set or clear this state to repair it",
    )
}

fn number<T: FromStr>(field: Option<Vec<u8>>) -> Result<T, Error> {
    text(field)?.parse().map_err(|_| incomplete())
}
