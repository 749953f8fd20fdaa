//! Why there is no TLS session, in words: the codes of WASI HTTP have no room for it.

use std::error::Error as StdError;

use rustls::{AlertDescription, CertificateError, InvalidMessage, PeerIncompatible};

use super::failure::causes;

/// Why there is no TLS session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFailure {
    /// What happened.
    pub(crate) reason: String,
    /// What to do about it.
    pub(crate) hint: String,
}

const NO_TLS: &str = "set state_backend.clickhouse.secure to false if the port is for plain HTTP (commonly 8123), or \
                      state_backend.clickhouse.port to the one for HTTPS (commonly 8443)";

/// The reason within the causes of a failed request over HTTPS.
pub(super) fn find(error: &(dyn StdError + 'static)) -> TlsFailure {
    let found = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    let (reason, hint) = match found {
        Some(error) => (error.to_string(), of_rustls(error)),
        None => ("the connection ended during the handshake".to_owned(), NO_TLS.to_owned()),
    };
    TlsFailure { reason, hint }
}

/// The server has accepted the connection and says nothing.
pub(super) fn silent() -> TlsFailure {
    TlsFailure { reason: "the server does not answer the handshake".to_owned(), hint: NO_TLS.to_owned() }
}

fn of_rustls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => of_certificate(error).to_owned(),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => NO_TLS.to_owned(),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::HandshakeFailure,
        ) => "the server asks for a certificate that it trusts: name one with --client-cert and --client-key, or \
              MELTANO_STATE_CLIENT_CERT and MELTANO_STATE_CLIENT_KEY"
            .to_owned(),
        rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
        | rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "let the server offer TLS 1.2 or 1.3".to_owned()
        }
        _ => format!("check the server's TLS settings; {NO_TLS}"),
    }
}

fn of_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "renew the server's certificate; if it is valid, set the clock of this machine"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "set the clock of this machine, or wait until the certificate is valid"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "set state_backend.clickhouse.host to a name in the certificate, or give the server a certificate with this \
             name among its subject alternative names; its common name does not count"
        }
        CertificateError::UnknownIssuer => {
            "if the server's certificate is self-signed or of a private authority, name the authority's certificate \
             with --ca-file or MELTANO_STATE_CA_FILE"
        }
        // A self-signed certificate as `openssl req -x509` makes it by itself.
        CertificateError::Other(_) => {
            "give the server a certificate that an authority has signed; a self-signed one needs \
             basicConstraints=CA:FALSE to be trusted with --ca-file"
        }
        _ => "give the server another certificate",
    }
}
