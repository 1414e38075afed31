//! Bytes as a client or a server might send them.

use wire::client::ResponseScanner;
use wire::handshake::{ChangeUser, Greeting, HandshakeResponse, attributes, parse_auth_switch};
use wire::response::{OkFields, PrepareOk, ServerError};
use wire::row::BinaryRowReader;
use wire::{ColumnDefinition, Command, PacketReader, params};

/// The first byte picks how many parameters and columns to expect and how the rest is cut into arrivals.
pub fn packets(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    payload(bytes, choice);
    let mut reader = PacketReader::new(1 << 14);
    for arrival in bytes.chunks(usize::from(choice).max(1)) {
        reader.feed(arrival);
        loop {
            match reader.next_packet() {
                Ok(Some(packet)) => payload(reader.payload(&packet), choice),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let mut reader = PacketReader::new(1 << 14);
    reader.feed(bytes);
    let mut scanner = ResponseScanner::new(choice & 1 == 0);
    let _ = scanner.advance(&mut reader);
}

fn payload(payload: &[u8], choice: u8) {
    let _ = Command::parse(payload);
    let _ = Greeting::parse(payload);
    if let Ok(response) = HandshakeResponse::parse(payload) {
        attributes(response.attributes).for_each(drop);
        // A packet that was decoded is encoded, and decoding that gives the same again.
        let mut again = Vec::new();
        response.write(&mut again);
        assert!(HandshakeResponse::parse(&again).is_ok(), "{response:?}");
    }
    let _ = ChangeUser::parse(payload);
    let _ = parse_auth_switch(payload);
    let _ = OkFields::parse(payload);
    let _ = OkFields::parse_eof(payload);
    let _ = PrepareOk::parse(payload);
    let _ = ServerError::parse(payload);
    let columns = usize::from(choice % 9);
    let mut types = Vec::new();
    let _ = params::read(payload, columns, &mut types, |_| None, drop);
    if let Ok(column) = ColumnDefinition::parse(payload) {
        let of = column.wire_type();
        if let Ok(mut row) = BinaryRowReader::new(payload, columns) {
            for _ in 0..columns {
                if row.value(of).is_err() {
                    break;
                }
            }
        }
    }
    if let Ok(mut row) = BinaryRowReader::new(payload, types.len()) {
        for &of in &types {
            if row.value(of).is_err() {
                break;
            }
        }
    }
}

#[cfg(test)]
pub fn seeds() -> Vec<Vec<u8>> {
    let query = |text: &str| [&[7, text.len() as u8 + 1, 0, 0, 0, 3][..], text.as_bytes()].concat();
    let mut seeds = vec![query("SELECT 1"), query("")];
    // COM_STMT_EXECUTE: statement 1, two parameters, an integer and a string.
    let execute = [0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0, 0xfd, 0, 5, 0, 0, 0, 3, b'a', b'b', b'c'];
    seeds.push([&[2, execute.len() as u8, 0, 0, 0][..], &execute].concat());
    // A binary null bitmap, the flag, types and values alone.
    seeds.push(
        [
            &[2, 0, 1, 12, 0, 11, 0][..],
            &[11, 0xe8, 7, 2, 29, 1, 2, 3, 0, 0, 0, 0],
            &[8, 1, 1, 0, 0, 0, 2, 3, 4],
        ]
        .concat(),
    );
    // A handshake response: capabilities, size, charset, filler, user, answer, database, plugin.
    let mut response = vec![0x8d, 0xa6, 0x0f, 0, 0, 0, 0, 1, 45];
    response.extend([0; 23]);
    response.extend(b"root\0\x14aaaaaaaaaaaaaaaaaaaadb\0mysql_native_password\0");
    response.extend(b"\x10\x04_pid\x0512345\x01a\x01b");
    seeds.push([&[0, response.len() as u8, 0, 0, 1][..], &response].concat());
    // The same from a client of MariaDB's, which keeps column definitions.
    response[0] &= !1;
    response[28] = 0x10;
    seeds.push([&[0, response.len() as u8, 0, 0, 1][..], &response].concat());
    // An OK packet, an error, an end of file, a column count.
    seeds.push(vec![1, 7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0]);
    seeds.push(b"\x01\x10\0\0\x01\xff\x7a\x04#42S02no table".to_vec());
    seeds.push(vec![1, 1, 0, 0, 1, 1, 5, 0, 0, 2, 0xfe, 0, 0, 2, 0]);
    seeds
}
