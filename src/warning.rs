//! What a call leaves behind although it was carried out.

use std::cell::RefCell;

use crate::error::Error;

/// What a caller should know of a call that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What was left behind, in a sentence. It never holds a password.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What the present call has left behind so far.
#[derive(Default)]
pub(crate) struct Warnings(RefCell<Vec<Warning>>);

impl Warnings {
    pub(crate) fn add(&self, warning: Warning) {
        self.0.borrow_mut().push(warning);
    }

    /// Ends the call: what it returns, and what it has left behind. A call that failed says the latter with its error.
    pub(crate) fn end<T>(&self, result: Result<T, Error>) -> Result<(T, Vec<Warning>), Error> {
        let warnings = self.0.take();
        match result {
            Ok(value) => Ok((value, warnings)),
            Err(error) => Err(warnings.into_iter().fold(error, with_warning)),
        }
    }
}

fn with_warning(error: Error, Warning { message, hint }: Warning) -> Error {
    let hints = [error.hint.clone(), Some(message), hint];
    error.with_hint(hints.into_iter().flatten().collect::<Vec<_>>().join("; "))
}
