//! Operations on many states at once.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Store, all_stored};
use crate::clickhouse::Window;
use crate::error::Error;
use crate::glob;
use crate::record::{self, checked};
use crate::state::{Entry, State};

/// How many states a page has unless the caller says otherwise.
const ROWS: u32 = 10_000;
/// How many bytes of states a page has at most, unless its first state has more.
pub(super) const BYTES: u64 = 8 << 20;
/// How many bytes of states travel with one statement, unless the first has more.
const BYTES_TO_SEND: usize = 16 << 20;

impl Store<'_> {
    /// The next states that match a glob, by their ids: those after the id `after`, or the first ones.
    ///
    /// # Errors
    /// As the server reports them. A state that cannot be used is an entry that says why.
    pub fn get_all(&self, pattern: Option<&str>, after: Option<&str>, limit: Option<u32>) -> Result<Vec<Entry>, Error> {
        let selection = glob::translate(pattern.unwrap_or_default());
        let window = Window { rows: limit.unwrap_or(ROWS), bytes: BYTES };
        let statement = self.client().tables().get_all(&selection, after, window);
        let Some(answer) = self.client().run_if_exists(&statement)? else { return Ok(Vec::new()) };
        answer.rows()?.into_iter().map(record::entry).collect()
    }

    /// Stores many states and says how many. Of several with one id the last is stored.
    ///
    /// # Errors
    /// As [`Store::set`], naming the state, before anything is written; otherwise as the server reports them.
    pub fn set_all(&self, states: &[State]) -> Result<u64, Error> {
        // Of the type that the check of states has its names in: one of its own would take 3 KB of the component.
        let mut ids = BTreeSet::new();
        let states = states.iter().rev().filter(|state| ids.insert(Cow::Borrowed(state.state_id.as_str())));
        let states = states.map(checked).collect::<Result<Vec<_>, _>>()?;
        let mut rest = states.iter().peekable();
        while rest.peek().is_some() {
            let mut bytes = 0;
            let mut batch = Vec::new();
            while let Some(state) = rest.next_if(|state| batch.is_empty() || bytes + size(state) <= BYTES_TO_SEND) {
                bytes += size(state);
                batch.push(state);
            }
            all_stored(&self.client().run_creating(&self.client().tables().set_all(&batch))?, batch.len())?;
        }
        Ok(states.len() as u64)
    }
}

fn size(state: &State) -> usize {
    state.state_id.len() + state.size()
}
