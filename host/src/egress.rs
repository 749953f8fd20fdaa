//! The component's way to the network: to one server and nowhere else.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use http::Request;
use http::uri::{Scheme, Uri};
use http_body_util::BodyExt as _;
use meltano_state_backend_clickhouse::settings::Settings as Resolved;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::activity::Activity;
use crate::response_body::{ResponseBody, too_large};
use crate::transport::{DEFAULT_TIMEOUT, Transport};

/// The one server that a component may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    secure: bool,
    /// In lower case, an IPv6 address without brackets.
    host: String,
    port: u16,
}

impl Destination {
    pub(crate) fn new(settings: &Resolved) -> Self {
        Self { secure: settings.secure, host: settings.host.to_ascii_lowercase(), port: settings.port }
    }

    /// Whether a request to `uri` goes there. A request over plain HTTP to a server that is to be reached over HTTPS
    /// does not: it would show the password.
    fn matches(&self, uri: &Uri) -> bool {
        let (scheme, default_port) = if self.secure { (Scheme::HTTPS, 443) } else { (Scheme::HTTP, 80) };
        let Some(host) = uri.host() else { return false };
        uri.scheme() == Some(&scheme)
            && host.trim_start_matches('[').trim_end_matches(']').eq_ignore_ascii_case(&self.host)
            && uri.port_u16().unwrap_or(default_port) == self.port
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Sends the requests of one instance.
pub(crate) struct Egress {
    pub(crate) allowed: Option<Arc<Destination>>,
    pub(crate) transport: Arc<dyn Transport>,
    /// The size of a body in bytes.
    pub(crate) response_limit: usize,
    pub(crate) activity: Arc<Activity>,
}

type Sent = Result<(http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for Egress {
    fn send_request(
        &mut self,
        mut request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _failure_of_the_response: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let options = options.unwrap_or_default();
        if !self.allowed.as_ref().is_some_and(|allowed| allowed.matches(request.uri())) {
            tracing::warn!(uri = %without_query(request.uri()), "refused a request to a server that is not configured");
            return Box::new(refuse(request, Error::HttpRequestDenied));
        }
        if self.activity.take_refuse_next() {
            return Box::new(refuse(request, too_large(self.response_limit)));
        }
        let transport = Arc::clone(&self.transport);
        let activity = Arc::clone(&self.activity);
        let limit = self.response_limit;
        // For what the transport knows and the codes of WASI HTTP cannot say.
        request.extensions_mut().insert(Arc::clone(&activity));
        Box::new(async move {
            let in_flight = activity.begin();
            // Taking the URI apart costs more than the rest of this function; commonly nobody reads the line.
            let line = tracing::enabled!(tracing::Level::WARN).then(|| RequestLine::of(&request));
            let start = Instant::now();
            let response = transport.send(request, options).await;
            if let Some(line) = line {
                line.log(start, &response);
            }
            let between_bytes = options.between_bytes_timeout.unwrap_or(DEFAULT_TIMEOUT);
            let (head, body) = response?.into_parts();
            let body = ResponseBody::new(body, limit, between_bytes, activity, in_flight)?;
            let response = http::Response::from_parts(head, body.boxed_unsync());
            // The transport drives its connections by itself: there is no further work to wait for.
            let nothing: Box<dyn Future<Output = _> + Send> = Box::new(std::future::ready(Ok(())));
            Ok((response, nothing))
        })
    }
}

/// Refuses a request, after its body: a component that is still writing it would otherwise see a broken stream and not
/// the reason.
async fn refuse(request: Request<WasiBody>, reason: Error) -> Sent {
    let mut body = std::pin::pin!(request.into_body());
    while let Some(Ok(_)) = body.frame().await {}
    Err(reason)
}

/// What a log says of a request. Headers hold the password, parameters and bodies hold states: neither is in it.
struct RequestLine {
    method: http::Method,
    destination: String,
    query_id: Option<String>,
}

impl RequestLine {
    fn of(request: &Request<WasiBody>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        Self {
            method: request.method().clone(),
            destination: without_query(request.uri()),
            query_id: url::form_urlencoded::parse(query.as_bytes())
                .find(|(name, _)| name == "query_id")
                .map(|(_, value)| value.into_owned()),
        }
    }

    fn log(&self, start: Instant, response: &Result<http::Response<WasiBody>, Error>) {
        let Self { method, destination, query_id } = self;
        let query_id = query_id.as_deref().unwrap_or("-");
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        match response {
            Ok(response) => {
                let status = response.status().as_u16();
                tracing::info!("{method} {destination} query_id={query_id} status={status} {milliseconds:.1} ms");
            }
            Err(error) => {
                tracing::warn!("{method} {destination} query_id={query_id} failed: {error} {milliseconds:.1} ms");
            }
        }
    }
}

fn without_query(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    // Userinfo never occurs in what the component sends; if it did, it would be a secret.
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{}", uri.path())
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http_body_util::Full;

    use super::*;
    use crate::transport::Sending;

    /// Answers every request with nothing and counts them.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Transport for Counting {
        fn send(&self, request: Request<WasiBody>, _options: RequestOptions) -> Sending<'_> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move { Ok(http::Response::new(request.into_body())) })
        }
    }

    fn body(text: &'static str) -> WasiBody {
        Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed_unsync()
    }

    /// Sends a request to `uri` while `allowed` (secure, host, port) is, and says whether it was sent.
    async fn sends(allowed: Option<(bool, &str, u16)>, uri: &str) -> bool {
        let transport = Arc::new(Counting::default());
        let mut egress = Egress {
            allowed: allowed.map(|(secure, host, port)| Arc::new(Destination { secure, host: host.to_owned(), port })),
            transport: transport.clone(),
            response_limit: 100,
            activity: Arc::default(),
        };
        let request = Request::builder().uri(uri).body(body("SELECT 1")).unwrap();
        let sent = egress.send_request(request, None, Box::new(std::future::ready(Ok(()))));
        let sent = match Pin::from(sent).await {
            Ok(_) => true,
            Err(Error::HttpRequestDenied) => false,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(transport.0.load(Ordering::Relaxed), usize::from(sent), "{uri}");
        assert_eq!(egress.activity.in_flight(), 0);
        sent
    }

    #[tokio::test]
    async fn only_the_configured_server_is_reached() {
        let plain = Some((false, "db.example", 8123));
        assert!(sends(plain, "http://db.example:8123/?query=x").await);
        assert!(sends(plain, "http://DB.example:8123/").await);
        assert!(sends(Some((false, "db.example", 80)), "http://db.example/").await);
        assert!(sends(Some((true, "::1", 8443)), "https://[::1]:8443/").await);

        assert!(!sends(plain, "http://db.example:8124/").await);
        assert!(!sends(plain, "http://db.example/").await);
        assert!(!sends(plain, "http://other.example:8123/").await);
        assert!(!sends(plain, "http://db.example.other:8123/").await);
        assert!(!sends(plain, "http://db.example:8123@other.example/").await);
        assert!(!sends(plain, "https://db.example:8123/").await);
        assert!(!sends(Some((true, "db.example", 8443)), "http://db.example:8443/").await);
        assert!(!sends(None, "http://db.example:8123/").await);
    }

    #[tokio::test]
    async fn the_body_of_a_refused_request_is_read_to_its_end() {
        let (all_read, sees_all_read) = tokio::sync::oneshot::channel();
        let end = async move {
            all_read.send(()).unwrap();
            None
        };
        let body = body("SELECT 1").with_trailers(end).boxed_unsync();
        assert!(matches!(refuse(Request::new(body), Error::HttpRequestDenied).await, Err(Error::HttpRequestDenied)));
        sees_all_read.await.unwrap();
    }

    #[test]
    fn a_log_line_shows_no_parameters() {
        let uri = Uri::from_static("http://me:pw@host:1/path?param_data=secret&query_id=7");
        assert_eq!(without_query(&uri), "http://host:1/path");
        let line = RequestLine::of(&Request::builder().uri(uri).body(body("secret")).unwrap());
        assert_eq!(line.query_id.as_deref(), Some("7"));
    }
}
