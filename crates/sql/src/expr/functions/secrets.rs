//! Digests, passwords and encryption.

use super::arguments::{Arguments, Result};
use super::encoding::hex;
use super::text::too_long;
use crate::expr::evaluate::convert;
use crate::expr::result_type::Typed;
use crate::{ErrorKind, SqlError};
use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use rustix::rand::{GetRandomFlags, getrandom};
use sha1::{Digest, Sha1};
use types::{Collation, ValueRef};

functions! {
    "Digests, Passwords and Encryption";

    SHA2 {
        name: "sha2",
        arguments: "text, bits",
        arity: 2..=2,
        typing: |t| Ok(match t.constant_int(1) {
            Some(0) => t.plain(64, true),
            Some(bits @ (224 | 256 | 384 | 512)) => t.plain(bits as u32 / 4, true),
            Some(_) => Typed::text(0, Collation::Binary, true),
            None => t.plain(128, true),
        }),
        evaluate: sha2,
        help: "Gives the SHA-2 digest of a text in hexadecimal digits. It has 224, 256, 384 or 512 bits; 0 means 256.",
        example: "SHA2('a', 224)" => "abd37534c7d9a2efb9465de931cd7055ffdb8879563ae98078d6d6d5",
    }
    CRC32C {
        name: "crc32c",
        arguments: "[start, ]text",
        arity: 1..=2,
        typing: |t| Ok(Typed::int(4, true, t.nullable())),
        evaluate: |a| checksum(a, crc32c),
        help: "Gives the CRC-32C (Castagnoli) checksum of a text. `start` is the checksum of what stands before it.",
        example: "CRC32C('abc')" => "910901175",
    }
    PASSWORD {
        name: "password",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.plain(41, true)),
        evaluate: |a| Ok(match a.text(0)?.unwrap_or_default() {
            [] => ValueRef::Text(b""),
            text => {
                let twice = Sha1::digest(Sha1::digest(text));
                a.give(format!("*{}", hex(&twice).to_uppercase()).as_bytes())
            }
        }),
        help: "Gives the text that `mysql_native_password` keeps of a password.",
        example: "PASSWORD('a')" => "*667F407DE7C6AD07358FA38DAED7828A72014B4E",
    }
    OLD_PASSWORD {
        name: "old_password",
        arguments: "text",
        arity: 1..=1,
        typing: |t| Ok(t.plain(16, true)),
        evaluate: |a| Ok(match or_null!(a.text(0)?) {
            [] => ValueRef::Text(b""),
            text => {
                let (first, second) = short_hash(text);
                a.give(format!("{first:08x}{second:08x}").as_bytes())
            }
        }),
        help: "Gives the text that clients before MySQL 4.1 made of a password. It is easy to break.",
        example: "OLD_PASSWORD('abc')" => "7cd2b5942be28759",
    }
    AES_ENCRYPT {
        name: "aes_encrypt",
        arguments: "text, key",
        arity: 2..=2,
        typing: |t| {
            let blocks = t.bytes(0) / AES_BLOCK as u32 + 1;
            Ok(Typed::text(blocks.saturating_mul(AES_BLOCK as u32), Collation::Binary, true))
        },
        evaluate: |a| {
            let (text, key) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            if a.is_too_long(text.len() + AES_BLOCK) {
                return Ok(too_long(a));
            }
            Ok(a.give_binary(&aes_encrypt(text, key)))
        },
        help: "Encrypts a text with AES-128 (ECB), and gives the bytes.",
        example: "HEX(AES_ENCRYPT('abc', 'key'))" => "DB5F149A7CAF0CD275CA18C203A212C9",
    }
    AES_DECRYPT {
        name: "aes_decrypt",
        arguments: "bytes, key",
        arity: 2..=2,
        typing: |t| Ok(Typed::text(t.bytes(0), Collation::Binary, true)),
        evaluate: |a| {
            let (bytes, key) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            Ok(a.give_binary(&or_null!(aes_decrypt(bytes, key))))
        },
        help: "Gives the text of which AES_ENCRYPT made these bytes, or NULL if they are of another key.",
        example: "AES_DECRYPT(UNHEX('DB5F149A7CAF0CD275CA18C203A212C9'), 'key')" => "abc",
    }
    ENCODE {
        name: "encode",
        arguments: "text, password",
        arity: 2..=2,
        typing: |t| Ok(Typed::text(t.bytes(0), Collation::Binary, true)),
        evaluate: |a| {
            let (text, password) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            Ok(a.give_binary(&Scrambler::new(password).encode(text)))
        },
        help: "Scrambles a text with a password. Whoever wants to read it can: AES_ENCRYPT keeps secrets.",
        example: "HEX(ENCODE('abc', 'key'))" => "A21591",
    }
    DECODE {
        name: "decode",
        arguments: "bytes, password",
        arity: 2..=2,
        typing: |t| Ok(Typed::text(t.bytes(0), Collation::Binary, true)),
        evaluate: |a| {
            let (bytes, password) = (or_null!(a.text(0)?), or_null!(a.text(1)?));
            Ok(a.give_binary(&Scrambler::new(password).decode(bytes)))
        },
        help: "Gives the text of which ENCODE made these bytes.",
        example: "DECODE(UNHEX('A21591'), 'key')" => "abc",
    }
    RANDOM_BYTES {
        name: "random_bytes",
        arguments: "count",
        arity: 1..=1,
        constancy: Visible,
        typing: |t| {
            let constant = t.constant_int(0).map(|count| count.clamp(0, RANDOM_BYTES_MAX) as u32);
            Ok(match constant {
                Some(count) => Typed::text(count, Collation::Binary, true),
                None if t.types[0].class == crate::expr::result_type::Class::Null => {
                    Typed::text(0, Collation::Binary, true)
                }
                None => Typed::text(RANDOM_BYTES_MAX as u32, Collation::Binary, true),
            })
        },
        evaluate: random_bytes,
        help: "Gives so many random bytes, 1024 at most, that nobody can foresee.",
        example: "LENGTH(RANDOM_BYTES(16))" => "16",
    }
}

/// The bytes of a block of AES, and of a key.
const AES_BLOCK: usize = 16;
const RANDOM_BYTES_MAX: i64 = 1024;

fn sha2<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let text = or_null!(arguments.text(0)?);
    // As in MariaDB, NULL bits are none said.
    let bits = arguments.int(1)?.unwrap_or(0);
    let digest = match bits {
        224 => hex(&sha2::Digest::finalize(sha2::Digest::chain_update(
            <sha2::Sha224 as sha2::Digest>::new(),
            text,
        ))),
        0 | 256 => hex(&<sha2::Sha256 as sha2::Digest>::digest(text)),
        384 => hex(&<sha2::Sha384 as sha2::Digest>::digest(text)),
        512 => hex(&<sha2::Sha512 as sha2::Digest>::digest(text)),
        _ => {
            let message = "Incorrect parameters in the call to native function 'sha2'";
            arguments.context.environment.warn(ErrorKind::WrongParametersToFunction, message.to_string());
            return Ok(ValueRef::Null);
        }
    };
    Ok(arguments.give(digest.as_bytes()))
}

/// CRC32 and CRC32C: `sum` continues the checksum of what stands before.
pub(super) fn checksum<'a>(
    arguments: &Arguments<'a, '_>,
    sum: fn(u32, &[u8]) -> u32,
) -> Result<ValueRef<'a>> {
    let start = match arguments.len() {
        2 => or_null!(convert::to_i64(&arguments.value(0)?, arguments.context)) as u32,
        _ => 0,
    };
    Ok(ValueRef::UInt(sum(start, or_null!(arguments.text(arguments.len() - 1)?)).into()))
}

/// The remainders of the 256 bytes, for the checksum of a polynomial whose bits are reversed.
const fn remainders(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { remainder >> 1 ^ polynomial } else { remainder >> 1 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

fn divide(table: &[u32; 256], start: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!start, |sum, byte| table[((sum ^ u32::from(*byte)) & 255) as usize] ^ sum >> 8)
}

/// CRC-32 of `bytes`, continued from `start`.
pub(super) fn crc32(start: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = remainders(0xedb8_8320);
    if start == 0 { base::checksum::crc32(bytes) } else { divide(&TABLE, start, bytes) }
}

/// CRC-32C of `bytes`, continued from `start`.
fn crc32c(start: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = remainders(0x82f6_3b78);
    divide(&TABLE, start, bytes)
}

/// A key of any length, folded to the length of AES's.
fn aes_key(key: &[u8]) -> Aes128 {
    let mut folded = [0; AES_BLOCK];
    for (at, byte) in key.iter().enumerate() {
        folded[at % AES_BLOCK] ^= byte;
    }
    Aes128::new(&folded.into())
}

/// The padding (PKCS #7) is as many bytes as are missing, a whole block if none is.
fn aes_encrypt(text: &[u8], key: &[u8]) -> Vec<u8> {
    let cipher = aes_key(key);
    let padding = AES_BLOCK - text.len() % AES_BLOCK;
    let mut bytes = text.to_vec();
    bytes.resize(text.len() + padding, padding as u8);
    for block in bytes.chunks_exact_mut(AES_BLOCK) {
        cipher.encrypt_block(GenericArray::from_mut_slice(block));
    }
    bytes
}

fn aes_decrypt(bytes: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(AES_BLOCK) {
        return None;
    }
    let cipher = aes_key(key);
    let mut text = bytes.to_vec();
    for block in text.chunks_exact_mut(AES_BLOCK) {
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
    }
    let padding = *text.last()?;
    let length = text.len().checked_sub(usize::from(padding))?;
    let is_padded = (1..=AES_BLOCK).contains(&usize::from(padding));
    if !is_padded || text[length..].iter().any(|byte| *byte != padding) {
        return None;
    }
    text.truncate(length);
    Some(text)
}

fn random_bytes<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    let count = or_null!(arguments.int(0)?);
    if !(0..=RANDOM_BYTES_MAX).contains(&count) {
        return Ok(ValueRef::Null);
    }
    let mut bytes = vec![0; count as usize];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    // Requests up to 256 bytes are always filled, larger ones unless a signal comes.
    let mut filled = filled.map_err(|error| SqlError::internal(format!("no random bytes: {error}")))?;
    while filled < bytes.len() {
        let more = getrandom(&mut bytes[filled..], GetRandomFlags::empty());
        filled += more.map_err(|error| SqlError::internal(format!("no random bytes: {error}")))?;
    }
    Ok(arguments.give_binary(&bytes))
}

/// Two numbers of 31 bits for a password, as MySQL made them before version 4.1. Blanks do not count.
fn short_hash(password: &[u8]) -> (u32, u32) {
    let (mut first, mut second, mut added) = (1_345_345_333u32, 0x1234_5671u32, 7u32);
    for byte in password.iter().filter(|byte| !matches!(byte, b' ' | b'\t')) {
        let byte = u32::from(*byte);
        first ^= (first & 63).wrapping_add(added).wrapping_mul(byte).wrapping_add(first << 8);
        second = second.wrapping_add(second << 8 ^ first);
        added = added.wrapping_add(byte);
    }
    (first & 0x7fff_ffff, second & 0x7fff_ffff)
}

/// The substitution of ENCODE and DECODE: a permutation of the 256 bytes, and numbers that follow from the
/// password too.
struct Scrambler {
    random: (u64, u64),
    decoded: [u8; 256],
}

impl Scrambler {
    fn new(password: &[u8]) -> Scrambler {
        let (first, second) = short_hash(password);
        let decoded = std::array::from_fn(|byte| byte as u8);
        let random = (u64::from(first) % Scrambler::MODULUS, u64::from(second) % Scrambler::MODULUS);
        let mut scrambler = Scrambler { random, decoded };
        for at in 0..256 {
            let other = scrambler.next();
            scrambler.decoded.swap(usize::from(other), at);
        }
        scrambler
    }

    const MODULUS: u64 = 0x3fff_ffff;

    /// A number up to 254.
    fn next(&mut self) -> u8 {
        let (first, second) = self.random;
        let first = (first * 3 + second) % Scrambler::MODULUS;
        self.random = (first, (first + second + 33) % Scrambler::MODULUS);
        (first as f64 / Scrambler::MODULUS as f64 * 255.0) as u8
    }

    fn encode(mut self, text: &[u8]) -> Vec<u8> {
        let mut encoded = [0; 256];
        for (to, from) in self.decoded.iter().enumerate() {
            encoded[usize::from(*from)] = to as u8;
        }
        let mut shift = 0;
        let scramble = |byte: &u8| {
            shift ^= self.next();
            let scrambled = encoded[usize::from(*byte)] ^ shift;
            shift ^= byte;
            scrambled
        };
        text.iter().map(scramble).collect()
    }

    fn decode(mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shift = 0;
        let restore = |byte: &u8| {
            shift ^= self.next();
            let restored = self.decoded[usize::from(byte ^ shift)];
            shift ^= restored;
            restored
        };
        bytes.iter().map(restore).collect()
    }
}
