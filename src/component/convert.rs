//! Between the backend's types and the WIT package's, in one place.

use super::bindings::exports::meltano::state_backend::{diagnostics, history, locking};
use super::bindings::meltano::state_backend::types as wit;
use crate::diagnose::{Report, Status, Step};
use crate::error::{Details, Error, ErrorKind, ServerError};
use crate::lock::Holder;
use crate::prepare::{Deed, Prepared, Thing};
use crate::state::{Entry, RawState, State};
use crate::store::Keeping;
use crate::warning::Warning;

impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        let Details { kind, message, hint, server } = error.into_details();
        Self { kind: kind.into(), message, hint, server: server.map(Into::into) }
    }
}

impl From<Warning> for wit::Warning {
    fn from(Warning { message, hint }: Warning) -> Self {
        Self { message, hint }
    }
}

impl From<ServerError> for wit::ServerError {
    fn from(error: ServerError) -> Self {
        Self { code: error.code, name: error.name, query_id: error.query_id }
    }
}

impl From<ErrorKind> for wit::ErrorKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::MissingSetting => Self::MissingSetting,
            ErrorKind::InvalidSetting => Self::InvalidSetting,
            ErrorKind::InvalidArgument => Self::InvalidArgument,
            ErrorKind::InvalidState => Self::InvalidState,
            ErrorKind::CorruptState => Self::CorruptState,
            ErrorKind::Unreachable => Self::Unreachable,
            ErrorKind::Tls => Self::Tls,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::Authentication => Self::Authentication,
            ErrorKind::PermissionDenied => Self::PermissionDenied,
            ErrorKind::UnsupportedServer => Self::UnsupportedServer,
            ErrorKind::SchemaMismatch => Self::SchemaMismatch,
            ErrorKind::Locked => Self::Locked,
            ErrorKind::LockLost => Self::LockLost,
            ErrorKind::OutcomeUnknown => Self::OutcomeUnknown,
            ErrorKind::Protocol => Self::Protocol,
            ErrorKind::Server => Self::Server,
        }
    }
}

impl From<Holder> for locking::Holder {
    fn from(holder: Holder) -> Self {
        let Holder { state_id, row, expires_in } = holder;
        Self {
            state_id,
            lock_id: row.lock_id,
            owner: row.owner,
            locked_at: row.locked_at,
            age_seconds: row.age.as_secs(),
            expires_in_seconds: expires_in.as_secs(),
            stale: row.stale,
        }
    }
}

impl From<State> for wit::State {
    fn from(state: State) -> Self {
        Self { state_id: state.state_id, partial_state: state.partial_state, completed_state: state.completed_state }
    }
}

impl From<wit::State> for State {
    fn from(state: wit::State) -> Self {
        Self { state_id: state.state_id, partial_state: state.partial_state, completed_state: state.completed_state }
    }
}

impl From<Entry> for wit::Entry {
    fn from(entry: Entry) -> Self {
        Self {
            state_id: entry.state_id,
            updated_at: entry.updated_at,
            age_seconds: entry.age.as_secs(),
            size: entry.size,
            content: entry.content.map(Into::into).map_err(Into::into),
        }
    }
}

impl From<RawState> for wit::RawState {
    fn from(state: RawState) -> Self {
        Self {
            updated_at: state.updated_at,
            partial_state: state.partial_state,
            completed_state: state.completed_state,
        }
    }
}

impl From<Prepared> for wit::Prepared {
    fn from(prepared: Prepared) -> Self {
        let Prepared { thing, name, deed, note, hint } = prepared;
        let thing = match thing {
            Thing::Database => wit::Thing::Database,
            Thing::StateTable => wit::Thing::StateTable,
            Thing::LockTable => wit::Thing::LockTable,
            Thing::History => wit::Thing::History,
        };
        let deed = match deed {
            Deed::Created => wit::Deed::Created,
            Deed::Upgraded => wit::Deed::Upgraded,
            Deed::Begun => wit::Deed::Begun,
            Deed::Changed => wit::Deed::Changed,
            Deed::Ended => wit::Deed::Ended,
            Deed::Right => wit::Deed::Right,
            Deed::Left => wit::Deed::Left,
        };
        Self { thing, name, deed, note, hint }
    }
}

impl From<Keeping> for history::Keeping {
    fn from(keeping: Keeping) -> Self {
        Self { days: keeping.days, recording: keeping.recording }
    }
}

impl From<Report> for diagnostics::Report {
    fn from(report: Report) -> Self {
        Self { steps: report.steps.into_iter().map(Into::into).collect() }
    }
}

impl From<Step> for diagnostics::Step {
    fn from(step: Step) -> Self {
        Self {
            name: step.name,
            status: match step.status {
                Status::Ok => diagnostics::Status::Ok,
                Status::Warning => diagnostics::Status::Warning,
                Status::Failed => diagnostics::Status::Failed,
                Status::Skipped => diagnostics::Status::Skipped,
            },
            tried: step.tried,
            found: step.found,
            hint: step.hint,
        }
    }
}
