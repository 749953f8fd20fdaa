//! Finding the server, and what answers in its place.

use std::net::{Ipv6Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::expect::{check, check_error, check_step, command, listed, secure, uri_at};
use crate::authority::Authority;
use crate::forwarder::forward_from;
use crate::host::server::{Server, read_request};
use crate::server::SERVER;

#[test]
fn no_such_host() {
    // No label of a name is longer than 63 characters, so nobody is asked for this one.
    let uri = uri_at(format!("{}.invalid:8123", "a".repeat(64)));
    check(&uri, &[], "connection", "unreachable", &[listed("has no address"), "state_backend.clickhouse.host"]);
}

#[test]
fn nobody_listens() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    check(&uri_at(unused), &[], "connection", "unreachable", &[listed("connection refused"), "8123", "8443"]);
}

#[test]
fn the_port_of_the_native_protocol() {
    let Some(native) = SERVER.native_port() else {
        eprintln!("skipped: the port is known of the embedded server alone");
        return;
    };
    let words = [listed("is for clickhouse-client program"), "native protocol", "8123", "8443"];
    check(&uri_at(format!("127.0.0.1:{native}")), &[], "http", "protocol", &words);
    let authority = Authority::new();
    let terminator = authority.terminate_before("127.0.0.1", format!("127.0.0.1:{native}").parse().unwrap());
    let ca_file = authority.file("authority.pem");
    let options = ["--ca-file", ca_file.to_str().unwrap()];
    check(&secure(&uri_at(terminator)), &options, "http", "protocol", &words);
}

#[test]
fn special_characters_that_are_not_encoded() {
    for (password, symptom) in [
        ("p@h/x", "an @ follows the first / or ?"),
        ("a/b", "an @ follows the first / or ?"),
        ("a?b", "an @ follows the first / or ?"),
        ("p#x", "the value holds an unencoded #"),
        ("x@h:p", "the port is not a number"),
        ("p%x", "a % is not followed by two hexadecimal digits"),
    ] {
        let uri = if symptom.contains("port") {
            format!("clickhouse://me:{password}/d")
        } else {
            format!("clickhouse://me:{password}@127.0.0.1:1/d")
        };
        let words = [listed(symptom), "percent-encode", "%23"];
        let run = check_error(&uri, &[], &["get", "a"], "invalid-setting", &words);
        assert_eq!(run.code, 2);
        check_step(&uri, &[], "settings", &words);
    }
}

#[test]
fn ipv6() {
    let words = [listed("the host is no valid IPv6 address"), "brackets"];
    check_error("clickhouse://u:p@[::1/d", &[], &["get", "a"], "invalid-setting", &words);
    check_error(
        "clickhouse://u:p@::1:8123/d",
        &[],
        &["get", "a"],
        "invalid-setting",
        &[listed("the host has more than one colon"), "brackets", "[::1]"],
    );
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let port = forward_from("[::1]:0").port();
    let run = command(&uri_at(format!("[::1]:{port}")), &[]).arg("check").run();
    assert_eq!(run.code, 0, "{}", run.stdout);
    let host = format!("host=::1&port={port}");
    let uri = uri_at("127.0.0.1:1").replace("schema=", &format!("{host}&schema="));
    assert_eq!(command(&uri, &[]).args(["get", "a"]).run().code, 0);
}

#[test]
fn a_proxy_answers_for_the_server() {
    const AWAY: &str =
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<html>\r\n</html";
    const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    for (answer, status) in [(AWAY, "HTTP 502"), (BUSY, "HTTP 503")] {
        let server = Server::answering(answer);
        let words = [listed(status), "ClickHouse Cloud", "request_timeout_seconds"];
        // It is asked again until the time is over.
        let uri = uri_at(server.address).replace("request_timeout_seconds=2", "request_timeout_seconds=0.5");
        check(&uri, &[], "http", "unreachable", &words);
    }
    const PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>login</ht";
    let server = Server::answering(PAGE);
    check(&uri_at(server.address), &[], "http", "protocol", &[listed("not ClickHouse's"), "login", "proxy"]);
    // A write, without the question whether it would lose something.
    let set = ["set", "a", "{\"singer_state\":{}}", "--force"];
    check_error(&uri_at(server.address), &[], &set, "protocol", &["nothing was written", "not ClickHouse's"]);
    const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    check_step(&uri_at(Server::answering(PLAIN).address), &[], "http", &["not ClickHouse's", "hi"]);
    const HTTPS: &str = "HTTP/1.1 400 Bad Request\r\nContent-Length: 54\r\n\r\n\
                         <html>The plain HTTP request was sent to HTTPS port</h";
    check(
        &uri_at(Server::answering(HTTPS).address),
        &[],
        "http",
        "protocol",
        &[listed("sent to HTTPS port"), "clickhouse.secure to true"],
    );
}

#[test]
fn a_paused_service_is_waited_for() {
    let target = crate::forwarder::server_address();
    let refused = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |mut stream| {
        use std::io::Write as _;
        while refused.load(Ordering::Relaxed) < 3 {
            if read_request(&mut stream).is_none() {
                return;
            }
            refused.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
        }
        let mut upstream = std::net::TcpStream::connect(target).unwrap();
        let (mut to, mut from) = (upstream.try_clone().unwrap(), stream.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut upstream, &mut stream);
    });
    let uri = uri_at(server.address).replace("request_timeout_seconds=2", "request_timeout_seconds=20");
    let run = command(&uri, &["-v"]).args(["get", "a"]).run();
    assert_eq!((run.code, run.stdout.as_str()), (0, "{}\n"), "{}", run.stderr);
    assert_eq!(run.stderr.matches("status=503").count(), 3, "{}", run.stderr);
}
