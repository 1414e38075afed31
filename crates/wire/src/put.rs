//! Writing the fields of a payload, each appended to a buffer.

/// NULL in a text row.
pub const NULL: u8 = 0xfb;

/// A length-encoded integer.
pub fn lenenc(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// A string behind its length-encoded length: every value of a text row, strings of a binary row.
pub fn lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A string and a zero byte. A string that contains a zero byte is cut there.
pub fn nul_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    out.extend_from_slice(&bytes[..end]);
    out.push(0);
}

/// NULL in a text row.
pub fn text_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// A signed integer in a text row.
pub fn text_int(out: &mut Vec<u8>, value: i64) {
    let mut digits = itoa::Buffer::new();
    lenenc_short(out, digits.format(value).as_bytes());
}

/// An unsigned integer in a text row.
pub fn text_uint(out: &mut Vec<u8>, value: u64) {
    let mut digits = itoa::Buffer::new();
    lenenc_short(out, digits.format(value).as_bytes());
}

/// A string known to be shorter than 251 bytes.
fn lenenc_short(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() < 251);
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// Appends a length and the text that `write` appends, without an intermediate buffer.
pub fn text_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length < 251 {
        out[at] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(9);
        lenenc(&mut prefix, length as u64);
        out.splice(at..=at, prefix);
    }
}
