//! The compressed protocol.

use crate::support::{Live, wait_until};
use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use wire::client::{ConnectOptions, Connection};
use wire::compression::{Deflater, Inflater, Method};
use wire::constants::capability;

/// A client's side. It compresses from the moment on when it is told to, behind the login.
struct Compressing {
    stream: UnixStream,
    is_on: Cell<bool>,
    inflater: RefCell<Inflater>,
    deflater: Deflater,
    /// Of the next frame. It begins anew with each command, which is what is written behind something read.
    sequence: u8,
    /// Received, before it was decompressed.
    received: u64,
}

impl Read for Compressing {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if !self.is_on.get() {
            return self.stream.read(space);
        }
        let inflater = self.inflater.get_mut();
        while !inflater.has_plain() {
            let count = self.stream.read(inflater.space())?;
            if count == 0 {
                return Ok(0);
            }
            self.received += count as u64;
            inflater.received(count).unwrap();
            self.sequence = 0;
        }
        Ok(inflater.read(space))
    }
}

impl Write for Compressing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.is_on.get() {
            true => self.stream.write_all(self.deflater.frames(bytes, &mut self.sequence))?,
            false => self.stream.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The flags by which a client asks for compression, and what it then gets.
const METHODS: [(u64, Method, [&str; 2]); 3] = [
    (capability::COMPRESS, Method::Zlib, ["zlib", "6"]),
    (capability::ZSTD_COMPRESSION, Method::Zstd { level: 3 }, ["zstd", "3"]),
    (capability::COMPRESS | capability::ZSTD_COMPRESSION, Method::Zlib, ["zlib", "6"]),
];

fn connect(live: &Live, flags: u64, method: Method) -> Connection<Compressing> {
    let mut options = ConnectOptions::default();
    options.capabilities |= flags;
    let stream = Compressing {
        stream: live.raw(),
        is_on: Cell::new(false),
        inflater: RefCell::new(Inflater::new(method)),
        deflater: Deflater::new(method),
        sequence: 0,
        received: 0,
    };
    let client = Connection::connect(stream, &options).unwrap();
    client.stream().is_on.set(true);
    client
}

#[test]
fn statements_and_rows_of_all_sizes_go_both_ways() {
    let live = Live::start(&["--max_allowed_packet=64M"]);
    for (flags, method, told) in METHODS {
        go_both_ways(connect(&live, flags, method), told);
    }
}

fn go_both_ways(mut client: Connection<Compressing>, [algorithm, level]: [&str; 2]) {
    let status = client.query("SHOW STATUS LIKE 'Compression%'").unwrap().to_text();
    let expected =
        [["Compression", "ON"], ["Compression_algorithm", algorithm], ["Compression_level", level]];
    assert_eq!(status, expected);
    for length in [0, 1, 48, 49, 50, 51, 16_384, 1 << 20, (1 << 24) - 1, 40 << 20] {
        let text: String = ('a'..='z').cycle().take(length).collect();
        let before = client.stream().received;
        let rows = client.query(&format!("SELECT '{text}'")).unwrap().to_text();
        assert!(rows[0][0] == text, "{length} bytes");
        assert!(length < 10_000 || client.stream().received - before < length as u64 / 10);
    }
    let prepared = client.prepare("SELECT REPEAT(?, 100000)").unwrap();
    for _ in 0..100 {
        let rows = client.execute(prepared.id, &[wire::WireValue::Text(b"xy")]).unwrap().to_text();
        assert!(rows[0][0].len() == 200_000);
    }
    assert_eq!(client.query_all(b"SELECT 1").unwrap().len(), 1);
}

#[test]
fn a_client_that_asks_for_no_compression_gets_none() {
    let live = Live::start(&[]);
    let rows = live.connect().query("SHOW STATUS LIKE 'Compression%'").unwrap().to_text();
    assert_eq!(rows, [["Compression", "OFF"], ["Compression_algorithm", ""], ["Compression_level", "0"]]);
}

#[test]
fn the_server_offers_what_it_is_allowed_to() {
    let live = Live::start(&["--protocol-compression-algorithms=zstd"]);
    let offered = |live: &Live| {
        let options = ConnectOptions { capabilities: u64::MAX, ..ConnectOptions::default() };
        match Connection::connect(live.raw(), &options) {
            Ok(client) => client.greeting().capabilities,
            Err(error) => panic!("{error}"),
        }
    };
    // A client that speaks plainly is told.
    let refused = Connection::connect(live.raw(), &ConnectOptions::default()).unwrap_err();
    assert_eq!(refused.code(), Some(3922), "{refused}");
    let (flags, method, _) = METHODS[1];
    let mut client = connect(&live, flags, method);
    assert_eq!(client.greeting().capabilities & capability::COMPRESS, 0);
    client.query("SET GLOBAL protocol_compression_algorithms = 'uncompressed'").unwrap();
    let both = capability::COMPRESS | capability::ZSTD_COMPRESSION;
    assert_eq!(offered(&live) & both, 0);
    let names = client.query("SET GLOBAL protocol_compression_algorithms = 'lz4'").unwrap_err();
    assert_eq!(names.code(), Some(1231), "{names}");
}

#[test]
fn what_is_no_frame_ends_the_connection_and_nothing_else() {
    let live = Live::start(&[]);
    for hostile in [
        &[5, 0, 0, 0, 100, 0, 0, 1, 2, 3, 4, 5][..],
        &[0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff],
        &[0, 0, 0, 0, 0xff, 0xff, 0xff],
        &[0xff; 100],
    ] {
        let (flags, method, _) = METHODS[hostile.len() % 2];
        let client = connect(&live, flags, method);
        let mut stream = client.into_stream().stream;
        stream.write_all(hostile).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    let mut observer = live.connect();
    wait_until("their leave", || observer.query("SHOW PROCESSLIST").unwrap().rows.len() == 1);
}
