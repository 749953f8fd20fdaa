//! What can be wrong with settings, gathered into one error.

use super::names::{URI, environment_variable, full_name};
use crate::error::{Error, ErrorKind};

/// What is wrong with one setting.
pub(crate) struct Fault {
    kind: ErrorKind,
    message: String,
    hint: String,
}

impl Fault {
    pub(crate) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: ErrorKind::InvalidSetting, message: message.into(), hint: hint.into() }
    }

    pub(super) fn missing(name: &str, place_in_uri: &str) -> Self {
        let full_name = full_name(name);
        Self {
            kind: ErrorKind::MissingSetting,
            message: format!("{full_name} is required and is not set"),
            hint: format!(
                "set {full_name}, or {environment}, or write it into {URI} as {place_in_uri}",
                environment = environment_variable(&full_name),
            ),
        }
    }
}

/// One error for all faults; of their kinds the first counts.
pub(super) fn summarize(faults: Vec<Fault>) -> Option<Error> {
    let kind = faults.first()?.kind;
    let (messages, mut hints): (Vec<_>, Vec<_>) = faults.into_iter().map(|fault| (fault.message, fault.hint)).unzip();
    hints.dedup();
    Some(Error::new(kind, messages.join("; ")).with_hint(hints.join("; ")))
}
