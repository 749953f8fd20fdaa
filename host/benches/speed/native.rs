//! The backend's own logic on native ports: the same statements without WebAssembly and without WASI.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use meltano_state_backend_clickhouse::ports::{
    Clock, Http, Random, Request, Response, Timeouts, TransportError, TransportErrorKind,
};
use rand::RngExt as _;
use tokio::runtime::Runtime;

/// A pooled hyper client, and the system's clock and randomness.
pub(crate) struct Native<'a> {
    runtime: &'a Runtime,
    client: Client<HttpConnector, Full<Bytes>>,
    start: Instant,
}

impl<'a> Native<'a> {
    pub(crate) fn new(runtime: &'a Runtime) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self { runtime, client: Client::builder(TokioExecutor::new()).build(connector), start: Instant::now() }
    }
}

impl Http for Native<'_> {
    fn send(&self, request: &Request, _: Timeouts) -> Result<Response, TransportError> {
        let lost = |error: &dyn std::error::Error| TransportError {
            kind: TransportErrorKind::Lost,
            detail: error.to_string(),
        };
        let mut builder = http::Request::post(format!("http://{}{}", request.authority, request.path_and_query));
        for (name, header) in &request.headers {
            builder = builder.header(*name, header.value());
        }
        let outgoing = builder.body(Full::new(Bytes::from(request.body.clone()))).map_err(|error| lost(&error))?;
        self.runtime.block_on(async {
            let (head, body) = self.client.request(outgoing).await.map_err(|error| lost(&error))?.into_parts();
            let body = body.collect().await.map_err(|error| lost(&error))?.to_bytes().to_vec();
            let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
            Ok(Response { status: head.status.as_u16(), headers, body })
        })
    }
}

impl Clock for Native<'_> {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

impl Random for Native<'_> {
    fn random(&self) -> u128 {
        rand::rng().random()
    }
}
