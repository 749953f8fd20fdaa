//! What an instance remembers of its own writes, so that an update need not read.

use std::cell::{Cell, RefCell};

use crate::state::State;

/// States that are larger in bytes are read again, rather than kept in memory.
const LARGEST: usize = 64 << 10;

/// The state that was written last under a lock. It may be stored no longer.
#[derive(Default)]
pub(super) struct LastWritten {
    state: RefCell<Option<State>>,
    is_shared: Cell<bool>,
}

impl LastWritten {
    pub(super) fn get(&self, state_id: &str) -> Option<State> {
        self.state.borrow().as_ref().filter(|state| state.state_id == state_id).cloned()
    }

    pub(super) fn set(&self, state: &State) {
        let mut written = self.state.borrow_mut();
        if written.as_ref().is_none_or(|written| written.state_id != state.state_id) {
            self.is_shared.set(false);
        }
        *written = (state.size() <= LARGEST).then(|| state.clone());
    }

    /// Notes what was found stored.
    pub(super) fn compare(&self, stored: &State) {
        if let Some(written) = self.state.borrow().as_ref().filter(|written| written.state_id == stored.state_id) {
            self.is_shared.set(written != stored);
        }
    }

    /// Whether another had written the state when it was last read. Then it is as well to read it again.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_state_is_kept_if_it_is_small() {
        let state = |state_id: &str, length: usize| State {
            state_id: state_id.to_owned(),
            partial_state: Some("x".repeat(length)),
            completed_state: None,
        };
        let last = LastWritten::default();
        assert_eq!(last.get("a"), None);
        last.set(&state("a", LARGEST));
        assert_eq!(last.get("a"), Some(state("a", LARGEST)));
        assert_eq!(last.get("b"), None);
        last.set(&state("b", 1));
        assert_eq!(last.get("a"), None);
        last.set(&state("b", LARGEST + 1));
        assert_eq!(last.get("b"), None);
    }

    #[test]
    fn a_state_that_another_has_written_is_shared_until_it_is_found_as_it_was_left() {
        let state = |partial: &str| State {
            state_id: "a".to_owned(),
            partial_state: Some(partial.to_owned()),
            completed_state: None,
        };
        let last = LastWritten::default();
        last.compare(&state("theirs"));
        assert!(!last.is_shared(), "nothing was written here");
        last.set(&state("ours"));
        last.compare(&state("theirs"));
        assert!(last.is_shared());
        last.set(&state("ours, after theirs"));
        assert!(last.is_shared(), "the other may go on");
        last.compare(&state("ours, after theirs"));
        assert!(!last.is_shared());
        last.compare(&State { state_id: "b".to_owned(), ..state("theirs") });
        assert!(!last.is_shared());
        last.compare(&state("theirs"));
        last.set(&State { state_id: "b".to_owned(), ..state("ours") });
        assert!(!last.is_shared(), "that was another state");
    }
}
