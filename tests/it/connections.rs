//! Each way in which a connection fails, brought about for real: the command says why, and what mends it. The rows of
//! `docs/troubleshooting.md` are these.

use std::net::{Ipv6Addr, TcpListener};
use std::time::{Duration, Instant};

use crate::cli::{Cli, Run, meltano_state};
use crate::forwarder::{Authority, Validity, forward_from};
use crate::host::server::{Server, read_request};
use crate::old_server::OldServer;
use crate::sandbox::Sandbox;
use crate::server::SERVER;
use crate::users::{CACHED, CHECKED_READER, CHECKED_STRANGER, HINDERED, WITHOUT_DELETE};
use serde_json::Value;

fn command(uri: &str, options: &[&str]) -> Cli {
    meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri)]).args_list(options).args(["--format", "json"])
}

fn json(text: &str) -> Value {
    serde_json::from_str(text.trim_end()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A step of a report by its name.
fn step<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["steps"].as_array().unwrap().iter().find(|step| step["name"] == name).unwrap()
}

/// What `docs/troubleshooting.md` says that one will see: it has to stand there.
pub(crate) fn listed(symptom: &str) -> &str {
    const PAGE: &str = include_str!("../../docs/troubleshooting.md");
    assert!(
        PAGE.contains(&format!("`{symptom}")) || PAGE.contains(&format!("{symptom}`")),
        "{symptom:?} is not listed"
    );
    symptom
}

fn assert_words(text: &Value, words: &[&str]) {
    let text = text.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
}

/// Checks that `check` fails at `step`, and that its finding or hint has these words.
fn check_step(uri: &str, options: &[&str], step_name: &str, words: &[&str]) {
    let run = command(uri, options).arg("check").run();
    let report = json(&run.stdout);
    assert_eq!(run.code, 1, "{report:#}");
    let failed = step(&report, step_name);
    assert_eq!(failed["status"], "failed", "{report:#}");
    assert_words(failed, words);
}

/// Checks that `arguments` fail with an error of this kind and with these words in message or hint.
fn check_error(uri: &str, options: &[&str], arguments: &[&str], kind: &str, words: &[&str]) -> Run {
    let run = command(uri, options).args_list(arguments).run();
    let last_line = run.stderr.lines().last().unwrap_or_default();
    let error = &json(last_line)["error"];
    assert_eq!(error["kind"], kind, "{error:#}");
    assert!(error["hint"].is_string(), "{error:#}");
    assert_words(error, words);
    run
}

/// Checks that both the check and a read say the same.
fn check(uri: &str, options: &[&str], step_name: &str, kind: &str, words: &[&str]) {
    check_error(uri, options, &["get", "a"], kind, words);
    check_step(uri, options, step_name, words);
}

/// The administrator's URI with another host and port, and a short time limit.
fn uri_at(address: impl std::fmt::Display) -> String {
    let uri = SERVER.uri();
    let (user, password) = (uri.username(), uri.password().unwrap_or_default());
    format!("clickhouse://{user}:{password}@{address}/default?request_timeout_seconds=2&schema=connections")
}

fn secure(uri: &str) -> String {
    uri.replacen("clickhouse://", "clickhouse+https://", 1)
}

#[test]
fn a_wrong_password_and_an_unknown_user() {
    for uri in [SERVER.uri_of(SERVER.uri().username(), "wrong"), SERVER.uri_of("nobody", "x")] {
        check(
            uri.as_str(),
            &[],
            "credentials",
            "authentication",
            &[listed("Authentication failed"), "clickhouse.user", "clickhouse.password", "%40"],
        );
    }
}

#[test]
fn a_missing_grant_is_named() {
    let (sandbox, uri) = Sandbox::of(&WITHOUT_DELETE);
    let schema = &sandbox.schema;
    command(sandbox.uri().as_str(), &[]).arg("init").run();
    check_step(
        uri.as_str(),
        &[],
        "privileges",
        &[listed("the user lacks"), &format!("GRANT ALTER DELETE ON {schema}.state TO {schema}")],
    );
    let clear = ["clear", "a", "--force"];
    command(sandbox.uri().as_str(), &[]).args(["set", "a", "{\"singer_state\":{}}"]).run();
    check_error(
        uri.as_str(),
        &[],
        &clear,
        "permission-denied",
        &[listed("Not enough privileges"), &format!("GRANT ALTER DELETE ON {schema}.state TO {schema}")],
    );
}

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
fn tls_to_a_plain_port_and_the_reverse() {
    let plain = crate::forwarder::server_address();
    let words = ["clickhouse.secure", "8123", "8443"];
    check(&secure(&uri_at(plain)), &[], "tls", "tls", &[&words[..], &[listed("InvalidContentType")]].concat());

    let closing = Server::start(drop);
    let ended = listed("the connection ended during the handshake");
    check(&secure(&uri_at(closing.address)), &[], "tls", "tls", &[&words[..], &[ended]].concat());

    let authority = Authority::new();
    let terminator = authority.terminate("127.0.0.1", Validity::Now);
    let start = Instant::now();
    let run = command(&uri_at(terminator), &[]).args(["get", "a"]).run();
    let words = [&words[..], &[listed("http protocol error")]].concat();
    assert_words(&json(&run.stderr)["error"], &words);
    check_step(&uri_at(terminator), &[], "http", &words);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn certificates_that_are_not_trusted() {
    let authority = Authority::new();
    let ca_file = authority.file("authority.pem");
    let trusting = ["--ca-file", ca_file.to_str().unwrap()];

    let address = authority.terminate("127.0.0.1", Validity::Now);
    let uri = secure(&uri_at(address));
    check(&uri, &[], "tls", "tls", &[listed("UnknownIssuer"), "self-signed", "--ca-file", "MELTANO_STATE_CA_FILE"]);
    assert_eq!(command(&uri, &trusting).args(["get", "a"]).run().code, 0);
    let from_environment = command(&uri, &[]).env("MELTANO_STATE_CA_FILE", ca_file.to_str().unwrap());
    assert_eq!(from_environment.arg("check").run().code, 0);
    // The system's own, in the place that OpenSSL's variable names.
    let of_the_system = command(&uri, &[]).env("SSL_CERT_FILE", ca_file.to_str().unwrap());
    assert_eq!(of_the_system.arg("check").run().code, 0);

    let expired = authority.terminate("127.0.0.1", Validity::UntilLastCentury);
    check(&secure(&uri_at(expired)), &trusting, "tls", "tls", &[listed("certificate expired"), "renew"]);
    let other = authority.terminate("other.example", Validity::Now);
    let words = [
        listed("certificate not valid for name"),
        "other.example",
        "state_backend.clickhouse.host",
        "subject alternative names",
    ];
    check(&secure(&uri_at(other)), &trusting, "tls", "tls", &words);
}

#[test]
fn a_server_that_asks_for_a_certificate() {
    let authority = Authority::new();
    let uri = secure(&uri_at(authority.terminate_for_known_clients("127.0.0.1")));
    let ca_file = authority.file("authority.pem");
    let trusting = ["--ca-file", ca_file.to_str().unwrap()];
    check(&uri, &trusting, "tls", "tls", &[listed("CertificateRequired"), "--client-cert", "--client-key"]);
    authority.issue("client.example", Validity::Now);
    let (certificate, key) = (authority.file("certificate.pem"), authority.file("key.pem"));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let known = [&trusting[..], &["--client-cert", certificate, "--client-key", key]].concat();
    assert_eq!(command(&uri, &known).args(["get", "a"]).run().code, 0);
    let known = command(&uri, &trusting).env("MELTANO_STATE_CLIENT_CERT", certificate);
    assert_eq!(known.env("MELTANO_STATE_CLIENT_KEY", key).args(["get", "a"]).run().code, 0);
}

#[test]
fn verification_is_turned_off_by_a_flag_that_warns() {
    let authority = Authority::new();
    for validity in [Validity::Now, Validity::UntilLastCentury] {
        let uri = secure(&uri_at(authority.terminate("other.example", validity)));
        for flag in ["--insecure", "--accept-invalid-certificate"] {
            let run = command(&uri, &[flag]).args(["get", "a"]).run();
            assert_eq!((run.code, run.stdout.as_str()), (0, "{}\n"), "{}", run.stderr);
            assert!(run.stderr.starts_with("warning: --insecure: "), "{}", run.stderr);
        }
        let run = command(&uri, &["--insecure"]).arg("check").run();
        let report = json(&run.stdout);
        assert_eq!((run.code, &step(&report, "tls")["status"]), (0, &Value::from("warning")), "{report:#}");
        assert_words(step(&report, "tls"), &["not checked", "--insecure"]);
    }
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
    check(
        &uri_at(server.address),
        &[],
        "http",
        "protocol",
        &[listed("the answer is not ClickHouse's"), "login", "proxy"],
    );
    let set = ["set", "a", "{\"singer_state\":{}}"];
    check_error(
        &uri_at(server.address),
        &[],
        &set,
        "outcome-unknown",
        &[listed("its outcome is unknown"), "not ClickHouse's"],
    );
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
    let start = Instant::now();
    let server = Server::start(move |mut stream| {
        use std::io::Write as _;
        while start.elapsed() < Duration::from_secs(1) {
            if read_request(&mut stream).is_none() {
                return;
            }
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
    assert!(run.stderr.matches("status=503").count() >= 2, "{}", run.stderr);
}

#[test]
fn a_read_only_profile() {
    let (sandbox, uri) = Sandbox::of(&CHECKED_READER);
    command(sandbox.uri().as_str(), &[]).arg("init").run();
    check_step(uri.as_str(), &[], "profile", &[listed("readonly = 1"), "only get and list", &sandbox.schema]);
    let report = json(&command(uri.as_str(), &[]).arg("check").run().stdout);
    assert_eq!(step(&report, "privileges")["status"], "ok", "{report:#}");
    assert_eq!(step(&report, "tables")["status"], "ok", "{report:#}");
    let set = ["set", "a", "{\"singer_state\":{}}"];
    check_error(uri.as_str(), &[], &set, "permission-denied", &[listed("in readonly mode"), "readonly"]);
}

#[test]
fn settings_of_the_profile_that_interfere() {
    let (sandbox, uri) = Sandbox::of(&HINDERED);
    command(sandbox.uri().as_str(), &[]).arg("init").run();
    let words =
        [listed("no state and no lock can be removed"), listed("may still be seen after it was removed"), "profile"];
    check_step(uri.as_str(), &[], "profile", &words);
    let (_sandbox, uri) = Sandbox::of(&CACHED);
    check_step(uri.as_str(), &[], "credentials", &[listed("The query result was not cached"), "use_query_cache to 0"]);
}

#[test]
fn a_database_that_does_not_exist() {
    let (sandbox, uri) = Sandbox::of(&CHECKED_STRANGER);
    let schema = &sandbox.schema;
    let grant = format!("GRANT CREATE DATABASE, CREATE TABLE ON {schema}.* TO {schema}");
    let words = [listed("absent, or hidden from this user"), &grant, "meltano-state init", "clickhouse.schema"];
    check_step(uri.as_str(), &[], "tables", &words);
    let set = ["set", "a", "{\"singer_state\":{}}"];
    check_error(uri.as_str(), &[], &set, "permission-denied", &["GRANT "]);
}

#[test]
fn tables_of_another_kind() {
    let sandbox = Sandbox::new();
    sandbox.sql("CREATE DATABASE {}");
    sandbox.sql("CREATE TABLE {}.state (state_id String, n UInt8) ENGINE = MergeTree ORDER BY n");
    let words = [listed("not ReplacingMergeTree"), listed("has no column"), listed("is sorted by"), "RENAME TABLE"];
    check_step(sandbox.uri().as_str(), &[], "layout", &words);
    let words = [listed("doesn't support FINAL"), "no state table", "clickhouse.table"];
    check_error(sandbox.uri().as_str(), &[], &["get", "a"], "schema-mismatch", &words);
}

#[test]
fn the_lock_table_of_the_python_addon() {
    let sandbox = Sandbox::new();
    command(sandbox.uri().as_str(), &[]).arg("init").run();
    sandbox.sql("DROP TABLE {}.state_lock SYNC");
    sandbox.sql(
        "CREATE TABLE {}.state_lock (state_id String, lock_id String, locked_at DateTime DEFAULT now()) \
         ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL locked_at + INTERVAL 300 SECOND",
    );
    let run = command(sandbox.uri().as_str(), &[]).arg("check").run();
    assert_eq!(run.code, 0, "{}", run.stdout);
    let report = json(&run.stdout);
    assert_eq!(step(&report, "layout")["status"], "warning");
    assert_words(step(&report, "layout"), &[listed("has the old layout"), "meltano-state init"]);
}

/// What ClickHouse 18.16.1 answers: without the headers of today, and in the old form.
fn too_old(request: &str) -> (&'static str, &'static str) {
    if request.contains("version(), ") {
        ("200 OK", "1\t18.16.1\t1795966289\n")
    } else if request.contains("version()") {
        ("200 OK", "1\t18.16.1\n")
    } else if request.contains("async_insert") {
        (
            "404 Not Found",
            "Code: 115, e.displayText() = DB::Exception: Unknown setting async_insert, e.what() = DB::Exception\n",
        )
    } else {
        let text =
            "Code: 115, e.displayText() = DB::Exception: Unknown setting param_database, e.what() = DB::Exception\n";
        ("404 Not Found", text)
    }
}

/// Checks what is said of that server.
fn check_too_old(uri: &str) {
    let words = [listed("or later is needed"), "18.16.1", "23.3"];
    check(uri, &[], "version", "unsupported-server", &words);
    for arguments in [&["list"][..], &["init"], &["set", "a", "{\"singer_state\":{}}"]] {
        check_error(uri, &[], arguments, "unsupported-server", &words);
    }
}

#[test]
fn a_server_that_is_too_old() {
    let server = Server::start(|mut stream| {
        use std::io::Write as _;
        while let Some(request) = read_request(&mut stream) {
            let (status, body) = too_old(&request);
            let head = format!("HTTP/1.1 {status}\r\nX-ClickHouse-Server-Display-Name: vm\r\n");
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    check_too_old(&uri_at(server.address));
}

/// Where Debian's packages can be had.
#[test]
fn a_real_server_that_is_too_old() {
    let Some(root) = std::env::var_os("PEERS_OLD_CLICKHOUSE") else {
        eprintln!("skipped: PEERS_OLD_CLICKHOUSE is not set; cargo xtask test sets it where apt offers that server");
        return;
    };
    let server = OldServer::start(root.as_ref());
    check_too_old(&format!("clickhouse://default:old@127.0.0.1:{}/default", server.port));
    for uri in ["default:wrong", "nobody:x"] {
        let uri = format!("clickhouse://{uri}@127.0.0.1:{}/default", server.port);
        check(&uri, &[], "credentials", "authentication", &["clickhouse.password"]);
    }
}
