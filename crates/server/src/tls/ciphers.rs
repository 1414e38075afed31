//! The names that OpenSSL gives to ciphers: options, clients and SHOW STATUS use them.

use super::TlsError;
use rustls::crypto::ring::ALL_CIPHER_SUITES;
use rustls::{CipherSuite, SupportedCipherSuite};

/// OpenSSL's name of a cipher. Those of TLS 1.3 are the standard's.
pub(crate) fn cipher_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        other => other.as_str().unwrap_or("unknown"),
    }
}

/// The ciphers that `ssl_cipher` lists, in its order. As with OpenSSL, the list is about TLS 1.2: it may name
/// those of 1.3, and all of them stay if it names none. Names that nobody has here are skipped, since lists
/// are written for many servers; an empty list means all.
pub(super) fn chosen(list: &str) -> Result<Vec<SupportedCipherSuite>, TlsError> {
    let names: Vec<&str> = list.split([':', ',', ' ']).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Ok(ALL_CIPHER_SUITES.to_vec());
    }
    let named = |name: &&str| {
        ALL_CIPHER_SUITES.iter().find(|suite| cipher_name(suite.suite()).eq_ignore_ascii_case(name)).copied()
    };
    let chosen: Vec<SupportedCipherSuite> = names.iter().filter_map(named).collect();
    if chosen.is_empty() {
        let all: Vec<&str> = ALL_CIPHER_SUITES.iter().map(|suite| cipher_name(suite.suite())).collect();
        return Err(TlsError::new(format!("--ssl_cipher={list}: none of them is one of {}", all.join(":"))));
    }
    let is_newest = |suite: &SupportedCipherSuite| suite.tls13().is_some();
    match chosen.iter().any(is_newest) {
        true => Ok(chosen),
        false => Ok(ALL_CIPHER_SUITES.iter().copied().filter(is_newest).chain(chosen).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<&'static str> {
        chosen(list).unwrap().iter().map(|suite| cipher_name(suite.suite())).collect()
    }

    #[test]
    fn a_list_chooses_ciphers_of_tls_1_2_and_keeps_those_of_1_3() {
        assert_eq!(names("").len(), 9);
        let list = "AES256-SHA:ECDHE-RSA-AES256-GCM-SHA384:ecdhe-ecdsa-aes128-gcm-sha256";
        let newest = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
        let older = ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"];
        assert_eq!(names(list), [newest.as_slice(), older.as_slice()].concat());
        assert_eq!(names("TLS_AES_128_GCM_SHA256"), ["TLS_AES_128_GCM_SHA256"]);
        assert!(chosen("AES256-SHA").unwrap_err().to_string().contains("ECDHE-RSA-AES256-GCM-SHA384"));
    }
}
