//! The MySQL client/server protocol (4.1 and later), sans-io: bytes in, packets out.
//!
//! Nothing here knows of sockets, sessions or SQL. The server side and the client side are next to each
//! other, so that each is tested against the other:
//!
//! | part | server | client |
//! |---|---|---|
//! | [`frame`] | packets in and out of byte buffers, split and joined at 16 MB | the same |
//! | [`handshake`] | writes [`Greeting`](handshake::Greeting), reads
//! [`HandshakeResponse`](handshake::HandshakeResponse) | the reverse |
//! | [`proxy`] | reads the header of a proxy | |
//! | [`auth`] | checks what clients answer, method by method | answers |
//! | [`command`] | reads `COM_*` | writes them |
//! | [`params`] | reads the parameters of `COM_STMT_EXECUTE` | writes them |
//! | [`response`], [`mod@column`], [`row`] | write OK, ERR, EOF, columns and rows | read them |
//! | [`client`] | | skips or collects whole responses |
//!
//! No reader panics: malformed bytes are an [`error::Malformed`].
//! Source of the formats: "Client/Server Protocol" in MariaDB's and MySQL's public documentation.

pub mod attributes;
pub mod auth;
pub mod client;
pub mod column;
pub mod command;
pub mod compression;
pub mod constants;
pub mod cursor;
pub mod error;
pub mod frame;
pub mod handshake;
pub mod params;
pub mod proxy;
pub mod put;
pub mod response;
pub mod row;
pub mod value;

pub use column::ColumnDefinition;
pub use command::{Answer, Command, CommandKind};
pub use error::Malformed;
pub use frame::{FrameError, PacketReader, PacketWriter};
pub use value::{DateTime, Time, WireValue};
