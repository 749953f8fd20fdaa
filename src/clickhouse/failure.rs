//! How an attempt to carry out a statement failed.

use crate::clickhouse::passing::{self, Again, Outcome};
use crate::clickhouse::{Effect, explain};
use crate::error::{Error, ErrorKind};
use crate::ports::TransportErrorKind;

/// A failed attempt, or all attempts with the error of the last.
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// How far it came.
    pub(crate) stage: Stage,
    /// What may be sent again.
    pub(super) again: Again,
    /// Whether the server may have carried the statement out, or may yet do it.
    pub(super) may_have_arrived: bool,
    /// What is wrong with the connection, if that is it.
    pub(super) connection: Option<Broken>,
}

/// What is wrong with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// There is none: the server has not seen the request.
    Absent,
    /// It ended early.
    Lost,
}

impl Failure {
    /// Whether the statement was not carried out for sure: it was not sent, or ClickHouse itself says so. A proxy's word is
    /// not enough.
    pub(crate) fn is_settled(&self) -> bool {
        !self.may_have_arrived && (self.stage != Stage::Answer || self.error.server.is_some())
    }

    /// The error for who sent a statement of that effect.
    pub(super) fn into_error(self, effect: Effect) -> Error {
        match effect {
            Effect::Idempotent | Effect::Once if self.may_have_arrived => explain::outcome_unknown(self.error),
            _ => self.error,
        }
    }

    /// No complete answer came. `has_answered` is whether the server has answered this client before: then one that
    /// cannot be reached is most likely being restarted.
    pub(super) fn of_transport(kind: TransportErrorKind, error: Error, has_answered: bool) -> Self {
        let connection = match kind {
            TransportErrorKind::Lost => Some(Broken::Lost),
            TransportErrorKind::NameNotFound | TransportErrorKind::NotConnected | TransportErrorKind::Tls
                if has_answered =>
            {
                Some(Broken::Absent)
            }
            _ => None,
        };
        let again = match connection {
            Some(Broken::Absent) => Again::Everything,
            Some(Broken::Lost) => Again::Repeatable,
            None => Again::Nothing,
        };
        Self { error, stage: Stage::of(kind), again, may_have_arrived: kind.may_have_arrived(), connection }
    }

    /// What a complete answer of this status tells is wrong, or what is wrong with it.
    pub(super) fn of_answer(status: u16, error: Error) -> Self {
        let (again, outcome) = match &error.server {
            Some(server) => passing::judge(server.code, &error.message),
            None => {
                let again = if error.kind == ErrorKind::Unreachable { Again::Repeatable } else { Again::Nothing };
                // An answer that is not ClickHouse's does not tell what ClickHouse did, unless it refuses the request.
                let refused = matches!(status, 400..=499 | 503);
                (again, if refused { Outcome::NotCarriedOut } else { Outcome::Unknown })
            }
        };
        Self { error, stage: Stage::Answer, again, may_have_arrived: outcome == Outcome::Unknown, connection: None }
    }
}

impl AsRef<Error> for Failure {
    fn as_ref(&self) -> &Error {
        &self.error
    }
}

/// An answer that is complete, and not what was asked for.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, stage: Stage::Answer, again: Again::Nothing, may_have_arrived: false, connection: None }
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
