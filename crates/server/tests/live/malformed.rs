//! Malformed bytes, and clients that go away. They end only their own connection.

use crate::support::{Live, wait_until};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use wire::client::ClientError;
use wire::command::com;
use wire::constants::{auth_plugin, capability};
use wire::handshake::HandshakeResponse;
use wire::{PacketReader, PacketWriter};

/// Sends bytes after the handshake, without a check of their meaning.
fn send_raw(live: &Live, bytes: &[u8]) -> Vec<u8> {
    let mut stream = live.connect().into_stream();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn error_code(answer: &[u8]) -> Option<u16> {
    (answer.get(4) == Some(&0xff)).then(|| u16::from_le_bytes([answer[5], answer[6]]))
}

#[test]
fn packets_out_of_order_end_with_1156_malformed_ones_with_1835_and_unknown_ones_with_1047() {
    let live = Live::start(&[]);
    assert_eq!(error_code(&send_raw(&live, &[1, 0, 0, 7, com::PING])), Some(1156));
    assert_eq!(error_code(&send_raw(&live, &[0, 0, 0, 0])), Some(1835));
    assert_eq!(error_code(&send_raw(&live, &[3, 0, 0, 0, com::STMT_EXECUTE, 1, 2])), Some(1835));
    assert_eq!(error_code(&send_raw(&live, &[3, 0, 0, 0, com::SET_OPTION, 9, 9])), Some(1047));
    live.connect().ping().unwrap();
    assert!(!live.log().contains("panicked"), "{}", live.log());
}

#[test]
fn an_unknown_command_is_1047_and_the_connection_goes_on() {
    let live = Live::start(&[]);
    let mut connection = live.connect();
    for command in [0x20, 0x77, 0xff, com::STMT_FETCH + 2] {
        assert_eq!(connection.command(command, b"").unwrap_err().code(), Some(1047), "{command:#x}");
    }
    connection.ping().unwrap();
}

#[test]
fn a_client_that_vanishes_in_the_middle_of_a_packet_is_forgotten() {
    let live = Live::start(&["--max_connections=10"]);
    for length in 0..40 {
        let mut stream = live.connect().into_stream();
        let mut packet = vec![60, 0, 0, 0, com::QUERY];
        packet.resize(64, b' ');
        let _ = stream.write_all(&packet[..length]);
        drop(stream);
        // Its place is free again before the next one comes, or soon after.
        wait_until("a free place", || live.connect_with(&Default::default()).is_ok());
    }
    wait_until("the note in the log", || live.log().contains("vanished in the middle of a packet"));
}

#[test]
fn random_bytes_end_one_connection_only() {
    let live = Live::start(&[]);
    let mut witness = live.connect();
    let mut runner =
        TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) });
    let strategy = (prop::collection::vec(any::<u8>(), 0..200), any::<bool>(), 0u8..0x20);
    runner
        .run(&strategy, |(bytes, framed, command)| {
            if framed {
                // A command with random contents.
                let mut packet = vec![(bytes.len() + 1) as u8, 0, 0, 0, command];
                packet.extend_from_slice(&bytes);
                send_raw(&live, &packet);
            } else {
                send_raw(&live, &bytes);
            }
            Ok(())
        })
        .unwrap();
    // And before the handshake.
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 100], &[4, 0, 0, 1, 0, 2, 0, 0]] {
        let mut stream = live.raw();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    witness.ping().unwrap();
    assert!(!live.log().contains("panicked"), "{}", live.log());
}

#[test]
fn a_packet_over_max_allowed_packet_is_1153_and_the_next_statement_runs() {
    let live = Live::start(&["--max_allowed_packet=1M"]);
    let mut connection = live.connect();
    for bytes in [(1 << 20) + 1, 17 << 20] {
        let error = connection.query(&" ".repeat(bytes)).unwrap_err();
        assert!(matches!(error, ClientError::Server(_)), "{error}");
        assert_eq!(error.code(), Some(1153), "{error}");
        connection.ping().unwrap();
    }
}

/// Logs in as root, with these bytes as connection attributes. Returns the answer's payload.
fn login_with_attributes(live: &Live, attributes: &[u8]) -> Vec<u8> {
    let mut stream = live.raw();
    let mut reader = PacketReader::new(1 << 20);
    let mut next = |stream: &mut UnixStream, sequence: u8| loop {
        reader.set_sequence(sequence);
        if let Some(packet) = reader.next_packet().unwrap() {
            return reader.payload(&packet).to_vec();
        }
        let count = stream.read(reader.space()).unwrap();
        reader.received(count);
        assert!(count > 0, "no answer");
    };
    next(&mut stream, 0);
    let response = HandshakeResponse {
        capabilities: capability::CLIENT,
        packet_bytes_max: 1 << 24,
        charset: 45,
        user: b"root",
        auth_answer: b"",
        database: None,
        auth_plugin: auth_plugin::NATIVE_PASSWORD.as_bytes(),
        attributes: b"",
        zstd_level: 0,
    };
    let mut payload = Vec::new();
    response.write(&mut payload);
    let flags = (capability::CLIENT | capability::CONNECT_ATTRS) as u32;
    payload[..4].copy_from_slice(&flags.to_le_bytes());
    payload.extend_from_slice(attributes);
    let mut writer = PacketWriter::new();
    writer.set_sequence(1);
    writer.packet(&payload);
    stream.write_all(writer.bytes()).unwrap();
    next(&mut stream, 2)
}

/// What is accepted and refused here is what MariaDB 10.11 accepts and refuses.
#[test]
fn connection_attributes_are_bounded_and_whole() {
    let live = Live::start(&[]);
    let long = |bytes: u32| [&[0xfd][..], &bytes.to_le_bytes()[..3], &vec![b'a'; bytes as usize]].concat();
    for good in [&b"\0"[..], b"\x04\x01a\x01b", b"\x04\x01a\x05b", b"\x02\x01a", b"\x04\x01a\x01bmore"] {
        assert_eq!(login_with_attributes(&live, good)[0], 0, "{good:x?}");
    }
    assert_eq!(login_with_attributes(&live, &long(65_535))[0], 0);
    for bad in [b"".to_vec(), b"\x05\x01a\x01b".to_vec(), vec![0xff], vec![0xfb], long(65_536)] {
        let answer = login_with_attributes(&live, &bad);
        assert_eq!(answer[..3], [0xff, 0x13, 0x04], "error 1043: {:x?}", &bad[..bad.len().min(9)]);
    }
}
