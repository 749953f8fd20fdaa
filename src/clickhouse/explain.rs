//! From a failure to the error that explains it: its kind and what to do about it.

use crate::clickhouse::{code, passing};
use crate::error::{Details, Error, ErrorKind, ServerError};
use crate::ports::{TransportError, TransportErrorKind};
use crate::seconds::Seconds;
use crate::settings::{PREFIX, Settings};

/// The text of an answer that may be quoted, in characters.
const LONGEST_QUOTE: usize = 500;

/// What the message of such a write begins with.
const OUTCOME_UNKNOWN: &str = "a write was sent and its outcome is unknown: ";

/// What to do about a write whose outcome is unknown.
const LOOK_FIRST: &str = "look at what is stored before writing again";

/// A failure with a code of ClickHouse's, in an answer with that status.
pub(crate) fn server(report: ServerError, status: u16, text: &str) -> Error {
    use ErrorKind::{Authentication, PermissionDenied, SchemaMismatch, Server, TimedOut, UnsupportedServer};

    let (kind, hint) = match report.code {
        code::AUTHENTICATION_FAILED
        | code::REQUIRED_PASSWORD
        | code::WRONG_PASSWORD
        | code::UNKNOWN_USER
        | code::IP_ADDRESS_NOT_ALLOWED => (
            Authentication,
            Some(format!(
                "check {PREFIX}user and {PREFIX}password; in the URI, special characters have to be percent-encoded, as \
                 %40 for @"
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
        code::QUERY_CACHE_USED_WITH_NONDETERMINISTIC_FUNCTIONS | code::QUERY_CACHE_USED_WITH_SYSTEM_TABLE => {
            (Server, Some("set use_query_cache to 0 in the user's profile".to_owned()))
        }
        code::SETTING_CONSTRAINT_VIOLATION => {
            (Server, Some("take the constraint on this setting out of the user's profile".to_owned()))
        }
        code::QUERY_IS_PROHIBITED => (Server, Some("set allow_ddl to 1 in the user's profile".to_owned())),
        code::QUOTA_EXCEEDED => {
            (Server, Some("the user's quota is used up: wait until its interval has passed, or raise it".to_owned()))
        }
        code::UNKNOWN_TABLE | code::UNKNOWN_DATABASE => {
            (Server, Some("create the tables: meltano-state init".to_owned()))
        }
        code if passing::passes(code, text) => {
            (Server, Some("the server cannot do it for now: try again later, or look at its load".to_owned()))
        }
        _ => (Server, None),
    };
    Details { kind, message: quote(text), hint, server: Some(report) }.into()
}

/// `… me: Not enough privileges. To execute this query, it's necessary to have the grant SELECT ON x.*. (…` names what is
/// missing, and to whom.
fn grant_hint(text: &str) -> String {
    let user = text.split_once("Exception: ").and_then(|(_, rest)| rest.split_once(": Not enough"));
    let user = user.map_or("the user", |(user, _)| user);
    let grant = text.split_once("have the grant ").and_then(|(_, rest)| rest.split_once(". ("));
    match grant {
        Some((grant, _)) => {
            format!("ask an administrator for GRANT {grant} TO {user}; meltano-state check lists all that is missing")
        }
        None => "ask an administrator for the privilege that meltano-state check names".to_owned(),
    }
}

/// A failure without a code: what answered may be a proxy, or no ClickHouse at all.
pub(crate) fn status(status: u16, text: &str) -> Error {
    let (kind, message, hint) = match status {
        429 | 502..=504 => (
            ErrorKind::Unreachable,
            format!("HTTP {status}: a proxy or the service in front of the server says that it is away or busy"),
            "try again; a paused ClickHouse Cloud service takes about a minute to wake: raise \
             state_backend.clickhouse.request_timeout_seconds if it takes longer"
                .to_owned(),
        ),
        _ if text.contains("for HTTP") => (
            ErrorKind::Protocol,
            quote(text),
            format!("{PREFIX}port is the native protocol's; the HTTP interface is commonly on 8123, with TLS on 8443"),
        ),
        // As nginx and its kin say it.
        400 | 426 if text.contains("HTTPS port") => {
            (ErrorKind::Protocol, quote(text), format!("set {PREFIX}secure to true"))
        }
        _ => (
            ErrorKind::Protocol,
            match text {
                "" => format!("HTTP {status}, and the answer is empty and not ClickHouse's"),
                _ => format!("HTTP {status}, and the answer is not ClickHouse's: {}", quote(text)),
            },
            format!("check {PREFIX}host and {PREFIX}port, and what a proxy between here and the server does"),
        ),
    };
    Error::new(kind, message).with_hint(hint)
}

/// No answer, or half of one.
pub(crate) fn transport(error: &TransportError, settings: &Settings) -> Error {
    let server = settings.authority();
    let detail = &error.detail;
    let (kind, message, hint) = match error.kind {
        TransportErrorKind::NameNotFound => (
            ErrorKind::Unreachable,
            format!("the host name {:?} has no address: {detail}", settings.host),
            format!("check {PREFIX}host"),
        ),
        TransportErrorKind::NotConnected => (
            ErrorKind::Unreachable,
            format!("no connection to {server}: {detail}"),
            format!(
                "check that the server runs, that no firewall stands between, and {PREFIX}host and {PREFIX}port ({PORTS})"
            ),
        ),
        TransportErrorKind::Denied => (
            ErrorKind::Unreachable,
            format!("the plugin host does not allow connections to {server}: {detail}"),
            "allow this destination in the plugin host".to_owned(),
        ),
        TransportErrorKind::Tls => (
            ErrorKind::Tls,
            format!("no TLS session with {server}: {detail}"),
            format!(
                "check that the server's certificate is valid, for this name and of an authority that is trusted here, \
                 and that {PREFIX}port is the one for HTTPS ({PORTS})"
            ),
        ),
        TransportErrorKind::TimedOut => (
            ErrorKind::TimedOut,
            format!("no complete answer from {server} within {}: {detail}", Seconds(settings.request_timeout)),
            format!("raise {PREFIX}request_timeout_seconds, or look at the server's load"),
        ),
        TransportErrorKind::Lost => (
            ErrorKind::Unreachable,
            format!("the connection to {server} was lost: {detail}"),
            format!("try again; if it stays so, {}", check_port(settings)),
        ),
        TransportErrorKind::BadAnswer => {
            (ErrorKind::Protocol, format!("the answer from {server} cannot be read: {detail}"), check_port(settings))
        }
        TransportErrorKind::TooLarge => (
            ErrorKind::Protocol,
            format!("the answer from {server} is too large: {detail}"),
            "ask for less, with a pattern or a limit, or raise the plugin host's limit for answers".to_owned(),
        ),
    };
    Error::new(kind, message).with_hint(hint)
}

const PORTS: &str = "HTTP is commonly on 8123, HTTPS on 8443";

/// A server that closes the connection or answers with anything but HTTP expects something else on that port.
fn check_port(settings: &Settings) -> String {
    match settings.port {
        port @ (9000 | 9440) => {
            format!("set {PREFIX}port to the HTTP interface's: {port} is commonly the native protocol's; {PORTS}")
        }
        _ if settings.secure => format!("check {PREFIX}port ({PORTS})"),
        _ => format!("check {PREFIX}port ({PORTS}), and set {PREFIX}secure to true if that port is for HTTPS"),
    }
}

/// Whether a server that is too old could fail like this. Settings that servers of supported versions may lack as well
/// are not among the reasons: those are left out then.
pub(crate) fn may_be_too_old(error: &Error) -> bool {
    match error.code().filter(|_| error.kind != ErrorKind::OutcomeUnknown) {
        Some(
            code::UNKNOWN_FUNCTION
            | code::NOT_IMPLEMENTED
            | code::UNKNOWN_TYPE
            | code::SYNTAX_ERROR
            | code::SUPPORT_IS_DISABLED,
        ) => true,
        Some(code::UNKNOWN_SETTING) => ["param_", "async_insert"].iter().any(|name| error.message.contains(name)),
        _ => false,
    }
}

/// The same failure for a write that may have been carried out.
pub(crate) fn outcome_unknown(mut error: Error) -> Error {
    error.kind = ErrorKind::OutcomeUnknown;
    error.message.insert_str(0, OUTCOME_UNKNOWN);
    let hint = error.hint.take().map_or_else(|| LOOK_FIRST.to_owned(), |hint| format!("{LOOK_FIRST}; {hint}"));
    error.with_hint(hint)
}

/// The first part of a text from the outside, on one line.
fn quote(text: &str) -> String {
    let mut quoted: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_QUOTE).collect();
    if text.chars().count() > LONGEST_QUOTE {
        quoted.push('…');
    }
    quoted
}
