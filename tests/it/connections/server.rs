//! The server and the tables on it.

use super::expect::{assert_words, check, check_error, check_step, command, json, listed, step, uri_at};
use crate::host::server::{Server, read_request};
use crate::old_server::OldServer;
use crate::sandbox::Sandbox;

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
    let request = percent_encoding::percent_decode_str(&request.replace('+', " ")).decode_utf8_lossy().into_owned();
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
