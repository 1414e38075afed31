//! Every command of the table, as it should be and malformed: what the server answers, and what it counts.

use crate::support::{Live, Raw};
use wire::client::ConnectOptions;
use wire::constants::capability;
use wire::response::ServerError;
use wire::{Answer, CommandKind};

/// A client whose prepared statement `SELECT ?` has the number 1, and that may send rows of parameters.
fn with_statement(live: &Live) -> Raw {
    let mut options = ConnectOptions::default();
    options.capabilities &= !capability::LONG_PASSWORD;
    options.capabilities |= capability::STMT_BULK_OPERATIONS;
    let mut connection = live.connect_with(&options).unwrap();
    assert_eq!(connection.prepare("SELECT ?").unwrap().id, 1);
    Raw::of(connection)
}

/// What the first packet of an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Ok,
    /// The end of rows, which follow no definitions here.
    End,
    /// The number of columns.
    Columns(u8),
    /// A prepared statement.
    Prepared,
    Error(u16),
    /// The packet with figures is itself the answer.
    Figures,
    /// There is none, and the connection is open afterwards.
    Nothing,
    /// There is none, and the connection ends.
    Closed,
}

/// The contents of a well-formed command, the number of bytes below which a prefix of them is malformed, and
/// how the answer begins.
fn example(kind: CommandKind) -> (&'static [u8], usize, First) {
    match kind {
        CommandKind::Sleep => (b"", 0, First::Error(1047)),
        CommandKind::Quit => (b"", 0, First::Closed),
        CommandKind::InitDb => (b"information_schema", 0, First::Ok),
        CommandKind::Query => (b"SELECT 1", 0, First::Columns(1)),
        CommandKind::FieldList => (b"t\0", 2, First::Error(1046)),
        CommandKind::CreateDb | CommandKind::DropDb => (b"d", 0, First::Error(1235)),
        CommandKind::Refresh | CommandKind::Shutdown => (b"", 0, First::Error(1235)),
        CommandKind::Debug => (b"", 0, First::End),
        CommandKind::Statistics => (b"", 0, First::Figures),
        CommandKind::ProcessInfo => (b"", 0, First::Columns(9)),
        CommandKind::ProcessKill => (&[0xff, 0xff, 0, 0], 4, First::Error(1094)),
        CommandKind::Ping => (b"", 0, First::Ok),
        // User, an empty answer, database.
        CommandKind::ChangeUser => (b"root\0\0\0", 7, First::Ok),
        CommandKind::StmtPrepare => (b"SELECT ?, ?", 0, First::Prepared),
        // Statement 1, no cursor, once; no NULL, types follow: BIGINT, signed; 7.
        CommandKind::StmtExecute => {
            (&[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0], 21, First::Columns(1))
        }
        CommandKind::StmtSendLongData => (&[1, 0, 0, 0, 0, 0, b'x'], 6, First::Nothing),
        CommandKind::StmtClose => (&[1, 0, 0, 0], 4, First::Nothing),
        CommandKind::StmtReset => (&[1, 0, 0, 0], 4, First::Ok),
        CommandKind::SetOption => (&[0, 0], 2, First::End),
        CommandKind::StmtFetch => (&[1, 0, 0, 0, 1, 0, 0, 0], 8, First::Error(1421)),
        CommandKind::ResetConnection => (b"", 0, First::Ok),
        // Statement 1, types follow: BIGINT, signed; a value, 7. A query takes no rows of parameters.
        CommandKind::StmtBulkExecute => {
            (&[1, 0, 0, 0, 128, 0, 8, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], 17, First::Error(1295))
        }
    }
}

fn first(kind: CommandKind, packets: &[Vec<u8>], is_open: bool) -> First {
    match packets.first() {
        None if !is_open => First::Closed,
        None if kind == CommandKind::Statistics => First::Figures,
        None => First::Nothing,
        Some(packet) => match packet[0] {
            0xff => First::Error(ServerError::parse(packet).unwrap().code),
            0xfe => First::End,
            0 if kind == CommandKind::StmtPrepare => First::Prepared,
            0 => First::Ok,
            columns => First::Columns(columns),
        },
    }
}

fn payload(kind: CommandKind, contents: &[u8]) -> Vec<u8> {
    [&[kind as u8], contents].concat()
}

#[test]
fn every_command_is_answered_unless_the_protocol_wants_no_answer() {
    let live = Live::start(&[]);
    for &kind in CommandKind::ALL {
        let (contents, _, wanted) = example(kind);
        let (packets, is_open) = with_statement(&live).answer(&payload(kind, contents));
        assert_eq!(first(kind, &packets, is_open), wanted, "{kind:?}: {packets:x?}");
        assert_eq!(is_open, kind != CommandKind::Quit, "{kind:?}");
        let is_unanswered = matches!(wanted, First::Nothing | First::Closed);
        assert_eq!(kind.answer() == Answer::Nothing, is_unanswered, "{kind:?}");
    }
    let unanswered: Vec<_> =
        CommandKind::ALL.iter().filter(|kind| kind.answer() == Answer::Nothing).collect();
    assert_eq!(
        unanswered,
        [&CommandKind::Quit, &CommandKind::StmtSendLongData, &CommandKind::StmtClose],
        "the commands that the protocol leaves unanswered"
    );
}

/// The number of a statement, flags, and how often to run it.
const EXECUTION_HEAD_BYTES: usize = 9;

#[test]
fn every_malformed_command_is_answered_and_most_end_the_connection() {
    let live = Live::start(&[]);
    for &kind in CommandKind::ALL {
        let (contents, bytes_min, _) = example(kind);
        for length in 0..bytes_min {
            let (packets, is_open) = with_statement(&live).answer(&payload(kind, &contents[..length]));
            // As in MariaDB, an execution without its parameters is refused, and the connection goes on.
            let lacks_parameters = kind == CommandKind::StmtExecute && length >= EXECUTION_HEAD_BYTES;
            let code = if lacks_parameters { 1210 } else { 1835 };
            assert_eq!(first(kind, &packets, is_open), First::Error(code), "{kind:?}, {length} bytes");
            assert!(packets.len() == 1 && is_open == lacks_parameters, "{kind:?}, {length} bytes");
        }
    }
    assert!(!live.log().contains("panicked"), "{}", live.log());
}

#[test]
fn every_first_byte_without_a_command_is_answered_with_1047() {
    let live = Live::start(&[]);
    let mut raw = with_statement(&live);
    for code in (0..=u8::MAX).filter(|code| CommandKind::of(*code).is_none()) {
        let (packets, is_open) = raw.answer(&[code, 1, 2, 3]);
        assert_eq!(packets.len(), 1, "{code:#x}");
        assert_eq!(ServerError::parse(&packets[0]).unwrap().code, 1047, "{code:#x}");
        assert!(is_open, "{code:#x}");
    }
}

#[test]
fn texts_without_a_statement_are_answered() {
    let live = Live::start(&[]);
    let mut raw = with_statement(&live);
    for option in [1, 0] {
        raw.answer(&payload(CommandKind::SetOption, &[option, 0]));
        for text in ["", " ", ";", ";;", " ; ; ", "-- x", "/* x */", "SELECT 1;", "SELECT 1; -- x", "\0"] {
            for kind in [CommandKind::Query, CommandKind::StmtPrepare] {
                let (packets, is_open) = raw.answer(&payload(kind, text.as_bytes()));
                assert!(!packets.is_empty() && is_open, "{kind:?} {text:?}");
            }
        }
    }
}

#[test]
fn each_command_raises_the_counter_that_the_table_names() {
    let live = Live::start(&[]);
    for &kind in CommandKind::ALL {
        // Which counter a text raises is its statement's business.
        if kind == CommandKind::Query {
            continue;
        }
        let mut raw = with_statement(&live);
        let before = live.instance.counters();
        raw.answer(&payload(kind, example(kind).0));
        let after = live.instance.counters();
        let raised: Vec<_> = before
            .iter()
            .zip(&after)
            .filter(|((name, before), (_, after))| name.starts_with("Com_") && before != after)
            .map(|((name, before), (_, after))| (*name, after - before))
            .collect();
        match kind.counter() {
            Some(counter) => assert!(raised.contains(&(counter, 1)), "{kind:?}: {raised:?}"),
            None => assert_eq!(raised, [], "{kind:?}"),
        }
    }
}
