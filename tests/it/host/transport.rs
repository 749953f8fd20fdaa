//! The pooled client against servers that behave and servers that do not.

use std::io::Write as _;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use meltano_state_host::wasi_http::{Error, RequestOptions, WasiBody};
use meltano_state_host::{Plugin, PooledClient, Settings, Transport};

use super::server::{Server, read_request};

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1\n";
const NO_ROWS: &str = "HTTP/1.1 200 OK\r\nX-ClickHouse-Format: TabSeparated\r\nContent-Length: 0\r\n\r\n";
const SHORT: Duration = Duration::from_millis(50);

pub(crate) fn request(uri: &str) -> Request<WasiBody> {
    let body = Full::new(Bytes::from_static(b"SELECT 1")).map_err(|never| match never {}).boxed_unsync();
    Request::post(uri).body(body).unwrap()
}

/// The body of the answer, or why there is none.
pub(crate) async fn exchange(client: &PooledClient, uri: &str, options: RequestOptions) -> Result<Bytes, Error> {
    let answer = client.send(request(uri), options).await?;
    Ok(answer.into_body().collect().await?.to_bytes())
}

/// Checks the failure of a request to a server that does `serve` with each connection.
async fn check(
    scheme: &str,
    serve: impl Fn(std::net::TcpStream) + Clone + Send + 'static,
    options: RequestOptions,
    expected: impl Fn(&Error) -> bool,
) {
    let server = Server::start(serve);
    let uri = format!("{scheme}://{}/", server.address);
    let error = exchange(&PooledClient::default(), &uri, options).await.unwrap_err();
    assert!(expected(&error), "{error:?}");
}

fn keep_open<T>(stream: T) {
    thread::sleep(Duration::from_secs(5));
    drop(stream);
}

#[tokio::test]
async fn requests_share_a_connection() {
    let server = Server::answering(OK);
    let client = PooledClient::default();
    let uri = format!("http://{}/", server.address);
    for _ in 0..3 {
        assert_eq!(exchange(&client, &uri, RequestOptions::default()).await.unwrap(), "1\n");
    }
    assert_eq!(server.connections(), 1);
}

/// Reads by as many instances at once, one after another each, and says how many connections that took.
async fn connections_for(instances: usize, calls: usize) -> usize {
    let server = Server::answering(NO_ROWS);
    let uri = format!("clickhouse://u:p@{}/d", server.address);
    let settings = Settings::new().with("uri", uri).unwrap();
    let plugin = Plugin::builder().settings(settings).build().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..instances {
        let mut instance = plugin.instance().await.unwrap();
        tasks.spawn(async move {
            for _ in 0..calls {
                assert_eq!(instance.get("dev:a").await.unwrap(), None);
            }
        });
    }
    assert_eq!(tasks.join_all().await.len(), instances);
    server.connections()
}

#[tokio::test]
async fn instances_share_connections() {
    assert_eq!(connections_for(1, 20).await, 1);
    let connections = connections_for(64, 20).await;
    assert!((1..=64).contains(&connections), "{connections}");
}

#[tokio::test]
async fn more_calls_than_connections_take_turns() {
    let connections = connections_for(200, 5).await;
    assert!((1..=64).contains(&connections), "{connections}");
}

#[tokio::test]
async fn no_turn_in_time() {
    let server = Server::start(keep_open);
    let client = PooledClient::default();
    let uri = format!("http://{}/", server.address);
    let waiting = (0..64).map(|_| client.send(request(&uri), RequestOptions::default()));
    let mut waiting: Vec<_> = waiting.collect();
    for answer in &mut waiting {
        assert!(tokio::time::timeout(Duration::ZERO, answer).await.is_err());
    }
    // To wait for a turn is not to connect.
    let options = RequestOptions {
        connect_timeout: Some(Duration::from_millis(1)),
        first_byte_timeout: Some(SHORT),
        ..RequestOptions::default()
    };
    let result = exchange(&client, &uri, options).await;
    assert!(matches!(result, Err(Error::ConnectionLimitReached)), "{result:?}");
    // Requests that are given up make room.
    drop(waiting);
    let options = RequestOptions { first_byte_timeout: Some(SHORT), ..RequestOptions::default() };
    let result = exchange(&client, &uri, options).await;
    assert!(matches!(result, Err(Error::ConnectionReadTimeout)), "{result:?}");
}

#[tokio::test]
async fn nobody_listens() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let result = exchange(&PooledClient::default(), &format!("http://{unused}/"), RequestOptions::default()).await;
    assert!(matches!(result, Err(Error::ConnectionRefused)), "{result:?}");
}

#[tokio::test]
async fn no_answer_in_time() {
    let options = RequestOptions { first_byte_timeout: Some(SHORT), ..RequestOptions::default() };
    check("http", keep_open, options, |error| matches!(error, Error::ConnectionReadTimeout)).await;
}

#[tokio::test]
async fn no_connection_in_time() {
    let options = RequestOptions { connect_timeout: Some(SHORT), ..RequestOptions::default() };
    // Without its TLS session a connection does not stand, but a server is there.
    check("https", keep_open, options, |error| matches!(error, Error::TlsProtocolError)).await;
}

#[tokio::test]
async fn the_connection_ends_before_the_answer() {
    let serve = |mut stream| drop(read_request(&mut stream));
    let lost = |error: &Error| matches!(error, Error::ConnectionTerminated);
    check("http", serve, RequestOptions::default(), lost).await;
}

#[tokio::test]
async fn the_connection_ends_within_the_answer() {
    let serve = |mut stream: std::net::TcpStream| {
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").unwrap();
    };
    let incomplete = |error: &Error| matches!(error, Error::HttpResponseIncomplete);
    check("http", serve, RequestOptions::default(), incomplete).await;
}

#[tokio::test]
async fn what_answers_is_no_http_server() {
    let serve = |mut stream: std::net::TcpStream| {
        read_request(&mut stream);
        stream.write_all(b"SSH-2.0-server\r\n\r\n").unwrap();
    };
    let no_http = |error: &Error| matches!(error, Error::HttpProtocolError);
    check("http", serve, RequestOptions::default(), no_http).await;
}

#[tokio::test]
async fn https_at_the_port_for_http() {
    let serve = |mut stream: std::net::TcpStream| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
        keep_open(stream);
    };
    let no_tls = |error: &Error| matches!(error, Error::TlsProtocolError);
    check("https", serve, RequestOptions::default(), no_tls).await;
    check("https", drop, RequestOptions::default(), no_tls).await;
}
