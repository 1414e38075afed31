//! The server's side of TLS: certificate, key, what clients must show, and counters.
//!
//! Without a certificate of its own the server makes one at the first start, so that clients that want TLS
//! get it. Nobody vouches for such a certificate; a client that knows the password can check it all the same
//! ([`Tls::proof`]).
//!
//! A connection keeps the settings that it began with. FLUSH SSL reads the files again, for later ones.

mod certificate;
mod ciphers;

use crate::log::Log;
use base::sync::atomic::{AtomicU64, Ordering};
use base::sync::{Arc, Mutex};
use certificate::Certificate;
pub(crate) use certificate::write as write_file;
pub(crate) use ciphers::cipher_name;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};
use sha2::{Digest, Sha256};
use sql::host::TlsFigures;
use sql::variables::Values;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wire::auth::Scramble;

base::latch_class!(pub TlsLatch, "TLS settings");

/// Why TLS cannot be set up, for whoever gave the options.
#[derive(Debug)]
pub(crate) struct TlsError(String);

impl TlsError {
    fn new(text: impl Into<String>) -> TlsError {
        TlsError(text.into())
    }

    /// An error of the file that option `name` names.
    fn of_file(name: &str, path: &Path, why: impl fmt::Display) -> TlsError {
        TlsError(format!("--{name}: {}: {why}", path.display()))
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// TLS of one server.
#[derive(Debug)]
pub(crate) struct Tls {
    options: TlsOptions,
    current: Mutex<Arc<Settings>, TlsLatch>,
    begun: AtomicU64,
    finished: AtomicU64,
    resumed: AtomicU64,
}

/// The variables that concern TLS. Paths begin in the data directory.
#[derive(Debug)]
struct TlsOptions {
    datadir: PathBuf,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authorities: Option<PathBuf>,
    authorities_folder: Option<PathBuf>,
    revoked: Option<PathBuf>,
    revoked_folder: Option<PathBuf>,
    versions: String,
    ciphers: String,
}

/// What connections are encrypted with. Never changes.
#[derive(Debug)]
pub(crate) struct Settings {
    config: Arc<ServerConfig>,
    certificate: Certificate,
    /// The ciphers that a client may choose from, in the server's order.
    ciphers: String,
    asks_for_certificates: bool,
}

impl Tls {
    /// `None` with `--skip-ssl`.
    ///
    /// # Errors
    /// A file is missing or is no certificate or key, the two do not belong together, or no version or cipher
    /// is left.
    pub(crate) fn open(values: &Values, datadir: &Path, log: &Log) -> Result<Option<Tls>, TlsError> {
        if !values.boolean("ssl") {
            return Ok(None);
        }
        let path =
            |name| Some(values.text(name)).filter(|path| !path.is_empty()).map(|path| datadir.join(path));
        let options = TlsOptions {
            datadir: datadir.to_path_buf(),
            certificate: path("ssl_cert"),
            key: path("ssl_key"),
            authorities: path("ssl_ca"),
            authorities_folder: path("ssl_capath"),
            revoked: path("ssl_crl"),
            revoked_folder: path("ssl_crlpath"),
            versions: values.text("tls_version"),
            ciphers: values.text("ssl_cipher"),
        };
        let settings = options.read(log)?;
        if settings.certificate.is_over(SystemTime::now()) {
            log.warning(&format!(
                "the certificate {} is not valid now (from {} to {})",
                settings.certificate.path.display(),
                settings.certificate.not_before,
                settings.certificate.not_after
            ));
        }
        Ok(Some(Tls {
            options,
            current: Mutex::of_class(Arc::new(settings)),
            begun: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
        }))
    }

    /// FLUSH SSL: reads the files again. On an error nothing changes.
    pub(crate) fn reload(&self, log: &Log) -> Result<(), TlsError> {
        let settings = Arc::new(self.options.read(log)?);
        *self.current.lock() = settings;
        Ok(())
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.current.lock().clone()
    }

    /// A client has asked for TLS.
    pub(crate) fn count_begun(&self) {
        // ORDER: a counter, here and below.
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// A client has got it. `resumed`: by a ticket of an earlier connection.
    pub(crate) fn count_finished(&self, resumed: bool) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.resumed.fetch_add(resumed.into(), Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> TlsFigures {
        let settings = self.settings();
        TlsFigures {
            // ORDER: statistics.
            begun: self.begun.load(Ordering::Relaxed),
            finished: self.finished.load(Ordering::Relaxed),
            resumed: self.resumed.load(Ordering::Relaxed),
            asks_for_certificates: settings.asks_for_certificates,
            not_before: settings.certificate.not_before.clone(),
            not_after: settings.certificate.not_after.clone(),
            ciphers: settings.ciphers.clone(),
        }
    }
}

impl Settings {
    /// # Errors
    /// If the library refuses its own settings.
    pub(crate) fn connection(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(self.config.clone())
    }

    pub(crate) fn certificate_path(&self) -> &Path {
        &self.certificate.path
    }

    pub(crate) fn key_path(&self) -> &Path {
        &self.certificate.key_path
    }

    /// What tells a client of MariaDB 11.4 or later that the certificate is that of a server which knows the
    /// password, so that nobody stands between: `\x01` and, in hexadecimal digits, SHA-256 of what the
    /// server keeps of the password, the scramble and the fingerprint of the certificate. It ends the login
    /// in the text of the OK packet.
    ///
    /// Source of the form: MariaDB's Connector/C, "zero-configuration TLS".
    pub(crate) fn proof(&self, secret: &[u8], scramble: &Scramble) -> Vec<u8> {
        let mut digest = Sha256::new();
        digest.update(secret);
        digest.update(scramble);
        digest.update(self.certificate.fingerprint);
        let mut proof = vec![1];
        for byte in digest.finalize() {
            proof.extend_from_slice(format!("{byte:02X}").as_bytes());
        }
        proof
    }
}

impl TlsOptions {
    fn read(&self, log: &Log) -> Result<Settings, TlsError> {
        let certificate = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Certificate::read(certificate, key)?,
            (None, None) => Certificate::own(&self.datadir, log)?,
            (Some(_), None) => {
                return Err(TlsError::new("--ssl_cert needs --ssl_key: the key of the certificate"));
            }
            (None, Some(_)) => {
                return Err(TlsError::new("--ssl_key needs --ssl_cert: the certificate of the key"));
            }
        };
        let suites = ciphers::chosen(&self.ciphers)?;
        let versions = self.versions(log)?;
        let suites: Vec<_> = suites.into_iter().filter(|suite| versions.contains(&suite.version())).collect();
        if suites.is_empty() {
            return Err(TlsError::new(format!(
                "--ssl_cipher={}: none of these is a cipher of --tls_version={}",
                self.ciphers, self.versions
            )));
        }
        let ciphers: Vec<&str> = suites.iter().map(|suite| cipher_name(suite.suite())).collect();
        let ciphers = ciphers.join(":");
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites = suites;
        let provider = std::sync::Arc::new(provider);
        let failed = |error: &dyn fmt::Display| TlsError::new(format!("TLS: {error}"));
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|error| failed(&error))?;
        let (authorities, revocations) = (self.authorities()?, self.revocations()?);
        let asks_for_certificates = authorities.is_some();
        let builder = match authorities {
            // A client may show a certificate. One that it shows must be good.
            Some(authorities) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities.into(), provider)
                    .with_crls(revocations)
                    .allow_unknown_revocation_status()
                    .allow_unauthenticated();
                builder.with_client_cert_verifier(verifier.build().map_err(|error| failed(&error))?)
            }
            None => builder.with_no_client_auth(),
        };
        let config = builder
            .with_single_cert(certificate.chain.clone(), certificate.key.clone_key())
            .map_err(|error| TlsError::of_file("ssl_cert", &certificate.path, error))?;
        Ok(Settings { config: Arc::new(config), certificate, ciphers, asks_for_certificates })
    }

    /// The versions, of those that the library has. It has none that is known to be broken.
    fn versions(&self, log: &Log) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        let mut versions = Vec::new();
        for name in self.versions.split(',') {
            match name {
                "TLSv1.2" => versions.push(&rustls::version::TLS12),
                "TLSv1.3" => versions.push(&rustls::version::TLS13),
                "TLSv1.0" | "TLSv1.1" => {
                    log.warning(&format!("--tls_version: {name} is not safe, and left out"));
                }
                _ => {}
            }
        }
        match versions.is_empty() {
            true => Err(TlsError::new(format!(
                "--tls_version={}: expected TLSv1.2, TLSv1.3, or both with a comma",
                self.versions
            ))),
            false => Ok(versions),
        }
    }

    /// Those who vouch for clients, if there are any.
    fn authorities(&self) -> Result<Option<RootCertStore>, TlsError> {
        let files = files("ssl_ca", &self.authorities, "ssl_capath", &self.authorities_folder)?;
        if files.is_empty() {
            return Ok(None);
        }
        let mut store = RootCertStore::empty();
        for (option, path) in files {
            for certificate in certificate::certificates(option, &path)? {
                store.add(certificate).map_err(|error| TlsError::of_file(option, &path, error))?;
            }
        }
        Ok(Some(store))
    }

    /// The lists of certificates that are good no longer.
    fn revocations(&self) -> Result<Vec<rustls::pki_types::CertificateRevocationListDer<'static>>, TlsError> {
        let mut lists = Vec::new();
        for (option, path) in files("ssl_crl", &self.revoked, "ssl_crlpath", &self.revoked_folder)? {
            lists.extend(certificate::revocations(option, &path)?);
        }
        Ok(lists)
    }
}

/// A file, and the files of a folder, each with the option that named it.
fn files(
    option: &'static str,
    file: &Option<PathBuf>,
    folder_option: &'static str,
    folder: &Option<PathBuf>,
) -> Result<Vec<(&'static str, PathBuf)>, TlsError> {
    let mut files: Vec<_> = file.iter().map(|path| (option, path.clone())).collect();
    if let Some(folder) = folder {
        let error = |error| TlsError::of_file(folder_option, folder, error);
        for entry in std::fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if path.is_file() {
                files.push((folder_option, path));
            }
        }
    }
    Ok(files)
}
