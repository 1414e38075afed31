//! The null server: a thread a connection, the same rows for everyone, no work at all. What the clients and the
//! sockets cost is what is left: the ceiling of what any server could do on this machine.

use super::server::{Flavour, OWN_SERVER_THREADS};
use super::{Address, Context, Series, SeriesPlan, Setting};
use crate::driver::socket::Login;
use crate::error::{Error, Result};
use crate::measure::Process;
use crate::workload::Sbtest;
use base::sync::{Arc, thread};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::client::ScanError;
use wire::column::ColumnDefinition;
use wire::command::Command;
use wire::constants::{capability, charset, column_flag, kind, status};
use wire::handshake::{Greeting, HandshakeResponse};
use wire::response::{self, OkFields, OkHeader, PrepareOk};
use wire::{PacketReader, PacketWriter};

const STACK_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub struct Null {
    listening: Option<Listening>,
}

#[derive(Debug)]
struct Listening {
    address: std::path::PathBuf,
    closing: Arc<AtomicBool>,
    acceptor: Option<thread::JoinHandle<()>>,
}

impl Flavour for Null {
    fn series(&self, _asked: &[Setting]) -> SeriesPlan {
        SeriesPlan {
            series: vec![Series { label: "ceiling".to_string(), setting: None }],
            baseline: None,
            left_out: Vec::new(),
        }
    }

    fn start(&mut self, folder: &Path, _context: &mut Context<'_>) -> Result<Login> {
        let address = super::process::socket_path(folder)?;
        let listener = UnixListener::bind(&address).map_err(Error::path("listen on", &address))?;
        let closing = Arc::new(AtomicBool::new(false));
        let seen = closing.clone();
        let acceptor = thread::Builder::new()
            .name(OWN_SERVER_THREADS.to_string())
            .spawn(move || accept(&listener, &seen))
            .map_err(Error::io("cannot start the null server"))?;
        self.listening = Some(Listening { address: address.clone(), closing, acceptor: Some(acceptor) });
        Ok(Login {
            target: "null".to_string(),
            address: Address::Unix(address),
            user: "root".to_string(),
            password: String::new(),
            database: None,
        })
    }

    fn process(&self) -> Option<Process> {
        Some(Process::OwnNamed(OWN_SERVER_THREADS))
    }

    fn engine(&self) -> &str {
        "none"
    }

    fn setting_sql(&self, _setting: Setting) -> Vec<String> {
        Vec::new()
    }

    fn warming_sql(&self) -> Vec<String> {
        Vec::new()
    }

    fn keeps_rows(&self) -> bool {
        false
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("what".to_string(), "a thread a connection, constant rows".to_string())]
    }

    fn stop(&mut self) -> Result<()> {
        self.listening = None;
        Ok(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // ORDER: the acceptor looks after the connection below, which synchronises through the kernel.
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the acceptor; if nobody listens any more it has ended already.
        let _ = UnixStream::connect(&self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Threads of connections end when their clients leave.
fn accept(listener: &UnixListener, closing: &AtomicBool) {
    for stream in listener.incoming().flatten() {
        // ORDER: see `Listening::drop`.
        if closing.load(Ordering::Relaxed) {
            return;
        }
        let thread = thread::Builder::new().name(OWN_SERVER_THREADS.to_string()).stack_size(STACK_BYTES);
        // A client that vanishes ends its thread; one that gets none sees its connection closed.
        let _ = thread.spawn(move || serve(stream));
    }
}

fn serve(mut stream: UnixStream) -> Option<()> {
    let mut reader = PacketReader::new(1 << 24);
    let mut writer = PacketWriter::new();
    let greeting = Greeting {
        server_version: "5.7.0-latchwork-null".to_string(),
        connection_id: 1,
        scramble: [b'x'; wire::auth::SCRAMBLE_BYTES],
        capabilities: capability::SERVER,
        charset: charset::UTF8MB4_GENERAL_CI as u8,
        status: status::AUTOCOMMIT,
    };
    greeting.write(writer.begin());
    writer.finish();
    send(&mut stream, &mut writer)?;
    reader.set_sequence(1);
    let packet = receive(&mut stream, &mut reader)?;
    let response = HandshakeResponse::parse(reader.payload(&packet)).ok()?;
    let eof_packets = response.capabilities & capability::DEPRECATE_EOF == 0;
    writer.set_sequence(reader.sequence());
    ok(&mut writer);
    send(&mut stream, &mut writer)?;
    // What answers the statement that was prepared last; a connection of a run has only one.
    let mut answer = Vec::new();
    loop {
        reader.set_sequence(0);
        let packet = receive(&mut stream, &mut reader)?;
        let command = Command::parse(reader.payload(&packet)).ok()?;
        writer.set_sequence(1);
        match command {
            Command::StmtExecute { .. } => {
                stream.write_all(&answer).ok()?;
                continue;
            }
            Command::StmtPrepare(sql) => {
                let params = sql.iter().filter(|&&byte| byte == b'?').count() as u16;
                answer = rows(params, eof_packets);
                prepared(&mut writer, params, eof_packets);
            }
            Command::StmtClose(_) => continue,
            Command::Quit => return None,
            _ => ok(&mut writer),
        }
        send(&mut stream, &mut writer)?;
    }
}

fn send(stream: &mut UnixStream, writer: &mut PacketWriter) -> Option<()> {
    stream.write_all(writer.bytes()).ok()?;
    writer.clear();
    Some(())
}

fn receive(stream: &mut UnixStream, reader: &mut PacketReader) -> Option<wire::frame::Packet> {
    loop {
        match reader.next_packet().map_err(ScanError::Frame) {
            Ok(Some(packet)) => return Some(packet),
            Ok(None) => match stream.read(reader.space()) {
                Ok(0) | Err(_) => return None,
                Ok(count) => reader.received(count),
            },
            Err(_) => return None,
        }
    }
}

fn ok(writer: &mut PacketWriter) {
    response::ok(
        writer,
        OkHeader::Statement,
        &OkFields { status: status::AUTOCOMMIT, ..OkFields::default() },
    );
}

fn end(writer: &mut PacketWriter, eof_packets: bool) {
    if eof_packets {
        response::eof(writer, status::AUTOCOMMIT, 0);
    } else {
        response::ok(
            writer,
            OkHeader::EndOfRows,
            &OkFields { status: status::AUTOCOMMIT, ..OkFields::default() },
        );
    }
}

fn columns(writer: &mut PacketWriter) {
    let int = |name| ColumnDefinition {
        name,
        charset: charset::BINARY,
        length: 10,
        kind: kind::LONG,
        flags: column_flag::NOT_NULL | column_flag::UNSIGNED,
        ..ColumnDefinition::default()
    };
    let text = |name, length| ColumnDefinition {
        name,
        charset: charset::UTF8MB4_GENERAL_CI,
        length,
        kind: kind::STRING,
        flags: column_flag::NOT_NULL,
        ..ColumnDefinition::default()
    };
    for column in [int(b"id"), int(b"k"), text(b"c", 480), text(b"pad", 240)] {
        column.write(writer);
    }
}

fn prepared(writer: &mut PacketWriter, params: u16, eof_packets: bool) {
    PrepareOk { statement: 1, columns: 4, params, warnings: 0 }.write(writer);
    if params > 0 {
        for _ in 0..params {
            ColumnDefinition { name: b"?", kind: kind::LONG, ..ColumnDefinition::default() }.write(writer);
        }
        if eof_packets {
            response::eof(writer, status::AUTOCOMMIT, 0);
        }
    }
    columns(writer);
    if eof_packets {
        response::eof(writer, status::AUTOCOMMIT, 0);
    }
}

/// A result set with a row a parameter.
fn rows(count: u16, eof_packets: bool) -> Vec<u8> {
    let mut writer = PacketWriter::new();
    writer.set_sequence(1);
    response::column_count(&mut writer, 4);
    columns(&mut writer);
    if eof_packets {
        response::eof(&mut writer, status::AUTOCOMMIT, 0);
    }
    for row in 0..count {
        let row = Sbtest { rows: 1_000, seed: 1 }.row(u32::from(row) + 1);
        let out = writer.begin();
        wire::row::BinaryRow::begin(out, 4);
        out.extend_from_slice(&row.id.to_le_bytes());
        out.extend_from_slice(&row.k.to_le_bytes());
        wire::put::lenenc_bytes(out, &row.c);
        wire::put::lenenc_bytes(out, &row.pad);
        writer.finish();
    }
    end(&mut writer, eof_packets);
    writer.bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::progress::Progress;
    use wire::client::Value;

    #[test]
    fn every_client_gets_a_row_a_parameter() {
        let folder = tempfile::tempdir().unwrap();
        let mut null = Null::default();
        let mut context = Context {
            interrupt: &Interrupt::default(),
            progress: &mut Progress::quiet(),
            folder: folder.path(),
        };
        let login = null.start(folder.path(), &mut context).unwrap();
        for points in [1, 10, 100] {
            let mut client = login.connect().unwrap();
            client.run(b"SET NAMES utf8mb4").unwrap();
            let sql = crate::workload::Statement::PointsByK { points }.sql();
            let prepared = client.connection().prepare(&sql).unwrap();
            assert_eq!((u32::from(prepared.params), prepared.columns.len()), (points, 4));
            let values = vec![wire::value::WireValue::UInt(1); points as usize];
            let result = client.connection().execute(prepared.id, &values).unwrap();
            assert_eq!(result.rows.len(), points as usize);
            assert!(matches!(&result.rows[0][..2], [Value::UInt(1), Value::UInt(_)]));
        }
        null.stop().unwrap();
        assert!(login.connect().is_err());
    }
}
