//! Servers that are slow, silent, or close too early: on real sockets, in our host and under a stock wasmtime.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use meltano_state_host::{COMPONENT, ErrorKind};
use url::Url;

use crate::cli::meltano_state;
use crate::connections::listed;
use crate::forwarder::server_address;
use crate::host::server::{Server, read_request};
use crate::peers::{invoke, peer};
use crate::sandbox::{Sandbox, component_error, instance, state};
use crate::server::SERVER;

/// The administrator's URI with another address and this time limit.
fn uri_at(server: &Server, request_timeout_seconds: &str) -> Url {
    let uri = SERVER.uri();
    let (user, password) = (uri.username(), uri.password().unwrap_or_default());
    let limit = format!("request_timeout_seconds={request_timeout_seconds}");
    format!("clickhouse://{user}:{password}@{}/default?{limit}&schema=network", server.address).parse().unwrap()
}

fn keep_open(stream: &mut TcpStream) {
    // Until the other side has gone.
    let _ = std::io::copy(stream, &mut std::io::sink());
}

/// Accepts and never answers.
fn silent() -> Server {
    Server::start(|mut stream| keep_open(&mut stream))
}

/// Stops in the middle of the body.
fn half_a_body() -> Server {
    Server::start(|mut stream| {
        if read_request(&mut stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n1\tha");
            keep_open(&mut stream);
        }
    })
}

/// What a server does once it has refused an upload.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Reads the rest and throws it away.
    ReadsOn,
    /// Reads no more, and keeps the connection.
    Stops,
    /// Closes the connection over what it has not read, which resets it.
    Closes,
}

/// Says that the upload is too large as soon as it sees its head.
fn too_large(then: Then) -> Server {
    Server::start(move |mut stream| {
        let mut head = [0; 64];
        if stream.read(&mut head).is_ok() {
            let answer = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 8\r\n\r\ntoo much";
            let _ = stream.write_all(answer);
            match then {
                Then::ReadsOn => keep_open(&mut stream),
                Then::Stops => thread::sleep(Duration::from_secs(5)),
                Then::Closes => {}
            }
        }
    })
}

/// The component as a file, for a stock wasmtime.
fn component_file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("component.wasm");
    std::fs::write(&file, COMPONENT).unwrap();
    (directory, file)
}

#[tokio::test]
async fn a_server_that_says_nothing_ends_in_timed_out_within_the_limit() {
    for server in [silent(), half_a_body()] {
        let uri = uri_at(&server, "1");
        let mut store = instance(&uri, &[]).await;
        let start = Instant::now();
        let error = component_error(store.get("a").await);
        let took = start.elapsed();
        assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
        assert!(
            error.message.contains(listed("no complete answer from")) && error.message.contains("within 1 s"),
            "{error}"
        );
        assert!(error.hint.as_deref().unwrap().contains("request_timeout_seconds"));
        assert!(took > Duration::from_millis(900) && took < Duration::from_millis(1900), "{took:?}");
    }
    // A write may have been carried out.
    let error = component_error(instance(&uri_at(&silent(), "1"), &[]).await.set(&state("a", None, None)).await);
    assert_eq!(error.kind, ErrorKind::OutcomeUnknown, "{error}");
}

#[test]
fn under_a_stock_wasmtime_too() {
    let Some(wasmtime) = peer("PEERS_WASMTIME") else { return };
    let (_directory, component) = component_file();
    for server in [silent(), half_a_body()] {
        let start = Instant::now();
        let printed = invoke(&wasmtime, &component, uri_at(&server, "1").as_str(), "get(\"a\")");
        let took = start.elapsed();
        assert!(printed.starts_with("err({kind: timed-out, message: "), "{printed}");
        // It compiles the component first.
        assert!(took < Duration::from_secs(8), "{took:?}");
    }
    let printed = invoke(&wasmtime, &component, SERVER.uri().as_str(), "check()");
    assert!(printed.contains(r#"{name: "version", status: %ok, tried: "SELECT version()""#), "{printed}");
    let body = "x".repeat(100_000);
    let set = format!(r#"set({{state-id: "a", completed-state: "{{\"x\": \"{body}\"}}"}})"#);
    let printed = invoke(&wasmtime, &component, uri_at(&too_large(Then::ReadsOn), "5").as_str(), &set);
    assert!(printed.contains("HTTP 413") && printed.contains("too much"), "{printed}");
}

#[tokio::test]
async fn an_early_refusal_of_a_large_upload_is_reported_as_such() {
    let large = state("a", None, Some(&format!("{{\"x\":\"{}\"}}", "x".repeat(20 << 20))));
    for then in [Then::ReadsOn, Then::Stops, Then::Closes] {
        let server = too_large(then);
        let mut store = instance(&uri_at(&server, "10"), &[]).await;
        let start = Instant::now();
        let error = component_error(store.set(&large).await);
        assert_eq!(error.kind, ErrorKind::Protocol, "{then:?}: {error}");
        assert!(error.message.contains("HTTP 413") && error.message.contains("too much"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
    // And by ClickHouse itself, which knows the user before it has read the rows.
    let uri = SERVER.uri_of(SERVER.uri().username(), "wrong");
    let error = component_error(instance(&uri, &[]).await.set(&large).await);
    assert_eq!(error.kind, ErrorKind::Authentication, "{error}");
}

/// Answers as the real server does, each connection after that time.
fn delayed(delay: Duration) -> Server {
    let target = server_address();
    Server::start(move |mut stream| {
        thread::sleep(delay);
        let mut upstream = TcpStream::connect(target).unwrap();
        let (mut to, mut from) = (upstream.try_clone().unwrap(), stream.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut upstream, &mut stream);
    })
}

/// A read over a server that takes that long: with a limit below it and with one above.
fn check_delay(delay: Duration, too_short: Option<&str>, long_enough: &str) {
    let server = delayed(delay);
    let get = |limit: &str| {
        meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri_at(&server, limit).as_str())]).args(["get", "a"]).run()
    };
    if let Some(limit) = too_short {
        let run = get(limit);
        assert_eq!(run.code, 1);
        assert!(run.stderr.contains("raise state_backend.clickhouse.request_timeout_seconds"), "{}", run.stderr);
    }
    let run = get(long_enough);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{}\n"), "{}", run.stderr);
    let waiting = format!("{} {} (2 s so far)\n", listed("waiting for an answer from"), server.address);
    assert_eq!(run.stderr, waiting);
}

#[test]
fn a_slow_first_answer_is_waited_for_and_that_is_said() {
    check_delay(Duration::from_secs(3), Some("1"), "20");
}

#[test]
#[ignore = "takes 45 s: cargo xtask test --long"]
fn a_first_answer_after_45_s_is_waited_for() {
    check_delay(Duration::from_secs(45), None, "90");
}

/// Closes each connection after its first answer, without a word, when the client has had time to keep it.
#[tokio::test]
async fn a_kept_connection_that_the_server_has_closed_is_replaced() {
    let server = Server::start(|mut stream| {
        if read_request(&mut stream).is_some() {
            let _ = stream.write_all(crate::host::server::NO_TABLE.as_bytes());
            thread::sleep(Duration::from_millis(20));
        }
    });
    let mut store = instance(&uri_at(&server, "5"), &[]).await;
    for pause in [0, 50, 50, 19, 20, 21] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        assert_eq!(store.get("a").await.unwrap(), None);
    }
    assert!(server.connections() >= 6);
}

/// The answer to a write is lost, on a real connection to the real server.
#[tokio::test]
async fn a_write_whose_answer_is_lost_has_an_unknown_outcome_unless_a_repetition_settles_it() {
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    let losing = |answers_to_lose: usize| {
        let target = server_address();
        let lost = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        Server::start(move |mut stream| {
            let Some(request) = read_request(&mut stream) else { return };
            let mut upstream = TcpStream::connect(target).unwrap();
            upstream.write_all(request.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).unwrap();
            let mut answer = Vec::new();
            upstream.read_to_end(&mut answer).unwrap();
            if lost.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= answers_to_lose {
                let _ = stream.write_all(&answer);
            }
        })
    };
    let uri = |server: &Server, limit: &str| {
        let uri = uri_at(server, limit).to_string().replace("schema=network", &format!("schema={}", sandbox.schema));
        format!("{uri}&lock_settle_seconds=0.1").parse::<Url>().unwrap()
    };
    let value = state("a", None, Some("{\"x\":1}"));
    instance(&uri(&losing(2), "30"), &[]).await.set(&value).await.unwrap();
    let error = component_error(instance(&uri(&losing(usize::MAX), "2"), &[]).await.set(&value).await);
    assert_eq!(error.kind, ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(sandbox.sql("SELECT count() FROM {}.state FINAL"), "1\n");
    assert!(error.message.contains(listed("its outcome is unknown")), "{error}");
    // The insert of a lock row is no write of a state. It must not be repeated; after its removal there is another.
    instance(&uri(&losing(1), "30"), &[]).await.update(&value).await.unwrap();
    assert_eq!(sandbox.lock_rows(), "");
    let error = component_error(instance(&uri(&losing(usize::MAX), "2"), &[]).await.update(&value).await);
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
    assert!(error.hint.as_ref().unwrap().contains("meltano-state unlock a 00000000-"), "{error:?}");
}
