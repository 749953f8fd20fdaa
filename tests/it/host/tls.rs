//! HTTPS with certificates of our own.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use meltano_state_host::wasi_http::{Error, RequestOptions};
use meltano_state_host::{PooledClient, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::transport::{OK, exchange};

/// A certificate authority with a certificate for the server and one for a client, as files.
struct Authority {
    directory: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { directory: tempfile::tempdir().unwrap(), issuer };
        fs::write(authority.file("authority.pem"), authority.issuer.pem()).unwrap();
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn issue(&self, name: &str) -> (CertificateDer<'static>, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.file("certificate.pem"), certificate.pem()).unwrap();
        fs::write(self.file("key.pem"), key.serialize_pem()).unwrap();
        (certificate.into(), key)
    }

    /// A server with a certificate for `name`.
    async fn serve(&self, name: &str, asks_for_a_certificate: bool) -> SocketAddr {
        let (certificate, key) = self.issue(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let config = if asks_for_a_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            config.with_client_cert_verifier(verifier)
        } else {
            config.with_no_client_auth()
        };
        let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()));
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
}

async fn ask(address: SocketAddr, tls: Tls) -> Result<(), Error> {
    let uri = format!("https://{address}/");
    exchange(&PooledClient::new(tls), &uri, RequestOptions::default()).await.map(drop)
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let authority = Authority::new();
    let address = authority.serve("127.0.0.1", false).await;
    let unknown = ask(address, Tls::default()).await;
    assert!(matches!(unknown, Err(Error::TlsCertificateError)), "{unknown:?}");
    let tls = Tls::default().with_authorities(&authority.file("authority.pem")).unwrap();
    ask(address, tls).await.unwrap();
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let address = authority.serve("other.example", false).await;
    let tls = Tls::default().with_authorities(&authority.file("authority.pem")).unwrap();
    let result = ask(address, tls).await;
    assert!(matches!(result, Err(Error::TlsCertificateError)), "{result:?}");
}

#[tokio::test]
async fn a_server_may_ask_for_a_certificate() {
    let authority = Authority::new();
    let address = authority.serve("127.0.0.1", true).await;
    let anonymous = Tls::default().with_authorities(&authority.file("authority.pem")).unwrap();
    let result = ask(address, anonymous).await;
    assert!(matches!(result, Err(Error::TlsAlertReceived { .. })), "{result:?}");
    authority.issue("client.example");
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
    authority.issue("client.example");
    let error = Tls::default().with_authorities(&key).unwrap_err().to_string();
    assert!(error.contains("key.pem"), "{error}");
    let error = Tls::default().with_identity(&key, &authority.file("none.pem")).unwrap_err().to_string();
    assert!(error.contains("none.pem"), "{error}");
}
