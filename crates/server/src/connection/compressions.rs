//! Which compression a client and the server agree on, as MySQL 8 does it.

use super::End;
use sql::{ErrorKind, SqlError};
use wire::compression::{Method, ZSTD_LEVELS};
use wire::constants::capability;
use wire::handshake::HandshakeResponse;

/// The compressions that `protocol_compression_algorithms` allows.
pub(super) struct Compressions {
    zlib: bool,
    zstd: bool,
    none: bool,
}

impl Compressions {
    /// Those of a list of names.
    pub(super) fn of(list: &str) -> Compressions {
        let has = |name| list.split(',').any(|listed| listed == name);
        Compressions { zlib: has("zlib"), zstd: has("zstd"), none: has("uncompressed") }
    }

    /// Capabilities that the server must not offer.
    pub(super) fn forbidden(&self) -> u64 {
        let zlib = if self.zlib { 0 } else { capability::COMPRESS };
        let zstd = if self.zstd { 0 } else { capability::ZSTD_COMPRESSION };
        zlib | zstd
    }

    /// How the connection is compressed. `shared`: the capabilities of both sides. A client that can have
    /// both gets zlib.
    pub(super) fn method(&self, client: &HandshakeResponse<'_>, shared: u64) -> Result<Option<Method>, End> {
        if shared & capability::COMPRESS != 0 {
            return Ok(Some(Method::Zlib));
        }
        let level = client.zstd_level;
        match shared & capability::ZSTD_COMPRESSION {
            0 if self.none => Ok(None),
            0 => Err(refused(
                ErrorKind::CompressionRefused,
                "Invalid compression algorithm 'uncompressed': protocol_compression_algorithms forbids it"
                    .to_owned(),
            )),
            _ if ZSTD_LEVELS.contains(&level) => Ok(Some(Method::Zstd { level })),
            _ => Err(refused(
                ErrorKind::CompressionLevelRefused,
                format!("Invalid zstd compression level {level}: it is 1 to 22"),
            )),
        }
    }
}

fn refused(kind: ErrorKind, text: String) -> End {
    End::Refused(SqlError::new(kind, text))
}
