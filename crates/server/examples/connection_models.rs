//! Which connection model? A null server (constant rows, no engine) in two models, driven by real sysbench
//! and by a small load generator over a unix socket.
//!
//! - `threads`: a thread a connection, blocking reads and writes.
//! - `events`: N workers, each with its own epoll set; a connection stays with its worker.
//!
//! `cargo run --release -p latchwork-server --example connection_models` prints the table that README.md
//! keeps. Options: `--seconds 5`, `--connections 1,128,5000`, `--points 10`, `--no-sysbench`.

use base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use base::sync::{Arc, thread};
use latchwork_server as _;
use rustix::event::epoll;
use std::error::Error;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wire::client::{self, ConnectOptions, ResponseKind, ResponseScanner};
use wire::command::com;
use wire::constants::{auth_plugin, capability, kind, status};
use wire::handshake::{Greeting, HandshakeResponse};
use wire::response::{self, Definitions, OkFields, OkHeader, PrepareOk};
use wire::row::BinaryRow;
use wire::{ColumnDefinition, PacketReader, PacketWriter, WireValue, put};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("serve") => serve(&arguments[1], Path::new(&arguments[2])),
        _ => measure(&Settings::parse(&arguments)?),
    }
}

// The null server.

/// One connection: packets in, constant answers out. Knows nothing of the model that drives it.
struct NullSession {
    reader: PacketReader,
    writer: PacketWriter,
    greeted: bool,
    deprecate_eof: bool,
    cache_metadata: bool,
}

const FILLER: [u8; 119] = [b'x'; 119];

impl NullSession {
    fn new() -> NullSession {
        let mut session = NullSession {
            reader: PacketReader::new(1 << 24),
            writer: PacketWriter::new(),
            greeted: false,
            deprecate_eof: false,
            cache_metadata: false,
        };
        let greeting = Greeting {
            server_version: "8.0.0-null".to_string(),
            connection_id: 1,
            scramble: [b'a'; 20],
            capabilities: capability::SERVER,
            charset: 45,
            status: status::AUTOCOMMIT,
            auth_plugin: auth_plugin::NATIVE_PASSWORD.to_string(),
        };
        greeting.write(session.writer.begin());
        session.writer.finish();
        session.reader.set_sequence(1);
        session
    }

    /// Answers all whole packets that have arrived. False if the connection is to be closed.
    fn advance(&mut self) -> bool {
        while let Ok(Some(packet)) = self.reader.next_packet() {
            self.writer.set_sequence(self.reader.sequence());
            let payload = self.reader.payload(&packet);
            if !self.greeted {
                self.greeted = true;
                let Ok(response) = HandshakeResponse::parse(payload) else { return false };
                self.deprecate_eof = response.capabilities & capability::DEPRECATE_EOF != 0;
                self.cache_metadata = response.capabilities & capability::CACHE_METADATA != 0;
                ok(&mut self.writer, OkHeader::Statement);
            } else {
                match payload[0] {
                    com::QUIT => return false,
                    com::STMT_CLOSE => {}
                    com::STMT_PREPARE => self.prepare(count(payload, b'?')),
                    com::STMT_EXECUTE => {
                        self.rows(u32::from_le_bytes([payload[1], payload[2], 0, 0]) as usize, true)
                    }
                    com::QUERY if payload[1..].starts_with(b"SELECT") => {
                        self.rows(count(payload, b',').saturating_sub(2), false);
                    }
                    _ => ok(&mut self.writer, OkHeader::Statement),
                }
            }
            self.reader.set_sequence(0);
        }
        true
    }

    /// The statement's id is its number of parameters, which is also its number of rows.
    fn prepare(&mut self, params: usize) {
        let answer = PrepareOk { statement: params as u32, columns: 4, params: params as u16, warnings: 0 };
        answer.write(&mut self.writer);
        for _ in 0..params {
            column(&mut self.writer, b"?", kind::LONGLONG);
        }
        if params > 0 && !self.deprecate_eof {
            response::eof(&mut self.writer, status::AUTOCOMMIT, 0);
        }
        self.columns();
        self.eof();
    }

    fn columns(&mut self) {
        for (name, kind) in
            [(&b"id"[..], kind::LONG), (b"k", kind::LONG), (b"c", kind::STRING), (b"pad", kind::STRING)]
        {
            column(&mut self.writer, name, kind);
        }
    }

    fn eof(&mut self) {
        if !self.deprecate_eof {
            response::eof(&mut self.writer, status::AUTOCOMMIT, 0);
        }
    }

    fn rows(&mut self, rows: usize, binary: bool) {
        let definitions = match (self.cache_metadata, binary) {
            (false, _) => Definitions::Implied,
            (true, false) => Definitions::Follow,
            (true, true) => Definitions::Omitted,
        };
        response::column_count(&mut self.writer, 4, definitions);
        if definitions != Definitions::Omitted {
            self.columns();
        }
        self.eof();
        for row in 0..rows as u32 {
            let out = self.writer.begin();
            if binary {
                BinaryRow::begin(out, 4);
                out.extend_from_slice(&row.to_le_bytes());
                out.extend_from_slice(&row.to_le_bytes());
            } else {
                put::text_uint(out, row.into());
                put::text_uint(out, row.into());
            }
            put::lenenc_bytes(out, &FILLER);
            put::lenenc_bytes(out, &FILLER[..59]);
            self.writer.finish();
        }
        if self.deprecate_eof {
            ok(&mut self.writer, OkHeader::EndOfRows);
        } else {
            response::eof(&mut self.writer, status::AUTOCOMMIT, 0);
        }
    }
}

fn count(payload: &[u8], wanted: u8) -> usize {
    payload.iter().filter(|&&byte| byte == wanted).count()
}

fn ok(writer: &mut PacketWriter, header: OkHeader) {
    response::ok(writer, header, &OkFields { status: status::AUTOCOMMIT, ..OkFields::default() });
}

fn column(writer: &mut PacketWriter, name: &[u8], kind: u8) {
    let definition = ColumnDefinition {
        database: b"sbtest",
        table: b"sbtest1",
        org_table: b"sbtest1",
        name,
        org_name: name,
        charset: 45,
        length: 480,
        kind,
        flags: 1,
        decimals: 0,
    };
    definition.write(writer);
}

fn serve(model: &str, socket: &Path) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    match model {
        "threads" => serve_threads(&listener),
        "events" => serve_events(&listener, thread::available_parallelism()?.get()),
        _ => Err(format!("no model is called {model}").into()),
    }
}

fn serve_threads(listener: &UnixListener) -> Result<()> {
    loop {
        let (mut stream, _) = listener.accept()?;
        thread::Builder::new().stack_size(256 << 10).spawn(move || {
            let mut session = NullSession::new();
            loop {
                if stream.write_all(session.writer.bytes()).is_err() {
                    return;
                }
                session.writer.clear();
                match stream.read(session.reader.space()) {
                    Ok(count) if count > 0 => session.reader.received(count),
                    _ => return,
                }
                if !session.advance() {
                    return;
                }
            }
        })?;
    }
}

fn serve_events(listener: &UnixListener, workers: usize) -> Result<()> {
    let mut sets = Vec::new();
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..workers).map(|_| std::sync::mpsc::channel::<UnixStream>()).unzip();
    for receiver in receivers {
        let set = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        sets.push(set.clone());
        thread::Builder::new().spawn(move || {
            // Connections by the number that their events carry; the stream is added to the set by the
            // acceptor, whose message is in the channel by then.
            let mut connections: Vec<Option<(UnixStream, NullSession)>> = Vec::new();
            let mut events = Vec::with_capacity(256);
            loop {
                events.clear();
                if epoll::wait(&*set, rustix::buffer::spare_capacity(&mut events), None).is_err() {
                    continue;
                }
                for stream in receiver.try_iter() {
                    connections.push(Some((stream, NullSession::new())));
                }
                for event in &events {
                    let Some(slot) = connections.get_mut(event.data.u64() as usize) else { continue };
                    if let Some((stream, session)) = slot
                        && !serve_event(stream, session)
                    {
                        *slot = None;
                    }
                }
            }
        })?;
    }
    for number in 0u64.. {
        let (mut stream, _) = listener.accept()?;
        // A client that is gone already is noticed by its worker.
        let _ = stream.write_all(NullSession::new().writer.bytes());
        stream.set_nonblocking(true)?;
        let worker = number as usize % workers;
        senders[worker].send(stream.try_clone()?)?;
        let data = epoll::EventData::new_u64(number / workers as u64);
        epoll::add(&*sets[worker], &stream, data, epoll::EventFlags::IN)?;
    }
    Ok(())
}

fn serve_event(stream: &mut UnixStream, session: &mut NullSession) -> bool {
    if !session.greeted {
        session.writer.clear();
    }
    match stream.read(session.reader.space()) {
        Ok(0) => return false,
        Ok(count) => session.reader.received(count),
        Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
    }
    if !session.advance() {
        return false;
    }
    // The answers are far smaller than a socket's buffer and the client waits for them.
    let sent = session.writer.is_empty() || stream.write_all(session.writer.bytes()).is_ok();
    session.writer.clear();
    sent
}

// The measuring side.

struct Settings {
    seconds: u64,
    connections: Vec<usize>,
    points: usize,
    sysbench: bool,
}

impl Settings {
    fn parse(arguments: &[String]) -> Result<Settings> {
        let mut settings =
            Settings { seconds: 5, connections: vec![1, 128, 5000], points: 10, sysbench: true };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--seconds" => settings.seconds = value()?.parse()?,
                "--points" => settings.points = value()?.parse()?,
                "--connections" => {
                    settings.connections =
                        value()?.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
                }
                "--no-sysbench" => settings.sysbench = false,
                _ => return Err(format!("unknown option {name}").into()),
            }
        }
        Ok(settings)
    }
}

fn measure(settings: &Settings) -> Result<()> {
    raise_open_files();
    println!("model    driver     connections   queries/s   server CPU us/query   server RSS MiB   threads");
    for &connections in &settings.connections {
        for driver in ["builtin", "sysbench"] {
            // Sysbench has a thread a connection and gives up long before 5,000 of them.
            if driver == "sysbench" && (!settings.sysbench || connections > 1000) {
                continue;
            }
            for model in ["threads", "events"] {
                let cell = measure_cell(settings, model, driver, connections)?;
                println!(
                    "{model:<8} {driver:<10} {connections:>11} {:>11.0} {:>21.2} {:>16.1} {:>9}",
                    cell.rate, cell.cpu_micros, cell.rss_mib, cell.threads
                );
            }
        }
    }
    Ok(())
}

struct Cell {
    rate: f64,
    cpu_micros: f64,
    rss_mib: f64,
    threads: String,
}

/// The server's process; ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure_cell(settings: &Settings, model: &str, driver: &str, connections: usize) -> Result<Cell> {
    let folder = std::env::temp_dir().join(format!("latchwork-models-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let socket = folder.join(format!("{model}-{driver}-{connections}.sock"));
    let _ = std::fs::remove_file(&socket);
    let server = Server(Command::new(std::env::current_exe()?).arg("serve").arg(model).arg(&socket).spawn()?);
    while UnixStream::connect(&socket).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
    let process = server.0.id();
    let cell = if driver == "sysbench" {
        let before = cpu_seconds(process)?;
        let mut sampler = Sampler::start(process);
        let (queries, rate) = sysbench(settings, &socket, connections)?;
        let (rss_mib, threads) = sampler.stop();
        let cpu_micros = (cpu_seconds(process)? - before) * 1e6 / queries;
        Cell { rate, cpu_micros, rss_mib, threads }
    } else {
        builtin(settings, &socket, connections, process)?
    };
    drop(server);
    std::fs::remove_dir_all(&folder)?;
    Ok(cell)
}

/// Looks at a process's memory and threads while something else runs.
struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<(f64, String)>>,
}

impl Sampler {
    fn start(process: u32) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut most = (0.0, String::new());
            // ORDER: a flag without data.
            while !stopped.load(Ordering::Relaxed) {
                let now = (rss_mib(process), field(process, "Threads:"));
                if now.0 >= most.0 {
                    most = now;
                }
                thread::sleep(Duration::from_millis(100));
            }
            most
        });
        Sampler { stop, thread: Some(thread) }
    }

    fn stop(&mut self) -> (f64, String) {
        // ORDER: a flag without data.
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

fn sysbench(settings: &Settings, socket: &Path, threads: usize) -> Result<(f64, f64)> {
    let output = Command::new("sysbench")
        .arg("select_random_points")
        .args(["--mysql-user=root", "--mysql-db=sbtest", "--table-size=1000000", "--rand-type=uniform"])
        .arg(format!("--mysql-socket={}", socket.display()))
        .arg(format!("--random-points={}", settings.points))
        .arg(format!("--time={}", settings.seconds))
        .arg(format!("--threads={threads}"))
        .arg("run")
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.trim_start().starts_with("queries:"));
    let line = line.ok_or_else(|| format!("sysbench did not run:\n{text}"))?;
    let mut numbers = line.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|word| !word.is_empty());
    let mut number = || numbers.next().and_then(|word| word.parse::<f64>().ok()).ok_or("sysbench's output");
    Ok((number()?, number()?))
}

/// Closed loop: every connection has one query under way; one thread drives them all.
fn builtin(settings: &Settings, socket: &Path, connections: usize, process: u32) -> Result<Cell> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let query =
        format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({})", vec!["?"; settings.points].join(", "));
    let values: Vec<WireValue> = (0..settings.points as i64).map(WireValue::Int).collect();
    let mut request = PacketWriter::new();
    let mut drivers = Vec::new();
    for number in 0..connections {
        let mut connection =
            client::Connection::connect(UnixStream::connect(socket)?, &ConnectOptions::default())?;
        let statement = connection.prepare(&query)?.id;
        let scanner = ResponseScanner::new(connection.deprecate_eof());
        let stream = connection.into_stream();
        stream.set_nonblocking(true)?;
        epoll::add(&set, &stream, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        client::execute(&mut request, statement, &values);
        drivers.push((stream, PacketReader::new(usize::MAX), scanner));
        if number + 1 < connections {
            request.clear();
        }
    }
    let send = |(stream, reader, scanner): &mut (UnixStream, PacketReader, ResponseScanner)| {
        scanner.expect(ResponseKind::Results);
        reader.set_sequence(1);
        stream.write_all(request.bytes())
    };
    for driver in &mut drivers {
        send(driver)?;
    }
    let done = AtomicU64::new(0);
    let mut events = Vec::with_capacity(512);
    let mut run_until = |end: Instant| -> Result<()> {
        while Instant::now() < end {
            events.clear();
            epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None)?;
            for event in &events {
                let driver = &mut drivers[event.data.u64() as usize];
                let count = driver.0.read(driver.1.space())?;
                driver.1.received(count);
                if driver.2.advance(&mut driver.1)? {
                    // ORDER: counted by this thread alone.
                    done.fetch_add(1, Ordering::Relaxed);
                    send(driver)?;
                }
            }
        }
        Ok(())
    };
    run_until(Instant::now() + Duration::from_secs(1))?;
    let (started, before, first) = (Instant::now(), cpu_seconds(process)?, done.load(Ordering::Relaxed));
    run_until(started + Duration::from_secs(settings.seconds))?;
    let queries = (done.load(Ordering::Relaxed) - first) as f64;
    let cpu_micros = (cpu_seconds(process)? - before) * 1e6 / queries;
    let rate = queries / started.elapsed().as_secs_f64();
    Ok(Cell { rate, cpu_micros, rss_mib: rss_mib(process), threads: field(process, "Threads:") })
}

fn field(process: u32, name: &str) -> String {
    let text = std::fs::read_to_string(PathBuf::from(format!("/proc/{process}/status"))).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().to_string()
}

fn rss_mib(process: u32) -> f64 {
    field(process, "VmRSS:").split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// User and system time of a process so far.
fn cpu_seconds(process: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after_name = text.rsplit_once(')').ok_or("no such process")?.1;
    let ticks: f64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<f64>().ok()).sum();
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}

fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
