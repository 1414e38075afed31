//! The null server: one thread for each connection, the same rows for every client, and no work. Its figures
//! show what clients and sockets cost. No server on this machine can be faster.

use super::server::{Flavour, OWN_SERVER_THREADS};
use super::{Context, Series, SeriesPlan, Setting};
use crate::driver::socket::{Address, Login};
use crate::error::{Error, Result};
use crate::measure::Process;
use crate::workload::Sbtest;
use crate::workload::oltp::RANGE_ROWS;
use base::sync::{Arc, thread};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::client::ScanError;
use wire::column::ColumnDefinition;
use wire::command::Command;
use wire::constants::{auth_plugin, capability, charset, column_flag, kind, status};
use wire::handshake::{Greeting, HandshakeResponse};
use wire::response::{self, Definitions, OkFields, OkHeader, PrepareOk};
use wire::{PacketReader, PacketWriter};

const STACK_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub(crate) struct Null {
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
        // Wakes the acceptor. An error means that it has ended already.
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
        // If a client goes away, its thread ends. If no thread can be started, the connection is closed.
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
        auth_plugin: auth_plugin::NATIVE_PASSWORD.to_string(),
    };
    greeting.write(writer.begin());
    writer.finish();
    send(&mut stream, &mut writer)?;
    reader.set_sequence(1);
    let packet = receive(&mut stream, &mut reader)?;
    let response = HandshakeResponse::parse(reader.payload(&packet)).ok()?;
    let form = Form {
        eof_packets: response.capabilities & capability::DEPRECATE_EOF == 0,
        cache_metadata: response.capabilities & capability::CACHE_METADATA != 0,
    };
    writer.set_sequence(reader.sequence());
    ok(&mut writer);
    send(&mut stream, &mut writer)?;
    let mut answers = Answers { form, prepared: Vec::new(), texts: HashMap::new() };
    loop {
        reader.set_sequence(0);
        let packet = receive(&mut stream, &mut reader)?;
        let command = Command::parse(reader.payload(&packet)).ok()?;
        match command {
            Command::StmtExecute { statement, .. } => {
                stream.write_all(answers.prepared.get(statement as usize - 1)?).ok()?;
                continue;
            }
            Command::Query(sql) => {
                stream.write_all(answers.text(sql)).ok()?;
                continue;
            }
            Command::StmtPrepare(sql) => {
                writer.set_sequence(1);
                answers.prepare(&mut writer, sql);
            }
            Command::StmtClose(_) => continue,
            Command::Quit => return None,
            _ => {
                writer.set_sequence(1);
                ok(&mut writer);
            }
        }
        send(&mut stream, &mut writer)?;
    }
}

/// Which form the client wants its answers in.
#[derive(Clone, Copy, Debug)]
struct Form {
    eof_packets: bool,
    /// The client keeps a prepared statement's column definitions.
    cache_metadata: bool,
}

/// The answer to a statement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Shape {
    Done,
    /// This many rows of the columns `id`, `k`, `c` and `pad`.
    Whole(u16),
    /// This many rows of the column `c`.
    C(u16),
    /// A sum.
    Sum,
}

impl Shape {
    /// The answer to a statement of `select_random_points` or of sysbench's OLTP transactions. Every other
    /// statement gets an OK.
    fn of(sql: &[u8]) -> Shape {
        let Some(list) = sql.strip_prefix(b"SELECT ") else { return Shape::Done };
        let has = |word: &[u8]| list.windows(word.len()).any(|found| found == word);
        if list.starts_with(b"id, k, c, pad ") {
            let commas = list.iter().filter(|&&byte| byte == b',').count();
            // There is one value more than commas in the list of values. The list of columns has three
            // commas.
            return Shape::Whole((commas - 2) as u16);
        }
        if list.starts_with(b"SUM(") {
            return Shape::Sum;
        }
        match list.starts_with(b"c FROM ") || list.starts_with(b"DISTINCT c FROM ") {
            true if has(b" BETWEEN ") => Shape::C(RANGE_ROWS as u16),
            true => Shape::C(1),
            false => Shape::Done,
        }
    }

    fn columns(self) -> Vec<ColumnDefinition<'static>> {
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
        match self {
            Shape::Done => Vec::new(),
            Shape::Whole(_) => vec![int(b"id"), int(b"k"), text(b"c", 480), text(b"pad", 240)],
            Shape::C(_) => vec![text(b"c", 480)],
            Shape::Sum => vec![ColumnDefinition {
                name: b"SUM(k)",
                charset: charset::BINARY,
                length: 32,
                kind: kind::NEWDECIMAL,
                ..ColumnDefinition::default()
            }],
        }
    }

    fn row_count(self) -> u16 {
        match self {
            Shape::Done => 0,
            Shape::Whole(rows) | Shape::C(rows) => rows,
            Shape::Sum => 1,
        }
    }

    /// The packets of an answer.
    fn encoded(self, is_binary: bool, form: Form) -> Vec<u8> {
        let mut writer = PacketWriter::new();
        writer.set_sequence(1);
        let columns = self.columns();
        if columns.is_empty() {
            ok(&mut writer);
            return writer.bytes().to_vec();
        }
        let definitions = match (form.cache_metadata, is_binary) {
            (false, _) => Definitions::Implied,
            (true, false) => Definitions::Follow,
            (true, true) => Definitions::Omitted,
        };
        response::column_count(&mut writer, columns.len(), definitions);
        if definitions != Definitions::Omitted {
            columns.iter().for_each(|column| column.write(&mut writer));
        }
        if form.eof_packets {
            response::eof(&mut writer, status::AUTOCOMMIT, 0);
        }
        for number in 0..self.row_count() {
            let row = Sbtest { rows: 1_000, seed: 1 }.row(u32::from(number) + 1);
            let out = writer.begin();
            if is_binary {
                wire::row::BinaryRow::begin(out, columns.len());
            }
            let put_int = |out: &mut Vec<u8>, value: u32| match is_binary {
                true => out.extend_from_slice(&value.to_le_bytes()),
                false => wire::put::lenenc_bytes(out, value.to_string().as_bytes()),
            };
            match self {
                Shape::Done => {}
                Shape::Whole(_) => {
                    put_int(out, row.id);
                    put_int(out, row.k);
                    wire::put::lenenc_bytes(out, &row.c);
                    wire::put::lenenc_bytes(out, &row.pad);
                }
                Shape::C(_) => wire::put::lenenc_bytes(out, &row.c),
                Shape::Sum => wire::put::lenenc_bytes(out, b"50000000"),
            }
            writer.finish();
        }
        end(&mut writer, form.eof_packets);
        writer.bytes().to_vec()
    }
}

/// A connection's answers, made when they are first asked for.
struct Answers {
    form: Form,
    /// By statement, from 1 on.
    prepared: Vec<Vec<u8>>,
    texts: HashMap<Shape, Vec<u8>>,
}

impl Answers {
    fn text(&mut self, sql: &[u8]) -> &[u8] {
        let (shape, form) = (Shape::of(sql), self.form);
        self.texts.entry(shape).or_insert_with(|| shape.encoded(false, form))
    }

    fn prepare(&mut self, writer: &mut PacketWriter, sql: &[u8]) {
        let params = sql.iter().filter(|&&byte| byte == b'?').count() as u16;
        let shape = Shape::of(sql);
        let columns = shape.columns();
        self.prepared.push(shape.encoded(true, self.form));
        let statement = self.prepared.len() as u32;
        PrepareOk { statement, columns: columns.len() as u16, params, warnings: 0 }.write(writer);
        let parameter = ColumnDefinition { name: b"?", kind: kind::LONG, ..ColumnDefinition::default() };
        for definitions in [vec![parameter; params.into()], columns] {
            definitions.iter().for_each(|definition| definition.write(writer));
            if !definitions.is_empty() && self.form.eof_packets {
                response::eof(writer, status::AUTOCOMMIT, 0);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::progress::Progress;
    use crate::workload::oltp::Step;
    use wire::client::{ConnectOptions, Connection, Value};

    fn started(folder: &Path) -> (Null, Login) {
        let mut null = Null::default();
        let mut context =
            Context { interrupt: &Interrupt::default(), progress: &mut Progress::quiet(), folder };
        let login = null.start(folder, &mut context).unwrap();
        (null, login)
    }

    #[test]
    fn clients_that_keep_definitions_get_none_with_the_rows() {
        let folder = tempfile::tempdir().unwrap();
        let (_null, login) = started(folder.path());
        let Address::Unix(address) = &login.address else { panic!("{:?}", login.address) };
        for without in [0, capability::DEPRECATE_EOF] {
            let capabilities = (capability::CLIENT | capability::CACHE_METADATA) & !without;
            let options = ConnectOptions { capabilities, ..ConnectOptions::default() };
            let mut client = Connection::connect(UnixStream::connect(address).unwrap(), &options).unwrap();
            let prepared = client.prepare(&Step::Range.sql()).unwrap();
            let values = vec![wire::value::WireValue::UInt(1); prepared.params.into()];
            let result = client.execute(prepared.id, &values).unwrap();
            assert_eq!((result.definitions, result.rows.len()), (Definitions::Omitted, 100));
            let text = client.query("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (7)").unwrap();
            assert_eq!((text.definitions, text.rows.len()), (Definitions::Follow, 1));
        }
    }

    #[test]
    fn every_client_gets_the_rows_that_its_statements_ask_for() {
        let folder = tempfile::tempdir().unwrap();
        let (mut null, login) = started(folder.path());
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
        let mut client = login.connect().unwrap();
        for (step, rows, columns) in [
            (Step::Point, 1, 1),
            (Step::Range, 100, 1),
            (Step::Sum, 1, 1),
            (Step::Order, 100, 1),
            (Step::Distinct, 100, 1),
            (Step::Delete, 0, 0),
            (Step::Commit, 0, 0),
        ] {
            let sql = step.sql();
            let prepared = client.connection().prepare(&sql).unwrap();
            assert_eq!(
                (usize::from(prepared.params), prepared.columns.len()),
                (sql.matches('?').count(), columns)
            );
            let values = vec![wire::value::WireValue::UInt(1); prepared.params.into()];
            assert_eq!(client.connection().execute(prepared.id, &values).unwrap().rows.len(), rows, "{sql}");
            if columns > 0 {
                let text = client.rows(&sql.replace('?', "1")).unwrap();
                assert_eq!((text.len(), text[0].len()), (rows, columns), "{sql}");
            }
        }
        let points = client.rows("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (7, 8, 9)").unwrap();
        assert_eq!((points.len(), points[0].len(), points[0][0].as_str()), (3, 4, "1"));
        null.stop().unwrap();
        assert!(login.connect().is_err());
    }
}
