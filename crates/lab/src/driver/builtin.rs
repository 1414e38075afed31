//! The lab's own clients: as little work a query as a client can do.
//!
//! A query is one prepared packet whose parameters are written over in place; an answer's rows are counted by their
//! headers and only the `k` of each is looked at. As many threads as there are processors drive all
//! connections: a thread waits for whichever of its connections has an answer, so that with many connections one
//! system call finds many answers and nobody is put to sleep for each.

use super::Load;
use super::socket::{Login, Socket, explained};
use super::workers::{self, Observed};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::{Phase, Phases, Recorder};
use crate::results::Sample;
use crate::workload::{Script, Workload};
use rustix::event::epoll;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use wire::PacketReader;
use wire::client::{ResponseKind, ResponseScanner, ScanError};

/// The column that a row is checked by, where its place in a binary row is fixed: behind the row's first byte,
/// the bitmap of four columns, and the 4-byte id.
const K_OFFSET: usize = 1 + 1 + 4;
/// A worker looks at the phases at least this often, even if no answer comes.
const ANSWER_WAIT: Duration = Duration::from_millis(50);
/// Answers taken from one wait.
const EVENTS_MAX: usize = 64;

/// Connects all clients, runs them, and counts. `checked`: rows must be rows of the table.
pub fn run(
    login: &Login,
    load: &Load,
    checked: bool,
    observed: &Observed<'_>,
    interrupt: &Interrupt,
) -> Result<Sample> {
    let mut clients = Vec::with_capacity(load.clients as usize);
    for number in 0..load.clients {
        interrupt.check()?;
        let script = load.workload.script(number, load.clients, load.seed);
        clients.push(Client::connect(login, &load.workload, script, checked)?);
    }
    let threads = (crate::doctor::machine::processors() as usize).min(clients.len()).max(1);
    let mut shares: Vec<Vec<Client>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, client) in clients.into_iter().enumerate() {
        shares[number % threads].push(client);
    }
    let worker = |mut share: Vec<Client>| {
        move |phases: &Phases| match share.as_mut_slice() {
            [only] => workers::repeat(phases, || only.query()),
            many => take_turns(many, phases),
        }
    };
    workers::run(shares.into_iter().map(worker).collect(), &load.window(), observed, interrupt)
}

/// Drives several connections by one thread: each always has a query under way.
fn take_turns(clients: &mut [Client], phases: &Phases) -> Result<Recorder> {
    let waiting = Error::io("cannot wait for answers");
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| waiting(error.into()))?;
    let mut recorder = Recorder::default();
    for (number, client) in clients.iter_mut().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&poll, &client.socket, data, epoll::EventFlags::IN)
            .map_err(|error| Error::io("cannot wait for answers")(error.into()))?;
        client.send()?;
    }
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: ANSWER_WAIT.as_nanos() as i64 };
    loop {
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::io("cannot wait for answers")(error.into())),
        }
        let mut phase = phases.now();
        for event in &events {
            let client = &mut clients[event.data.u64() as usize];
            let Some(rows) = client.receive()? else {
                continue;
            };
            let sent = client.sent;
            client.send()?;
            phase = phases.now();
            if phase == Phase::Measuring {
                // The next query's start is this answer's arrival.
                recorder.query(client.sent - sent, rows);
            }
        }
        if phase == Phase::Stopped {
            return Ok(recorder);
        }
    }
}

/// One connection with its prepared statement.
#[derive(Debug)]
struct Client {
    target: String,
    socket: Socket,
    reader: PacketReader,
    scanner: ResponseScanner,
    packet: ExecutePacket,
    parameters: Vec<u32>,
    script: Script,
    checked: bool,
    /// When the query under way was sent.
    sent: Instant,
}

impl Client {
    fn connect(login: &Login, workload: &Workload, script: Script, checked: bool) -> Result<Client> {
        let sql = workload.statement.sql();
        let mut connection = login.connect()?.into_connection();
        let prepared = connection.prepare(&sql).map_err(|error| explained(&login.target, &sql, error))?;
        let count = workload.statement.parameters();
        if usize::from(prepared.params) != count {
            let why = format!("{} parameters prepared where there are {count}", prepared.params);
            return Err(Error::Protocol { target: login.target.clone(), why });
        }
        Ok(Client {
            target: login.target.clone(),
            reader: PacketReader::new(usize::MAX),
            scanner: ResponseScanner::new(connection.deprecate_eof()),
            packet: ExecutePacket::new(prepared.id, count),
            parameters: vec![0; count],
            script,
            // Looking into rows needs the two integers in front, four bytes each.
            checked: checked
                && prepared.columns.len() == 4
                && prepared.columns[..2].iter().all(is_four_bytes),
            sent: Instant::now(),
            socket: connection.into_stream(),
        })
    }

    /// Sends a query and waits for its answer; gives the number of rows.
    fn query(&mut self) -> Result<u64> {
        self.send()?;
        loop {
            if let Some(rows) = self.receive()? {
                return Ok(rows);
            }
        }
    }

    fn send(&mut self) -> Result<()> {
        self.script.next(&mut self.parameters);
        self.scanner.expect(ResponseKind::Results);
        self.reader.set_sequence(1);
        let packet = self.packet.with(&self.parameters);
        self.sent = Instant::now();
        // Small, and the only thing under way: it fits into the socket's buffer.
        self.socket.write_all(packet).map_err(Error::io(format!("{} went away", self.target)))
    }

    /// Takes what has arrived; the number of rows once the answer is complete.
    fn receive(&mut self) -> Result<Option<u64>> {
        let count = match self.socket.read(self.reader.space()) {
            Ok(0) => return Err(self.protocol("it closed the connection in the middle of an answer")),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(Error::io(format!("{} went away", self.target))(error)),
        };
        self.reader.received(count);
        loop {
            let packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.protocol(&ScanError::Frame(error).to_string())),
            };
            let payload = self.reader.payload(&packet);
            let rows = self.scanner.summary().rows;
            match self.scanner.packet(payload) {
                Ok(true) => return self.finished().map(Some),
                Ok(false) if self.checked && self.scanner.summary().rows > rows => {
                    let k = payload.get(K_OFFSET..K_OFFSET + 4).and_then(|bytes| bytes.try_into().ok());
                    if !k.is_some_and(|bytes| self.script.expects(u32::from_le_bytes(bytes))) {
                        let why = "a row that was not asked for".to_string();
                        return Err(Error::WrongAnswer { target: self.target.clone(), why });
                    }
                }
                Ok(false) => {}
                Err(error) => return Err(self.protocol(&error.to_string())),
            }
        }
    }

    fn finished(&self) -> Result<u64> {
        let summary = self.scanner.summary();
        match &summary.error {
            None => Ok(summary.rows),
            Some(error) => Err(Error::Sql {
                target: self.target.clone(),
                statement: "COM_STMT_EXECUTE".to_string(),
                code: error.code,
                message: error.message.clone(),
            }),
        }
    }

    fn protocol(&self, why: &str) -> Error {
        Error::Protocol { target: self.target.clone(), why: why.to_string() }
    }
}

fn is_four_bytes(column: &wire::client::OwnedColumn) -> bool {
    column.wire_type.kind == wire::constants::kind::LONG
}

/// COM_STMT_EXECUTE with 4-byte unsigned parameters. The first packet tells the types, which the server then
/// keeps; the later ones go without.
#[derive(Debug)]
struct ExecutePacket {
    bytes: Vec<u8>,
    values: usize,
    count: usize,
    tells_types: bool,
    statement: u32,
}

const HEADER_BYTES: usize = 4;

impl ExecutePacket {
    fn new(statement: u32, count: usize) -> ExecutePacket {
        let mut packet = ExecutePacket { bytes: Vec::new(), values: 0, count, tells_types: true, statement };
        packet.encode();
        packet
    }

    fn encode(&mut self) {
        let out = &mut self.bytes;
        out.clear();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        out.push(wire::constants::com::STMT_EXECUTE);
        out.extend_from_slice(&self.statement.to_le_bytes());
        // No cursor; one iteration; no parameter is NULL.
        out.push(0);
        out.extend_from_slice(&1u32.to_le_bytes());
        out.resize(out.len() + self.count.div_ceil(8), 0);
        out.push(u8::from(self.tells_types));
        if self.tells_types {
            for _ in 0..self.count {
                out.extend_from_slice(&[wire::constants::kind::LONG, 0x80]);
            }
        }
        self.values = out.len();
        out.resize(out.len() + self.count * 4, 0);
        let payload = (out.len() - HEADER_BYTES) as u32;
        out[..3].copy_from_slice(&payload.to_le_bytes()[..3]);
    }

    /// The packet with these parameters. Every call but the first leaves the types out.
    fn with(&mut self, parameters: &[u32]) -> &[u8] {
        if self.values == 0 {
            self.tells_types = false;
            self.encode();
        }
        for (place, parameter) in self.bytes[self.values..].chunks_exact_mut(4).zip(parameters) {
            place.copy_from_slice(&parameter.to_le_bytes());
        }
        if self.tells_types {
            // The next call encodes anew.
            self.values = 0;
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::command::Command;
    use wire::value::WireValue;

    #[test]
    fn types_are_told_once_and_values_every_time() {
        let mut packet = ExecutePacket::new(7, 10);
        let mut types = Vec::new();
        let mut lengths = Vec::new();
        for first in [1u32, 1_000, u32::MAX - 9] {
            let parameters: Vec<u32> = (0..10).map(|step| first + step).collect();
            let bytes = packet.with(&parameters).to_vec();
            lengths.push(bytes.len());
            assert_eq!(bytes[..4], [(bytes.len() - 4) as u8, 0, 0, 0]);
            let Ok(Command::StmtExecute { statement: 7, flags: 0, params }) = Command::parse(&bytes[4..])
            else {
                panic!("{:?}", Command::parse(&bytes[4..]));
            };
            let mut read = Vec::new();
            wire::params::read(params, 10, &mut types, |_| None, |value| read.push(value)).unwrap();
            let expected: Vec<WireValue<'_>> =
                parameters.iter().map(|&value| WireValue::UInt(value.into())).collect();
            assert_eq!(read, expected);
        }
        assert_eq!(lengths, [4 + 10 + 2 + 1 + 20 + 40, 4 + 10 + 2 + 1 + 40, 4 + 10 + 2 + 1 + 40]);
    }
}
