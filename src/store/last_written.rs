//! What an instance remembers of its own writes, so that an update need not read.

use std::cell::RefCell;

use crate::state::State;

/// States that are larger in bytes are read again, rather than kept in memory.
const LARGEST: usize = 64 << 10;

/// The state that was written last under a lock. It may be stored no longer.
#[derive(Default)]
pub(super) struct LastWritten(RefCell<Option<State>>);

impl LastWritten {
    pub(super) fn get(&self, state_id: &str) -> Option<State> {
        self.0.borrow().as_ref().filter(|state| state.state_id == state_id).cloned()
    }

    pub(super) fn set(&self, state: &State) {
        *self.0.borrow_mut() = (state.size() <= LARGEST).then(|| state.clone());
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
}
