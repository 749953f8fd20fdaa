//! Whom to trust over HTTPS, and who we are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::unverified::Unverified;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// Whom to trust over HTTPS, and who we are.
///
/// By default the certificate authorities of the system are trusted (or those that `SSL_CERT_FILE` and `SSL_CERT_DIR`
/// name), or Mozilla's where the system has none, as in a minimal container.
#[derive(Default)]
pub struct Tls {
    authorities: Vec<CertificateDer<'static>>,
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    unverified: bool,
}

impl Tls {
    /// Trusts the certificates in a PEM file too: a private authority's, or the server's own.
    ///
    /// # Errors
    /// When the file cannot be read or holds no certificate.
    pub fn with_authorities(mut self, file: &Path) -> Result<Self, TlsError> {
        self.authorities.extend(certificates(file)?);
        Ok(self)
    }

    /// Shows the server a certificate: a PEM file with the certificate and those it rests on, and one with its key.
    ///
    /// # Errors
    /// When a file cannot be read or does not hold what it should.
    pub fn with_identity(mut self, certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let private_key = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::file(key, &error))?;
        self.identity = Some((certificates(certificate)?, private_key));
        Ok(self)
    }

    /// Accepts any certificate of the server. Whoever stands between can then read and change everything, the password
    /// too: for trying something out.
    #[must_use]
    pub fn without_verification(mut self) -> Self {
        self.unverified = true;
        self
    }

    pub(super) fn accepts_anyone(&self) -> bool {
        self.unverified
    }

    pub(super) fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?;
        let config = if self.unverified {
            config.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        } else {
            config.with_root_certificates(self.roots()?)
        };
        match &self.identity {
            None => Ok(config.with_no_client_auth()),
            Some((certificates, key)) => {
                config.with_client_auth_cert(certificates.clone(), key.clone_key()).map_err(TlsError::Unusable)
            }
        }
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        // Some systems have certificates that cannot be parsed; the others count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        for authority in &self.authorities {
            roots.add(authority.clone()).map_err(TlsError::Unusable)?;
        }
        Ok(roots)
    }
}

/// The private key is not shown.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("authorities", &self.authorities.len())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| TlsError::file(file, &error))?;
    if certificates.is_empty() {
        return Err(TlsError::file(file, &pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

/// What is wrong with the material for TLS.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be read, or that does not hold what it should.
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Certificates or a key that do not fit their purpose.
    Unusable(rustls::Error),
}

impl TlsError {
    fn file(path: &Path, error: &pem::Error) -> Self {
        Self::File { path: path.to_owned(), reason: error.to_string() }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Unusable(error) => write!(f, "the certificates or the key cannot be used: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}
