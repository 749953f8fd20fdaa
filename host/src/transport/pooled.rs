//! The real way to the server: one pool of connections for all instances.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use http::uri::{Scheme, Uri};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::client::legacy::connect::{Connect, HttpConnector, capture_connection};
use hyper_util::client::legacy::{self as client, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::refusable::Connector;
use super::tls::Tls;
use super::{DEFAULT_TIMEOUT, Sending, Transport};
use super::{failure, tls_failure};
use crate::activity::Activity;

/// How long a connection may stay unused before it is dropped: less than the 3 s after which old servers close it
/// (`keep_alive_timeout` of ClickHouse's server settings; 10 s and then 30 s in newer ones), so that a request hardly
/// ever meets a connection that the server is just closing.
const IDLE: Duration = Duration::from_secs(2);

/// How many requests are under way at once, and so how many connections there are. Older servers run at most 100
/// statements at a time (`max_concurrent_queries`), and this process may not be their only client.
const CONNECTIONS: usize = 64;

/// How long a server that has not answered a handshake is asked whether it accepts connections.
const PROBE: Duration = Duration::from_millis(250);

/// A pooling HTTP/1.1 client, for plain HTTP and for HTTPS.
///
/// At most 64 requests are under way at once. Others wait for their turn, in the order in which they came, for half of the time
/// that an answer may take: so that the caller is told that the request was not sent, rather than that no answer came.
///
/// A request that meets a connection which the server has closed is sent again over a new one if no byte of it was
/// written, and only then, so no write is carried out twice.
#[derive(Debug)]
pub struct PooledClient {
    plain: PlainClient,
    /// Made at the first request over HTTPS: reading the system's certificates takes some milliseconds.
    secure: OnceLock<Result<SecureClient, String>>,
    tls: Tls,
    turns: Arc<Semaphore>,
}

type TcpConnector = Connector<HttpConnector<Resolver>>;
type PlainClient = Client<TcpConnector, WasiBody>;
type SecureClient = Client<HttpsConnector<TcpConnector>, WasiBody>;

impl PooledClient {
    /// A client without connections.
    #[must_use]
    pub fn new(tls: Tls) -> Self {
        let turns = Arc::new(Semaphore::new(CONNECTIONS));
        Self { plain: pool().build(connector(true)), secure: OnceLock::new(), tls, turns }
    }

    /// Waits until another request may be under way.
    async fn turn(&self, limit: Duration) -> Result<OwnedSemaphorePermit, Error> {
        match tokio::time::timeout(limit, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Error::ConnectionLimitReached),
        }
    }

    fn secure(&self) -> Result<&SecureClient, Error> {
        let client = self.secure.get_or_init(|| {
            let config = self.tls.client_config().map_err(|error| error.to_string())?;
            let connector = HttpsConnectorBuilder::new()
                .with_tls_config(config)
                .https_only()
                .enable_http1()
                .wrap_connector(connector(false));
            Ok(pool().build(connector))
        });
        client.as_ref().map_err(|reason| Error::InternalError(Some(reason.clone())))
    }
}

impl Default for PooledClient {
    fn default() -> Self {
        Self::new(Tls::default())
    }
}

impl Transport for PooledClient {
    fn send(&self, request: Request<WasiBody>, options: RequestOptions) -> Sending<'_> {
        Box::pin(async move {
            let turn = self.turn(options.first_byte_timeout.unwrap_or(DEFAULT_TIMEOUT) / 2).await?;
            let answer = if request.uri().scheme() == Some(&Scheme::HTTPS) {
                if self.tls.accepts_anyone()
                    && let Some(activity) = request.extensions().get::<Arc<Activity>>()
                {
                    activity.note_unverified();
                }
                exchange(self.secure()?, request, options, true).await
            } else {
                exchange(&self.plain, request, options, false).await
            };
            let of_body = move |error| {
                // The turn lasts as long as the body, which is received over the connection.
                let _ = &turn;
                failure::of_body(error)
            };
            Ok(answer?.map(|body| body.map_err(of_body).boxed_unsync()))
        })
    }
}

/// Sends a request and waits for the answer's headers, within the limits.
async fn exchange<C>(
    client: &Client<C, WasiBody>,
    mut request: Request<WasiBody>,
    options: RequestOptions,
    secure: bool,
) -> Result<Response<Incoming>, Error>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let connect = options.connect_timeout.unwrap_or(DEFAULT_TIMEOUT);
    let first_byte = options.first_byte_timeout.unwrap_or(DEFAULT_TIMEOUT);
    let activity = request.extensions().get::<Arc<Activity>>().cloned();
    let noted = activity.clone();
    let uri = request.uri().clone();
    let fail = |error: client::Error| {
        let code = failure::of_request(&error, secure);
        if let Some(activity) = activity.filter(|_| failure::is_tls(&code)) {
            activity.note_tls_failure(tls_failure::find(&error));
        }
        code
    };
    let mut connection = capture_connection(&mut request);
    let mut answer = std::pin::pin!(client.request(request));

    let connected = tokio::select! {
        biased;
        answer = &mut answer => return answer.map_err(fail),
        connected = tokio::time::timeout(connect, connection.wait_for_connection_metadata()) => connected.is_ok(),
    };
    if !connected {
        if !secure || !accepts_connections(&uri).await {
            return Err(Error::ConnectionTimeout);
        }
        if let Some(activity) = noted {
            activity.note_tls_failure(tls_failure::silent());
        }
        return Err(Error::TlsProtocolError);
    }
    tracing::debug!("connected");
    match tokio::time::timeout(first_byte, answer).await {
        Ok(answer) => answer.map_err(fail),
        Err(_elapsed) => Err(Error::ConnectionReadTimeout),
    }
}

/// Whether a server listens at all: one for plain HTTP may take a TLS handshake for the beginning of a request, and wait
/// for the rest.
async fn accepts_connections(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let connecting = TcpStream::connect((host, uri.port_u16().unwrap_or(443)));
    matches!(tokio::time::timeout(PROBE, connecting).await, Ok(Ok(_)))
}

fn pool() -> hyper_util::client::legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_idle_timeout(IDLE).pool_timer(TokioTimer::new());
    builder
}

fn connector(http_alone: bool) -> TcpConnector {
    let mut connector = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
    connector.set_nodelay(true);
    connector.enforce_http(http_alone);
    Connector(connector)
}

/// The system's name resolution, whose failures can be told from those of connecting.
#[derive(Clone, Debug)]
struct Resolver(GaiResolver);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = NameNotResolved;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<GaiAddrs, NameNotResolved>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), NameNotResolved>> {
        self.0.poll_ready(context).map_err(NameNotResolved)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let addresses = self.0.call(name);
        Box::pin(async move { addresses.await.map_err(NameNotResolved) })
    }
}

/// The system knows no address for the host's name.
#[derive(Debug)]
pub(super) struct NameNotResolved(io::Error);

impl fmt::Display for NameNotResolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NameNotResolved {}
