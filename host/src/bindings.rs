//! The exports of the component, as the WIT package describes them, and their conversion into plain types.

use std::time::Duration;

use meltano_state_backend_clickhouse::diagnose::{Report, Status, Step};
use meltano_state_backend_clickhouse::lock::Acquire;
use meltano_state_backend_clickhouse::prepare::{Deed, Prepared, Thing};
use meltano_state_backend_clickhouse::state::{Entry, RawState, State};
use meltano_state_backend_clickhouse::store::Keeping;
use meltano_state_backend_clickhouse::{Details, Error, ErrorKind, ServerError, Warning};

use crate::lock::Holder;

mod generated {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "state-backend",
        exports: { default: async },
    });
}

pub(crate) use generated::{StateBackend, StateBackendPre};

use generated::exports::meltano::state_backend::{diagnostics, history};
use generated::meltano::state_backend::types as wit;
pub(crate) use wit::Error as ComponentError;

use generated::exports::meltano::state_backend::locking;

impl From<&Acquire> for locking::AcquireOptions {
    fn from(options: &Acquire) -> Self {
        Self {
            wait_seconds: options.wait_seconds,
            retry_seconds: options.retry_seconds,
            stale_seconds: options.stale_seconds,
            owner: Some(options.owner.clone()),
        }
    }
}

impl From<locking::Holder> for Holder {
    fn from(holder: locking::Holder) -> Self {
        Self {
            state_id: holder.state_id,
            lock_id: holder.lock_id,
            owner: holder.owner,
            locked_at: holder.locked_at,
            age: Duration::from_secs(holder.age_seconds),
            expires_in: Duration::from_secs(holder.expires_in_seconds),
            stale: holder.stale,
        }
    }
}

impl From<wit::State> for State {
    fn from(state: wit::State) -> Self {
        Self { state_id: state.state_id, partial_state: state.partial_state, completed_state: state.completed_state }
    }
}

impl From<wit::Entry> for Entry {
    fn from(entry: wit::Entry) -> Self {
        Self {
            state_id: entry.state_id,
            updated_at: entry.updated_at,
            age: Duration::from_secs(entry.age_seconds),
            size: entry.size,
            content: entry.content.map(Into::into).map_err(Into::into),
        }
    }
}

impl From<wit::RawState> for RawState {
    fn from(state: wit::RawState) -> Self {
        Self {
            updated_at: state.updated_at,
            partial_state: state.partial_state,
            completed_state: state.completed_state,
        }
    }
}

impl From<&State> for wit::State {
    fn from(state: &State) -> Self {
        Self {
            state_id: state.state_id.clone(),
            partial_state: state.partial_state.clone(),
            completed_state: state.completed_state.clone(),
        }
    }
}

impl From<wit::Warning> for Warning {
    fn from(warning: wit::Warning) -> Self {
        Self { message: warning.message, hint: warning.hint }
    }
}

impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Self {
        let server =
            error.server.map(|server| ServerError { code: server.code, name: server.name, query_id: server.query_id });
        Details { kind: error.kind.into(), message: error.message, hint: error.hint, server }.into()
    }
}

impl From<wit::ErrorKind> for ErrorKind {
    fn from(kind: wit::ErrorKind) -> Self {
        match kind {
            wit::ErrorKind::MissingSetting => Self::MissingSetting,
            wit::ErrorKind::InvalidSetting => Self::InvalidSetting,
            wit::ErrorKind::InvalidArgument => Self::InvalidArgument,
            wit::ErrorKind::InvalidState => Self::InvalidState,
            wit::ErrorKind::CorruptState => Self::CorruptState,
            wit::ErrorKind::Unreachable => Self::Unreachable,
            wit::ErrorKind::Tls => Self::Tls,
            wit::ErrorKind::TimedOut => Self::TimedOut,
            wit::ErrorKind::Authentication => Self::Authentication,
            wit::ErrorKind::PermissionDenied => Self::PermissionDenied,
            wit::ErrorKind::UnsupportedServer => Self::UnsupportedServer,
            wit::ErrorKind::SchemaMismatch => Self::SchemaMismatch,
            wit::ErrorKind::Locked => Self::Locked,
            wit::ErrorKind::LockLost => Self::LockLost,
            wit::ErrorKind::OutcomeUnknown => Self::OutcomeUnknown,
            wit::ErrorKind::Protocol => Self::Protocol,
            wit::ErrorKind::Server => Self::Server,
        }
    }
}

impl From<wit::Prepared> for Prepared {
    fn from(prepared: wit::Prepared) -> Self {
        let wit::Prepared { thing, name, deed, note, hint } = prepared;
        let thing = match thing {
            wit::Thing::Database => Thing::Database,
            wit::Thing::StateTable => Thing::StateTable,
            wit::Thing::LockTable => Thing::LockTable,
            wit::Thing::History => Thing::History,
        };
        let deed = match deed {
            wit::Deed::Created => Deed::Created,
            wit::Deed::Upgraded => Deed::Upgraded,
            wit::Deed::Begun => Deed::Begun,
            wit::Deed::Changed => Deed::Changed,
            wit::Deed::Ended => Deed::Ended,
            wit::Deed::Right => Deed::Right,
            wit::Deed::Left => Deed::Left,
        };
        Self { thing, name, deed, note, hint }
    }
}

impl From<history::Keeping> for Keeping {
    fn from(keeping: history::Keeping) -> Self {
        Self { days: keeping.days, recording: keeping.recording }
    }
}

impl From<diagnostics::Report> for Report {
    fn from(report: diagnostics::Report) -> Self {
        Self { steps: report.steps.into_iter().map(Into::into).collect() }
    }
}

impl From<diagnostics::Step> for Step {
    fn from(step: diagnostics::Step) -> Self {
        Self {
            name: step.name,
            status: match step.status {
                diagnostics::Status::Ok => Status::Ok,
                diagnostics::Status::Warning => Status::Warning,
                diagnostics::Status::Failed => Status::Failed,
                diagnostics::Status::Skipped => Status::Skipped,
            },
            tried: step.tried,
            found: step.found,
            hint: step.hint,
        }
    }
}
