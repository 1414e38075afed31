//! Commands: the first packet of every exchange after the handshake.

use crate::Malformed;
use crate::constants::com;
use crate::cursor::Cursor;
use crate::handshake::ChangeUser;

/// A command as the server reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    Query(&'a [u8]),
    FieldList,
    Statistics,
    ProcessInfo,
    ProcessKill(u32),
    Ping,
    ChangeUser(ChangeUser<'a>),
    StmtPrepare(&'a [u8]),
    /// The parameters are still encoded: see [`crate::params`].
    StmtExecute {
        statement: u32,
        /// 0 = no cursor.
        flags: u8,
        params: &'a [u8],
    },
    StmtSendLongData {
        statement: u32,
        param: u16,
        data: &'a [u8],
    },
    StmtClose(u32),
    StmtReset(u32),
    StmtFetch {
        statement: u32,
        rows: u32,
    },
    /// True switches several statements a query on.
    SetMultiStatements(bool),
    ResetConnection,
    /// Known to the protocol, refused by this server: what it is called.
    Refused(&'static str),
    Unknown(u8),
}

impl<'a> Command<'a> {
    pub fn parse(payload: &'a [u8]) -> Result<Command<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        Ok(match cursor.u8("command")? {
            com::QUIT => Command::Quit,
            com::INIT_DB => Command::InitDb(cursor.rest()),
            com::QUERY => Command::Query(cursor.rest()),
            com::FIELD_LIST => Command::FieldList,
            com::STATISTICS => Command::Statistics,
            com::PROCESS_INFO => Command::ProcessInfo,
            com::PROCESS_KILL => Command::ProcessKill(cursor.u32("connection id")?),
            com::PING => Command::Ping,
            com::CHANGE_USER => Command::ChangeUser(ChangeUser::parse(cursor.rest())?),
            com::STMT_PREPARE => Command::StmtPrepare(cursor.rest()),
            com::STMT_EXECUTE => {
                let statement = cursor.u32("statement id")?;
                let flags = cursor.u8("cursor type")?;
                cursor.u32("iteration count")?;
                Command::StmtExecute { statement, flags, params: cursor.rest() }
            }
            com::STMT_SEND_LONG_DATA => {
                let statement = cursor.u32("statement id")?;
                let param = cursor.u16("parameter number")?;
                Command::StmtSendLongData { statement, param, data: cursor.rest() }
            }
            com::STMT_CLOSE => Command::StmtClose(cursor.u32("statement id")?),
            com::STMT_RESET => Command::StmtReset(cursor.u32("statement id")?),
            com::STMT_FETCH => {
                let statement = cursor.u32("statement id")?;
                Command::StmtFetch { statement, rows: cursor.u32("number of rows")? }
            }
            com::SET_OPTION => match cursor.u16("option")? {
                0 => Command::SetMultiStatements(true),
                1 => Command::SetMultiStatements(false),
                _ => return Err(Malformed::new("option")),
            },
            com::RESET_CONNECTION => Command::ResetConnection,
            com::CREATE_DB => Command::Refused("COM_CREATE_DB"),
            com::DROP_DB => Command::Refused("COM_DROP_DB"),
            com::REFRESH => Command::Refused("COM_REFRESH"),
            com::SHUTDOWN => Command::Refused("COM_SHUTDOWN"),
            com::DEBUG => Command::Refused("COM_DEBUG"),
            other => Command::Unknown(other),
        })
    }

    /// What SHOW PROCESSLIST calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Quit => "Quit",
            Command::InitDb(_) => "Init DB",
            Command::Query(_) => "Query",
            Command::FieldList => "Field List",
            Command::Statistics => "Statistics",
            Command::ProcessInfo => "Processlist",
            Command::ProcessKill(_) => "Kill",
            Command::Ping => "Ping",
            Command::ChangeUser(_) => "Change user",
            Command::StmtPrepare(_) => "Prepare",
            Command::StmtExecute { .. } => "Execute",
            Command::StmtSendLongData { .. } => "Long Data",
            Command::StmtClose(_) => "Close stmt",
            Command::StmtReset(_) => "Reset stmt",
            Command::StmtFetch { .. } => "Fetch",
            Command::SetMultiStatements(_) => "Set option",
            Command::ResetConnection => "Reset connection",
            Command::Refused(_) | Command::Unknown(_) => "Error",
        }
    }
}
