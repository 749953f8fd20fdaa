//! What the host adds to the component's explanations: why there is no TLS session, or what it is worth.

use meltano_state_backend_clickhouse::diagnose::{Report, Status};
use meltano_state_backend_clickhouse::{Error, ErrorKind};

use crate::activity::Activity;

/// An error of the component, with what the component could not know.
pub(crate) fn error(mut error: Error, activity: &Activity) -> Error {
    if error.kind == ErrorKind::Tls
        && let Some(failure) = activity.take_tls_failure()
    {
        error.message = format!("{}: {}", error.message, failure.reason);
        error.hint = Some(failure.hint);
    }
    error
}

/// A report of the component, with what the component could not know.
pub(crate) fn report(mut report: Report, activity: &Activity) -> Report {
    let Some(step) = report.steps.iter_mut().find(|step| step.name == "tls") else { return report };
    match step.status {
        Status::Failed => {
            if let Some(failure) = activity.take_tls_failure() {
                step.found = format!("{}: {}", step.found, failure.reason);
                step.hint = Some(failure.hint);
            }
        }
        Status::Ok if activity.unverified() => {
            step.status = Status::Warning;
            step.found = "a session; the certificate was not checked".to_owned();
            step.hint = Some("leave --insecure out, and name the authority's certificate with --ca-file".to_owned());
        }
        _ => {}
    }
    report
}
