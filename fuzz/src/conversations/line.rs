//! A stream to the server that changes what is sent.

use super::Place;
use base::random::Random;
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;
use wire::client::{Encrypted, Encryption};
use wire::compression::{Deflater, Inflater, Method};

/// Changes one write in so many.
const CHANGED_ONE_IN: u32 = 6;

/// What is below a [`Line`].
trait Socket: Read + Write {
    fn shut(&self, how: Shutdown);
}

impl Socket for UnixStream {
    fn shut(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

impl Socket for TcpStream {
    fn shut(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

impl Socket for Encrypted<Line> {
    fn shut(&self, how: Shutdown) {
        self.sock.below.shut(how);
    }
}

/// Changes bytes on their way.
pub struct Mutator {
    random: Random,
    /// A write that goes out behind the next one.
    held: Option<Vec<u8>>,
}

impl Mutator {
    pub fn new(random: Random) -> Mutator {
        Mutator { random, held: None }
    }

    /// The pieces to send in place of `bytes`, and what to shut behind them.
    fn change(&mut self, bytes: &[u8]) -> (Vec<Vec<u8>>, Option<Shutdown>) {
        let mut bytes = bytes.to_vec();
        let held = self.held.take();
        let mut shut = None;
        let mut pieces = Vec::new();
        if self.random.below(CHANGED_ONE_IN) == 0 {
            let random = &mut self.random;
            let at = random.index(bytes.len().max(1));
            match random.below(14) {
                0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
                2 if !bytes.is_empty() => {
                    bytes[at] = [0, 1, 0x7f, 0x80, 0xfb, 0xfc, 0xfe, 0xff][random.index(8)]
                }
                // The length of the packet, its number, and the command or the first field.
                3 if bytes.len() > 4 => bytes[random.index(3)] = random.next_u64() as u8,
                4 if bytes.len() > 4 => bytes[3] = random.next_u64() as u8,
                5 if bytes.len() > 5 => bytes[4 + random.index(2)] = random.next_u64() as u8,
                6 => bytes.truncate(at),
                7 => bytes.extend_from_within(at..),
                8 => {
                    let junk: Vec<u8> = (0..random.below(40)).map(|_| random.next_u64() as u8).collect();
                    bytes.splice(at..at, junk);
                }
                9 => {
                    self.held = Some(std::mem::take(&mut bytes));
                }
                10 => {
                    pieces.push(bytes[..at].to_vec());
                    bytes.drain(..at);
                }
                11 => bytes.clear(),
                12 => {
                    bytes.truncate(at);
                    shut = Some(Shutdown::Write);
                }
                _ => {
                    bytes.truncate(at);
                    shut = Some(Shutdown::Both);
                }
            }
        }
        pieces.push(bytes);
        pieces.extend(held);
        (pieces, shut)
    }
}

/// A stream, perhaps encrypted, perhaps compressed, whose bytes may be changed.
pub struct Line {
    below: Box<dyn Socket>,
    mutator: Option<Mutator>,
    /// True if bytes are changed here or below.
    is_changed: bool,
    compression: Option<Compression>,
}

/// Of both directions, from when it is switched on.
struct Compression {
    is_on: Rc<Cell<bool>>,
    inflater: Inflater,
    deflater: Deflater,
    /// Of the next frame. It begins anew with each command, which is what is written behind something read.
    sequence: u8,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line(..)")
    }
}

impl Line {
    fn over(below: Box<dyn Socket>) -> Line {
        Line { below, mutator: None, is_changed: false, compression: None }
    }

    /// # Errors
    /// If nobody listens.
    pub fn unix(place: &Place, patience: Duration) -> io::Result<Line> {
        let stream = UnixStream::connect(&place.socket)?;
        stream.set_read_timeout(Some(patience))?;
        Ok(Line::over(Box::new(stream)))
    }

    /// # Errors
    /// If nobody listens.
    pub fn tcp(place: &Place, patience: Duration) -> io::Result<Line> {
        let stream = TcpStream::connect(place.tcp)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Line::over(Box::new(stream)))
    }

    pub fn changed_by(self, mutator: Option<Mutator>) -> Line {
        let is_changed = self.is_changed || mutator.is_some();
        Line { mutator, is_changed, ..self }
    }

    /// Compresses from when the flag is set.
    pub fn compressed_by(self, method: Method, is_on: Rc<Cell<bool>>) -> Line {
        let (inflater, deflater) = (Inflater::new(method), Deflater::new(method));
        Line { compression: Some(Compression { is_on, inflater, deflater, sequence: 0 }), ..self }
    }

    /// True if bytes are changed on their way.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The numbers of compressed frames begin anew.
    pub fn begin_command(&mut self) {
        if let Some(compression) = &mut self.compression {
            compression.sequence = 0;
        }
    }

    /// # Errors
    /// If the handshake fails.
    pub fn encrypted(self, mutator: Option<Mutator>) -> io::Result<Line> {
        let is_changed = self.is_changed;
        let encrypted = Encryption::Required.encrypt(self, "localhost")?;
        let line = Line { is_changed, ..Line::over(Box::new(encrypted)) };
        Ok(line.changed_by(mutator))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mutator) = &mut self.mutator else { return self.below.write_all(bytes) };
        let (pieces, shut) = mutator.change(bytes);
        for piece in pieces {
            self.below.write_all(&piece)?;
            self.below.flush()?;
        }
        if let Some(how) = shut {
            self.below.shut(how);
        }
        Ok(())
    }
}

impl Read for Line {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let Some(compression) = self.compression.as_mut().filter(|compression| compression.is_on.get())
        else {
            return self.below.read(space);
        };
        while !compression.inflater.has_plain() {
            let count = self.below.read(compression.inflater.space())?;
            if count == 0 {
                return Ok(0);
            }
            compression.inflater.received(count).map_err(io::Error::other)?;
            compression.sequence = 0;
        }
        Ok(compression.inflater.read(space))
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.compression.as_mut().filter(|compression| compression.is_on.get()) {
            Some(compression) => {
                let frames = compression.deflater.frames(bytes, &mut compression.sequence).to_vec();
                self.send(&frames)?;
            }
            None => self.send(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.below.flush()
    }
}
