//! How an attempt to carry out a statement failed.

use crate::error::Error;
use crate::ports::TransportErrorKind;

/// A failed attempt.
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// How far it came.
    pub(crate) stage: Stage,
    /// Whether trying again may help.
    pub(super) passing: bool,
    /// Whether the connection was lost.
    pub(super) lost: bool,
    /// Whether the server may have carried the statement out.
    pub(super) may_have_arrived: bool,
}

/// What a complete answer tells is wrong, or what is wrong with it.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, stage: Stage::Answer, passing: false, lost: false, may_have_arrived: false }
    }
}

/// How far a request came before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The name was not resolved, or no connection stood.
    Connection,
    /// The connection stood, a TLS session did not.
    Tls,
    /// All stood; the answer did not come, or is the failure.
    Answer,
}

impl Stage {
    pub(super) const fn of(kind: TransportErrorKind) -> Self {
        match kind {
            TransportErrorKind::NameNotFound | TransportErrorKind::NotConnected | TransportErrorKind::Denied => {
                Self::Connection
            }
            TransportErrorKind::Tls => Self::Tls,
            TransportErrorKind::TimedOut
            | TransportErrorKind::Lost
            | TransportErrorKind::BadAnswer
            | TransportErrorKind::TooLarge => Self::Answer,
        }
    }
}
