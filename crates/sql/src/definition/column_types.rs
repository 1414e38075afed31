//! Reads column types as CREATE TABLE writes them.

use super::ColumnExtras;
use super::ColumnSpec;
use super::check::CheckSpec;
use super::quoted_text;
use crate::names::charsets::{self, CollationInfo};
use crate::text::LexicalMode;
use crate::text::parse::{Word, Words};
use crate::variables::assign::{unknown_charset, unknown_collation};
use crate::{ErrorKind, SqlError};
use types::members::{ENUM_MEMBERS_MAX, SET_MEMBERS_MAX};
use types::{Code, Collation, ColumnType, Members};

fn error(kind: ErrorKind, message: String) -> SqlError {
    SqlError::new(kind, message)
}

/// The number that a token without quotes spells.
pub(crate) fn number(words: &mut Words<'_>) -> Result<u64, SqlError> {
    match words.peek() {
        Word::Number(text) => {
            let value = text.parse().unwrap_or(u64::MAX);
            words.next();
            Ok(value)
        }
        _ => Err(words.error()),
    }
}

/// `(n)`, if it is there.
fn length(words: &mut Words<'_>) -> Result<Option<u64>, SqlError> {
    if !words.accept_symbol("(") {
        return Ok(None);
    }
    let value = number(words)?;
    words.expect_symbol(")")?;
    Ok(Some(value))
}

/// `(m)` or `(m, d)`, if it is there.
fn digits(words: &mut Words<'_>) -> Result<Option<(u64, Option<u64>)>, SqlError> {
    if !words.accept_symbol("(") {
        return Ok(None);
    }
    let first = number(words)?;
    let second = if words.accept_symbol(",") { Some(number(words)?) } else { None };
    words.expect_symbol(")")?;
    Ok(Some((first, second)))
}

/// A type before its collation is known. Clauses behind the type can choose the collation, so they are read
/// first.
enum Draft {
    Done(ColumnType),
    /// Made of a collation.
    Char(u32),
    Varchar(u64),
    /// The members of an ENUM or a SET.
    Members {
        names: Vec<String>,
        is_set: bool,
    },
    /// TEXT with a maximum number of bytes, or with a length in characters.
    Text {
        bytes_max: u32,
        chars: Option<u64>,
    },
}

/// Reads a type, with everything that belongs to it (length, UNSIGNED, character set), into a new column.
/// `table` is the collation of columns that choose none.
pub(crate) fn column_type(
    words: &mut Words<'_>,
    name: String,
    table: Collation,
) -> Result<ColumnSpec, SqlError> {
    let mut column = ColumnSpec {
        name,
        column_type: ColumnType::Date,
        own_collation: false,
        nullable: None,
        auto_increment: false,
        primary: false,
        unique: false,
        reference: None,
        check: None,
        generated: None,
        default: None,
        extras: ColumnExtras::default(),
    };
    let keyword = match words.peek() {
        Word::Bare(keyword) => keyword.to_ascii_uppercase(),
        _ => return Err(words.error()),
    };
    let unknown = match is_reserved(&keyword) {
        true => words.error(),
        false => {
            let name = keyword.to_ascii_lowercase();
            error(ErrorKind::UnknownDataType, format!("Unknown data type: '{name}'"))
        }
    };
    words.next();
    let draft = draft(words, &mut column, &keyword)?.ok_or(unknown)?;
    column.column_type = match draft {
        Draft::Done(done) => done,
        text => {
            // NATIONAL names a character set.
            let national = matches!(keyword.as_str(), "NCHAR" | "NATIONAL" | "NVARCHAR");
            let table = if national { collation_of_charset("utf8mb3")? } else { table };
            column.own_collation = national;
            let collation = match collation_clause(words, table)? {
                Some(collation) => {
                    column.own_collation = true;
                    collation
                }
                None => table,
            };
            finish_text(text, collation, &column.name)?
        }
    };
    Ok(column)
}

/// True for the reserved words that a column's definition without a type goes on with.
fn is_reserved(word: &str) -> bool {
    // The last four are types of other databases, which MariaDB knows in their modes alone.
    const WORDS: [&str; 26] = [
        "ADD",
        "AS",
        "BY",
        "CHECK",
        "COLLATE",
        "CONSTRAINT",
        "DEFAULT",
        "FOREIGN",
        "FULLTEXT",
        "GENERATED",
        "IN",
        "INDEX",
        "INTO",
        "KEY",
        "LIKE",
        "NOT",
        "NULL",
        "ON",
        "PRIMARY",
        "REFERENCES",
        "SELECT",
        "UNIQUE",
        "CLOB",
        "NUMBER",
        "RAW",
        "VARCHAR2",
    ];
    WORDS.contains(&word)
}

/// Reads a type's first word and the words behind it, up to its character set. `None` if the word is no such
/// type.
fn draft(words: &mut Words<'_>, column: &mut ColumnSpec, keyword: &str) -> Result<Option<Draft>, SqlError> {
    Ok(Some(match keyword {
        "TINYINT" | "INT1" => integer(words, column, 1)?,
        "SMALLINT" | "INT2" => integer(words, column, 2)?,
        "MEDIUMINT" | "INT3" | "MIDDLEINT" => integer(words, column, 3)?,
        "INT" | "INTEGER" | "INT4" => integer(words, column, 4)?,
        "BIGINT" | "INT8" => integer(words, column, 8)?,
        "BOOL" | "BOOLEAN" => {
            column.extras.display_width = Some(1);
            Draft::Done(ColumnType::Int { bytes: 1, unsigned: false })
        }
        "SERIAL" => {
            column.nullable = Some(false);
            column.auto_increment = true;
            column.unique = true;
            Draft::Done(ColumnType::Int { bytes: 8, unsigned: true })
        }
        "FLOAT" | "FLOAT4" => float(words, column, false)?,
        "DOUBLE" | "REAL" | "FLOAT8" => {
            if keyword == "DOUBLE" {
                words.accept("PRECISION");
            }
            float(words, column, true)?
        }
        "DECIMAL" | "NUMERIC" | "DEC" | "FIXED" => decimal(words, column)?,
        "CHAR" | "CHARACTER" | "NCHAR" => {
            let national = keyword == "NCHAR";
            if words.accept("VARYING") || national && words.accept("VARCHAR") {
                Draft::Varchar(length(words)?.ok_or_else(|| words.error())?)
            } else {
                char_of(words, &column.name)?
            }
        }
        "NATIONAL" => {
            let varying = words.accept("VARCHAR")
                || (words.accept("CHAR") || words.accept("CHARACTER")) && words.accept("VARYING");
            if varying {
                Draft::Varchar(length(words)?.ok_or_else(|| words.error())?)
            } else {
                char_of(words, &column.name)?
            }
        }
        "VARCHAR" | "NVARCHAR" | "VARCHARACTER" => {
            Draft::Varchar(length(words)?.ok_or_else(|| words.error())?)
        }
        "TINYTEXT" => Draft::Text { bytes_max: 255, chars: None },
        "TEXT" => Draft::Text { bytes_max: 65_535, chars: length(words)? },
        "MEDIUMTEXT" => Draft::Text { bytes_max: 16_777_215, chars: None },
        "LONGTEXT" => Draft::Text { bytes_max: u32::MAX, chars: None },
        "LONG" => {
            if words.accept("VARBINARY") {
                Draft::Done(ColumnType::Blob { bytes_max: 16_777_215 })
            } else {
                let _ = words.accept("VARCHAR") || words.accept("CHAR") && words.accept("VARYING");
                Draft::Text { bytes_max: 16_777_215, chars: None }
            }
        }
        // As in MariaDB, JSON is a text type that compares byte by byte, with a condition.
        "JSON" => {
            column.own_collation = true;
            column.check = Some(CheckSpec::of_json(&column.name));
            Draft::Done(ColumnType::Text { bytes_max: u32::MAX, collation: Collation::Utf8mb4Bin })
        }
        "ENUM" | "SET" => Draft::Members { names: member_names(words)?, is_set: keyword == "SET" },
        "UUID" => code(words, Code::Uuid)?,
        "INET6" => code(words, Code::Inet6)?,
        "INET4" => code(words, Code::Inet4)?,
        "BIT" => Draft::Done(ColumnType::Bit { bits: bits(words, &column.name)? }),
        "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
        | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" => {
            return Err(SqlError::not_supported(&format!("columns of type {keyword}")));
        }
        _ => match binary_or_time(words, keyword, &column.name)? {
            Some(column_type) => Draft::Done(column_type),
            None => return Ok(None),
        },
    }))
}

/// The binary and temporal types, which have no character set. `None` if the word is no such type.
fn binary_or_time(words: &mut Words<'_>, keyword: &str, name: &str) -> Result<Option<ColumnType>, SqlError> {
    Ok(Some(match keyword {
        "BINARY" => {
            let bytes = length(words)?.unwrap_or(1);
            if bytes > 255 {
                return Err(too_long(name, 255));
            }
            ColumnType::Binary { bytes: bytes as u32 }
        }
        "VARBINARY" => {
            let bytes = length(words)?.ok_or_else(|| words.error())?;
            if bytes > 65_532 {
                return Err(too_long(name, 65_532));
            }
            ColumnType::Varbinary { bytes: bytes as u32 }
        }
        "TINYBLOB" => ColumnType::Blob { bytes_max: 255 },
        "BLOB" => {
            let bytes = length(words)?.unwrap_or(65_535);
            ColumnType::Blob { bytes_max: blob_class(bytes, name)? }
        }
        "MEDIUMBLOB" => ColumnType::Blob { bytes_max: 16_777_215 },
        "LONGBLOB" => ColumnType::Blob { bytes_max: u32::MAX },
        "DATE" => ColumnType::Date,
        "TIME" => ColumnType::Time { fsp: fsp(words, name)? },
        "DATETIME" => ColumnType::DateTime { fsp: fsp(words, name)? },
        "TIMESTAMP" => ColumnType::Timestamp { fsp: fsp(words, name)? },
        "YEAR" => {
            length(words)?;
            ColumnType::Year
        }
        _ => return Ok(None),
    }))
}

fn finish_text(draft: Draft, collation: Collation, name: &str) -> Result<ColumnType, SqlError> {
    let width = collation.character_bytes_max();
    Ok(match draft {
        Draft::Char(chars) if collation == Collation::Binary => ColumnType::Binary { bytes: chars },
        Draft::Char(chars) => ColumnType::Char { chars, collation },
        Draft::Varchar(chars) => {
            let chars_max = 65_535 / width;
            let chars_max = if width == 1 { 65_532 } else { chars_max };
            if chars > u64::from(chars_max) {
                return Err(too_long(name, chars_max));
            }
            match collation {
                Collation::Binary => ColumnType::Varbinary { bytes: chars as u32 },
                _ => ColumnType::Varchar { chars: chars as u32, collation },
            }
        }
        Draft::Text { bytes_max, chars } => {
            let bytes_max = match chars {
                Some(chars) => blob_class(chars.saturating_mul(u64::from(width)), name)?,
                None => bytes_max,
            };
            match collation {
                Collation::Binary => ColumnType::Blob { bytes_max },
                _ => ColumnType::Text { bytes_max, collation },
            }
        }
        Draft::Members { names, is_set } => members(names, is_set, collation, name)?,
        Draft::Done(done) => done,
    })
}

/// `('a', 'b')`.
fn member_names(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    words.expect_symbol("(")?;
    let mut names = Vec::new();
    loop {
        names.push(words.string()?);
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.expect_symbol(")")?;
    Ok(names)
}

/// The type of an ENUM or SET column. Blanks at the end of a member are no part of it.
fn members(
    names: Vec<String>,
    is_set: bool,
    collation: Collation,
    column: &str,
) -> Result<ColumnType, SqlError> {
    let (kind, most) = if is_set { ("SET", SET_MEMBERS_MAX) } else { ("ENUM", ENUM_MEMBERS_MAX) };
    if names.len() > most {
        let message = format!("Too many strings for column {column} and {kind}");
        return Err(error(ErrorKind::TooManyMembers, message));
    }
    let names: Vec<String> = names.iter().map(|name| name.trim_end_matches(' ').to_owned()).collect();
    if let Some(name) = names.iter().find(|name| is_set && name.contains(',')) {
        let message = format!("Illegal set '{name}' value found during parsing");
        return Err(error(ErrorKind::IllegalMember, message));
    }
    let members = Members::new(names, collation);
    if let Some(at) = members.duplicate() {
        let first = members.find(members.names()[at].as_bytes()).unwrap_or(at);
        let name = &members.names()[first];
        let message = format!("Column '{column}' has duplicated value '{name}' in {kind}");
        return Err(error(ErrorKind::DuplicateMember, message));
    }
    Ok(if is_set { ColumnType::of_set(members) } else { ColumnType::of_enum(members) })
}

/// 1074.
fn too_long(name: &str, max: u32) -> SqlError {
    error(
        ErrorKind::ColumnTooLong,
        format!("Column length too big for column '{name}' (max = {max}); use BLOB or TEXT instead"),
    )
}

/// The smallest BLOB or TEXT type that can hold this many bytes.
pub(crate) fn blob_class(bytes: u64, name: &str) -> Result<u32, SqlError> {
    [255, 65_535, 16_777_215, u32::MAX].into_iter().find(|max| bytes <= u64::from(*max)).ok_or_else(|| {
        error(
            ErrorKind::DisplayWidthTooBig,
            format!("Display width out of range for '{name}' (max = {})", u32::MAX),
        )
    })
}

fn char_of(words: &mut Words<'_>, name: &str) -> Result<Draft, SqlError> {
    let chars = length(words)?.unwrap_or(1);
    if chars > 255 {
        return Err(too_long(name, 255));
    }
    Ok(Draft::Char(chars as u32))
}

/// As in MariaDB, a length says nothing.
fn code(words: &mut Words<'_>, code: Code) -> Result<Draft, SqlError> {
    length(words)?;
    Ok(Draft::Done(ColumnType::Code(code)))
}

/// How many bits a BIT has. 0 stands for 1, as in MariaDB.
fn bits(words: &mut Words<'_>, name: &str) -> Result<u8, SqlError> {
    const BITS_MAX: u64 = 64;
    match length(words)?.unwrap_or(1) {
        bits @ 0..=BITS_MAX => Ok(bits.max(1) as u8),
        _ => {
            let message = format!("Display width out of range for '{name}' (max = {BITS_MAX})");
            Err(error(ErrorKind::DisplayWidthTooBig, message))
        }
    }
}

fn fsp(words: &mut Words<'_>, name: &str) -> Result<u8, SqlError> {
    match length(words)?.unwrap_or(0) {
        fsp @ 0..=6 => Ok(fsp as u8),
        _ => Err(error(
            ErrorKind::PrecisionTooBig,
            format!("Too big precision specified for '{name}'. Maximum is 6"),
        )),
    }
}

/// Reads UNSIGNED, SIGNED and ZEROFILL. True for an unsigned number.
fn sign(words: &mut Words<'_>, column: &mut ColumnSpec) -> bool {
    let mut unsigned = words.accept("UNSIGNED");
    if !unsigned {
        words.accept("SIGNED");
    }
    if words.accept("ZEROFILL") {
        column.extras.zerofill = true;
        unsigned = true;
        words.accept("UNSIGNED");
    }
    unsigned
}

fn integer(words: &mut Words<'_>, column: &mut ColumnSpec, bytes: u8) -> Result<Draft, SqlError> {
    if let Some(width) = length(words)? {
        let width = u8::try_from(width).map_err(|_| {
            error(
                ErrorKind::DisplayWidthTooBig,
                format!("Display width out of range for '{}' (max = 255)", column.name),
            )
        })?;
        column.extras.display_width = Some(width).filter(|width| *width > 0);
    }
    let unsigned = sign(words, column);
    Ok(Draft::Done(ColumnType::Int { bytes, unsigned }))
}

fn float(words: &mut Words<'_>, column: &mut ColumnSpec, double: bool) -> Result<Draft, SqlError> {
    let mut double = double;
    match digits(words)? {
        // The precision in FLOAT(p) only decides between FLOAT and DOUBLE.
        Some((precision, None)) if !double => {
            if precision > 53 {
                return Err(error(
                    ErrorKind::WrongColumnSpecifier,
                    format!("Incorrect column specifier for column '{}'", column.name),
                ));
            }
            double = precision > 24;
        }
        Some((_, None)) => return Err(words.error()),
        Some((precision, Some(scale))) => {
            check_digits(&column.name, precision, scale, 255)?;
            column.extras.float_digits = Some((precision as u8, scale as u8));
        }
        None => {}
    }
    let unsigned = sign(words, column);
    Ok(Draft::Done(if double { ColumnType::Double { unsigned } } else { ColumnType::Float { unsigned } }))
}

fn decimal(words: &mut Words<'_>, column: &mut ColumnSpec) -> Result<Draft, SqlError> {
    let (precision, scale) = digits(words)?.unwrap_or((10, None));
    let precision = if precision == 0 { 10 } else { precision };
    let scale = scale.unwrap_or(0);
    check_digits(&column.name, precision, scale, 65)?;
    if scale > 30 {
        return Err(error(
            ErrorKind::ScaleTooBig,
            format!("Too big scale specified for '{}'. Maximum is 30", column.name),
        ));
    }
    let unsigned = sign(words, column);
    Ok(Draft::Done(ColumnType::Decimal { precision: precision as u8, scale: scale as u8, unsigned }))
}

fn check_digits(name: &str, precision: u64, scale: u64, precision_max: u64) -> Result<(), SqlError> {
    if scale > precision {
        return Err(error(
            ErrorKind::ScaleAbovePrecision,
            format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{name}')"),
        ));
    }
    if precision > precision_max {
        return Err(error(
            ErrorKind::PrecisionTooBig,
            format!("Too big precision specified for '{name}'. Maximum is {precision_max}"),
        ));
    }
    Ok(())
}

/// The collation in the form that a column has.
///
/// # Errors
/// 1235 for one that columns cannot have here.
pub(crate) fn of_column(found: &CollationInfo) -> Result<Collation, SqlError> {
    found
        .column()
        .ok_or_else(|| SqlError::not_supported(&format!("columns with the collation {}", found.name)))
}

/// The column collation with this name.
///
/// # Errors
/// 1273 for an unknown collation, 1235 for one that columns cannot have here.
pub(crate) fn collation_named(name: &str) -> Result<Collation, SqlError> {
    of_column(charsets::collation_named(name).ok_or_else(|| unknown_collation(name))?)
}

/// The default column collation of a character set.
///
/// # Errors
/// 1115 for an unknown character set.
pub(crate) fn collation_of_charset(name: &str) -> Result<Collation, SqlError> {
    let found = charsets::charset(name).ok_or_else(|| unknown_charset(name))?;
    collation_named(found.collation_default)
}

/// [CHARACTER SET x] [COLLATE y], in either order, ASCII, UNICODE, BINARY and BYTE. `around` is the table's
/// collation.
fn collation_clause(words: &mut Words<'_>, around: Collation) -> Result<Option<Collation>, SqlError> {
    let mut charset: Option<String> = None;
    let mut collation: Option<String> = None;
    let mut binary = false;
    loop {
        if words.accept("CHARSET")
            || words.accept_all(&["CHARACTER", "SET"])
            || words.accept_all(&["CHAR", "SET"])
        {
            charset = Some(name_or_string(words)?);
        } else if words.accept("COLLATE") {
            collation = Some(name_or_string(words)?);
        } else if words.accept("ASCII") {
            charset = Some("latin1".to_owned());
        } else if words.accept("UNICODE") {
            charset = Some("utf8mb4".to_owned());
        } else if words.accept("BINARY") {
            binary = true;
        } else if words.accept("BYTE") {
            return Ok(Some(Collation::Binary));
        } else {
            break;
        }
    }
    combine(charset.as_deref(), collation.as_deref(), binary, around)
}

/// The collation that results from a character set, a collation and BINARY together. `around` is the one that
/// holds without them.
pub(crate) fn combine(
    charset: Option<&str>,
    collation: Option<&str>,
    binary: bool,
    around: Collation,
) -> Result<Option<Collation>, SqlError> {
    let charset = match charset {
        Some(name) => Some(charsets::charset(name).ok_or_else(|| unknown_charset(name))?.name),
        None => None,
    };
    if let Some(name) = collation {
        let within = charset.unwrap_or_else(|| around.character_set());
        let found = match charsets::collation_in(name, within) {
            Some(found) => found,
            None if charsets::is_short(name) && charsets::collation_in(name, "utf8mb4").is_some() => {
                return Err(not_of_charset(name, within));
            }
            None => return Err(unknown_collation(name)),
        };
        if charset.is_some_and(|charset| charset != found.charset) {
            return Err(not_of_charset(found.name, within));
        }
        return of_column(found).map(Some);
    }
    if binary {
        let within = charset.unwrap_or_else(|| around.character_set());
        let name = if within == "binary" { within.to_owned() } else { format!("{within}_bin") };
        return collation_named(&name).map(Some);
    }
    charset.map(collation_of_charset).transpose()
}

/// 1253.
pub(crate) fn not_of_charset(collation: &str, charset: &str) -> SqlError {
    error(
        ErrorKind::CollationCharacterSetMismatch,
        format!("COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'"),
    )
}

/// A name, with or without quotes of any kind.
pub(crate) fn name_or_string(words: &mut Words<'_>) -> Result<String, SqlError> {
    match words.peek() {
        Word::Text(_) => words.string(),
        _ => words.name(),
    }
}

/// The type as SHOW COLUMNS prints it: `int(11) unsigned`, `varchar(10)`.
pub(crate) fn type_text(column_type: &ColumnType, extras: &ColumnExtras) -> String {
    let sign = |unsigned: bool| {
        let zerofill = if extras.zerofill { " zerofill" } else { "" };
        format!("{}{zerofill}", if unsigned { " unsigned" } else { "" })
    };
    let fraction = |name: &str, fsp: u8| if fsp == 0 { name.to_owned() } else { format!("{name}({fsp})") };
    let float = |name: &str, unsigned: bool| match extras.float_digits {
        Some((precision, scale)) => format!("{name}({precision},{scale}){}", sign(unsigned)),
        None => format!("{name}{}", sign(unsigned)),
    };
    let sized = |names: [&str; 4], bytes_max: u32| {
        names[match bytes_max {
            0..=255 => 0,
            256..=65_535 => 1,
            65_536..=16_777_215 => 2,
            _ => 3,
        }]
        .to_owned()
    };
    match *column_type {
        ColumnType::Int { bytes, unsigned } => {
            let (name, width) = match bytes {
                1 => ("tinyint", 4),
                2 => ("smallint", 6),
                3 => ("mediumint", 9),
                4 => ("int", 11),
                _ => ("bigint", 20),
            };
            let width = if unsigned && bytes != 8 { width - 1 } else { width };
            format!("{name}({}){}", extras.display_width.unwrap_or(width), sign(unsigned))
        }
        ColumnType::Float { unsigned } => float("float", unsigned),
        ColumnType::Double { unsigned } => float("double", unsigned),
        ColumnType::Decimal { precision, scale, unsigned } => {
            format!("decimal({precision},{scale}){}", sign(unsigned))
        }
        ColumnType::Char { chars, .. } => format!("char({chars})"),
        ColumnType::Varchar { chars, .. } => format!("varchar({chars})"),
        ColumnType::Text { bytes_max, .. } => {
            sized(["tinytext", "text", "mediumtext", "longtext"], bytes_max)
        }
        ColumnType::Binary { bytes } => format!("binary({bytes})"),
        ColumnType::Varbinary { bytes } => format!("varbinary({bytes})"),
        ColumnType::Blob { bytes_max } => sized(["tinyblob", "blob", "mediumblob", "longblob"], bytes_max),
        ColumnType::Date => "date".to_owned(),
        ColumnType::Time { fsp } => fraction("time", fsp),
        ColumnType::DateTime { fsp } => fraction("datetime", fsp),
        ColumnType::Timestamp { fsp } => fraction("timestamp", fsp),
        ColumnType::Year => "year(4)".to_owned(),
        ColumnType::Enum { ref members, .. } => members_text("enum", members),
        ColumnType::Set { ref members, .. } => members_text("set", members),
        ColumnType::Bit { bits } => format!("bit({bits})"),
        ColumnType::Code(code) => code.name().to_owned(),
    }
}

fn members_text(name: &str, members: &Members) -> String {
    let mut text = format!("{name}(");
    for (position, member) in members.names().iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        text.push_str(&quoted_text(member, LexicalMode::NONE));
    }
    text.push(')');
    text
}
