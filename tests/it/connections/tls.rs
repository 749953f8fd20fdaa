//! TLS, by a terminator before the real server.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::expect::{assert_words, check, check_step, command, json, listed, secure, step, uri_at};
use crate::authority::{Authority, Validity};
use crate::host::server::Server;

#[test]
fn tls_to_a_plain_port_and_the_reverse() {
    let words = ["clickhouse.secure", "8123", "8443"];
    // A handshake is noise to a server for plain HTTP: by its random bytes a refusal, the end, or half a request. The
    // embedded server is spared it, since it does not survive it always.
    const REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let refusing = Server::start(|mut stream| {
        let _ = stream.read(&mut [0; 64]).and_then(|_| stream.write_all(REFUSAL.as_bytes()));
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let closing = Server::start(drop);
    let waiting = Server::start(|mut stream| drop(std::io::copy(&mut stream, &mut std::io::sink())));
    for (server, symptom) in [
        (refusing, "InvalidContentType"),
        (closing, "the connection ended during the handshake"),
        (waiting, "does not answer the handshake"),
    ] {
        let uri = secure(&uri_at(server.address)).replace("schema=", "connect_timeout_seconds=0.5&schema=");
        check(&uri, &[], "tls", "tls", &[&words[..], &[listed(symptom)]].concat());
    }

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
