//! The lab's own clients, which do as little work a query as a client can. A query is one prepared packet
//! whose parameters are overwritten in place. Rows of an answer are counted by their headers, and only the
//! `k` of each is looked at. There are as many threads as processors, and each drives several connections. A
//! thread waits for any of its connections: with many connections one system call finds many answers, and no
//! thread sleeps and wakes for each.

use super::exchange::Exchange;
use super::socket::{Login, Socket, explained};
use super::workers::{self, Observed};
use super::{Load, Window};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::{Phase, Phases, Recorder};
use crate::results::Sample;
use crate::workload::{Script, Workload};
use rustix::event::epoll;
use std::time::{Duration, Instant};

/// The column by which a row is checked, and where it begins in a binary row: behind the row's first byte,
/// the bitmap of four columns, and the 4-byte id.
const K_OFFSET: usize = 1 + 1 + 4;
/// A worker checks the phases at least this often, even if no answer comes.
const ANSWER_WAIT: Duration = Duration::from_millis(50);
/// How long an interrupted run waits for the last answers.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// Answers taken from one wait.
const EVENTS_MAX: usize = 64;

/// A connection that repeats one kind of question: a query, or a transaction of several statements.
pub(crate) trait Asking: Send {
    fn socket(&self) -> &Socket;

    /// Starts the next one.
    fn ask(&mut self) -> Result<()>;

    /// When the one under way was started.
    fn asked(&self) -> Instant;

    /// Takes what has arrived. Returns the number of rows once everything that was asked is answered.
    fn receive(&mut self) -> Result<Option<u64>>;
}

/// Connects all clients, runs them, and counts. `checked`: rows must be rows of the table.
pub(crate) fn run(
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
    drive(&mut clients, &load.window(), observed, interrupt)
}

/// Runs connected clients for a sample.
pub(crate) fn drive<C: Asking>(
    clients: &mut [C],
    window: &Window,
    observed: &Observed<'_>,
    interrupt: &Interrupt,
) -> Result<Sample> {
    let threads = (crate::doctor::machine::processors() as usize).min(clients.len()).max(1);
    let mut drivers = Vec::new();
    let mut rest = clients;
    for number in 0..threads {
        let (share, others) = rest.split_at_mut(rest.len().div_ceil(threads - number));
        rest = others;
        drivers.push(move |phases: &Phases| match share {
            [only] => workers::repeat(phases, || one(only)),
            many => take_turns(many, phases),
        });
    }
    workers::run(drivers, window, observed, interrupt)
}

/// Asks and waits for the answer; gives the number of rows.
fn one<C: Asking>(client: &mut C) -> Result<u64> {
    client.ask()?;
    loop {
        if let Some(rows) = client.receive()? {
            return Ok(rows);
        }
    }
}

/// Drives several connections by one thread. Each connection always has a query under way. At the end all
/// queries and transactions are completed: an engine without transactions would keep half of one.
fn take_turns<C: Asking>(clients: &mut [C], phases: &Phases) -> Result<Recorder> {
    let waiting = Error::io("cannot wait for answers");
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| waiting(error.into()))?;
    let mut recorder = Recorder::default();
    for (number, client) in clients.iter_mut().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&poll, client.socket(), data, epoll::EventFlags::IN)
            .map_err(|error| Error::io("cannot wait for answers")(error.into()))?;
        client.ask()?;
    }
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: ANSWER_WAIT.as_nanos() as i64 };
    let mut under_way = clients.len();
    let mut stopped = None;
    loop {
        events.clear();
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::io("cannot wait for answers")(error.into())),
        }
        for event in &events {
            let client = &mut clients[event.data.u64() as usize];
            let Some(rows) = client.receive()? else {
                continue;
            };
            if phases.now() == Phase::Stopped {
                under_way -= 1;
                continue;
            }
            let asked = client.asked();
            client.ask()?;
            if phases.now() == Phase::Measuring {
                // The next query's start is this answer's arrival.
                recorder.query(client.asked() - asked, rows);
            }
        }
        if phases.now() == Phase::Stopped {
            let stopped = stopped.get_or_insert_with(Instant::now);
            if under_way == 0 || stopped.elapsed() > END_PATIENCE {
                return Ok(recorder);
            }
        }
    }
}

/// One connection with its prepared statement.
#[derive(Debug)]
struct Client {
    exchange: Exchange,
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
            exchange: Exchange::new(&login.target, connection),
            packet: ExecutePacket::new(prepared.id, count),
            parameters: vec![0; count],
            script,
            // Rows can only be checked if the two integers in front have four bytes each.
            checked: checked
                && prepared.columns.len() == 4
                && prepared.columns[..2].iter().all(is_four_bytes),
            sent: Instant::now(),
        })
    }
}

impl Asking for Client {
    fn socket(&self) -> &Socket {
        self.exchange.socket()
    }

    fn ask(&mut self) -> Result<()> {
        self.script.next(&mut self.parameters);
        let packet = self.packet.with(&self.parameters);
        self.sent = Instant::now();
        self.exchange.send(packet)
    }

    fn asked(&self) -> Instant {
        self.sent
    }

    fn receive(&mut self) -> Result<Option<u64>> {
        let (checked, script) = (self.checked, &self.script);
        let complete = self.exchange.receive(|row| {
            let k = row.get(K_OFFSET..K_OFFSET + 4).and_then(|bytes| bytes.try_into().ok());
            !checked || k.is_some_and(|bytes| script.expects(u32::from_le_bytes(bytes)))
        })?;
        if !complete {
            return Ok(None);
        }
        let summary = self.exchange.summary();
        match &summary.error {
            None => Ok(Some(summary.rows)),
            Some(error) => Err(self.exchange.refused("COM_STMT_EXECUTE", error)),
        }
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
        out.push(wire::command::com::STMT_EXECUTE);
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
