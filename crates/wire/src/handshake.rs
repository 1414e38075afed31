//! The handshake: the server greets, the client answers, the server may ask for another answer.

use crate::auth::{SCRAMBLE_BYTES, Scramble};
use crate::constants::capability;
use crate::cursor::Cursor;
use crate::{Malformed, put};

/// The upper 32 capabilities as they are sent. A side that is not of MariaDB's kind sends none.
fn upper_half(capabilities: u64) -> u32 {
    if capabilities & capability::LONG_PASSWORD == 0 { (capabilities >> 32) as u32 } else { 0 }
}

/// All capabilities. The upper ones are only filler if the lower ones have LONG_PASSWORD.
fn with_upper_half(lower: u32, upper: u32) -> u64 {
    let lower = u64::from(lower);
    if lower & capability::LONG_PASSWORD == 0 { u64::from(upper) << 32 | lower } else { lower }
}

/// The end of the version of a server that has upper capabilities, unless the version contains `MariaDB`.
/// MariaDB's client library looks for these capabilities only if it finds `MariaDB` or `-maria-` there.
const VERSION_SUFFIX: &[u8] = b"-maria-compatible";

/// The server's first packet, version 10.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// The server's version, without the suffix that the greeting adds.
    pub server_version: String,
    pub connection_id: u32,
    pub scramble: Scramble,
    /// Of [`capability`].
    pub capabilities: u64,
    /// The low byte of the default collation's number.
    pub charset: u8,
    pub status: u16,
    /// The method that the scramble is for.
    pub auth_plugin: String,
}

impl Greeting {
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(10);
        let upper = upper_half(self.capabilities);
        out.extend_from_slice(self.server_version.as_bytes());
        let says_so = upper == 0 || self.server_version.contains("MariaDB");
        put::nul_bytes(out, if says_so { b"" } else { VERSION_SUFFIX });
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(&self.scramble[..8]);
        out.push(0);
        let capabilities = self.capabilities.to_le_bytes();
        out.extend_from_slice(&capabilities[..2]);
        out.push(self.charset);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&capabilities[2..4]);
        out.push(SCRAMBLE_BYTES as u8 + 1);
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&upper.to_le_bytes());
        out.extend_from_slice(&self.scramble[8..]);
        out.push(0);
        put::nul_bytes(out, self.auth_plugin.as_bytes());
    }

    /// Reads a greeting; `Err` also for an ERR packet (see [`crate::response::ServerError::parse`]).
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn parse(payload: &[u8]) -> Result<Greeting, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("protocol version")? != 10 {
            return Err(Malformed::new("protocol version"));
        }
        let mut server_version = cursor.nul_bytes("server version")?;
        let connection_id = cursor.u32("connection id")?;
        let mut scramble = [0; SCRAMBLE_BYTES];
        scramble[..8].copy_from_slice(cursor.bytes(8, "scramble")?);
        cursor.u8("filler")?;
        let low = cursor.u16("capabilities")?;
        let charset = cursor.u8("charset")?;
        let status = cursor.u16("status")?;
        let high = cursor.u16("capabilities")?;
        cursor.bytes(7, "filler")?;
        let upper = cursor.u32("capabilities")?;
        scramble[8..].copy_from_slice(cursor.bytes(SCRAMBLE_BYTES - 8, "scramble")?);
        let capabilities = with_upper_half(u32::from(high) << 16 | u32::from(low), upper);
        if upper_half(capabilities) != 0 {
            server_version = server_version.strip_suffix(VERSION_SUFFIX).unwrap_or(server_version);
        }
        cursor.u8("filler")?;
        let auth_plugin = if cursor.is_empty() { b"" } else { cursor.nul_bytes("authentication method")? };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok(Greeting {
            server_version: text(server_version),
            connection_id,
            scramble,
            capabilities,
            charset,
            status,
            auth_plugin: text(auth_plugin),
        })
    }
}

/// The longest connection attributes that MariaDB takes, all together.
const ATTRIBUTES_BYTES_MAX: usize = 65_535;

/// The client's answer (HandshakeResponse41).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeResponse<'a> {
    /// Of [`capability`].
    pub capabilities: u64,
    /// The largest packet that the client will send.
    pub packet_bytes_max: u32,
    pub charset: u8,
    pub user: &'a [u8],
    pub auth_answer: &'a [u8],
    pub database: Option<&'a [u8]>,
    /// The method by which `auth_answer` was made. Empty if the client does not say.
    pub auth_plugin: &'a [u8],
    /// Connection attributes, still encoded: see [`attributes`].
    pub attributes: &'a [u8],
    /// The level of zstd, from clients that can speak it. Others have 0.
    pub zstd_level: u8,
}

impl<'a> HandshakeResponse<'a> {
    /// Reads the client's answer to a greeting.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol. A client that announces attributes must
    /// send them, at least an empty list, and not more than 65,535 bytes of them.
    pub fn parse(payload: &'a [u8]) -> Result<HandshakeResponse<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        let lower = cursor.u32("capabilities")?;
        if u64::from(lower) & capability::PROTOCOL_41 == 0 {
            return Err(Malformed::new("client older than protocol 4.1"));
        }
        let packet_bytes_max = cursor.u32("largest packet")?;
        let charset = cursor.u8("charset")?;
        cursor.bytes(19, "filler")?;
        let capabilities = with_upper_half(lower, cursor.u32("capabilities")?);
        let user = cursor.nul_bytes("user")?;
        let auth_answer = if capabilities & capability::PLUGIN_AUTH_LENENC != 0 {
            cursor.lenenc_bytes("authentication data")?
        } else if capabilities & capability::SECURE_CONNECTION != 0 {
            let length = cursor.u8("authentication data")?;
            cursor.bytes(length.into(), "authentication data")?
        } else {
            cursor.nul_bytes("authentication data")?
        };
        let database = if capabilities & capability::CONNECT_WITH_DB != 0 && !cursor.is_empty() {
            Some(cursor.nul_bytes("database")?).filter(|name| !name.is_empty())
        } else {
            None
        };
        let auth_plugin = if capabilities & capability::PLUGIN_AUTH != 0 && !cursor.is_empty() {
            cursor.nul_bytes("authentication method")?
        } else {
            b""
        };
        let attributes = match capabilities & capability::CONNECT_ATTRS {
            0 => &b""[..],
            _ => cursor.lenenc_bytes("connection attributes")?,
        };
        if attributes.len() > ATTRIBUTES_BYTES_MAX {
            return Err(Malformed::new("connection attributes"));
        }
        let zstd_level = match capabilities & capability::ZSTD_COMPRESSION {
            0 => 0,
            _ => cursor.u8("level of compression")?,
        };
        Ok(HandshakeResponse {
            capabilities,
            packet_bytes_max,
            charset,
            user,
            auth_answer,
            database,
            auth_plugin,
            attributes,
            zstd_level,
        })
    }

    /// Writes the request for TLS: the response's first fields, without a word of who the client is.
    pub fn write_tls_request(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.capabilities as u32).to_le_bytes());
        out.extend_from_slice(&self.packet_bytes_max.to_le_bytes());
        out.push(self.charset);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&upper_half(self.capabilities).to_le_bytes());
    }

    /// Writes the fields that `capabilities` announces, and leaves out the others.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_tls_request(out);
        put::nul_bytes(out, self.user);
        if self.capabilities & capability::PLUGIN_AUTH_LENENC != 0 {
            put::lenenc_bytes(out, self.auth_answer);
        } else if self.capabilities & capability::SECURE_CONNECTION != 0 {
            let length = self.auth_answer.len().min(255);
            out.push(length as u8);
            out.extend_from_slice(&self.auth_answer[..length]);
        } else {
            put::nul_bytes(out, self.auth_answer);
        }
        if self.capabilities & capability::CONNECT_WITH_DB != 0 {
            put::nul_bytes(out, self.database.unwrap_or_default());
        }
        if self.capabilities & capability::PLUGIN_AUTH != 0 {
            put::nul_bytes(out, self.auth_plugin);
        }
        if self.capabilities & capability::CONNECT_ATTRS != 0 {
            put::lenenc_bytes(out, self.attributes);
        }
        if self.capabilities & capability::ZSTD_COMPRESSION != 0 {
            out.push(self.zstd_level);
        }
    }
}

/// The bytes of a request for TLS.
const TLS_REQUEST_BYTES: usize = 32;

/// True if a client's first packet asks for TLS. Its answer to the greeting then follows encrypted.
pub fn is_tls_request(payload: &[u8]) -> bool {
    let has_flag = |bytes: &[u8]| u64::from(u16::from_le_bytes([bytes[0], bytes[1]])) & capability::SSL != 0;
    payload.len() == TLS_REQUEST_BYTES && has_flag(payload)
}

/// The client's request to change the user on the same connection (COM_CHANGE_USER, without its first
/// byte).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeUser<'a> {
    pub user: &'a [u8],
    pub auth_answer: &'a [u8],
    pub database: &'a [u8],
    /// The number of the collation; `None` from clients that send none.
    pub charset: Option<u16>,
    pub auth_plugin: &'a [u8],
}

impl<'a> ChangeUser<'a> {
    /// Reads COM_CHANGE_USER.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn parse(payload: &'a [u8]) -> Result<ChangeUser<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        let user = cursor.nul_bytes("user")?;
        let length = cursor.u8("authentication data")?;
        let auth_answer = cursor.bytes(length.into(), "authentication data")?;
        let database = cursor.nul_bytes("database")?;
        let charset = if cursor.is_empty() { None } else { Some(cursor.u16("charset")?) };
        // Behind the method are connection attributes. They are those of the connection's beginning.
        let auth_plugin = if cursor.is_empty() { b"" } else { cursor.nul_bytes("authentication method")? };
        Ok(ChangeUser { user, auth_answer, database, charset, auth_plugin })
    }
}

/// Reads connection attributes: names and values. It ends at the first malformed one.
pub fn attributes(encoded: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut cursor = Cursor::new(encoded);
    std::iter::from_fn(move || {
        let name = cursor.lenenc_bytes("attribute name").ok()?;
        let value = cursor.lenenc_bytes("attribute value").ok()?;
        Some((name, value))
    })
}

/// AuthSwitchRequest: asks the client to authenticate again with this method. `data` is what the method
/// wants: a scramble and a zero, or more random bytes.
pub fn write_auth_switch(out: &mut Vec<u8>, plugin: &str, data: &[u8]) {
    out.push(0xfe);
    put::nul_bytes(out, plugin.as_bytes());
    out.extend_from_slice(data);
}

/// Reads an AuthSwitchRequest: the method and its data (a scramble without its closing zero).
///
/// # Errors
/// If the payload ends too soon or does not follow the protocol.
pub fn parse_auth_switch(payload: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut cursor = Cursor::new(payload);
    if cursor.u8("authentication switch")? != 0xfe {
        return Err(Malformed::new("authentication switch"));
    }
    let plugin = cursor.nul_bytes("authentication method")?;
    let data = cursor.rest();
    let scramble = if data.len() == SCRAMBLE_BYTES + 1 { data.strip_suffix(&[0]) } else { None };
    Ok((plugin, scramble.unwrap_or(data)))
}
