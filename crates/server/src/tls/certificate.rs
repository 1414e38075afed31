//! The server's certificate and its key, and those that the server makes for itself.

use super::TlsError;
use crate::log::Log;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::time::ASN1Time;

/// The names that MySQL gives to what it makes.
const OWN_CERTIFICATE: &str = "server-cert.pem";
const OWN_KEY: &str = "server-key.pem";

/// How long a certificate holds that the server makes. Ten years: nobody renews it.
const OWN_DAYS: u64 = 3650;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A certificate, with those of the authorities between it and the one that clients know, and its key.
pub(super) struct Certificate {
    pub path: PathBuf,
    pub key_path: PathBuf,
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    /// SHA-256 of the certificate.
    pub fingerprint: [u8; 32],
    /// In the words of SHOW STATUS: `Nov 22 10:00:00 2026 GMT`.
    pub not_before: String,
    pub not_after: String,
    valid_from: i64,
    valid_until: i64,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({})", self.path.display())
    }
}

impl Certificate {
    pub(super) fn read(path: &Path, key_path: &Path) -> Result<Certificate, TlsError> {
        let chain = certificates("ssl_cert", path)?;
        let key = PrivateKeyDer::from_pem_file(key_path)
            .map_err(|error| TlsError::of_file("ssl_key", key_path, told(error, "private key")))?;
        Certificate::new(path, key_path, chain, key)
    }

    fn new(
        path: &Path,
        key_path: &Path,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Certificate, TlsError> {
        let first = chain.first().ok_or_else(|| TlsError::of_file("ssl_cert", path, "there is none"))?;
        let (_, parsed) = x509_parser::parse_x509_certificate(first)
            .map_err(|error| TlsError::of_file("ssl_cert", path, error))?;
        let validity = parsed.validity();
        Ok(Certificate {
            path: path.to_path_buf(),
            key_path: key_path.to_path_buf(),
            fingerprint: Sha256::digest(first).into(),
            not_before: shown(validity.not_before),
            not_after: shown(validity.not_after),
            valid_from: validity.not_before.timestamp(),
            valid_until: validity.not_after.timestamp(),
            chain,
            key,
        })
    }

    /// The one that the server made for itself. If there is none, it makes one and keeps it in files; where
    /// that fails, as on a full disk, it has one until it stops.
    ///
    /// CRASH: the certificate is renamed to its name last, when the key is there and both are synced. Without
    /// it both are made anew.
    pub(super) fn own(datadir: &Path, log: &Log) -> Result<Certificate, TlsError> {
        let (path, key_path) = (datadir.join(OWN_CERTIFICATE), datadir.join(OWN_KEY));
        if path.exists() {
            return Certificate::read(&path, &key_path);
        }
        let failed = |error: rcgen::Error| TlsError::new(format!("cannot make a certificate: {error}"));
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = own_parameters().self_signed(&key).map_err(failed)?;
        let written = write(&key_path, &key.serialize_pem()).and_then(|()| write(&path, &certificate.pem()));
        match written {
            Ok(()) => log.note(&format!(
                "made a certificate for TLS, {}: no authority vouches for it; give your own with --ssl_cert and \
                 --ssl_key",
                path.display()
            )),
            Err(error) => {
                log.warning(&format!("cannot keep the certificate for TLS in {}: {error}", path.display()));
            }
        }
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Certificate::new(&path, &key_path, vec![certificate.der().clone()], key)
    }

    pub(super) fn is_over(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        !(self.valid_from..=self.valid_until).contains(&now)
    }
}

fn own_parameters() -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "Latchwork server");
    parameters.distinguished_name = name;
    // Clocks differ.
    parameters.not_before = (SystemTime::now() - DAY).into();
    parameters.not_after = (SystemTime::now() + DAY * OWN_DAYS as u32).into();
    parameters
}

/// Writes a file under another name, syncs it and renames it.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => std::fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// The certificates in a file, at least one.
pub(super) fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    listed(option, path, CertificateDer::pem_file_iter(path), "certificate")
}

/// The lists of revoked certificates in a file, at least one.
pub(super) fn revocations(
    option: &str,
    path: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    listed(option, path, CertificateRevocationListDer::pem_file_iter(path), "list of revoked certificates")
}

fn listed<T>(
    option: &str,
    path: &Path,
    items: Result<impl Iterator<Item = Result<T, pem::Error>>, pem::Error>,
    what: &str,
) -> Result<Vec<T>, TlsError> {
    let error = |error| TlsError::of_file(option, path, told(error, what));
    let items: Vec<T> = items.map_err(error)?.collect::<Result<_, _>>().map_err(error)?;
    match items.is_empty() {
        true => Err(error(pem::Error::NoItemsFound)),
        false => Ok(items),
    }
}

fn told(error: pem::Error, what: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("the file has no {what} in PEM form"),
        pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// `Nov  2 10:00:00 2026 GMT`, as OpenSSL writes it.
fn shown(time: ASN1Time) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = time.to_datetime();
    let month = MONTHS[usize::from(u8::from(time.month())) - 1];
    format!(
        "{month} {:2} {:02}:{:02}:{:02} {} GMT",
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.year()
    )
}
