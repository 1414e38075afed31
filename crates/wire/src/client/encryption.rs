//! TLS of a client, over anything that reads and writes.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An encrypted stream.
pub type Encrypted<S> = StreamOwned<ClientConnection, S>;

/// Whether a connection is encrypted, and what is asked of the server's certificate: MySQL's `ssl-mode`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Encryption {
    None,
    /// Any certificate will do: this keeps out who only listens.
    Required,
    /// The authorities of this file vouch for it, or it is in the file itself.
    VerifyCa(PathBuf),
    /// And it is for the host that was asked for.
    VerifyIdentity(PathBuf),
}

impl Encryption {
    /// From the options of a URL, `ssl-mode` and `ssl-ca`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of_options(mode: Option<&str>, ca: Option<&str>) -> Result<Encryption, String> {
        let ca = ca.map(PathBuf::from);
        match (mode.map(str::to_ascii_uppercase).as_deref(), ca) {
            (None | Some("DISABLED"), None) => Ok(Encryption::None),
            (Some("REQUIRED"), None) => Ok(Encryption::Required),
            (None | Some("REQUIRED" | "VERIFY_CA"), Some(ca)) => Ok(Encryption::VerifyCa(ca)),
            (Some("VERIFY_IDENTITY"), Some(ca)) => Ok(Encryption::VerifyIdentity(ca)),
            (Some("VERIFY_CA" | "VERIFY_IDENTITY"), None) => Err("ssl-ca=FILE is missing".to_string()),
            (Some("DISABLED"), Some(_)) => Err("ssl-ca has no use without TLS".to_string()),
            (Some(_), _) => Err("ssl-mode is DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY".to_string()),
        }
    }

    /// As a URL has it, nothing without TLS.
    pub fn options(&self) -> String {
        match self {
            Encryption::None => String::new(),
            Encryption::Required => "?ssl-mode=REQUIRED".to_string(),
            Encryption::VerifyCa(ca) => format!("?ssl-mode=VERIFY_CA&ssl-ca={}", ca.display()),
            Encryption::VerifyIdentity(ca) => format!("?ssl-mode=VERIFY_IDENTITY&ssl-ca={}", ca.display()),
        }
    }

    /// Does the handshake with a server that has been asked for TLS. Not for [`Encryption::None`].
    ///
    /// # Errors
    /// If the file of authorities cannot be used, or the server's certificate is not what was asked for.
    pub fn encrypt<S: Read + Write>(&self, mut stream: S, host: &str) -> io::Result<Encrypted<S>> {
        let (ca, any_name) = match self {
            Encryption::None | Encryption::Required => (None, true),
            Encryption::VerifyCa(ca) => (Some(ca), true),
            Encryption::VerifyIdentity(ca) => (Some(ca), false),
        };
        let provider = Arc::new(ring::default_provider());
        let trusted = ca.map(|ca| Trusted::read(ca, any_name, &provider)).transpose()?;
        let verifier = Arc::new(CertificateCheck { trusted, provider: provider.clone() });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(connection, stream))
    }
}

/// Whom a connection trusts.
struct Trusted {
    chains: Arc<WebPkiServerVerifier>,
    /// The certificates of the file. A server may have one of them itself, as those have that signed their
    /// own.
    certificates: Vec<CertificateDer<'static>>,
    any_name: bool,
}

impl Trusted {
    fn read(path: &Path, any_name: bool, provider: &Arc<CryptoProvider>) -> io::Result<Trusted> {
        let wrong = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| wrong(error.to_string()))?;
        }
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Trusted { chains, certificates, any_name })
    }
}

/// Checks what [`Encryption`] says, and the server's signature always.
pub struct CertificateCheck {
    trusted: Option<Trusted>,
    provider: Arc<CryptoProvider>,
}

impl CertificateCheck {
    /// Takes any certificate.
    pub fn any() -> CertificateCheck {
        CertificateCheck { trusted: None, provider: Arc::new(ring::default_provider()) }
    }
}

impl fmt::Debug for CertificateCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateCheck(..)")
    }
}

impl ServerCertVerifier for CertificateCheck {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        if trusted.any_name && trusted.certificates.iter().any(|known| known == certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        match trusted.chains.verify_server_cert(certificate, between, name, ocsp, now) {
            // The name is looked at when everything else is right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if trusted.any_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
