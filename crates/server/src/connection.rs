//! One connection: its thread, from the greeting to the end.

mod attributes;
mod authenticate;
mod bulk;
mod cells;
mod changes;
mod client_file;
mod columns;
mod commands;
mod compressions;
mod proxied;
mod settings;
mod sink;
mod slow;
mod statements;
mod ways;

use crate::accounts::Place;
use crate::registry::Entry;
use crate::shared::Shared;
use base::phases::{self, Phase};
use base::sync::Arc;
use changes::Changes;
use sql::host::ConnectionCount;
use sql::{ErrorKind, Session, SqlError};
use statements::Statements;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use wire::auth::Scramble;
use wire::compression::Method;
use wire::frame::Packet;
use wire::{FrameError, PacketReader, PacketWriter, response};

/// While a connection idles, a receive buffer is shrunk to this many bytes.
const IDLE_BUFFER_BYTES_MAX: usize = 64 << 10;
/// An answer's buffer that has grown beyond this is freed after the command.
const KEPT_BUFFER_BYTES_MAX: usize = 1 << 20;
/// How long a connection must idle before its buffer is shrunk.
const IDLE_BEFORE_SHRINKING: Duration = Duration::from_secs(1);
/// The longest wait for a client that is apart from receiving, while phases are measured.
const WAITED_APART: Duration = Duration::from_secs(1);
/// The largest packet that a client may send before it has authenticated, in bytes: 64 KiB of attributes, and
/// the rest.
const HANDSHAKE_BYTES_MAX: usize = 68 << 10;

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum End {
    /// COM_QUIT, or the client closed between two commands.
    Quit,
    /// The client went away in the middle of something, or the socket failed.
    Gone(io::Error),
    /// The server ends it because of what the client sent. An error goes to the client first.
    Refused(SqlError),
    /// The server ends it although the client did nothing wrong. An error goes to the client first.
    Closed(SqlError),
    /// KILL. A statement that ran has been answered with 1927; a client that is idle is told nothing, as in
    /// MariaDB: some libraries connect again if the connection is gone, and not if they find an error.
    Killed,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Gone(error)
    }
}

/// The end after a malformed packet. The bytes after it cannot be trusted.
fn malformed(error: wire::Malformed) -> End {
    End::Refused(SqlError::new(
        ErrorKind::MalformedPacket,
        format!("Malformed communication packet: {}", error.what),
    ))
}

fn read_timeout() -> SqlError {
    SqlError::new(ErrorKind::NetworkReadTimeout, "Got timeout reading communication packets")
}

/// Both directions of a connection.
pub(crate) struct Channel {
    reader: PacketReader,
    output: Output,
    /// How long to wait for the next command, and for the rest of one.
    idle_timeout: Duration,
    read_timeout: Duration,
    /// When the handshake must be over. `None` after it.
    deadline: Option<Instant>,
    /// What the client mixes into its password, as the greeting told.
    scramble: Scramble,
    /// How both sides compress once the client is in.
    compression: Option<Method>,
    /// A person types at the other end: `interactive_timeout` holds.
    interactive: bool,
    /// Among the connections of its account, once it has one.
    place: Option<Place>,
}

/// The direction to the client. It is apart from the reader, so that a command can be answered while its
/// bytes are still borrowed from there.
pub(crate) struct Output {
    entry: Arc<Entry>,
    writer: PacketWriter,
    /// The capabilities that both sides have.
    capabilities: u64,
    /// What the client is still to be told of.
    changes: Changes,
}

/// A connection past its handshake.
struct Connection<'s> {
    shared: &'s Shared,
    channel: Channel,
    /// What the process list was told last.
    database: Option<Arc<str>>,
    runner: Runner,
}

/// What runs the commands of a connection.
struct Runner {
    session: Session,
    /// The session's.
    interrupt: Arc<sql::host::Interrupt>,
    statements: Statements,
    scratch: sink::Scratch,
    settings: settings::Settings,
}

/// Runs a connection to its end, on the calling thread. A panic ends this connection only.
pub(crate) fn run(shared: &Arc<Shared>, entry: Arc<Entry>) {
    struct Leave<'a>(&'a Shared, Arc<Entry>);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            let (received, sent) = self.1.bytes();
            self.0.counters.add(ConnectionCount::BytesReceived, received);
            self.0.counters.add(ConnectionCount::BytesSent, sent);
            self.0.counters.times.add_all(self.1.times());
            self.1.note_leave(self.0.instance.audit());
            self.1.stream.close();
            self.0.registry.remove(self.1.id);
        }
    }
    let leave = Leave(shared, entry.clone());
    let id = entry.id;
    let result = catch_unwind(AssertUnwindSafe(|| serve(shared, entry)));
    if let Err(panic) = result {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| text.to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_string());
        shared.log.error(&format!("connection {id} panicked and was closed: {text}"));
        shared.counters.add(ConnectionCount::AbortedClients, 1);
    }
    drop(leave);
}

fn serve(shared: &Shared, entry: Arc<Entry>) {
    let mut channel = Channel {
        reader: PacketReader::new(HANDSHAKE_BYTES_MAX),
        output: Output { entry, writer: PacketWriter::new(), capabilities: 0, changes: Changes::default() },
        idle_timeout: Duration::from_secs(10),
        read_timeout: Duration::from_secs(30),
        deadline: None,
        scramble: Scramble::default(),
        compression: None,
        interactive: false,
        place: None,
    };
    let id = channel.output.entry.id;
    let session = match authenticate::handshake(shared, &mut channel) {
        Ok(session) => session,
        Err(end) => {
            shared.counters.add(ConnectionCount::AbortedConnects, 1);
            match &end {
                End::Refused(error) | End::Closed(error) => {
                    let from = &channel.output.entry.host();
                    shared.log.refusal(&format!("connection {id} from {from} was refused: {error}"));
                }
                // Programs that check whether a server is there connect and close.
                End::Quit | End::Gone(_) | End::Killed => {}
            }
            channel.take_leave(&end);
            return;
        }
    };
    let mut connection = Connection::new(shared, channel, session);
    let end = match connection.init_connect().and_then(|()| connection.serve_commands()) {
        Ok(never) => match never {},
        Err(end) => end,
    };
    match &end {
        End::Quit => {}
        End::Gone(error) => {
            shared.counters.add(ConnectionCount::AbortedClients, 1);
            shared.log.note(&format!("connection {id} ended: {error}"));
        }
        End::Refused(error) => {
            shared.counters.add(ConnectionCount::AbortedClients, 1);
            shared.log.warning(&format!("connection {id} was closed: {error}"));
        }
        // As in MariaDB, clients that were killed or were silent for too long count as aborted.
        End::Closed(_) | End::Killed => shared.counters.add(ConnectionCount::AbortedClients, 1),
    }
    connection.channel.take_leave(&end);
}

impl Channel {
    /// Waits for the next packet.
    fn packet(&mut self) -> Result<Packet, End> {
        // The idle timeout holds between packets. Once a packet has begun, the shorter read timeout holds.
        let mut hurried = false;
        let result = loop {
            match self.whole_packet() {
                Ok(Some(packet)) => break Ok(packet),
                Ok(None) => {}
                Err(end) => break Err(end),
            }
            if self.deadline.is_some() {
                self.hurry()?;
            } else if !hurried && self.reader.has_partial() {
                hurried = true;
                self.output.entry.stream.set_read_timeout(self.read_timeout)?;
            }
            if let Err(end) = self.receive() {
                break Err(end);
            }
        };
        if hurried {
            self.output.entry.stream.set_read_timeout(self.idle_timeout)?;
        }
        result
    }

    /// Lets the next reading wait until the handshake's deadline, if there is one. There is one time for all
    /// of the handshake: a byte now and then does not prolong it.
    fn hurry(&mut self) -> Result<(), End> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(End::Closed(read_timeout()));
        }
        Ok(self.output.entry.stream.set_read_timeout(left)?)
    }

    fn whole_packet(&mut self) -> Result<Option<Packet>, End> {
        self.reader.next_packet().map_err(|error| {
            End::Refused(match error {
                FrameError::OutOfOrder { .. } => {
                    SqlError::new(ErrorKind::PacketsOutOfOrder, "Got packets out of order")
                }
                FrameError::TooLarge => SqlError::new(
                    ErrorKind::PacketTooLarge,
                    "Got a packet bigger than 'max_allowed_packet' bytes",
                ),
            })
        })
    }

    /// Waits for bytes.
    fn receive(&mut self) -> Result<(), End> {
        if self.reader.capacity() > IDLE_BUFFER_BYTES_MAX
            && !self.reader.has_partial()
            && !self.output.entry.stream.wait_readable(IDLE_BEFORE_SHRINKING)?
        {
            self.reader.shrink(IDLE_BUFFER_BYTES_MAX);
        }
        let _receiving = phases::enter(self.wait_apart()?);
        loop {
            match self.output.entry.stream.read(self.reader.space()) {
                Ok(0) if self.reader.has_partial() => {
                    let error = io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the client vanished in the middle of a packet",
                    );
                    return Err(End::Gone(error));
                }
                Ok(0) => return Err(End::Quit),
                Ok(received) => {
                    self.reader.received(received);
                    self.output.entry.count_received(received);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(End::Closed(read_timeout()));
                }
                // A client that closes with unread answers causes a reset. That is no error.
                Err(error)
                    if error.kind() == io::ErrorKind::ConnectionReset && !self.reader.has_partial() =>
                {
                    return Err(End::Quit);
                }
                Err(error) => return Err(End::Gone(error)),
            }
        }
    }

    /// While phases are measured, this waits for the client first, so that receiving is the system call
    /// alone. Returns the phase that receiving counts as: idle, if the client takes long.
    fn wait_apart(&self) -> io::Result<Phase> {
        if !phases::is_on() {
            return Ok(Phase::Idle);
        }
        let _waiting = phases::enter(Phase::Idle);
        let has_come = self.output.entry.stream.wait_readable(WAITED_APART)?;
        Ok(if has_come { Phase::Network } else { Phase::Idle })
    }

    /// Sends what the writer holds.
    fn flush(&mut self) -> io::Result<()> {
        self.output.send()
    }

    /// Sets the sequence number for the answer to the packet that was read last.
    fn answer(&mut self) {
        self.output.writer.set_sequence(self.reader.sequence());
    }

    /// Sends the client the reason of the end, if there is one.
    fn take_leave(&mut self, end: &End) {
        if let End::Refused(error) | End::Closed(error) = end {
            if self.output.writer.is_empty() {
                self.answer();
            }
            response::error(&mut self.output.writer, error.code(), Some(error.sqlstate()), &error.message);
            if self.flush().is_ok() {
                // Closing with unread bytes would reset the connection, and the client would lose the error.
                // So what it still sends is read first, for a while.
                self.output.entry.stream.drain();
            }
        }
    }
}

impl Output {
    /// Sends what the writer holds.
    fn send(&mut self) -> io::Result<()> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let sent = self.entry.stream.write_all(self.writer.bytes());
        self.entry.count_sent(self.writer.len());
        self.writer.clear();
        sent
    }
}

impl Connection<'_> {
    /// Runs `init_connect`. If that fails, the client is told by the answer to its first command: it has been
    /// let in already.
    fn init_connect(&mut self) -> Result<(), End> {
        let Err(error) = self.runner.session.run_init_connect() else { return Ok(()) };
        let entry = self.channel.output.entry.clone();
        self.shared.log.warning(&format!("init_connect failed for connection {}: {error}", entry.id));
        self.channel.reader.set_sequence(0);
        self.channel.packet()?;
        self.channel.answer();
        let text = format!(
            "Aborted connection {} to db: '{}' user: '{}' host: '{}' (init_connect command failed)",
            entry.id,
            self.runner.session.database().map_or("unconnected", |name| name),
            entry.user(),
            entry.host()
        );
        Err(End::Closed(SqlError::new(ErrorKind::NewAbortingConnection, text)))
    }

    fn serve_commands(&mut self) -> Result<std::convert::Infallible, End> {
        self.channel.output.entry.sleep();
        loop {
            self.runner.session.settle_phases();
            self.channel.reader.set_sequence(0);
            let packet = match self.channel.packet() {
                Ok(packet) => packet,
                // The reader has skipped the packet, so the connection can go on.
                Err(End::Refused(error)) if error.kind == ErrorKind::PacketTooLarge => {
                    self.channel.answer();
                    response::error(
                        &mut self.channel.output.writer,
                        error.code(),
                        Some(error.sqlstate()),
                        &error.message,
                    );
                    self.channel.flush()?;
                    continue;
                }
                Err(end) => return Err(self.end_of_waiting(end)),
            };
            // The command may have been here before the KILL closed the socket: a client that has killed a
            // connection finds it dead.
            if self.runner.session.interrupt().connection_is_killed() {
                return Err(self.end_of_waiting(End::Quit));
            }
            self.channel.output.writer.use_memory(self.shared.buffers.take().unwrap_or_default());
            self.channel.answer();
            self.command(&packet)?;
            self.channel.flush()?;
            if let Some(micros) = self.channel.output.entry.sleep() {
                let is_slow = self.runner.settings.is_slow(micros);
                if is_slow || self.runner.settings.logs_scans() {
                    self.note_slow(&packet, micros, is_slow);
                }
            }
            let memory = self.channel.output.writer.take_memory();
            if memory.capacity() <= KEPT_BUFFER_BYTES_MAX {
                self.shared.buffers.put(memory);
            }
            if self.runner.session.interrupt().connection_is_killed() {
                return Err(self.end_of_waiting(End::Quit));
            }
            if self.runner.session.is_released() {
                return Err(End::Quit);
            }
        }
    }

    /// The reason of an end that came while the thread waited for the client.
    fn end_of_waiting(&self, end: End) -> End {
        if self.shared.is_stopping() {
            End::Closed(SqlError::new(ErrorKind::ServerShutdown, "Server shutdown in progress"))
        } else if self.runner.session.interrupt().connection_is_killed() {
            End::Killed
        } else {
            end
        }
    }
}
