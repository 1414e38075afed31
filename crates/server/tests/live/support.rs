//! A server on scratch folders.

use latchwork_server as server;
use server::{Address, Log, Options, Server, StopHandle};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::client::{ClientError, ConnectOptions, Connection};
use wire::command::com;
use wire::{FrameError, PacketReader, PacketWriter};

/// Longer than any step of these tests takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client over the unix socket.
pub type Client = Connection<UnixStream>;

pub struct Live {
    stop: StopHandle,
    thread: Option<JoinHandle<bool>>,
    pub socket: PathBuf,
    pub tcp: Option<SocketAddr>,
    log: PathBuf,
    pub instance: Arc<sql::Instance>,
    _folder: Option<tempfile::TempDir>,
}

impl Live {
    pub fn start(options: &[&str]) -> Live {
        let folder = tempfile::tempdir().unwrap();
        let mut live = Live::start_on(Arc::new(vfs::OsVfs), folder.path(), options);
        live._folder = Some(folder);
        live
    }

    /// Serves `folder/data` of these files; socket and log are in the real folder.
    pub fn start_on(vfs: Arc<dyn vfs::Vfs>, folder: &Path, options: &[&str]) -> Live {
        let socket = folder.join("socket");
        let log = folder.join("log");
        let mut arguments = vec![
            format!("--datadir={}", folder.join("data").display()),
            format!("--socket={}", socket.display()),
            "--port=0".to_string(),
        ];
        arguments.extend(options.iter().map(|option| option.to_string()));
        let options = Options::parse(&arguments).unwrap();
        let server = Server::start_on(vfs, options, Arc::new(Log::to_file(&log).unwrap())).unwrap();
        let tcp = server.addresses().iter().find_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) | Address::ExtraTcp(_) => None,
        });
        let stop = server.stop_handle().unwrap();
        let instance = server.instance().clone();
        let thread = std::thread::spawn(move || server.run().is_ok());
        Live { stop, thread: Some(thread), socket, tcp, log, instance, _folder: None }
    }

    pub fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn connect(&self) -> Client {
        self.connect_with(&ConnectOptions::default()).unwrap()
    }

    pub fn connect_with(&self, options: &ConnectOptions) -> Result<Client, ClientError> {
        Connection::connect(self.raw(), options)
    }

    pub fn connect_tcp(&self, options: &ConnectOptions) -> Result<Connection<TcpStream>, ClientError> {
        let stream = TcpStream::connect(self.tcp.unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Connection::connect(stream, options)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Stops the server. True if it closed its database without errors.
    pub fn stop(mut self) -> bool {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client that sees packets only.
pub struct Raw {
    stream: UnixStream,
    reader: PacketReader,
}

impl Raw {
    pub fn of(connection: Client) -> Raw {
        Raw { stream: connection.into_stream(), reader: PacketReader::new(1 << 20) }
    }

    pub fn send(&mut self, payload: &[u8]) {
        let mut writer = PacketWriter::new();
        writer.packet(payload);
        self.stream.write_all(writer.bytes()).unwrap();
        self.reader.set_sequence(1);
    }

    /// The next packet; `None` once the server has closed the connection.
    pub fn packet(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.reader.next_packet() {
                Ok(Some(packet)) => return Some(self.reader.payload(&packet).to_vec()),
                Ok(None) => {}
                // The answer to the command that was sent next.
                Err(FrameError::OutOfOrder { got: 1, .. }) => {
                    self.reader.set_sequence(1);
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            match self.stream.read(self.reader.space()).unwrap() {
                0 => return None,
                count => self.reader.received(count),
            }
        }
    }

    /// Sends a command, and then COM_STATISTICS. Returns the packets that come before the line of figures,
    /// which are the answer to the command, and whether the connection is still open.
    pub fn answer(&mut self, payload: &[u8]) -> (Vec<Vec<u8>>, bool) {
        self.send(payload);
        let mut writer = PacketWriter::new();
        writer.packet(&[com::STATISTICS]);
        // A server that has closed the connection takes no more.
        let _ = self.stream.write_all(writer.bytes());
        let mut packets = Vec::new();
        loop {
            match self.packet() {
                None => return (packets, false),
                Some(packet) if packet.starts_with(b"Uptime: ") => return (packets, true),
                Some(packet) => packets.push(packet),
            }
        }
    }
}

/// Polls until the condition holds. Panics if that takes too long.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
