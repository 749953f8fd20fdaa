//! The operations on states.

use crate::clickhouse::{Client, text};
use crate::error::{Error, ErrorKind};
use crate::glob;
use crate::lock::{self, Lock};
use crate::state::{self, MergeError, State};

/// States, stored in ClickHouse by state id. What each operation promises stands in `wit/store.wit`.
pub struct Store<'a> {
    client: Client<'a>,
}

/// A row of the state table: when it was written in milliseconds since 1970, partial and completed part.
type Row = [Option<Vec<u8>>; 3];

impl<'a> Store<'a> {
    /// A store on the client's tables.
    #[must_use]
    pub fn new(client: Client<'a>) -> Self {
        Self { client }
    }

    /// Creates the database and the tables where they do not exist.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn init(&self) -> Result<(), Error> {
        self.client.create_tables()
    }

    /// The state of `state_id`.
    ///
    /// # Errors
    /// [`ErrorKind::CorruptState`] if what is stored is no JSON object; otherwise as the server reports them.
    pub fn get(&self, state_id: &str) -> Result<Option<State>, Error> {
        check_state_id(state_id)?;
        let Some([_, partial, completed]) = self.newest_row(state_id)? else {
            return Ok(None);
        };
        Ok(Some(State {
            state_id: state_id.to_owned(),
            partial_state: stored_part(state_id, "partial", partial)?,
            completed_state: stored_part(state_id, "completed", completed)?,
        }))
    }

    /// The ids of the states that match a glob; none and the empty one match all.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn get_state_ids(&self, pattern: Option<&str>) -> Result<Vec<String>, Error> {
        let selection = glob::translate(pattern.unwrap_or_default());
        let Some(answer) = self.client.run_if_exists(&self.client.tables().get_state_ids(&selection))? else {
            return Ok(Vec::new());
        };
        let rows = answer.rows::<2>()?;
        // An id that is not UTF-8 can only come from elsewhere; it is shown as well as it can be.
        let lossy = |id: Option<Vec<u8>>| String::from_utf8_lossy(&id.unwrap_or_default()).into_owned();
        Ok(rows.into_iter().map(|[_, id]| lossy(id)).collect())
    }

    /// Stores a state in place of any that its id has.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidState`] if a part is no JSON object; otherwise as the server reports them.
    pub fn set(&self, state: &State) -> Result<(), Error> {
        let state = checked(state)?;
        self.client.run_creating(&self.client.tables().set(&state, None)).map(drop)
    }

    /// Records what a pipeline has reached, under the lock.
    ///
    /// # Errors
    /// As [`Self::set`]; [`ErrorKind::Locked`], [`ErrorKind::LockLost`], and [`ErrorKind::CorruptState`] if what is
    /// stored cannot be merged with.
    pub fn update(&self, state: &State) -> Result<(), Error> {
        let state = checked(state)?;
        self.locked(&state.state_id, |lock| {
            // A complete state replaces whatever is stored.
            let stored = if state.completed_state.is_none() { self.get(&state.state_id)? } else { None };
            match stored {
                Some(stored) => self.write_fenced(&merge_partial(&state, stored)?, lock),
                None => self.write_fenced(&state, lock),
            }
        })
    }

    /// Removes a state. It is no error if there is none.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn delete(&self, state_id: &str) -> Result<(), Error> {
        check_state_id(state_id)?;
        self.client.delete(self.client.tables().delete(state_id, None))
    }

    /// Removes a state under its lock. It is no error if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`]; otherwise as the server reports them.
    pub fn clear(&self, state_id: &str) -> Result<(), Error> {
        check_state_id(state_id)?;
        self.locked(state_id, |_| {
            // Only the versions that were there under the lock: had the lock been lost since, what its next holder
            // writes is newer and stays.
            let Some([updated_at, ..]) = self.newest_row(state_id)? else { return Ok(()) };
            let newest = text(updated_at)?;
            self.client.delete(self.client.tables().delete(state_id, Some(&newest)))
        })
    }

    /// Removes all states and says how many there were. States written while it runs may stay.
    ///
    /// # Errors
    /// As the server reports them.
    pub fn clear_all(&self) -> Result<u64, Error> {
        let Some(answer) = self.client.run_if_exists(&self.client.tables().count())? else {
            return Ok(0);
        };
        let [count, newest] = answer.rows::<2>()?.pop().ok_or_else(no_row)?;
        let count = text(count)?.parse().map_err(|_| no_row())?;
        if count > 0 {
            self.client.delete(self.client.tables().delete_all(&text(newest)?))?;
        }
        Ok(count)
    }

    fn newest_row(&self, state_id: &str) -> Result<Option<Row>, Error> {
        match self.client.run_if_exists(&self.client.tables().get(state_id))? {
            Some(answer) => Ok(answer.rows()?.pop()),
            None => Ok(None),
        }
    }

    /// Runs `body` under the lock of a state id. A failing release hides neither what `body` did nor its error.
    fn locked<T>(&self, state_id: &str, body: impl FnOnce(&Lock) -> Result<T, Error>) -> Result<T, Error> {
        let lock = lock::acquire(&self.client, state_id)?;
        let result = body(&lock);
        let _ = lock.release(&self.client);
        result
    }

    fn write_fenced(&self, state: &State, lock: &Lock) -> Result<(), Error> {
        let statement = self.client.tables().set(state, Some(lock.lock_id()));
        match self.client.run_creating(&statement)?.written_rows {
            Some(0) => Err(Error::new(
                ErrorKind::LockLost,
                format!("the lock of state id {:?} was lost before the write; nothing was written", state.state_id),
            )
            .with_hint("another process took the lock, or this one stood still for too long; run the pipeline again")),
            Some(_) => Ok(()),
            None => Err(Error::new(
                ErrorKind::OutcomeUnknown,
                "the answer lacks X-ClickHouse-Summary, so it does not say whether the write was carried out",
            )
            .with_hint("look for a proxy between here and the server that removes headers")),
        }
    }
}

fn check_state_id(state_id: &str) -> Result<(), Error> {
    if state_id.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "the state id is empty")
            .with_hint("a state id names a pipeline, such as dev:tap-gitlab-to-target-jsonl"));
    }
    Ok(())
}

/// The state as it is stored: an empty object is no value.
fn checked(state: &State) -> Result<State, Error> {
    check_state_id(&state.state_id)?;
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
fn merge_partial(state: &State, stored: State) -> Result<State, Error> {
    let partial_state = match (&state.partial_state, &stored.partial_state) {
        (Some(new), Some(old)) => Some(state::merge(new, old).map_err(|error| match error {
            MergeError::Source(error) => invalid_state(&state.state_id, "partial", &error),
            MergeError::Destination(error) => corrupt_state(&state.state_id, "partial", &error),
            MergeError::TooDeep => invalid_state(&state.state_id, "partial", &"objects lie too deep within each other"),
        })?),
        (new, old) => new.as_ref().or(old.as_ref()).cloned(),
    };
    Ok(State { partial_state, ..stored })
}

fn invalid_state(state_id: &str, part: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidState, format!("the {part} state given for {state_id:?} is no JSON object: {error}"))
        .with_hint("a state is a JSON object, such as {\"singer_state\": {\"bookmarks\": {}}}")
}

fn corrupt_state(state_id: &str, part: &str, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::CorruptState, format!("the stored {part} state of {state_id:?} is no JSON object: {error}"))
        .with_hint("nothing was changed; set or delete this state to repair it")
}

fn no_row() -> Error {
    Error::new(ErrorKind::Protocol, "the server counted no rows where a count was asked for")
}
