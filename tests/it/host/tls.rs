//! HTTPS with certificates of our own.

use std::net::SocketAddr;

use meltano_state_host::wasi_http::{Error, RequestOptions};
use meltano_state_host::{PooledClient, Tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::transport::{OK, exchange};
use crate::authority::{Authority, Validity};

/// A server with a certificate for `name`.
async fn serve(authority: &Authority, name: &str, asks_for_a_certificate: bool) -> SocketAddr {
    let acceptor = authority.acceptor(name, Validity::Now, asks_for_a_certificate);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(OK.as_bytes()).await;
        }
    });
    address
}

async fn ask(address: SocketAddr, tls: Tls) -> Result<(), Error> {
    let uri = format!("https://{address}/");
    exchange(&PooledClient::new(tls), &uri, RequestOptions::default()).await.map(drop)
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let authority = Authority::new();
    let address = serve(&authority, "127.0.0.1", false).await;
    let unknown = ask(address, Tls::default()).await;
    assert!(matches!(unknown, Err(Error::TlsCertificateError)), "{unknown:?}");
    let tls = Tls::default().with_authorities(&authority.file("authority.pem")).unwrap();
    ask(address, tls).await.unwrap();
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let address = serve(&authority, "other.example", false).await;
    let tls = Tls::default().with_authorities(&authority.file("authority.pem")).unwrap();
    let result = ask(address, tls).await;
    assert!(matches!(result, Err(Error::TlsCertificateError)), "{result:?}");
}

#[tokio::test]
async fn a_server_may_ask_for_a_certificate() {
    let authority = Authority::new();
    let address = serve(&authority, "127.0.0.1", true).await;
    let anonymous = Tls::default().with_authorities(&authority.file("authority.pem")).unwrap();
    let result = ask(address, anonymous).await;
    assert!(matches!(result, Err(Error::TlsAlertReceived { .. })), "{result:?}");
    authority.issue("client.example", Validity::Now);
    let known = Tls::default()
        .with_authorities(&authority.file("authority.pem"))
        .and_then(|tls| tls.with_identity(&authority.file("certificate.pem"), &authority.file("key.pem")))
        .unwrap();
    assert!(!format!("{known:?}").contains("PrivateKey"));
    ask(address, known).await.unwrap();
}

#[test]
fn files_that_hold_something_else_are_named() {
    let authority = Authority::new();
    let key = authority.file("key.pem");
    authority.issue("client.example", Validity::Now);
    let error = Tls::default().with_authorities(&key).unwrap_err().to_string();
    assert!(error.contains("key.pem"), "{error}");
    let error = Tls::default().with_identity(&key, &authority.file("none.pem")).unwrap_err().to_string();
    assert!(error.contains("none.pem"), "{error}");
}
