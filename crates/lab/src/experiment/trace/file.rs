//! Traces from files.
//!
//! | file | one request is |
//! |---|---|
//! | `.csv` | a line; the key is one of its fields |
//! | `.oracleGeneral`, `.bin` | 24 bytes of libCacheSim: time (4), key (8), size (4), next access (8) |
//! | `.lcs` | a record of libCacheSim's own format, which begins with time (4) and key (8) |
//! | any other | a line; the line is the key |
//!
//! Numbers are little-endian. A `.lcs` file begins with a header of 8 KiB, whose bytes 8 to 15 are the
//! version.
//!
//! Keys may be anything. They become numbers here, in the order in which they first occur. Sizes are ignored:
//! every key counts as one.

use super::Requests;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::fs;
use std::hash::Hash;
use std::path::Path;

const ORACLE_RECORD_BYTES: usize = 24;
const LCS_HEADER_BYTES: usize = 8192;
const LCS_MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
/// Bytes of a record in versions 1, 2 and 3.
const LCS_RECORD_BYTES: [usize; 3] = [24, 28, 36];
/// Where the key begins in a record of each version.
const KEY_AT: usize = 4;

/// Which field of a CSV line is the key, and whether the first line is a headline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Csv {
    /// From 1.
    pub column: usize,
    pub headline: bool,
}

/// Reads at most `requests` requests.
pub(crate) fn read(path: &Path, csv: Csv, requests: usize) -> Result<Requests> {
    let bytes = fs::read(path).map_err(Error::path("read", path))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    parse(&name, &bytes, csv, requests).map_err(|why| Error::Usage(format!("{}: {why}", path.display())))
}

fn parse(name: &str, bytes: &[u8], csv: Csv, requests: usize) -> Result<Requests, String> {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let keys = match extension {
        "zst" | "gz" => return Err(format!("compressed; unpack it first, for example with unzstd {name}")),
        "oracleGeneral" | "bin" => records(bytes, ORACLE_RECORD_BYTES, requests)?,
        "lcs" => lcs(bytes, requests)?,
        "csv" => {
            let lines = lines(bytes).skip(usize::from(csv.headline)).take(requests);
            let field = |(number, line): (usize, &[u8])| {
                let field = line.split(|&byte| byte == b',').nth(csv.column - 1);
                let why = || format!("line {} has no field {}", number + 1, csv.column);
                field.map(|field| field.trim_ascii().to_vec()).ok_or_else(why)
            };
            numbered(lines.enumerate().map(field).collect::<Result<Vec<_>, String>>()?)
        }
        _ => numbered(lines(bytes).take(requests)),
    };
    if keys.is_empty() {
        return Err("no requests".to_string());
    }
    let footprint = keys.iter().max().map_or(0, |key| key + 1);
    Ok(Requests { name: name.to_string(), footprint, keys })
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

fn lcs(bytes: &[u8], requests: usize) -> Result<Vec<u32>, String> {
    let version = bytes.get(8..16).map(|field| u64::from_le_bytes(field.try_into().expect("eight bytes")));
    let (Some(version), true) = (version, bytes.starts_with(&LCS_MAGIC) && bytes.len() >= LCS_HEADER_BYTES)
    else {
        return Err("not a trace of libCacheSim's own format".to_string());
    };
    let record = usize::try_from(version).ok().and_then(|version| version.checked_sub(1));
    let Some(&record) = record.and_then(|position| LCS_RECORD_BYTES.get(position)) else {
        return Err(format!("version {version} of libCacheSim's format; 1 to 3 are read"));
    };
    records(&bytes[LCS_HEADER_BYTES..], record, requests)
}

fn records(bytes: &[u8], record: usize, requests: usize) -> Result<Vec<u32>, String> {
    if !bytes.len().is_multiple_of(record) {
        return Err(format!("{} bytes are no whole number of records of {record}", bytes.len()));
    }
    let keys = bytes
        .chunks_exact(record)
        .map(|record| u64::from_le_bytes(record[KEY_AT..KEY_AT + 8].try_into().expect("eight bytes")));
    Ok(numbered(keys.take(requests)))
}

/// Numbers for keys, in the order in which they first come.
fn numbered<K: Hash + Eq>(keys: impl IntoIterator<Item = K>) -> Vec<u32> {
    let mut numbers: HashMap<K, u32> = HashMap::new();
    keys.into_iter()
        .map(|key| {
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Csv = Csv { column: 2, headline: true };

    fn keys(name: &str, bytes: &[u8]) -> Vec<u32> {
        parse(name, bytes, CSV, usize::MAX).unwrap().keys
    }

    /// What libcachesim 0.3.5 writes for the keys 5, 7, 5, 9, 1000000007.
    fn records_of(size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for key in [5_u64, 7, 5, 9, 1_000_000_007] {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&key.to_le_bytes());
            bytes.extend_from_slice(&1_u32.to_le_bytes());
            bytes.resize(start + size, 0xff);
        }
        bytes
    }

    #[test]
    fn all_formats_give_the_same_requests() {
        let expected = [0, 1, 0, 2, 3];
        assert_eq!(keys("trace.txt", b"5\n7\r\n5\n\n9\n1000000007\n"), expected);
        assert_eq!(keys("trace.csv", b"time,key\n1,a\n2, b\n3,a ,x\n4,c\n5,d\n"), expected);
        assert_eq!(keys("trace.oracleGeneral", &records_of(24)), expected);
        for (version, size) in [(1_u64, 24), (2, 28), (3, 36)] {
            let mut bytes = LCS_MAGIC.to_vec();
            bytes.extend_from_slice(&version.to_le_bytes());
            bytes.resize(LCS_HEADER_BYTES, 0);
            bytes.extend(records_of(size));
            assert_eq!(keys("trace.lcs", &bytes), expected, "version {version}");
        }
        let cut = parse("t", b"a\nb\nc\n", CSV, 2).unwrap();
        assert_eq!((cut.keys.as_slice(), cut.footprint), ([0, 1].as_slice(), 2));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (name, bytes, told) in [
            ("a.oracleGeneral.zst", &b"x"[..], "unzstd"),
            ("a.bin", b"short", "whole number of records"),
            ("a.lcs", b"short", "not a trace"),
            ("a.csv", b"h\n1,2\n3\n", "line 2 has no field 2"),
            ("a.txt", b"\n\n", "no requests"),
        ] {
            let why = parse(name, bytes, CSV, 100).unwrap_err();
            assert!(why.contains(told), "{name}: {why}");
        }
    }
}
