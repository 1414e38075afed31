//! Commands: the first packet of every exchange after the handshake.
//!
//! The list in `commands!` below is the only table of them. To add a command, add an entry there and an arm
//! where the server runs commands: the compiler names that place.

use crate::Malformed;
use crate::cursor::Cursor;
use crate::handshake::ChangeUser;

/// What the server sends after a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// At least one packet: OK, an error, rows or text.
    Packets,
    /// Nothing: the client sends its next command at once. A malformed command of this kind is still answered
    /// with an error, because the connection ends with it.
    Nothing,
}

/// Makes three things of the table: the first bytes [`com`], [`Command`] with its parser, and
/// [`CommandKind`].
macro_rules! commands {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(($($tuple:tt)*))? $({$($fields:tt)*})? => {
            code: $code:literal $constant:ident,
            process_list: $process_list:literal,
            counter: $counter:expr,
            answer: $answer:ident,
            parse: |$rest:ident| $parse:expr,
        }
    )*) => {
        /// First bytes of command packets.
        pub mod com {
            $(pub const $constant: u8 = $code;)*
        }

        /// A command as the server reads it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Command<'a> {
            $($(#[$doc])* $variant $(($($tuple)*))? $({$($fields)*})?,)*
            /// A first byte that is not in the table.
            Unknown(u8),
        }

        /// Which command it is, without its contents. As a number, it is the packet's first byte.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum CommandKind {
            $($variant = $code,)*
        }

        impl<'a> Command<'a> {
            /// Reads a packet's payload. Commands that this server refuses are parsed like the others.
            ///
            /// # Errors
            /// The payload is empty, or it ends before the command's fixed fields do, or a field has a value
            /// that the protocol does not know.
            pub fn parse(payload: &'a [u8]) -> Result<Command<'a>, Malformed> {
                let mut cursor = Cursor::new(payload);
                Ok(match cursor.u8("command")? {
                    $($code => {
                        let $rest = &mut cursor;
                        $parse
                    })*
                    other => Command::Unknown(other),
                })
            }

            /// Its entry in the table; `None` for an unknown command.
            pub fn kind(&self) -> Option<CommandKind> {
                match self {
                    $(Command::$variant { .. } => Some(CommandKind::$variant),)*
                    Command::Unknown(_) => None,
                }
            }
        }

        impl CommandKind {
            /// All commands, by their codes.
            pub const ALL: &'static [CommandKind] = &[$(CommandKind::$variant,)*];

            /// The command with this first byte.
            pub fn of(code: u8) -> Option<CommandKind> {
                match code {
                    $($code => Some(CommandKind::$variant),)*
                    _ => None,
                }
            }

            /// As the protocol's documentation writes it: `COM_PING`.
            pub fn name(self) -> &'static str {
                match self {
                    $(CommandKind::$variant => concat!("COM_", stringify!($constant)),)*
                }
            }

            /// As SHOW PROCESSLIST shows it.
            pub fn process_list_name(self) -> &'static str {
                match self {
                    $(CommandKind::$variant => $process_list,)*
                }
            }

            /// The counter of SHOW STATUS that such a command raises by one. The session does the counting.
            /// `None` if there is none, or if the statement inside the command decides.
            pub fn counter(self) -> Option<&'static str> {
                match self {
                    $(CommandKind::$variant => $counter,)*
                }
            }

            /// What the server sends after it.
            pub fn answer(self) -> Answer {
                match self {
                    $(CommandKind::$variant => Answer::$answer,)*
                }
            }
        }
    };
}

/// The number that stands for the statement which was prepared last, so that a client can execute it before
/// it knows its number.
pub const LAST_PREPARED: u32 = u32::MAX;

/// The flag of COM_STMT_EXECUTE that asks for a cursor.
pub const CURSOR_READ_ONLY: u8 = 1;

/// The flag of COM_STMT_BULK_EXECUTE that says that the parameters' types come first.
pub const BULK_HAS_TYPES: u16 = 128;

commands! {
    /// What a connection does between two commands. A client that sends this byte is told that it is unknown.
    Sleep => {
        code: 0x00 SLEEP,
        process_list: "Sleep",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::Sleep,
    }
    /// Ends the connection.
    Quit => {
        code: 0x01 QUIT,
        process_list: "Quit",
        counter: None,
        answer: Nothing,
        parse: |_rest| Command::Quit,
    }
    /// Changes the default database to this one.
    InitDb(&'a [u8]) => {
        code: 0x02 INIT_DB,
        process_list: "Init DB",
        counter: Some("Com_change_db"),
        answer: Packets,
        parse: |rest| Command::InitDb(rest.rest()),
    }
    /// Runs a statement, or several.
    Query(&'a [u8]) => {
        code: 0x03 QUERY,
        process_list: "Query",
        counter: None,
        answer: Packets,
        parse: |rest| Command::Query(rest.rest()),
    }
    /// Asks for the columns of a table of the default database, those whose names are like the pattern.
    FieldList {
        table: &'a [u8],
        /// Empty for all columns.
        pattern: &'a [u8],
    } => {
        code: 0x04 FIELD_LIST,
        process_list: "Field List",
        counter: None,
        answer: Packets,
        parse: |rest| {
            let table = rest.nul_bytes("table")?;
            Command::FieldList { table, pattern: rest.rest() }
        },
    }
    /// Refused.
    CreateDb => {
        code: 0x05 CREATE_DB,
        process_list: "Create DB",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::CreateDb,
    }
    /// Refused.
    DropDb => {
        code: 0x06 DROP_DB,
        process_list: "Drop DB",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::DropDb,
    }
    /// Refused.
    Refresh => {
        code: 0x07 REFRESH,
        process_list: "Refresh",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::Refresh,
    }
    /// Refused.
    Shutdown => {
        code: 0x08 SHUTDOWN,
        process_list: "Shutdown",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::Shutdown,
    }
    /// Asks for a line of figures.
    Statistics => {
        code: 0x09 STATISTICS,
        process_list: "Statistics",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::Statistics,
    }
    /// An old form of SHOW PROCESSLIST. It runs, and is shown, as that statement.
    ProcessInfo => {
        code: 0x0a PROCESS_INFO,
        process_list: "Query",
        counter: Some("Com_show"),
        answer: Packets,
        parse: |_rest| Command::ProcessInfo,
    }
    /// An old form of KILL, with the connection's id. It runs, and is shown, as that statement.
    ProcessKill(u32) => {
        code: 0x0c PROCESS_KILL,
        process_list: "Query",
        counter: Some("Com_kill"),
        answer: Packets,
        parse: |rest| Command::ProcessKill(rest.u32("connection id")?),
    }
    /// Asks for a line of figures in the server's log.
    Debug => {
        code: 0x0d DEBUG,
        process_list: "Debug",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::Debug,
    }
    /// Asks whether the server answers.
    Ping => {
        code: 0x0e PING,
        process_list: "Ping",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::Ping,
    }
    /// Begins a new session on this connection, perhaps for another account.
    ChangeUser(ChangeUser<'a>) => {
        code: 0x11 CHANGE_USER,
        process_list: "Change user",
        counter: None,
        answer: Packets,
        parse: |rest| Command::ChangeUser(ChangeUser::parse(rest.rest())?),
    }
    /// Prepares a statement.
    StmtPrepare(&'a [u8]) => {
        code: 0x16 STMT_PREPARE,
        process_list: "Prepare",
        counter: Some("Com_stmt_prepare"),
        answer: Packets,
        parse: |rest| Command::StmtPrepare(rest.rest()),
    }
    /// Runs a prepared statement. The parameters are still encoded: see [`crate::params`].
    StmtExecute {
        statement: u32,
        /// Bit 0 asks for a cursor, from which the rows are then fetched.
        flags: u8,
        params: &'a [u8],
    } => {
        code: 0x17 STMT_EXECUTE,
        process_list: "Execute",
        counter: Some("Com_stmt_execute"),
        answer: Packets,
        parse: |rest| {
            let statement = rest.u32("statement id")?;
            let flags = rest.u8("cursor type")?;
            rest.u32("iteration count")?;
            Command::StmtExecute { statement, flags, params: rest.rest() }
        },
    }
    /// Appends to a parameter of the statement's next execution, which reports what was wrong with it.
    StmtSendLongData {
        statement: u32,
        param: u16,
        data: &'a [u8],
    } => {
        code: 0x18 STMT_SEND_LONG_DATA,
        process_list: "Long Data",
        counter: None,
        answer: Nothing,
        parse: |rest| {
            let statement = rest.u32("statement id")?;
            let param = rest.u16("parameter number")?;
            Command::StmtSendLongData { statement, param, data: rest.rest() }
        },
    }
    /// Forgets a prepared statement.
    StmtClose(u32) => {
        code: 0x19 STMT_CLOSE,
        process_list: "Close stmt",
        counter: Some("Com_stmt_close"),
        answer: Nothing,
        parse: |rest| Command::StmtClose(rest.u32("statement id")?),
    }
    /// Forgets what was sent ahead for a prepared statement.
    StmtReset(u32) => {
        code: 0x1a STMT_RESET,
        process_list: "Reset stmt",
        counter: None,
        answer: Packets,
        parse: |rest| Command::StmtReset(rest.u32("statement id")?),
    }
    /// 0 switches several statements a query on, 1 off. There are no other options.
    SetOption(u16) => {
        code: 0x1b SET_OPTION,
        process_list: "Set option",
        counter: None,
        answer: Packets,
        parse: |rest| Command::SetOption(rest.u16("option")?),
    }
    /// Asks for the next rows of a cursor.
    StmtFetch {
        statement: u32,
        rows: u32,
    } => {
        code: 0x1c STMT_FETCH,
        process_list: "Fetch",
        counter: Some("Com_stmt_fetch"),
        answer: Packets,
        parse: |rest| {
            let statement = rest.u32("statement id")?;
            Command::StmtFetch { statement, rows: rest.u32("number of rows")? }
        },
    }
    /// Begins a new session for the same account.
    ResetConnection => {
        code: 0x1f RESET_CONNECTION,
        process_list: "Reset connection",
        counter: None,
        answer: Packets,
        parse: |_rest| Command::ResetConnection,
    }
    /// Runs a prepared statement with many rows of parameters, which are still encoded: see
    /// [`crate::params::BulkRows`].
    StmtBulkExecute {
        statement: u32,
        flags: u16,
        params: &'a [u8],
    } => {
        code: 0xfa STMT_BULK_EXECUTE,
        process_list: "Bulk_execute",
        counter: Some("Com_stmt_execute"),
        answer: Packets,
        parse: |rest| {
            let statement = rest.u32("statement id")?;
            let flags = rest.u16("flags")?;
            Command::StmtBulkExecute { statement, flags, params: rest.rest() }
        },
    }
}
