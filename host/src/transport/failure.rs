//! From the errors of sockets, TLS and HTTP to those of WASI HTTP.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::iter;

use wasmtime_wasi_http::Error;

use super::pooled::NameNotResolved;

/// Why no answer came.
pub(super) fn of_request(error: &hyper_util::client::legacy::Error, secure: bool) -> Error {
    let connecting = error.is_connect();
    causes(error)
        .find_map(|cause| of_cause(cause, connecting, secure))
        .unwrap_or_else(|| Error::InternalError(Some(chain_text(error))))
}

/// Whether it is a failure of TLS.
pub(super) fn is_tls(error: &Error) -> bool {
    matches!(error, Error::TlsCertificateError | Error::TlsProtocolError | Error::TlsAlertReceived { .. })
}

/// Why an answer ended before its end.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` calls")]
pub(super) fn of_body(error: hyper::Error) -> Error {
    if error.is_timeout() {
        Error::HttpResponseTimeout
    } else if error.is_parse() {
        Error::HttpProtocolError
    } else {
        Error::HttpResponseIncomplete
    }
}

fn of_cause(cause: &(dyn StdError + 'static), connecting: bool, secure: bool) -> Option<Error> {
    if let Some(error) = cause.downcast_ref::<NameNotResolved>() {
        return Some(Error::DnsError { rcode: Some(error.to_string()), info_code: None });
    }
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(of_tls(error));
    }
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return of_http(error);
    }
    of_io(cause.downcast_ref::<io::Error>()?.kind(), connecting, secure)
}

fn of_tls(error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => Error::TlsCertificateError,
        rustls::Error::AlertReceived(alert) => {
            Error::TlsAlertReceived { alert_id: Some(u8::from(*alert)), alert_message: Some(format!("{alert:?}")) }
        }
        _ => Error::TlsProtocolError,
    }
}

fn of_http(error: &hyper::Error) -> Option<Error> {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        Some(Error::ConnectionTerminated)
    } else if error.is_parse() {
        Some(Error::HttpProtocolError)
    } else {
        None
    }
}

fn of_io(kind: ErrorKind, connecting: bool, secure: bool) -> Option<Error> {
    match kind {
        ErrorKind::ConnectionRefused => Some(Error::ConnectionRefused),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable => {
            Some(Error::DestinationIpUnroutable)
        }
        ErrorKind::TimedOut if connecting => Some(Error::ConnectionTimeout),
        ErrorKind::TimedOut => Some(Error::ConnectionReadTimeout),
        // A connection that ends during the handshake: the other side speaks no TLS.
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
            if connecting && secure =>
        {
            Some(Error::TlsProtocolError)
        }
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Some(Error::ConnectionTerminated),
        _ => None,
    }
}

/// An error and what caused it, from the outside in.
pub(super) fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |&error| {
        // The source of an `io::Error` leaves out the error that it wraps.
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

fn chain_text(error: &(dyn StdError + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
