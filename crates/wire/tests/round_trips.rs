//! Each side can read the packets that the other side writes. No bytes make a reader panic.

use latchwork_wire as wire;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::client::{ResponseKind, ResponseScanner};
use wire::command::com;
use wire::constants::{auth_plugin, capability, kind, status};
use wire::cursor::Cursor;
use wire::handshake::{self, ChangeUser, Greeting, HandshakeResponse};
use wire::response::{
    self, Definitions, OkFields, OkHeader, PrepareOk, ProgressReport, ServerError, StateChange,
};
use wire::row::{BinaryRow, BinaryRowReader};
use wire::value::WireType;
use wire::{
    ColumnDefinition, Command, CommandKind, DateTime, PacketReader, PacketWriter, Time, WireValue, params,
    put,
};

fn one_payload(writer: &PacketWriter) -> Vec<u8> {
    payloads(writer).swap_remove(0)
}

fn payloads(writer: &PacketWriter) -> Vec<Vec<u8>> {
    let mut reader = PacketReader::new(usize::MAX);
    reader.feed(writer.bytes());
    let mut payloads = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        payloads.push(reader.payload(&packet).to_vec());
    }
    payloads
}

/// A value that owns its bytes, to be borrowed as a [`WireValue`].
#[derive(Clone, Debug)]
enum Owned {
    Plain(WireValue<'static>),
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Decimal(Vec<u8>),
}

impl Owned {
    fn borrow(&self) -> WireValue<'_> {
        match self {
            Owned::Plain(value) => *value,
            Owned::Text(bytes) => WireValue::Text(bytes),
            Owned::Binary(bytes) => WireValue::Binary(bytes),
            Owned::Decimal(bytes) => WireValue::Decimal(bytes),
        }
    }
}

fn date_time() -> impl Strategy<Value = DateTime> {
    let micros = prop_oneof![Just(0u32), 0u32..1_000_000];
    (0u16..10_000, 0u8..13, 0u8..32, 0u8..24, 0u8..60, 0u8..60, micros).prop_map(
        |(year, month, day, hour, minute, second, microsecond)| DateTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
            microsecond,
        },
    )
}

fn time() -> impl Strategy<Value = Time> {
    (any::<bool>(), 0u32..35, 0u8..24, 0u8..60, 0u8..60, prop_oneof![Just(0u32), 0u32..1_000_000]).prop_map(
        |(negative, days, hour, minute, second, microsecond)| {
            let zero = days == 0 && hour == 0 && minute == 0 && second == 0 && microsecond == 0;
            Time { negative: negative && !zero, days, hour, minute, second, microsecond }
        },
    )
}

fn value() -> impl Strategy<Value = Owned> {
    prop_oneof![
        Just(Owned::Plain(WireValue::Null)),
        any::<i64>().prop_map(|v| Owned::Plain(WireValue::Int(v))),
        any::<u64>().prop_map(|v| Owned::Plain(WireValue::UInt(v))),
        (-1.0e30f32..1.0e30).prop_map(|v| Owned::Plain(WireValue::Float(v))),
        (-1.0e300f64..1.0e300).prop_map(|v| Owned::Plain(WireValue::Double(v))),
        vec(any::<u8>(), 0..300).prop_map(Owned::Text),
        vec(any::<u8>(), 0..300).prop_map(Owned::Binary),
        vec(b'0'..=b'9', 1..60).prop_map(Owned::Decimal),
        date_time().prop_map(|v| Owned::Plain(WireValue::DateTime(v))),
        (date_time(), any::<i16>())
            .prop_map(|(v, minutes)| Owned::Plain(WireValue::ZonedDateTime(v, minutes))),
        date_time().prop_map(|v| {
            let date = DateTime { hour: 0, minute: 0, second: 0, microsecond: 0, ..v };
            Owned::Plain(WireValue::Date(date))
        }),
        time().prop_map(|v| Owned::Plain(WireValue::Time(v))),
    ]
}

/// The capabilities that arrive of these: the upper half holds only without LONG_PASSWORD.
fn without_lost_half(capabilities: u64) -> u64 {
    if capabilities & capability::LONG_PASSWORD == 0 { capabilities } else { capabilities & 0xffff_ffff }
}

proptest! {
    #[test]
    fn length_encoded_integers_survive(value: u64, shift in 0u32..64) {
        let value = value >> shift;
        let mut out = Vec::new();
        put::lenenc(&mut out, value);
        let mut cursor = Cursor::new(&out);
        prop_assert_eq!(cursor.lenenc("test").unwrap(), value);
        prop_assert!(cursor.is_empty());
    }

    #[test]
    fn a_text_row_survives(values in vec(prop::option::of(vec(any::<u8>(), 0..400)), 0..20), number: i64) {
        let mut out = Vec::new();
        for value in &values {
            match value {
                Some(bytes) if bytes.len() % 2 == 0 => put::lenenc_bytes(&mut out, bytes),
                Some(bytes) => put::text_with(&mut out, |out| out.extend_from_slice(bytes)),
                None => put::text_null(&mut out),
            }
        }
        put::text_int(&mut out, number);
        put::text_uint(&mut out, number as u64);
        let mut cursor = Cursor::new(&out);
        for value in &values {
            prop_assert_eq!(cursor.lenenc_bytes_or_null("test").unwrap(), value.as_deref());
        }
        for digits in [number.to_string(), (number as u64).to_string()] {
            prop_assert_eq!(cursor.lenenc_bytes("test").unwrap(), digits.as_bytes());
        }
        prop_assert!(cursor.is_empty());
    }

    #[test]
    fn a_binary_row_survives(values in vec(value(), 0..40)) {
        let mut out = Vec::new();
        let row = BinaryRow::begin(&mut out, values.len());
        for (column, value) in values.iter().enumerate() {
            match value.borrow() {
                WireValue::Null => row.null(&mut out, column),
                value => value.write(&mut out),
            }
        }
        let mut reader = BinaryRowReader::new(&out, values.len()).unwrap();
        for value in &values {
            prop_assert_eq!(reader.value(value.borrow().wire_type()).unwrap(), value.borrow());
        }
    }

    #[test]
    fn parameters_survive_with_and_without_their_types(values in vec(value(), 0..40)) {
        let values: Vec<WireValue> = values.iter().map(Owned::borrow).collect();
        let mut out = Vec::new();
        params::write(&mut out, &values);
        let mut types = Vec::new();
        let mut got = Vec::new();
        params::read(&out, values.len(), &mut types, |_| None, |value| got.push(value)).unwrap();
        prop_assert_eq!(&got, &values);
        if !values.is_empty() {
            // The second execution leaves the types out.
            let flag = values.len().div_ceil(8);
            let mut again = out[..flag].to_vec();
            again.push(0);
            again.extend_from_slice(&out[flag + 1 + 2 * values.len()..]);
            got = Vec::new();
            params::read(&again, values.len(), &mut types, |_| None, |value| got.push(value)).unwrap();
            prop_assert_eq!(&got, &values);
        }
    }

    #[test]
    fn a_parameter_sent_as_long_data_is_taken_from_there(values in vec(value(), 1..20), which in 0usize..20) {
        let which = which % values.len();
        let mut values: Vec<WireValue> = values.iter().map(Owned::borrow).collect();
        values[which] = WireValue::Binary(b"sent before");
        let mut out = Vec::new();
        params::write_except(&mut out, &values, |position| position == which);
        let mut got = Vec::new();
        let long_data = |position| (position == which).then_some(&b"sent before"[..]);
        params::read(&out, values.len(), &mut Vec::new(), long_data, |value| got.push(value)).unwrap();
        prop_assert_eq!(got, values);
    }

    #[test]
    fn a_greeting_survives(id: u32, capabilities: u64, scramble: [u8; 20], version in "[ -~]{0,60}") {
        let greeting = Greeting {
            server_version: version,
            connection_id: id,
            scramble,
            capabilities,
            charset: 45,
            status: status::AUTOCOMMIT,
            auth_plugin: auth_plugin::CACHING_SHA2.to_string(),
        };
        let mut out = Vec::new();
        greeting.write(&mut out);
        let capabilities = without_lost_half(capabilities);
        prop_assert_eq!(Greeting::parse(&out).unwrap(), Greeting { capabilities, ..greeting });
    }

    #[test]
    fn a_handshake_response_survives(
        bits: u64,
        user in vec(1u8..=255, 0..40),
        answer in vec(1u8..=255, 0..60),
        database in vec(1u8..=255, 1..40),
        attributes in vec(any::<u8>(), 0..400),
    ) {
        let capabilities = bits | capability::PROTOCOL_41;
        let with = |flag| capabilities & flag != 0;
        let response = HandshakeResponse {
            capabilities,
            packet_bytes_max: 1 << 24,
            charset: 45,
            user: &user,
            auth_answer: &answer,
            database: with(capability::CONNECT_WITH_DB).then_some(&database[..]),
            auth_plugin: if with(capability::PLUGIN_AUTH) { auth_plugin::NATIVE_PASSWORD.as_bytes() } else { b"" },
            attributes: if with(capability::CONNECT_ATTRS) { &attributes } else { b"" },
            zstd_level: if with(capability::ZSTD_COMPRESSION) { 22 } else { 0 },
        };
        let mut out = Vec::new();
        response.write(&mut out);
        let capabilities = without_lost_half(capabilities);
        prop_assert_eq!(HandshakeResponse::parse(&out).unwrap(), HandshakeResponse { capabilities, ..response });
    }

    #[test]
    fn a_report_of_progress_survives(stage: u8, stages: u8, done in 0u32..1 << 24, what in vec(any::<u8>(), 0..300)) {
        let mut writer = PacketWriter::new();
        let report = ProgressReport { stage, stages, done, what: &what };
        report.write(&mut writer);
        let payload = one_payload(&writer);
        prop_assert_eq!(ProgressReport::parse(&payload).unwrap(), Some(report));
        for cut in 3..payload.len() {
            prop_assert!(ProgressReport::parse(&payload[..cut]).is_err());
        }
    }

    #[test]
    fn the_number_of_columns_survives(columns in 1u16.., capabilities: u64) {
        for (definitions, capabilities) in [
            (Definitions::Implied, capabilities & !capability::CACHE_METADATA),
            (Definitions::Follow, capabilities | capability::CACHE_METADATA),
            (Definitions::Omitted, capabilities | capability::CACHE_METADATA),
        ] {
            let mut writer = PacketWriter::new();
            response::column_count(&mut writer, columns.into(), definitions);
            let got = response::parse_column_count(&one_payload(&writer), capabilities).unwrap();
            prop_assert_eq!(got, (u64::from(columns), definitions));
        }
    }

    #[test]
    fn a_column_definition_survives(
        names in vec(vec(any::<u8>(), 0..300), 5..6),
        charset: u16, length: u32, kind: u8, flags: u16, decimals: u8,
    ) {
        let column = ColumnDefinition {
            database: &names[0],
            table: &names[1],
            org_table: &names[2],
            name: &names[3],
            org_name: &names[4],
            charset, length, kind, flags, decimals,
        };
        let mut writer = PacketWriter::new();
        column.write(&mut writer);
        let payload = one_payload(&writer);
        prop_assert_eq!(ColumnDefinition::parse(&payload).unwrap(), column);
    }

    #[test]
    fn the_ends_of_responses_survive(
        affected_rows: u64, last_insert_id: u64, status: u16, warnings: u16, info in "[ -~]{0,90}",
        code: u16, message in "\\PC{0,120}", schema in "[a-z]{0,300}", name: Vec<u8>, value: Vec<u8>,
    ) {
        let mut changes = Vec::new();
        if status & status::SESSION_STATE_CHANGED != 0 {
            StateChange::Variable { name: &name, value: &value }.write(&mut changes);
            StateChange::Schema(schema.as_bytes()).write(&mut changes);
            StateChange::State.write(&mut changes);
        }
        let info = info.as_bytes();
        let fields = OkFields { affected_rows, last_insert_id, status, warnings, info, changes: &changes };
        for header in [OkHeader::Statement, OkHeader::EndOfRows] {
            let mut writer = PacketWriter::new();
            response::ok(&mut writer, header, &fields);
            let payload = one_payload(&writer);
            prop_assert_eq!(&OkFields::parse(&payload).unwrap(), &fields);
        }
        let mut writer = PacketWriter::new();
        response::eof(&mut writer, status, warnings);
        let payload = one_payload(&writer);
        prop_assert_eq!(
            OkFields::parse_eof(&payload).unwrap(),
            OkFields { status, warnings, ..OkFields::default() }
        );
        let mut writer = PacketWriter::new();
        response::error(&mut writer, code, Some(b"42000"), &message);
        let error = ServerError::parse(&one_payload(&writer)).unwrap();
        prop_assert_eq!(error.code, code);
        prop_assert!(message.starts_with(&error.message));
        prop_assert!(error.message.len() > 500 || error.message == message);
    }

    /// Every reader of the crate reads the same random bytes, and none panics.
    #[test]
    fn random_payloads_never_panic(bytes in vec(any::<u8>(), 0..300), count in 0usize..40, first: u8) {
        let _ = Greeting::parse(&bytes);
        let _ = HandshakeResponse::parse(&bytes);
        let mut capable = 0xffff_ffff_u32.to_le_bytes().to_vec();
        capable.extend_from_slice(&bytes);
        if let Ok(response) = HandshakeResponse::parse(&capable) {
            handshake::attributes(response.attributes).for_each(drop);
        }
        let _ = ChangeUser::parse(&bytes);
        let _ = handshake::parse_auth_switch(&bytes);
        let _ = ColumnDefinition::parse(&bytes);
        let _ = OkFields::parse(&bytes);
        let _ = OkFields::parse_eof(&bytes);
        let _ = ServerError::parse(&bytes);
        let _ = PrepareOk::parse(&bytes);
        let _ = response::parse_column_count(&bytes, capability::CACHE_METADATA);
        let _ = Command::parse(&bytes);
        for command in [first, com::STMT_EXECUTE, com::CHANGE_USER, com::SET_OPTION, com::STMT_SEND_LONG_DATA] {
            let mut payload = vec![command];
            payload.extend_from_slice(&bytes);
            if let Ok(parsed) = Command::parse(&payload) {
                assert_eq!(parsed.kind(), CommandKind::of(command), "{parsed:?}");
            }
        }
        let mut types = Vec::new();
        let _ = params::read(&bytes, count, &mut types, |_| None, drop);
        if let Ok(mut row) = BinaryRowReader::new(&bytes, count) {
            for column in 0..count + 20 {
                let of = WireType { kind: bytes.get(column).copied().unwrap_or(kind::TIME), unsigned: false };
                if row.value(of).is_err() {
                    break;
                }
            }
        }
        for kind in [ResponseKind::Results, ResponseKind::Prepare] {
            for deprecate_eof in [false, true] {
                let mut scanner = ResponseScanner::new(deprecate_eof);
                scanner.expect(kind);
                for chunk in bytes.chunks(usize::from(first) + 1) {
                    let _ = scanner.packet(chunk);
                }
            }
        }
    }
}

#[test]
fn every_first_byte_is_one_entry_of_the_table_or_unknown() {
    for code in 0..=u8::MAX {
        let mut payload = [0; 64];
        payload[0] = code;
        let parsed = Command::parse(&payload).unwrap();
        assert_eq!(parsed.kind(), CommandKind::of(code));
        assert_eq!(parsed.kind().map(|kind| kind as u8).unwrap_or(code), code);
        assert_eq!(parsed.kind().is_none(), parsed == Command::Unknown(code));
    }
    assert!(CommandKind::ALL.is_sorted_by_key(|kind| *kind as u8));
    let mut names: Vec<_> = CommandKind::ALL.iter().map(|kind| kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CommandKind::ALL.len());
    assert_eq!(CommandKind::Ping.name(), "COM_PING");
}

/// A response of two result sets and an OK, as the server writes it.
fn two_results(deprecate_eof: bool) -> PacketWriter {
    let mut writer = PacketWriter::new();
    writer.set_sequence(1);
    for rows in [3, 0] {
        response::column_count(&mut writer, 2, Definitions::Implied);
        for name in [&b"a"[..], b"b"] {
            ColumnDefinition { name, kind: kind::VAR_STRING, ..ColumnDefinition::default() }
                .write(&mut writer);
        }
        if !deprecate_eof {
            response::eof(&mut writer, 0, 0);
        }
        for _ in 0..rows {
            let out = writer.begin();
            // A value of 2^24 bytes begins with 0xfe, like the packet at the end of rows.
            put::lenenc_bytes(out, &vec![b'x'; if rows == 3 { 1 << 24 } else { 1 }]);
            put::text_null(out);
            writer.finish();
        }
        if deprecate_eof {
            let fields = OkFields { status: status::MORE_RESULTS, ..OkFields::default() };
            response::ok(&mut writer, OkHeader::EndOfRows, &fields);
        } else {
            response::eof(&mut writer, status::MORE_RESULTS, 0);
        }
    }
    response::ok(&mut writer, OkHeader::Statement, &OkFields { affected_rows: 7, ..OkFields::default() });
    writer
}

#[test]
fn a_scanner_counts_the_rows_of_all_results_and_finds_the_end() {
    for deprecate_eof in [false, true] {
        let response = two_results(deprecate_eof);
        let mut reader = PacketReader::new(usize::MAX);
        reader.set_sequence(1);
        let mut scanner = ResponseScanner::new(deprecate_eof);
        scanner.expect(ResponseKind::Results);
        let mut done = false;
        for chunk in response.bytes().chunks(4_000_000) {
            assert!(!done);
            reader.feed(chunk);
            done = scanner.advance(&mut reader).unwrap();
        }
        assert!(done);
        assert_eq!(scanner.summary().rows, 3);
        assert_eq!(scanner.summary().affected_rows, 7);
        assert_eq!(scanner.summary().error, None);
    }
}

#[test]
fn a_scanner_knows_the_length_of_an_answer_to_prepare() {
    for (params, columns, deprecate_eof) in
        [(0, 0, true), (3, 0, false), (0, 2, true), (3, 2, false), (3, 2, true)]
    {
        let mut writer = PacketWriter::new();
        writer.set_sequence(1);
        PrepareOk { statement: 9, columns, params, warnings: 0 }.write(&mut writer);
        for count in [params, columns] {
            for _ in 0..count {
                ColumnDefinition::default().write(&mut writer);
            }
            if count > 0 && !deprecate_eof {
                response::eof(&mut writer, 0, 0);
            }
        }
        let all = payloads_from(&writer, 1);
        let mut scanner = ResponseScanner::new(deprecate_eof);
        scanner.expect(ResponseKind::Prepare);
        let done: Vec<bool> = all.iter().map(|payload| scanner.packet(payload).unwrap()).collect();
        let (last, before) = done.split_last().unwrap();
        assert!(*last && before.iter().all(|done| !done), "{params} {columns} {deprecate_eof}: {done:?}");
        assert_eq!(scanner.summary().prepared.unwrap().statement, 9);
    }
}

fn payloads_from(writer: &PacketWriter, sequence: u8) -> Vec<Vec<u8>> {
    let mut reader = PacketReader::new(usize::MAX);
    reader.set_sequence(sequence);
    reader.feed(writer.bytes());
    let mut payloads = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        payloads.push(reader.payload(&packet).to_vec());
    }
    payloads
}

#[test]
fn an_error_ends_a_response_anywhere() {
    let mut writer = PacketWriter::new();
    response::error(&mut writer, 1317, Some(b"70100"), "Query execution was interrupted");
    let error = one_payload(&writer);
    let before = payloads_from(&two_results(true), 1);
    for cut in 0..5 {
        let mut scanner = ResponseScanner::new(true);
        scanner.expect(ResponseKind::Results);
        for payload in &before[..cut] {
            assert!(!scanner.packet(payload).unwrap());
        }
        assert!(scanner.packet(&error).unwrap());
        assert_eq!(scanner.summary().error.as_ref().unwrap().code, 1317);
    }
}

#[test]
fn extended_capabilities_stand_where_mariadb_has_them() {
    let mut greeting = Greeting {
        server_version: "v".to_string(),
        connection_id: 1,
        scramble: [b'x'; 20],
        capabilities: 0x1d_81ff_f7fe,
        charset: 45,
        status: status::AUTOCOMMIT,
        auth_plugin: auth_plugin::NATIVE_PASSWORD.to_string(),
    };
    let mut out = Vec::new();
    greeting.write(&mut out);
    assert_eq!(&out[..20], b"\x0av-maria-compatible\0");
    // Then come the id, half the scramble and a zero: low word, charset, status, high word, length, filler.
    assert_eq!(out[33..51], [0xfe, 0xf7, 45, 2, 0, 0xff, 0x81, 21, 0, 0, 0, 0, 0, 0, 0x1d, 0, 0, 0]);
    greeting.capabilities |= capability::LONG_PASSWORD;
    out.clear();
    greeting.write(&mut out);
    assert_eq!(&out[..3], b"\x0av\0");
    assert_eq!(out[24..34], [0; 10]);
    let named =
        Greeting { server_version: "1-MariaDB".into(), capabilities: 0x1d_81ff_f7fe, ..greeting.clone() };
    out.clear();
    named.write(&mut out);
    assert_eq!(&out[..11], b"\x0a1-MariaDB\0");

    let mut response = HandshakeResponse {
        capabilities: capability::PROTOCOL_41 | capability::CACHE_METADATA,
        packet_bytes_max: 1 << 24,
        charset: 45,
        user: b"u",
        auth_answer: b"",
        database: None,
        auth_plugin: b"",
        attributes: b"",
        zstd_level: 0,
    };
    out.clear();
    response.write(&mut out);
    assert_eq!(out[9..32], [[0; 19].as_slice(), &[0x10, 0, 0, 0]].concat());
    // Other clients may have any bytes in their filler.
    out[0] |= 1;
    response.capabilities = capability::PROTOCOL_41 | capability::LONG_PASSWORD;
    assert_eq!(HandshakeResponse::parse(&out).unwrap(), response);
}

#[test]
fn a_client_older_than_4_1_is_refused() {
    assert!(HandshakeResponse::parse(&[0; 64]).is_err());
}
