//! How a conversation begins.

use super::Place;
use super::line::{Line, Mutator};
use base::random::Random;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use wire::client::{ClientError, ConnectOptions, Connection};
use wire::compression::Method;
use wire::constants::capability;

/// Each has an account of its name, whose password is `secret`.
pub const METHODS: [&str; 4] = ["mysql_native_password", "caching_sha2_password", "ed25519", "parsec"];

/// Headers of proxies: both versions, with and without an address, and some that are none.
const HEADERS: [&[u8]; 7] = [
    b"PROXY TCP4 10.1.2.3 10.1.2.4 5000 3306\r\n",
    b"PROXY TCP6 ::1 ::1 5000 3306\r\n",
    b"PROXY UNKNOWN\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\x0a\x01\x02\x03\x0a\x01\x02\x04\x13\x88\x0c\xea",
    b"PROXY TCP4 300.1.2.3 10.1.2.4 5000 3306\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff\x0a\x01",
];
/// The first so many are right.
const HEADERS_RIGHT: usize = 5;

/// Drawn from a seed.
#[derive(Debug)]
pub struct Plan {
    options: ConnectOptions,
    is_tcp: bool,
    is_encrypted: bool,
    header: &'static [u8],
    /// What is changed below TLS seldom gets through it.
    changes_inside: bool,
}

impl Plan {
    pub fn draw(random: &mut Random) -> Plan {
        let is_tcp = random.below(3) > 0;
        let is_encrypted = is_tcp && random.below(3) == 0;
        let users = ["root", "nobody", METHODS[0], METHODS[1], METHODS[2], METHODS[3]];
        let user = users[random.index(users.len())];
        let password = match (user, random.below(6)) {
            ("root", 1..) => "",
            (_, 0) => ["", "Secret", "0123456789abcdef0123456789abcdef0123456789abcdef"][random.index(3)],
            _ => "secret",
        };
        let mut capabilities = capability::CLIENT;
        for flag in [
            capability::COMPRESS,
            capability::ZSTD_COMPRESSION,
            capability::PROGRESS,
            capability::LOCAL_FILES,
            capability::FOUND_ROWS,
            capability::INTERACTIVE,
            capability::SESSION_TRACK,
            capability::MULTI_STATEMENTS,
            capability::IGNORE_SPACE,
        ] {
            capabilities |= flag * u64::from(random.below(3) == 0);
        }
        for flag in [capability::DEPRECATE_EOF, capability::LONG_PASSWORD, capability::CACHE_METADATA] {
            capabilities &= !(flag * u64::from(random.below(4) == 0));
        }
        if capabilities & capability::LONG_PASSWORD == 0 {
            capabilities |= capability::STMT_BULK_OPERATIONS;
        }
        let header = match random.below(5) {
            0 => HEADERS[random.index(HEADERS.len())],
            _ => b"",
        };
        let databases = [None, None, Some("talk"), Some("nowhere"), Some("")];
        Plan {
            options: ConnectOptions {
                user: user.to_owned(),
                password: password.to_owned(),
                database: databases[random.index(databases.len())].map(str::to_owned),
                is_secure: !is_tcp,
                capabilities,
            },
            is_tcp,
            is_encrypted,
            header,
            changes_inside: is_encrypted && random.below(3) > 0,
        }
    }

    /// # Errors
    /// What ends the conversation.
    pub fn log_in(
        &self,
        place: &Place,
        patience: Duration,
        (plain, encrypted): (Option<Mutator>, Option<Mutator>),
    ) -> Result<Connection<Line>, ClientError> {
        let mut line = match self.is_tcp {
            true => Line::tcp(place, patience)?,
            false => Line::unix(place, patience)?,
        };
        std::io::Write::write_all(&mut line, self.header)?;
        let compresses = Rc::new(Cell::new(false));
        let method = match self.options.capabilities & capability::COMPRESS {
            0 => Method::Zstd { level: 3 },
            _ => Method::Zlib,
        };
        let line = if self.changes_inside { line } else { line.changed_by(plain) };
        let connection = if self.is_encrypted {
            let inside = if self.changes_inside { encrypted } else { None };
            Connection::connect_encrypted(line, &self.options, |line| {
                Ok(line.encrypted(inside)?.compressed_by(method, compresses.clone()))
            })
        } else {
            Connection::connect(line.compressed_by(method, compresses.clone()), &self.options)
        };
        let connection = match connection {
            Err(ClientError::Io(_) | ClientError::Protocol(_))
                if HEADERS[HEADERS_RIGHT..].contains(&self.header) =>
            {
                return Err(refused("a header that is none"));
            }
            connection => connection?,
        };
        let compressions = capability::COMPRESS | capability::ZSTD_COMPRESSION;
        compresses.set(connection.capabilities() & compressions != 0);
        Ok(connection)
    }
}

/// The end of a conversation that the server rightly ends without a word.
fn refused(why: &str) -> ClientError {
    ClientError::Server(wire::response::ServerError {
        code: 0,
        sqlstate: String::new(),
        message: why.to_owned(),
    })
}
