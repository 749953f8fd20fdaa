//! What stands before the real server: plain forwarding, and TLS with certificates of our own.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::server::SERVER;

/// Serves whatever a test starts, until the test process ends.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

/// A certificate authority of our own, with its files.
pub(crate) struct Authority {
    directory: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Whether the server's certificate is valid today.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validity {
    Now,
    UntilLastCentury,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { directory: tempfile::tempdir().unwrap(), issuer };
        fs::write(authority.file("authority.pem"), authority.issuer.pem()).unwrap();
        authority
    }

    /// `authority.pem`, and after [`Self::issue`] `certificate.pem` and `key.pem`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn issue(&self, name: &str, validity: Validity) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        if validity == Validity::UntilLastCentury {
            params.not_before = date_time_ymd(1998, 1, 1);
            params.not_after = date_time_ymd(1999, 12, 31);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.file("certificate.pem"), certificate.pem()).unwrap();
        fs::write(self.file("key.pem"), key.serialize_pem()).unwrap();
        (certificate.into(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }

    /// A TLS terminator before the real server, with a certificate for `name`.
    pub(crate) fn terminate(&self, name: &str, validity: Validity) -> SocketAddr {
        self.terminator(name, validity, false, server_address())
    }

    /// One that asks for a certificate of this authority.
    pub(crate) fn terminate_for_known_clients(&self, name: &str) -> SocketAddr {
        self.terminator(name, Validity::Now, true, server_address())
    }

    /// One before something else.
    pub(crate) fn terminate_before(&self, name: &str, target: SocketAddr) -> SocketAddr {
        self.terminator(name, Validity::Now, false, target)
    }

    fn terminator(&self, name: &str, validity: Validity, asks: bool, target: SocketAddr) -> SocketAddr {
        let (certificate, key) = self.issue(name, validity);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let config = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            config.with_client_cert_verifier(verifier)
        } else {
            config.with_no_client_auth()
        };
        let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()));
        listen("127.0.0.1:0", move |stream| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    forward(stream, target).await;
                }
            }
        })
    }
}

/// The address of the real server's HTTP interface.
pub(crate) fn server_address() -> SocketAddr {
    let uri = SERVER.uri();
    let host = uri.host_str().unwrap_or("127.0.0.1").replace("localhost", "127.0.0.1");
    format!("{host}:{}", uri.port().unwrap_or(8123)).parse().expect("the server has an address")
}

/// Forwards connections to `address` unchanged.
pub(crate) fn forward_from(address: &str) -> SocketAddr {
    listen(address, |stream| forward(stream, server_address()))
}

async fn forward(mut stream: impl AsyncRead + AsyncWrite + Unpin, target: SocketAddr) {
    if let Ok(mut upstream) = TcpStream::connect(target).await {
        // Either side may break off.
        let _ = copy_bidirectional(&mut stream, &mut upstream).await;
    }
}

fn listen<F: Future<Output = ()> + Send + 'static>(
    address: &str,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = std::net::TcpListener::bind(address).expect("a free port");
    listener.set_nonblocking(true).expect("a socket that does not block");
    let address = listener.local_addr().expect("it has an address");
    RUNTIME.spawn(async move {
        let listener = TcpListener::from_std(listener).expect("a listener");
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}
