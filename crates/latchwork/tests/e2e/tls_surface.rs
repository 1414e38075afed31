//! What OpenSSL's client finds out about the server's TLS: only what is good today is offered.

use crate::support::{Latchwork, have, text};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Cipher suites without forward secrecy or authenticated encryption, of every kind that OpenSSL still has.
const WEAK_CIPHERS: [&str; 7] = [
    "ALL:COMPLEMENTOFALL:!AESGCM:!CHACHA20",
    "kRSA",
    "kDHE",
    "eNULL:aNULL",
    "3DES:RC4:DES",
    "ECDHE+SHA1:ECDHE+SHA256:ECDHE+SHA384:!AESGCM:!CHACHA20",
    "AESCCM",
];

/// What `openssl s_client` says of a connection with these options. `line` is sent once the connection
/// stands.
fn look(server: &Latchwork, options: &[&str], line: Option<&str>) -> String {
    let mut client = Command::new("openssl")
        .args(["s_client", "-starttls", "mysql", "-connect", &format!("127.0.0.1:{}", server.port())])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    if let Some(line) = line {
        // It takes commands only once the handshake is over, and says nothing that could be waited for.
        sleep(Duration::from_millis(500));
        let _ = writeln!(input, "{line}");
        sleep(Duration::from_millis(500));
    }
    drop(input);
    let output = client.wait_with_output().unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

fn is_refused(seen: &str) -> bool {
    seen.contains("Cipher is (NONE)") && seen.contains("alert")
}

#[test]
fn openssl_finds_nothing_weak() {
    if !have(&["openssl"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let server = Latchwork::start(scratch.path(), &[]);
    let newest = look(&server, &["-alpn", "mysql"], None);
    for expected in ["TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384", "No ALPN negotiated", "Compression: NONE"] {
        assert!(newest.contains(expected), "{expected}: {newest}");
    }
    assert!(!newest.contains("Max Early Data: 1"), "{newest}");
    let older = look(&server, &["-tls1_2", "-comp"], None);
    for expected in ["TLSv1.2, Cipher is ECDHE-", "-GCM-", "Secure Renegotiation IS supported"] {
        assert!(older.contains(expected), "{expected}: {older}");
    }
    assert!(older.contains("Compression: NONE"), "{older}");
    for version in ["-tls1", "-tls1_1"] {
        let seen = look(&server, &[version, "-cipher", "ALL@SECLEVEL=0"], None);
        assert!(is_refused(&seen), "{version}: {seen}");
    }
    for ciphers in WEAK_CIPHERS {
        let seen = look(&server, &["-tls1_2", "-cipher", &format!("{ciphers}@SECLEVEL=0")], None);
        assert!(is_refused(&seen) || seen.contains("no cipher match"), "{ciphers}: {seen}");
    }
    // Somebody who stands between has taken TLS 1.3 away.
    let seen = look(&server, &["-tls1_2", "-fallback_scsv"], None);
    assert!(seen.contains("inappropriate fallback"), "{seen}");
    let seen = look(&server, &["-tls1_2"], Some("R"));
    assert!(seen.contains("RENEGOTIATING") && seen.contains("no renegotiation"), "{seen}");
}
