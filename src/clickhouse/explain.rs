//! From a failure to the error that explains it: its kind and what to do about it.

use crate::clickhouse::code;
use crate::error::{Error, ErrorKind, ServerError};
use crate::ports::{TransportError, TransportErrorKind};
use crate::seconds::Seconds;
use crate::settings::{PREFIX, Settings};

/// The text of an answer that may be quoted, in characters.
const LONGEST_QUOTE: usize = 500;

/// What to do about a write whose outcome is unknown.
const LOOK_FIRST: &str = "look at what is stored before writing again";

/// A failure with a code of ClickHouse's, in an answer with that status.
pub(crate) fn server(report: ServerError, status: u16, text: &str) -> Error {
    use ErrorKind::{
        Authentication, OutcomeUnknown, PermissionDenied, SchemaMismatch, Server, TimedOut, UnsupportedServer,
    };

    let (kind, hint) = match report.code {
        code::AUTHENTICATION_FAILED
        | code::REQUIRED_PASSWORD
        | code::WRONG_PASSWORD
        | code::UNKNOWN_USER
        | code::IP_ADDRESS_NOT_ALLOWED => (
            Authentication,
            Some(format!(
                "check {PREFIX}user and {PREFIX}password; in the URI, special characters have to be percent-encoded"
            )),
        ),
        code::ACCESS_DENIED => (PermissionDenied, Some(grant_hint(text))),
        code::READONLY => (
            PermissionDenied,
            Some("the user's profile only allows reading; use a user whose profile does not set readonly".to_owned()),
        ),
        // With any other status rows had been sent already.
        code::TIMEOUT_EXCEEDED if status == 408 => {
            (TimedOut, Some("the server stopped the statement at its own time limit, max_execution_time".to_owned()))
        }
        code::UNKNOWN_TYPE => (
            UnsupportedServer,
            Some("use ClickHouse 23.3 or later; this server lacks a data type that the tables need".to_owned()),
        ),
        code::UNKNOWN_IDENTIFIER | code::NO_SUCH_COLUMN_IN_TABLE | code::TYPE_MISMATCH | code::ILLEGAL_FINAL => (
            SchemaMismatch,
            Some(format!(
                "a table of that name exists and is no state table; choose another {PREFIX}schema or {PREFIX}table"
            )),
        ),
        code::UNKNOWN_STATUS_OF_INSERT => (OutcomeUnknown, Some(LOOK_FIRST.to_owned())),
        code::UNKNOWN_TABLE | code::UNKNOWN_DATABASE => {
            (Server, Some("create the tables: meltano-state init".to_owned()))
        }
        _ => (Server, None),
    };
    Error { kind, message: quote(text), hint, server: Some(report) }
}

/// `…it's necessary to have the grant SELECT ON x.*…` names what is missing.
fn grant_hint(text: &str) -> String {
    let grant = text.split_once("have the grant ").and_then(|(_, rest)| rest.split_once(". (").map(|(grant, _)| grant));
    match grant {
        Some(grant) => format!("ask an administrator for GRANT {grant} TO the user"),
        None => "ask an administrator for the privilege".to_owned(),
    }
}

/// A failure without a code: what answered may be a proxy, or no ClickHouse at all.
pub(crate) fn status(status: u16, text: &str) -> Error {
    match status {
        429 | 502..=504 => Error::new(
            ErrorKind::Unreachable,
            format!("HTTP {status}: a proxy or the service in front of the server says that it is away or busy"),
        )
        .with_hint("try again; a paused ClickHouse Cloud service takes about a minute to wake"),
        _ if text.contains("for HTTP") => Error::new(ErrorKind::Protocol, quote(text)).with_hint(format!(
            "{PREFIX}port is the native protocol's; the HTTP interface is commonly on 8123, with TLS on 8443"
        )),
        _ => Error::new(
            ErrorKind::Protocol,
            format!("HTTP {status}, and the answer is not ClickHouse's: {}", quote(text)),
        )
        .with_hint(format!("check {PREFIX}host and {PREFIX}port")),
    }
}

/// No answer, or half of one.
pub(crate) fn transport(error: &TransportError, settings: &Settings) -> Error {
    let server = settings.authority();
    let detail = &error.detail;
    match error.kind {
        TransportErrorKind::NameNotFound => {
            Error::new(ErrorKind::Unreachable, format!("the host name {:?} has no address: {detail}", settings.host))
                .with_hint(format!("check {PREFIX}host"))
        }
        TransportErrorKind::NotConnected => Error::new(
            ErrorKind::Unreachable,
            format!("no connection to {server}: {detail}"),
        )
        .with_hint(format!(
            "check that the server runs, and {PREFIX}host and {PREFIX}port (HTTP is commonly on 8123, HTTPS on 8443)"
        )),
        TransportErrorKind::Denied => Error::new(
            ErrorKind::Unreachable,
            format!("the plugin host does not allow connections to {server}: {detail}"),
        )
        .with_hint("allow this destination in the plugin host"),
        TransportErrorKind::Tls => Error::new(ErrorKind::Tls, format!("no TLS session with {server}: {detail}"))
            .with_hint(format!(
                "check the server's certificate, and that {PREFIX}port is its HTTPS port (commonly 8443)"
            )),
        TransportErrorKind::TimedOut => Error::new(
            ErrorKind::TimedOut,
            format!("no complete answer from {server} within {}: {detail}", Seconds(settings.request_timeout)),
        )
        .with_hint(format!("raise {PREFIX}request_timeout_seconds, or look at the server's load")),
        TransportErrorKind::Lost => Error::new(
            ErrorKind::Unreachable,
            format!("the connection to {server} was lost: {detail}"),
        )
        .with_hint(format!(
            "try again; if it stays so, check {PREFIX}secure and {PREFIX}port (HTTP is commonly on 8123, HTTPS on 8443)"
        )),
        TransportErrorKind::BadAnswer => {
            Error::new(ErrorKind::Protocol, format!("the answer from {server} cannot be read: {detail}"))
                .with_hint(format!("check {PREFIX}host and {PREFIX}port"))
        }
    }
}

/// The same failure for a write that may have been carried out.
pub(crate) fn outcome_unknown(error: Error) -> Error {
    Error {
        kind: ErrorKind::OutcomeUnknown,
        message: format!("a write was sent and its outcome is unknown: {}", error.message),
        hint: Some(LOOK_FIRST.to_owned()),
        server: error.server,
    }
}

/// The first part of a text from the outside, on one line.
fn quote(text: &str) -> String {
    let mut quoted: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_QUOTE).collect();
    if text.chars().count() > LONGEST_QUOTE {
        quoted.push('…');
    }
    quoted
}
