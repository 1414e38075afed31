//! Encrypted connections.

use crate::support::{Live, wait_until};
use latchwork_server::{Log, Options, Server};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DistinguishedName,
    DnType, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::auth::PasswordHash;
use wire::client::{CertificateCheck, ClientError, ConnectOptions, Connection};
use wire::command::com;
use wire::constants::capability;

pub type Encrypted = Connection<StreamOwned<ClientConnection, TcpStream>>;

fn client_config(identity: Option<&Issued>) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(CertificateCheck::any()));
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(issued) => {
            let certificate = CertificateDer::from_pem_file(&issued.certificate).unwrap();
            let key = PrivateKeyDer::from_pem_file(&issued.key).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    })
}

fn root(password: &str) -> ConnectOptions {
    ConnectOptions { password: password.to_owned(), ..ConnectOptions::default() }
}

/// Connects over TCP with TLS.
fn connect(
    live: &Live,
    options: &ConnectOptions,
    config: Arc<ClientConfig>,
) -> Result<Encrypted, ClientError> {
    let stream = TcpStream::connect(live.tcp.unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Connection::connect_encrypted(stream, options, |stream| encrypted(stream, config))
}

/// Connects over TCP with TLS, and takes any certificate.
pub fn encrypted_as_any(live: &Live, options: &ConnectOptions) -> Result<Encrypted, ClientError> {
    connect(live, options, client_config(None))
}

fn encrypted<S: Read + Write>(
    stream: S,
    config: Arc<ClientConfig>,
) -> io::Result<StreamOwned<ClientConnection, S>> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// A server whose root has the password `secret`.
fn with_password(options: &[&str]) -> Live {
    let live = Live::start(options);
    live.connect().query("SET PASSWORD = PASSWORD('secret')").unwrap();
    live
}

fn status<S: Read + Write>(client: &mut Connection<S>, name: &str) -> String {
    let rows = client.query(&format!("SHOW STATUS LIKE '{name}'")).unwrap().to_text();
    rows[0][1].clone()
}

fn certificate_of(client: &Encrypted) -> CertificateDer<'static> {
    client.stream().conn.peer_certificates().unwrap()[0].clone().into_owned()
}

/// A certificate in PEM form, and its key.
struct Issued {
    certificate: PathBuf,
    key: PathBuf,
}

/// An authority, for both sides of a connection.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut parameters = named(name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { folder, issuer }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn issue(&self, name: &str, serial: u64) -> Issued {
        let mut parameters = named(name);
        parameters.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let issued = Issued {
            certificate: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}-key.pem")),
        };
        std::fs::write(&issued.certificate, certificate.pem()).unwrap();
        std::fs::write(&issued.key, key.serialize_pem()).unwrap();
        issued
    }

    /// A list that has one certificate.
    fn revoke(&self, serial: u64) -> PathBuf {
        let parameters = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(4090, 1, 1),
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: rcgen::date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let path = self.path("crl.pem");
        std::fs::write(&path, parameters.signed_by(&self.issuer).unwrap().pem().unwrap()).unwrap();
        path
    }
}

fn named(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

#[test]
fn a_server_that_was_given_no_certificate_makes_one_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Live::start_on(Arc::new(vfs::OsVfs), folder.path(), &[]);
    let live = start();
    live.connect().query("SET PASSWORD = PASSWORD('secret')").unwrap();
    let mut client = connect(&live, &root("secret"), client_config(None)).unwrap();
    assert_eq!(status(&mut client, "Ssl_version"), "TLSv1.3");
    assert_eq!(status(&mut client, "Ssl_cipher"), "TLS_AES_256_GCM_SHA384");
    assert!(status(&mut client, "Ssl_cipher_list").contains("ECDHE-ECDSA-AES128-GCM-SHA256"));
    assert!(status(&mut client, "Ssl_server_not_after").ends_with(" GMT"));
    assert_eq!(status(&mut client, "Ssl_finished_accepts"), "1");
    let shown = client.query("SELECT @@have_ssl, @@ssl_cert").unwrap().to_text();
    assert_eq!(shown[0][0], "YES");
    assert!(shown[0][1].ends_with("data/server-cert.pem"), "{shown:?}");
    let first = certificate_of(&client);
    let key = std::fs::metadata(folder.path().join("data/server-key.pem")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
    assert!(live.stop());
    let live = start();
    assert_eq!(certificate_of(&connect(&live, &root("secret"), client_config(None)).unwrap()), first);
}

#[test]
fn a_connection_without_tls_has_nothing_to_say_of_it() {
    let live = Live::start(&[]);
    let rows = live.connect().query("SHOW STATUS LIKE 'Ssl%'").unwrap().to_text();
    for name in ["Ssl_cipher", "Ssl_version", "Ssl_cipher_list", "Ssl_server_not_before"] {
        assert!(rows.contains(&vec![name.to_owned(), String::new()]), "{name}: {rows:?}");
    }
}

#[test]
fn the_server_proves_its_certificate_to_a_client_that_knows_the_password() {
    let live = with_password(&[]);
    let client = connect(&live, &root("secret"), client_config(None)).unwrap();
    let mut digest = Sha256::new();
    digest.update(PasswordHash::of(b"secret").0);
    digest.update(client.greeting().scramble);
    digest.update(Sha256::digest(certificate_of(&client)));
    let proof: String = digest.finalize().iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(client.login_info(), format!("\x01{proof}").as_bytes());
    assert_eq!(live.connect_tcp(&root("secret")).unwrap().login_info(), b"");
}

#[test]
fn packets_of_all_sizes_go_both_ways() {
    let live = with_password(&["--max_allowed_packet=64M"]);
    let mut client = connect(&live, &root("secret"), client_config(None)).unwrap();
    for length in [0, 1, 16_383, 16_384, 16_385, 65_536, 1 << 20, (1 << 24) - 1, 40 << 20] {
        let text: String = ('a'..='z').cycle().take(length).collect();
        let rows = client.query(&format!("SELECT '{text}'")).unwrap().to_text();
        assert!(rows[0][0] == text, "{length} bytes");
    }
    // Many commands in few packets of TLS, and one in many.
    for number in 0..1000 {
        assert_eq!(client.query(&format!("SELECT {number}")).unwrap().to_text(), [[number.to_string()]]);
    }
}

#[test]
fn a_change_of_user_and_a_kill_are_as_without_tls() {
    let live = Live::start(&[]);
    let encrypt = |stream| encrypted(stream, client_config(None));
    let mut client = Connection::connect_encrypted(live.raw(), &root(""), encrypt).unwrap();
    client.command(com::CHANGE_USER, b"root\0\0\0").unwrap();
    assert_eq!(status(&mut client, "Ssl_version"), "TLSv1.3");
    let id = client.query("SELECT CONNECTION_ID()").unwrap().to_text()[0][0].clone();
    let mut other = live.connect();
    other.query(&format!("KILL {id}")).unwrap();
    assert!(client.query("SELECT 1").is_err());
    wait_until("its leave", || other.query("SHOW PROCESSLIST").unwrap().rows.len() == 1);
}

#[test]
fn who_must_come_encrypted_and_does_not_is_refused() {
    let live = with_password(&["--require_secure_transport"]);
    let error = live.connect_tcp(&root("secret")).unwrap_err();
    assert_eq!(error.code(), Some(1045), "{error}");
    let mut client = connect(&live, &root("secret"), client_config(None)).unwrap();
    client.query("SET GLOBAL require_secure_transport = OFF").unwrap();
    live.connect_tcp(&root("secret")).unwrap();
    client.query("SET GLOBAL require_secure_transport = ON").unwrap();
    live.connect_tcp(&root("secret")).unwrap_err();
    live.connect_with(&root("secret")).unwrap();
}

#[test]
fn versions_and_ciphers_can_be_chosen() {
    let live = with_password(&["--tls_version=TLSv1.2", "--ssl_cipher=ECDHE-ECDSA-AES128-GCM-SHA256"]);
    let mut client = connect(&live, &root("secret"), client_config(None)).unwrap();
    assert_eq!(status(&mut client, "Ssl_version"), "TLSv1.2");
    assert_eq!(status(&mut client, "Ssl_cipher"), "ECDHE-ECDSA-AES128-GCM-SHA256");
    assert_eq!(status(&mut client, "Ssl_cipher_list"), "ECDHE-ECDSA-AES128-GCM-SHA256");
}

#[test]
fn flush_ssl_reads_the_files_again_and_keeps_the_old_ones_if_it_cannot() {
    let authority = Authority::new("authority");
    let served = authority.issue("server", 1);
    let live = with_password(&[&option("ssl_cert", &served.certificate), &option("ssl_key", &served.key)]);
    let mut old = connect(&live, &root("secret"), client_config(None)).unwrap();
    let first = certificate_of(&old);
    assert_eq!(first, CertificateDer::from_pem_file(&served.certificate).unwrap());
    authority.issue("server", 2);
    assert_eq!(certificate_of(&connect(&live, &root("secret"), client_config(None)).unwrap()), first);
    old.query("FLUSH SSL").unwrap();
    let second = certificate_of(&connect(&live, &root("secret"), client_config(None)).unwrap());
    assert_eq!(second, CertificateDer::from_pem_file(&served.certificate).unwrap());
    assert_ne!(second, first);
    std::fs::write(&served.certificate, "nonsense").unwrap();
    let error = old.query("FLUSH SSL").unwrap_err();
    assert_eq!(error.code(), Some(1105));
    assert!(error.to_string().contains("Failed to refresh SSL"), "{error}");
    assert_eq!(certificate_of(&connect(&live, &root("secret"), client_config(None)).unwrap()), second);
}

#[test]
fn a_client_may_show_a_certificate_and_a_wrong_one_is_refused() {
    let authority = Authority::new("authority");
    let (good, revoked) = (authority.issue("good", 10), authority.issue("revoked", 11));
    let stranger = Authority::new("stranger");
    let foreign = stranger.issue("foreign", 10);
    let list = authority.revoke(11);
    let live = with_password(&[&option("ssl_ca", &authority.path("ca.pem")), &option("ssl_crl", &list)]);
    let enters = |identity| {
        connect(&live, &root("secret"), client_config(identity)).and_then(|mut client| client.ping())
    };
    enters(None).unwrap();
    enters(Some(&good)).unwrap();
    enters(Some(&revoked)).unwrap_err();
    enters(Some(&foreign)).unwrap_err();
    let mut client = connect(&live, &root("secret"), client_config(None)).unwrap();
    assert_eq!(status(&mut client, "Ssl_verify_mode"), "5");
    assert_eq!(status(&mut client, "Ssl_accepts"), "5");
    assert_eq!(status(&mut client, "Ssl_finished_accepts"), "3");
}

#[test]
fn options_that_cannot_be_kept_end_the_start_and_say_why() {
    let authority = Authority::new("authority");
    let (one, other) = (authority.issue("one", 1), authority.issue("other", 2));
    let cases: &[(&[String], &str)] = &[
        (&[option("ssl_cert", &one.certificate)], "--ssl_cert needs --ssl_key"),
        (&[option("ssl_key", &one.key)], "--ssl_key needs --ssl_cert"),
        (&[option("ssl_cert", &one.certificate), option("ssl_key", &other.key)], "--ssl_cert"),
        (&[option("ssl_cert", &one.key), option("ssl_key", &one.key)], "has no certificate in PEM form"),
        (&[option("ssl_cert", &one.certificate), option("ssl_key", &one.certificate)], "has no private key"),
        (&[option("ssl_cert", Path::new("none.pem")), option("ssl_key", &one.key)], "none.pem"),
        (&[option("ssl_ca", &one.key)], "--ssl_ca"),
        (&[option("ssl_crlpath", Path::new("none"))], "--ssl_crlpath"),
        (&["--tls_version=TLSv1.0".into()], "expected TLSv1.2, TLSv1.3"),
        (&["--ssl_cipher=RC4-MD5".into()], "none of them is one of TLS_AES_256_GCM_SHA384"),
        (
            &["--tls_version=TLSv1.2".into(), "--ssl_cipher=TLS_AES_128_GCM_SHA256".into()],
            "none of these is a cipher of --tls_version",
        ),
    ];
    for (options, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut arguments = options.to_vec();
        arguments.push(option("datadir", &folder.path().join("data")));
        arguments.push("--skip-networking".into());
        let log = Arc::new(Log::to_file(&folder.path().join("log")).unwrap());
        let error = Server::start(Options::parse(&arguments).unwrap(), log).map(drop).unwrap_err();
        assert!(error.to_string().contains(expected), "{options:?}: {error}");
    }
}

/// Sends the request for TLS, and these bytes with it. Returns when the server ends the connection.
fn send_behind_the_request(live: &Live, bytes: &[u8]) {
    let mut stream = live.raw();
    let mut space = [0; 1024];
    assert!(stream.read(&mut space).unwrap() > 0);
    let mut request = vec![32, 0, 0, 1];
    let capabilities = (capability::CLIENT | capability::SSL) as u32;
    request.extend_from_slice(&capabilities.to_le_bytes());
    request.resize(36, 0);
    request.extend_from_slice(bytes);
    stream.write_all(&request).unwrap();
    while !matches!(stream.read(&mut space), Ok(0) | Err(_)) {}
}

#[test]
fn what_is_no_tls_ends_the_connection_and_nothing_else() {
    let live = Live::start(&["--connect_timeout=2"]);
    send_behind_the_request(&live, b"GET / HTTP/1.1\r\n\r\n");
    send_behind_the_request(&live, &[0x16, 3, 1, 0xff, 0xff]);
    send_behind_the_request(&live, &[0x16, 3, 1, 0, 4, 1, 0, 0, 0]);
    send_behind_the_request(&live, &[0xff; 100_000]);
    // Nothing: the time for the login ends it.
    send_behind_the_request(&live, b"");
    live.connect().ping().unwrap();
    let without = Live::start(&["--skip-ssl"]);
    send_behind_the_request(&without, b"");
    let mut client = without.connect();
    assert_eq!(client.query("SELECT @@have_ssl").unwrap().to_text(), [["DISABLED"]]);
    assert_eq!(client.greeting().capabilities & capability::SSL, 0);
    client.query("FLUSH SSL").unwrap();
}

#[test]
fn a_hello_may_come_with_the_request() {
    let live = Live::start(&[]);
    let mut stream = live.raw();
    let mut space = [0; 1024];
    assert!(stream.read(&mut space).unwrap() > 0);
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(client_config(None), name).unwrap();
    let mut bytes = vec![32, 0, 0, 1];
    bytes.extend_from_slice(&((capability::CLIENT | capability::SSL) as u32).to_le_bytes());
    bytes.resize(36, 0);
    connection.write_tls(&mut bytes).unwrap();
    stream.write_all(&bytes).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).unwrap();
    }
}
