//! A network that fails on purpose.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fmt, mem};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::{DEFAULT_TIMEOUT, Sending, Transport};

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing: it reaches the server, and the answer comes back.
    Pass,
    /// It reaches the server after this time, or never if the limit for the first byte passes before.
    Delay(Duration),
    /// The connection ends before the server sees the request.
    FailBefore,
    /// The server carries the request out, the connection ends before its answer.
    FailAfter,
    /// The connection ends after that many bytes of the answer's body.
    CutBody(usize),
    /// The server carries the request out, and something between here and there answers in its place.
    AnswerAfter {
        /// The status code.
        status: u16,
    },
    /// Something between here and the server answers in its place.
    Answer {
        /// The status code.
        status: u16,
        /// The body.
        body: Bytes,
    },
}

/// A request as a rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Which request it is, counted from 0.
    pub ordinal: usize,
    /// Method, URI and headers.
    pub head: &'a http::request::Parts,
    /// The whole body.
    pub body: &'a [u8],
}

impl Seen<'_> {
    /// Whether a value in the URI's query or the body contains `text`, such as the beginning of a statement.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        let query = self.head.uri.query().unwrap_or_default();
        url::form_urlencoded::parse(query.as_bytes()).any(|(_, value)| value.contains(text))
            || String::from_utf8_lossy(self.body).contains(text)
    }
}

/// Puts faults between the component and another transport: for tests.
///
/// Of the rules that match a request the first counts; a request that none matches passes. Bodies of requests are
/// collected before the rules see them.
pub struct Faults<T> {
    inner: T,
    rules: Mutex<Vec<Rule>>,
    requests: AtomicUsize,
}

struct Rule {
    applies: Box<dyn Fn(&Seen<'_>) -> bool + Send>,
    fault: Fault,
}

impl<T> Faults<T> {
    /// No faults yet.
    pub fn over(inner: T) -> Self {
        Self { inner, rules: Mutex::default(), requests: AtomicUsize::new(0) }
    }

    /// Adds a rule for the request with this number, counted from 0.
    #[must_use]
    pub fn at(self, ordinal: usize, fault: Fault) -> Self {
        self.when(move |request| request.ordinal == ordinal, fault)
    }

    /// Adds a rule for all requests for which `applies` holds.
    #[must_use]
    pub fn when(self, applies: impl Fn(&Seen<'_>) -> bool + Send + 'static, fault: Fault) -> Self {
        self.add(applies, fault);
        self
    }

    /// Adds a rule while requests are under way.
    pub fn add(&self, applies: impl Fn(&Seen<'_>) -> bool + Send + 'static, fault: Fault) {
        let applies = Box::new(applies);
        self.rules().push(Rule { applies, fault });
    }

    /// Removes all rules.
    pub fn clear(&self) {
        mem::take(&mut *self.rules());
    }

    /// How many requests were sent, faulty ones included.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn fault_for(&self, request: &Seen<'_>) -> Fault {
        let rules = self.rules();
        rules.iter().find(|rule| (rule.applies)(request)).map_or(Fault::Pass, |rule| rule.fault.clone())
    }

    fn rules(&self) -> std::sync::MutexGuard<'_, Vec<Rule>> {
        // A rule that panicked leaves the list as it was.
        self.rules.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Faults<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

impl<T: Transport> Transport for Faults<T> {
    fn send(&self, request: Request<WasiBody>, options: RequestOptions) -> Sending<'_> {
        Box::pin(async move {
            let ordinal = self.requests.fetch_add(1, Ordering::Relaxed);
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let fault = self.fault_for(&Seen { ordinal, head: &head, body: &body });
            let request = Request::from_parts(head, whole(body));
            match fault {
                Fault::Pass => self.inner.send(request, options).await,
                Fault::Delay(delay) => {
                    let limit = options.first_byte_timeout.unwrap_or(DEFAULT_TIMEOUT);
                    tokio::time::sleep(delay.min(limit)).await;
                    if delay >= limit {
                        return Err(Error::ConnectionReadTimeout);
                    }
                    self.inner.send(request, options).await
                }
                Fault::FailBefore => Err(Error::ConnectionTerminated),
                Fault::FailAfter => {
                    // The server has carried the request out when its answer is complete.
                    self.inner.send(request, options).await?.into_body().collect().await?;
                    Err(Error::ConnectionTerminated)
                }
                Fault::CutBody(length) => {
                    let (head, body) = self.inner.send(request, options).await?.into_parts();
                    let body = body.collect().await?.to_bytes();
                    Ok(Response::from_parts(head, cut(&body, length)))
                }
                Fault::AnswerAfter { status } => {
                    self.inner.send(request, options).await?.into_body().collect().await?;
                    answer(status, Bytes::new())
                }
                Fault::Answer { status, body } => answer(status, body),
            }
        })
    }
}

fn answer(status: u16, body: Bytes) -> Result<Response<WasiBody>, Error> {
    let mut response = Response::new(whole(body));
    *response.status_mut() = http::StatusCode::from_u16(status).map_err(|_| Error::ConfigurationError)?;
    Ok(response)
}

fn whole(body: Bytes) -> WasiBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

/// The first `length` bytes, then the end of the connection.
fn cut(body: &Bytes, length: usize) -> WasiBody {
    let kept = body.slice(..length.min(body.len()));
    let broken = std::future::ready(Some(Err(Error::HttpResponseIncomplete)));
    whole(kept).with_trailers(broken).boxed_unsync()
}
