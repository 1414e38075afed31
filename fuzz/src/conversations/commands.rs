//! The commands of a conversation, behind its login.

use super::line::Line;
use base::random::Random;
use std::io::{self, Read, Write};
use wire::auth::{self, caching_sha2, parsec};
use wire::client::{ClientError, Connection, ResponseKind, ResponseScanner, ScanError, simple};
use wire::command::{BULK_HAS_TYPES, com};
use wire::constants::{auth_plugin, kind};
use wire::handshake::parse_auth_switch;
use wire::value::{DateTime, WireValue};
use wire::{FrameError, PacketReader, PacketWriter};

const QUERIES: [&str; 19] = [
    "SELECT 1",
    "SELECT * FROM talk.t ORDER BY id LIMIT 5",
    "SELECT REPEAT('ab', 40000), NULL, 1.5, NOW()",
    "SELECT 1; SELECT 2; SELECT nothing; SELECT 3",
    "INSERT INTO talk.t (a, b) VALUES ('three', REPEAT('y', 300))",
    "UPDATE talk.t SET c = NOW() WHERE id = 1; SELECT ROW_COUNT()",
    "DELETE FROM talk.t WHERE id > 50",
    "SELECT",
    "",
    "BEGIN",
    "COMMIT",
    "SET NAMES latin1",
    "SET NAMES utf8mb4",
    "SET SESSION session_track_system_variables = '*', session_track_state_change = ON",
    "USE talk",
    "SHOW WARNINGS",
    "PREPARE p FROM 'SELECT ? + 1'; EXECUTE p USING 1",
    "SHOW VARIABLES LIKE 'character%'",
    "LOAD DATA LOCAL INFILE 'a file' INTO TABLE talk.t (a, b)",
];

const PREPARED: [&str; 7] = [
    "SELECT ?",
    "SELECT * FROM talk.t WHERE id < ? OR a = ?",
    "INSERT INTO talk.t (a, b) VALUES (?, ?)",
    "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?",
    "UPDATE talk.t SET a = ? WHERE id = ?",
    "SELECT * FROM talk.nothing",
    "BEGIN",
];

/// What a command is answered with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// OK, an error, or result sets.
    Results,
    Prepare,
    /// Packets of a form of their own, or none.
    Other,
    /// It may be asked for a password.
    Login,
}

/// # Errors
/// What ends the conversation.
pub fn run(connection: Connection<Line>, random: &mut Random) -> Result<(), ClientError> {
    let mut talk = Talk {
        scanner: ResponseScanner::new(connection.deprecate_eof()),
        reader: PacketReader::new(usize::MAX),
        scramble: connection.greeting().scramble.to_vec(),
        line: connection.into_stream(),
    };
    for _ in 0..=random.below(12) {
        let (payload, answer) = command(random);
        match talk.exchange(&payload, answer) {
            // A client that waits for what does not come says something else.
            Err(ClientError::Io(error))
                if error.kind() == io::ErrorKind::WouldBlock && talk.line.is_changed() => {}
            // Malformed commands end the connection.
            Err(ClientError::Io(error))
                if error.kind() == io::ErrorKind::UnexpectedEof && is_wrong(&payload) =>
            {
                return Ok(());
            }
            Err(ClientError::Io(error)) => {
                let shown = String::from_utf8_lossy(&payload[..payload.len().min(100)]);
                return Err(io::Error::new(error.kind(), format!("{shown:?}: {error}")).into());
            }
            other => other?,
        }
    }
    if random.below(2) == 0 {
        let mut writer = PacketWriter::new();
        simple(&mut writer, com::QUIT, b"");
        talk.line.write_all(writer.bytes())?;
    }
    Ok(())
}

/// True for commands that are drawn at random, which may be malformed.
fn is_wrong(payload: &[u8]) -> bool {
    matches!(
        payload,
        [com::STMT_EXECUTE | com::STMT_BULK_EXECUTE | com::CHANGE_USER, ..] | [com::FIELD_LIST, b't']
    ) || payload.first().is_none_or(|command| *command > com::STMT_FETCH)
}

fn command(random: &mut Random) -> (Vec<u8>, Answer) {
    let statement = [1, 1, 1, 2, 3, u32::MAX, 77][random.index(7)].to_le_bytes();
    let with = |command: u8, rest: &[u8]| [&[command][..], rest].concat();
    match random.below(24) {
        0 if random.below(100) == 0 => {
            // Around the size from which a packet comes in parts, and around the largest that the server
            // takes.
            let length = (1 << 24) - 16 + random.index(32);
            (with(com::QUERY, &[b"SELECT 1 -- ", &vec![b'x'; length][..]].concat()), Answer::Results)
        }
        0..=6 => (with(com::QUERY, QUERIES[random.index(QUERIES.len())].as_bytes()), Answer::Results),
        7..=9 => {
            (with(com::STMT_PREPARE, PREPARED[random.index(PREPARED.len())].as_bytes()), Answer::Prepare)
        }
        10 | 11 => (execute(random, statement), Answer::Other),
        12 => (bulk(random, statement), Answer::Other),
        13 => {
            (with(com::STMT_FETCH, &[&statement[..], &random.below(9).to_le_bytes()].concat()), Answer::Other)
        }
        14 => {
            let parameter = (random.below(3) as u16).to_le_bytes();
            let data = vec![b'z'; random.index(3000)];
            (with(com::STMT_SEND_LONG_DATA, &[&statement[..], &parameter, &data].concat()), Answer::Other)
        }
        15 => (with(com::STMT_RESET, &statement), Answer::Results),
        16 => (with(com::STMT_CLOSE, &statement), Answer::Other),
        17 => (with(com::INIT_DB, [&b"talk"[..], b"nowhere", b"\xff"][random.index(3)]), Answer::Results),
        18 => {
            (with(com::FIELD_LIST, [&b"t\0"[..], b"t\0a%", b"none\0", b"t"][random.index(4)]), Answer::Other)
        }
        19 => (with(com::SET_OPTION, &(random.below(3) as u16).to_le_bytes()), Answer::Other),
        20 => (vec![[com::PING, com::RESET_CONNECTION][random.index(2)]], Answer::Results),
        21 => (with(com::PROCESS_KILL, &[0xff, 0xff, 0xff, 0x7f]), Answer::Results),
        22 => (change_user(random), Answer::Login),
        _ => {
            let rest: Vec<u8> = (0..random.below(30)).map(|_| random.next_u64() as u8).collect();
            (with((com::STMT_FETCH + 1).saturating_add(random.below(220) as u8), &rest), Answer::Other)
        }
    }
}

fn execute(random: &mut Random, statement: [u8; 4]) -> Vec<u8> {
    let date = DateTime { year: 2026, month: 11, day: 25, hour: 1, minute: 2, second: 3, microsecond: 4 };
    let text = vec![b'q'; random.index(400)];
    let all = [
        WireValue::Int(-5),
        WireValue::Text(&text),
        WireValue::Null,
        WireValue::Double(1.5),
        WireValue::DateTime(date),
        WireValue::UInt(u64::MAX),
        WireValue::Binary(b"\x00\xff"),
        WireValue::Decimal(b"12.50"),
        WireValue::Float(0.25),
    ];
    let mut payload = vec![com::STMT_EXECUTE];
    payload.extend_from_slice(&statement);
    payload.push([0, 0, 1, 2, 8][random.index(5)]);
    payload.extend_from_slice(&1u32.to_le_bytes());
    let count = [0, 1, 1, 2, 2, 9][random.index(6)];
    wire::params::write_except(&mut payload, &all[..count], |_| false);
    payload
}

fn bulk(random: &mut Random, statement: [u8; 4]) -> Vec<u8> {
    let mut payload = vec![com::STMT_BULK_EXECUTE];
    payload.extend_from_slice(&statement);
    payload.extend_from_slice(&(BULK_HAS_TYPES | [0, 64][random.index(2)]).to_le_bytes());
    payload.extend_from_slice(&[kind::VAR_STRING, 0, kind::VAR_STRING, 0]);
    for _ in 0..random.below(20) {
        payload.extend_from_slice(&[0, 3, b'a', b'b', b'c', [0, 1, 2, 3][random.index(4)]]);
        if payload.last() == Some(&0) {
            payload.extend_from_slice(&[2, b'd', b'e']);
        }
    }
    payload
}

fn change_user(random: &mut Random) -> Vec<u8> {
    let mut payload = vec![com::CHANGE_USER];
    let users = ["root", "nobody", "mysql_native_password", "caching_sha2_password", "ed25519", "parsec"];
    payload.extend_from_slice(users[random.index(users.len())].as_bytes());
    payload.extend_from_slice(&[0, 0]);
    payload.extend_from_slice(["talk", "", "nowhere"][random.index(3)].as_bytes());
    payload.push(0);
    if random.below(3) > 0 {
        payload.extend_from_slice(&[45, 0]);
        payload.extend_from_slice(b"mysql_native_password\0");
        payload.extend_from_slice([&b"\x00"[..], b"\x06\x02ab\x02cd", b"\x09\x02ab"][random.index(3)]);
    }
    payload
}

struct Talk {
    line: Line,
    reader: PacketReader,
    scanner: ResponseScanner,
    scramble: Vec<u8>,
}

impl Talk {
    fn packet(&mut self) -> Result<Vec<u8>, ClientError> {
        loop {
            if let Some(packet) = self.reader.next_packet()? {
                return Ok(self.reader.payload(&packet).to_vec());
            }
            match self.line.read(self.reader.space())? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => self.reader.received(count),
            }
        }
    }

    fn send(&mut self, payload: &[u8], sequence: u8) -> Result<(), ClientError> {
        let mut writer = PacketWriter::new();
        writer.set_sequence(sequence);
        writer.packet(payload);
        if sequence == 0 {
            self.line.begin_command();
        }
        self.line.write_all(writer.bytes())?;
        self.reader.set_sequence(writer.sequence());
        Ok(())
    }

    /// Sends a command and reads its answer. The server's line of figures, which is asked for behind it,
    /// shows where an answer ends whose form says nothing of that.
    fn exchange(&mut self, payload: &[u8], answer: Answer) -> Result<(), ClientError> {
        self.send(payload, 0)?;
        match answer {
            Answer::Login => return self.log_in_again(),
            Answer::Results => self.scanner.expect(ResponseKind::Results),
            Answer::Prepare => self.scanner.expect(ResponseKind::Prepare),
            Answer::Other => return self.skip_until_figures(payload[0]),
        }
        loop {
            let packet = self.packet()?;
            if packet == b"\xfba file" {
                let sequence = self.reader.sequence();
                self.send(b"left\tright\nonly left\n\\N\t\\", sequence)?;
                let sequence = self.reader.sequence();
                self.send(b"", sequence)?;
            } else if self.scanner.packet(&packet)? {
                return Ok(());
            }
        }
    }

    fn skip_until_figures(&mut self, command: u8) -> Result<(), ClientError> {
        if !matches!(command, com::STMT_SEND_LONG_DATA | com::STMT_CLOSE) {
            self.packet()?;
        }
        let mut writer = PacketWriter::new();
        writer.packet(&[com::STATISTICS]);
        self.line.begin_command();
        self.line.write_all(writer.bytes())?;
        loop {
            match self.packet() {
                Ok(packet) if packet.starts_with(b"Uptime: ") => return Ok(()),
                // The answer to the command that was sent next.
                Err(ClientError::Protocol(ScanError::Frame(FrameError::OutOfOrder { got: 1, .. }))) => {
                    self.reader.set_sequence(1);
                }
                other => other.map(drop)?,
            }
        }
    }

    /// The password is `secret`, or the user has none.
    fn log_in_again(&mut self) -> Result<(), ClientError> {
        for _ in 0..8 {
            let packet = self.packet()?;
            let answer = match packet.first() {
                Some(0) => return Ok(()),
                Some(0xff) => {
                    let error = wire::response::ServerError::parse(&packet)?;
                    return Err(ClientError::Server(error));
                }
                Some(&caching_sha2::MORE_DATA) => match packet[1..] {
                    [caching_sha2::FAST_CHECK_WENT_WELL] => continue,
                    [caching_sha2::NEEDS_PASSWORD] => vec![caching_sha2::WANTS_PUBLIC_KEY],
                    ref key => match caching_sha2::encrypted(b"secret", &self.scramble, key) {
                        Some(encrypted) => encrypted,
                        None => b"secret\0".to_vec(),
                    },
                },
                Some(0xfe) => {
                    let (plugin, data) = parse_auth_switch(&packet)?;
                    self.scramble = data.to_vec();
                    match plugin == auth_plugin::PARSEC.as_bytes() {
                        true => Vec::new(),
                        false => auth::answer_by(plugin, b"secret", data),
                    }
                }
                // The salt of parsec.
                _ => parsec::answer(b"secret", &self.scramble, &packet, &[7; 32]).unwrap_or_default(),
            };
            let sequence = self.reader.sequence();
            self.send(&answer, sequence)?;
        }
        Ok(())
    }
}
