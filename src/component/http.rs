//! HTTP, over `wasi:http/outgoing-handler`, with waki's bindings.
//!
//! waki's own client is not used: it sets one of the three timeouts, writes the whole body before it looks at the
//! answer, and turns errors into text.

use std::time::Duration;

use waki::bindings::wasi::clocks::monotonic_clock;
use waki::bindings::wasi::http::outgoing_handler;
use waki::bindings::wasi::http::types::{
    Fields, FutureIncomingResponse, IncomingResponse, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use waki::bindings::wasi::io::poll::{Pollable, poll};
use waki::bindings::wasi::io::streams::StreamError;
use waki::{ErrorCode, Method};

use super::clock::nanos;
use crate::ports::{Http, Request, Response, Timeouts, TransportError, TransportErrorKind};

/// The host's HTTP client.
pub(super) struct WasiHttp;

/// How much of a body one read may bring.
const READ_SIZE: u64 = 1 << 20;
/// The largest body that is read, in hosts that set no limit of their own. A page of states has 8 MiB, one state up to 48
/// on its way; ids alone are not paged.
const LARGEST_BODY: usize = 128 << 20;

impl Http for WasiHttp {
    fn send(&self, request: &Request, timeouts: Timeouts) -> Result<Response, TransportError> {
        let deadline = Deadline(monotonic_clock::subscribe_duration(nanos(timeouts.total)));
        let outgoing = outgoing_request(request)?;
        let body = if request.body.is_empty() { None } else { Some(outgoing.body().map_err(|()| refused("body"))?) };
        let future = outgoing_handler::handle(outgoing, Some(options(timeouts)?)).map_err(|code| not_sent(&code))?;
        let answered = future.subscribe();
        if let Some(body) = &body {
            write_body(body, &request.body, &answered, &deadline)?;
        }
        // Left unfinished, the body would make the host abort a request whose answer already came.
        let finished = body.map(|body| OutgoingBody::finish(body, None));
        let incoming = receive(&future, &answered, &deadline)?;
        drop(finished);
        read(incoming, &deadline)
    }
}

/// Ends every wait of a request, in any host, whatever its own timeouts do.
struct Deadline(Pollable);

impl Deadline {
    /// Waits until one of `pollables` is ready.
    fn wait(&self, pollables: &[&Pollable]) -> Result<(), TransportError> {
        let all: Vec<&Pollable> = std::iter::once(&self.0).chain(pollables.iter().copied()).collect();
        let ready = poll(&all);
        if ready.iter().all(|index| *index == 0) {
            return Err(TransportError {
                kind: TransportErrorKind::TimedOut,
                detail: "the time limit passed".to_owned(),
            });
        }
        Ok(())
    }
}

fn outgoing_request(request: &Request) -> Result<OutgoingRequest, TransportError> {
    let headers: Vec<(String, Vec<u8>)> =
        request.headers.iter().map(|(name, header)| ((*name).to_owned(), header.value().as_bytes().to_vec())).collect();
    let fields = Fields::from_list(&headers).map_err(|_| refused("headers"))?;
    let outgoing = OutgoingRequest::new(fields);
    let scheme = if request.secure { Scheme::Https } else { Scheme::Http };
    outgoing.set_method(&Method::Post).map_err(|()| refused("method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| refused("scheme"))?;
    outgoing.set_authority(Some(&request.authority)).map_err(|()| refused("authority"))?;
    outgoing.set_path_with_query(Some(&request.path_and_query)).map_err(|()| refused("path"))?;
    Ok(outgoing)
}

fn options(timeouts: Timeouts) -> Result<RequestOptions, TransportError> {
    let options = RequestOptions::new();
    options.set_connect_timeout(Some(nanos(timeouts.connect))).map_err(|()| refused("connect timeout"))?;
    options.set_first_byte_timeout(Some(nanos(timeouts.total))).map_err(|()| refused("first byte timeout"))?;
    options
        .set_between_bytes_timeout(Some(nanos(timeouts.total.max(Duration::from_millis(1)))))
        .map_err(|()| refused("between bytes timeout"))?;
    Ok(options)
}

/// Writes the body until it is written, or the answer comes, or the server no longer listens: then the answer says why.
fn write_body(
    body: &OutgoingBody,
    mut rest: &[u8],
    answered: &Pollable,
    deadline: &Deadline,
) -> Result<(), TransportError> {
    let stream = body.write().map_err(|()| refused("body"))?;
    let writable = stream.subscribe();
    while !rest.is_empty() {
        let Ok(permit) = stream.check_write() else { return Ok(()) };
        if permit == 0 {
            deadline.wait(&[&writable, answered])?;
            if answered.ready() {
                return Ok(());
            }
            continue;
        }
        let length = usize::try_from(permit).unwrap_or(usize::MAX).min(rest.len());
        let (chunk, after) = rest.split_at(length);
        if stream.write(chunk).is_err() {
            return Ok(());
        }
        rest = after;
    }
    // The flush ends when the host has taken everything; an error again shows in the answer.
    if stream.flush().is_ok() {
        deadline.wait(&[&writable, answered])?;
    }
    Ok(())
}

fn receive(
    future: &FutureIncomingResponse,
    answered: &Pollable,
    deadline: &Deadline,
) -> Result<IncomingResponse, TransportError> {
    loop {
        deadline.wait(&[answered])?;
        match future.get() {
            Some(Ok(result)) => return result.map_err(|code| lost(&code)),
            Some(Err(())) => return Err(refused("answer")),
            None => {}
        }
    }
}

fn read(incoming: IncomingResponse, deadline: &Deadline) -> Result<Response, TransportError> {
    let mut response = Response {
        status: incoming.status(),
        headers: incoming
            .headers()
            .entries()
            .into_iter()
            .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
            .collect(),
        body: Vec::new(),
    };
    let body = incoming.consume().map_err(|()| refused("answer"))?;
    let stream = body.stream().map_err(|()| refused("answer"))?;
    let readable = stream.subscribe();
    loop {
        if response.body.len() > LARGEST_BODY {
            let detail = format!("more than {} MiB", LARGEST_BODY >> 20);
            return Err(TransportError { kind: TransportErrorKind::TooLarge, detail });
        }
        match stream.read(READ_SIZE) {
            Ok(chunk) if chunk.is_empty() => deadline.wait(&[&readable])?,
            Ok(mut chunk) => response.body.append(&mut chunk),
            Err(StreamError::Closed) => return Ok(response),
            Err(StreamError::LastOperationFailed(error)) => {
                // The host's own limit for the wait between two bytes began later than ours.
                let kind = if deadline.0.ready() { TransportErrorKind::TimedOut } else { TransportErrorKind::Lost };
                let detail = format!("the answer broke off: {}", error.to_debug_string());
                return Err(TransportError { kind, detail });
            }
        }
    }
}

/// The host does not accept a part of the request: nothing was sent.
fn refused(part: &str) -> TransportError {
    TransportError {
        kind: TransportErrorKind::Denied,
        detail: format!("the host does not accept the request's {part}"),
    }
}

/// The host refused to begin.
fn not_sent(code: &ErrorCode) -> TransportError {
    let error = lost(code);
    TransportError {
        kind: if error.kind.may_have_arrived() { TransportErrorKind::NotConnected } else { error.kind },
        ..error
    }
}

fn lost(code: &ErrorCode) -> TransportError {
    let said = match code {
        ErrorCode::DnsError(payload) => payload.rcode.clone(),
        ErrorCode::TlsAlertReceived(payload) => payload.alert_message.clone(),
        ErrorCode::InternalError(text) => text.clone(),
        _ => None,
    };
    TransportError { kind: kind(code), detail: said.unwrap_or_else(|| name(code).to_owned()) }
}

/// Their derived `Debug` would take 4 KB.
fn name(code: &ErrorCode) -> &'static str {
    use ErrorCode as E;
    match code {
        E::DnsTimeout => "dns timeout",
        E::DnsError(_) => "dns error",
        E::DestinationNotFound => "destination not found",
        E::DestinationUnavailable => "destination unavailable",
        E::DestinationIpProhibited => "destination ip prohibited",
        E::DestinationIpUnroutable => "destination ip unroutable",
        E::ConnectionRefused => "connection refused",
        E::ConnectionTerminated => "connection terminated",
        E::ConnectionTimeout => "connection timeout",
        E::ConnectionReadTimeout => "connection read timeout",
        E::ConnectionWriteTimeout => "connection write timeout",
        E::ConnectionLimitReached => "connection limit reached",
        E::TlsProtocolError => "tls protocol error",
        E::TlsCertificateError => "tls certificate error",
        E::TlsAlertReceived(_) => "tls alert received",
        E::HttpRequestDenied => "http request denied",
        E::HttpRequestLengthRequired => "http request length required",
        E::HttpRequestBodySize(_) => "http request body size",
        E::HttpRequestMethodInvalid => "http request method invalid",
        E::HttpRequestUriInvalid => "http request uri invalid",
        E::HttpRequestUriTooLong => "http request uri too long",
        E::HttpRequestHeaderSectionSize(_) => "http request header section size",
        E::HttpRequestHeaderSize(_) => "http request header size",
        E::HttpRequestTrailerSectionSize(_) => "http request trailer section size",
        E::HttpRequestTrailerSize(_) => "http request trailer size",
        E::HttpResponseIncomplete => "http response incomplete",
        E::HttpResponseHeaderSectionSize(_) => "http response header section size",
        E::HttpResponseHeaderSize(_) => "http response header size",
        E::HttpResponseBodySize(_) => "http response body size",
        E::HttpResponseTrailerSectionSize(_) => "http response trailer section size",
        E::HttpResponseTrailerSize(_) => "http response trailer size",
        E::HttpResponseTransferCoding(_) => "http response transfer coding",
        E::HttpResponseContentCoding(_) => "http response content coding",
        E::HttpResponseTimeout => "http response timeout",
        E::HttpUpgradeFailed => "http upgrade failed",
        E::HttpProtocolError => "http protocol error",
        E::LoopDetected => "loop detected",
        E::ConfigurationError => "configuration error",
        E::InternalError(_) => "internal error",
    }
}

fn kind(code: &ErrorCode) -> TransportErrorKind {
    use ErrorCode as E;
    match code {
        E::DnsError(_) | E::DnsTimeout | E::DestinationNotFound => TransportErrorKind::NameNotFound,
        E::ConnectionRefused
        | E::ConnectionTimeout
        | E::ConnectionLimitReached
        | E::DestinationUnavailable
        | E::DestinationIpUnroutable => TransportErrorKind::NotConnected,
        E::HttpRequestDenied | E::DestinationIpProhibited => TransportErrorKind::Denied,
        E::TlsProtocolError | E::TlsCertificateError | E::TlsAlertReceived(_) => TransportErrorKind::Tls,
        E::ConnectionReadTimeout | E::ConnectionWriteTimeout | E::HttpResponseTimeout => TransportErrorKind::TimedOut,
        E::ConnectionTerminated | E::HttpResponseIncomplete | E::HttpProtocolError | E::InternalError(_) => {
            TransportErrorKind::Lost
        }
        E::HttpResponseBodySize(_) => TransportErrorKind::TooLarge,
        _ => TransportErrorKind::BadAnswer,
    }
}
