//! A certificate authority of our own, and servers with its certificates.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

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

    /// What a server with a certificate for `name` accepts TLS with; if it `asks`, only from clients with a certificate of
    /// this authority.
    pub(crate) fn acceptor(&self, name: &str, validity: Validity, asks: bool) -> TlsAcceptor {
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
        TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()))
    }
}
