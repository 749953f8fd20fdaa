//! A server that is busy, away for a moment, or not ClickHouse at all.

use std::thread;
use std::time::Duration;

use meltano_state_host::ErrorKind;

use crate::cli::meltano_state;
use crate::host::server::Server as WebServer;
use crate::sandbox::{Sandbox, component_error, instance, state};
use crate::server::{Server, unused_port};
use crate::users::SINGLE;

#[tokio::test]
async fn a_user_who_may_run_one_statement_at_a_time_has_many_processes() {
    const PROCESSES: usize = 6;
    const EACH: usize = 5;
    let (sandbox, uri) = Sandbox::of(&SINGLE);
    sandbox.instance().await.init().await.unwrap();
    thread::scope(|scope| {
        for process in 0..PROCESSES {
            let uri = uri.as_str();
            scope.spawn(move || {
                for number in 0..EACH {
                    let id = format!("{process}-{number}");
                    let merge = meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri)]);
                    let run = merge.args(["merge", id.as_str(), "{\"singer_state\":{\"x\":1}}"]).run();
                    assert_eq!(run.code, 0, "{}", run.stderr);
                    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
                }
            });
        }
    });
    assert_eq!(sandbox.sql("SELECT uniqExact(state_id) FROM {}.state"), format!("{}\n", PROCESSES * EACH));
    assert_eq!(sandbox.lock_rows(), "");
}

/// Meltano's instance lives as long as the run.
#[tokio::test]
async fn a_server_that_restarts_ends_no_run() {
    let data = tempfile::tempdir().unwrap();
    let port = unused_port();
    let server = Server::embedded_at(port, data.path());
    let mut store = instance(&server.uri(), &[]).await;
    let partial = |number: u32| state("a", Some(&format!("{{\"{number}\":1}}")), None);
    store.update(&partial(0)).await.unwrap();
    let mut server = Some(server);
    for number in 1..4 {
        server.take().unwrap().kill();
        let data = data.path().to_owned();
        let restarted = thread::spawn(move || {
            // For as long nobody listens.
            thread::sleep(Duration::from_secs(2));
            Server::embedded_at(port, &data)
        });
        match number {
            1 => drop(store.update(&partial(1)).await.unwrap()),
            2 => store.set(&state("b", Some("{\"x\":1}"), None)).await.unwrap(),
            _ => assert!(store.get("a").await.unwrap().is_some()),
        }
        server = Some(restarted.join().unwrap());
    }
    store.update(&partial(4)).await.unwrap();
    let stored = state("a", Some("{\"0\":1,\"1\":1,\"4\":1}"), None);
    assert_eq!(store.get("a").await.unwrap(), Some(stored));
    assert_eq!(store.holders(None).await.unwrap(), []);
}

/// Whatever it calls a success.
#[tokio::test]
async fn another_web_server_is_not_taken_for_clickhouse() {
    const ANSWERS: [&str; 6] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1\t1\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n<p>log in</p",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
    ];
    for answer in ANSWERS {
        let server = WebServer::answering(answer);
        let uri = format!("clickhouse://u:p@{}/d", server.address);
        let mut store = instance(&uri.parse().unwrap(), &[]).await;
        for read in [
            store.get("a").await.map(drop),
            store.get_raw("a").await.map(drop),
            store.get_all(None, None, None).await.map(drop),
            store.get_state_ids(None).await.map(drop),
            store.holders(None).await.map(drop),
            store.versions("a", None, None).await.map(drop),
            store.copy("a", "b", true).await.map(drop),
            store.init().await.map(drop),
        ] {
            let error = component_error(read);
            assert_eq!(error.kind, ErrorKind::Protocol, "{answer}: {error}");
            assert!(error.message.contains("not ClickHouse's"), "{error}");
        }
        // Something behind it may have carried a write out.
        let written = state("a", None, Some("{\"x\":1}"));
        for write in [
            store.set(&written).await,
            store.set_all(std::slice::from_ref(&written)).await.map(drop),
            store.delete("a").await,
        ] {
            let error = component_error(write);
            assert_eq!(error.kind, ErrorKind::OutcomeUnknown, "{answer}: {error}");
            assert!(error.message.contains("not ClickHouse's"), "{error}");
        }
        assert!(store.check().await.unwrap().has_failed(), "{answer}");
        let import = meltano_state(&[]).args(["--uri", uri.as_str(), "import", "--force"]);
        let run = import.input("{\"a\":{\"completed\":{\"singer_state\":{\"x\":1}}}}").run();
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        assert!(run.stderr.contains("0 of 1 states are imported"), "{}", run.stderr);
    }
}
