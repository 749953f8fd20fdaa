//! The backend's own logic on native ports: the same statements without WebAssembly and without WASI.

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use meltano_state_backend_clickhouse::clickhouse::Client;
use meltano_state_backend_clickhouse::ports::{
    Clock, Http, Ports, Random, Request, Response, Timeouts, TransportError, TransportErrorKind,
};
use meltano_state_backend_clickhouse::settings::Settings;
use meltano_state_backend_clickhouse::store::Store;
use rand::RngExt as _;
use tokio::runtime::Runtime;

/// A pooled hyper client, and the system's clock and randomness.
pub(crate) struct Native<'a> {
    runtime: &'a Runtime,
    sender: Sender,
    start: Instant,
}

impl<'a> Native<'a> {
    pub(crate) fn new(runtime: &'a Runtime) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let sender = Sender(legacy::Client::builder(TokioExecutor::new()).build(connector));
        Self { runtime, sender, start: Instant::now() }
    }

    /// The requests by which the backend does something, which is done too.
    pub(crate) fn requests(&self, settings: &Settings, action: impl FnOnce(&Store)) -> Vec<Request> {
        let recorder = Recorder { native: self, requests: RefCell::default() };
        action(&Store::new(Client::new(Ports { http: &recorder, clock: self, random: self }, settings)));
        recorder.requests.into_inner()
    }

    pub(crate) fn sender(&self) -> Sender {
        self.sender.clone()
    }
}

/// Sends requests; all clones share one pool of connections.
#[derive(Clone)]
pub(crate) struct Sender(legacy::Client<HttpConnector, Full<Bytes>>);

impl Sender {
    pub(crate) async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let lost = |error: &dyn std::error::Error| TransportError {
            kind: TransportErrorKind::Lost,
            detail: error.to_string(),
        };
        let mut builder = http::Request::post(format!("http://{}{}", request.authority, request.path_and_query));
        for (name, header) in &request.headers {
            builder = builder.header(*name, header.value());
        }
        let outgoing = builder.body(Full::new(Bytes::from(request.body.clone()))).map_err(|error| lost(&error))?;
        let (head, body) = self.0.request(outgoing).await.map_err(|error| lost(&error))?.into_parts();
        let body = body.collect().await.map_err(|error| lost(&error))?.to_bytes().to_vec();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        Ok(Response { status: head.status.as_u16(), headers, body })
    }
}

impl Http for Native<'_> {
    fn send(&self, request: &Request, _: Timeouts) -> Result<Response, TransportError> {
        self.runtime.block_on(self.sender.send(request))
    }
}

/// Remembers what it sends.
struct Recorder<'a> {
    native: &'a Native<'a>,
    requests: RefCell<Vec<Request>>,
}

impl Http for Recorder<'_> {
    fn send(&self, request: &Request, timeouts: Timeouts) -> Result<Response, TransportError> {
        self.requests.borrow_mut().push(request.clone());
        self.native.send(request, timeouts)
    }
}

impl Clock for Native<'_> {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) -> bool {
        std::thread::sleep(duration);
        true
    }
}

impl Random for Native<'_> {
    fn random(&self) -> u128 {
        rand::rng().random()
    }
}
