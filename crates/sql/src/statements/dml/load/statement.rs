//! Reads the text of LOAD DATA.

use super::format::Format;
use crate::names::charsets::{self, Charset};
use crate::statements::dml::inserter::OnDuplicate;
use crate::text::parse::{self, Word, Words};
use crate::variables::assign::usable;
use crate::{ErrorKind, Session, SqlError};
use sqlparser::ast;

/// Where the value of a field goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum FieldTarget {
    /// A column. Its table and database may stand before it.
    Column(Vec<String>),
    /// A user variable, in lower case.
    Variable(String),
}

/// LOAD DATA as it was written.
#[derive(Debug)]
pub(super) struct LoadStatement {
    /// True if the client sends the file.
    pub local: bool,
    pub file: String,
    pub on_duplicate: OnDuplicate,
    pub database: Option<String>,
    pub table: String,
    pub charset: Option<&'static Charset>,
    /// The marks. Widths are missing here, because they depend on the table.
    pub format: Format,
    /// False if LINES TERMINATED BY was written as the empty text.
    pub has_line_end: bool,
    pub lines_to_skip: u64,
    /// Empty if none are written: then all columns.
    pub targets: Vec<FieldTarget>,
    pub assignments: Vec<ast::Assignment>,
}

/// LOAD DATA, behind those words.
pub(super) fn parse(session: &mut Session, words: &mut Words<'_>) -> Result<LoadStatement, SqlError> {
    let _ = words.accept("LOW_PRIORITY") || words.accept("CONCURRENT");
    let local = words.accept("LOCAL");
    words.expect("INFILE")?;
    let file = words.string()?;
    let on_duplicate = if words.accept("REPLACE") {
        OnDuplicate::Replace
    } else if words.accept("IGNORE") || local {
        // A client cannot be told to stop sending, so duplicates are skipped and the rest is read.
        OnDuplicate::Skip
    } else {
        OnDuplicate::Fail
    };
    words.expect("INTO")?;
    words.expect("TABLE")?;
    let (database, table) = words.qualified_name()?;
    if words.is("PARTITION") {
        return Err(SqlError::new(
            ErrorKind::PartitionClauseOnUnpartitioned,
            "PARTITION () clause on non partitioned table",
        ));
    }
    let charset = charset(words)?;
    let marks = marks(words)?;
    let lines_to_skip = if words.accept("IGNORE") {
        let Word::Number(number) = words.next() else { return Err(words.error()) };
        let count = number.parse().map_err(|_| words.error())?;
        if !words.accept("LINES") {
            words.expect("ROWS")?;
        }
        count
    } else {
        0
    };
    let targets = targets(words)?;
    let assignments = if words.accept("SET") {
        let assignments = parse::parse_assignments(words.rest(), words.mode())?;
        words.skip_rest();
        assignments
    } else {
        Vec::new()
    };
    words.end()?;
    warn_beyond_ascii(session, &marks);
    let has_line_end = !marks.line_end.is_empty();
    let format = Format {
        enclosed: single(&marks.enclosed)?,
        escape: single(&marks.escape)?,
        field_end: marks.field_end,
        line_start: marks.line_start,
        line_end: marks.line_end,
        widths: None,
    };
    Ok(LoadStatement {
        local,
        file,
        on_duplicate,
        database,
        table,
        charset,
        format,
        has_line_end,
        lines_to_skip,
        targets,
        assignments,
    })
}

fn charset(words: &mut Words<'_>) -> Result<Option<&'static Charset>, SqlError> {
    if !words.accept_all(&["CHARACTER", "SET"]) && !words.accept("CHARSET") {
        return Ok(None);
    }
    let name = if matches!(words.peek(), Word::Text(_)) { words.string()? } else { words.name()? };
    match charsets::charset(&name) {
        Some(charset) => usable(charset, "character_set_database").map(|()| Some(charset)),
        None => {
            Err(SqlError::new(ErrorKind::UnknownCharacterSet, format!("Unknown character set: '{name}'")))
        }
    }
}

/// The byte of a mark that can have one byte at most.
fn single(mark: &[u8]) -> Result<Option<u8>, SqlError> {
    if mark.len() > 1 {
        let text = "Field separator argument is not what is expected; check the manual";
        return Err(SqlError::new(ErrorKind::WrongFieldTerminators, text));
    }
    Ok(mark.first().copied())
}

/// The marks, as they were written.
struct Marks {
    field_end: Vec<u8>,
    enclosed: Vec<u8>,
    escape: Vec<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
}

fn marks(words: &mut Words<'_>) -> Result<Marks, SqlError> {
    let mut marks = Marks {
        field_end: b"\t".to_vec(),
        enclosed: Vec::new(),
        // Where backslashes escape nothing in statements, only ESCAPED BY gives a file an escape.
        escape: if words.mode().escapes() { b"\\".to_vec() } else { Vec::new() },
        line_start: Vec::new(),
        line_end: b"\n".to_vec(),
    };
    if words.accept("FIELDS") || words.accept("COLUMNS") {
        let mut count = 0;
        loop {
            if words.accept_all(&["TERMINATED", "BY"]) {
                marks.field_end = mark(words)?;
            } else if words.accept_all(&["OPTIONALLY", "ENCLOSED", "BY"])
                || words.accept_all(&["ENCLOSED", "BY"])
            {
                marks.enclosed = mark(words)?;
            } else if words.accept_all(&["ESCAPED", "BY"]) {
                marks.escape = mark(words)?;
            } else {
                break;
            }
            count += 1;
        }
        if count == 0 {
            return Err(words.error());
        }
    }
    if words.accept("LINES") {
        let mut count = 0;
        loop {
            if words.accept_all(&["STARTING", "BY"]) {
                marks.line_start = mark(words)?;
            } else if words.accept_all(&["TERMINATED", "BY"]) {
                marks.line_end = mark(words)?;
            } else {
                break;
            }
            count += 1;
        }
        if count == 0 {
            return Err(words.error());
        }
    }
    Ok(marks)
}

/// A text, given directly or as hexadecimal or binary digits.
fn mark(words: &mut Words<'_>) -> Result<Vec<u8>, SqlError> {
    if let Word::Symbol(symbol) = words.peek() {
        let error = words.error();
        let quoted =
            symbol.get(1..).and_then(|rest| rest.strip_prefix('\'')).and_then(|rest| rest.strip_suffix('\''));
        let bytes = match (symbol.chars().next(), quoted) {
            (Some('x' | 'X'), Some(digits)) => digits_to_bytes(digits, 16, 2),
            (Some('b' | 'B'), Some(digits)) => digits_to_bytes(digits, 2, 8),
            _ => None,
        };
        words.next();
        return bytes.ok_or(error);
    }
    words.string().map(String::into_bytes)
}

fn digits_to_bytes(digits: &str, radix: u32, digits_a_byte: usize) -> Option<Vec<u8>> {
    let padded = digits.len().next_multiple_of(digits_a_byte);
    let digits = format!("{digits:0>padded$}");
    let groups = digits.as_bytes().chunks(digits_a_byte);
    groups.map(|group| u8::from_str_radix(std::str::from_utf8(group).ok()?, radix).ok()).collect()
}

/// 1638 for a mark that may have another form in the file's character set.
fn warn_beyond_ascii(session: &mut Session, marks: &Marks) {
    let all = [&marks.field_end, &marks.enclosed, &marks.escape, &marks.line_start, &marks.line_end];
    if all.iter().any(|mark| !mark.is_ascii()) {
        session
            .state
            .warnings
            .warn(ErrorKind::NonAsciiSeparator, "Non-ASCII separator arguments are not fully supported");
    }
}

fn targets(words: &mut Words<'_>) -> Result<Vec<FieldTarget>, SqlError> {
    let mut targets = Vec::new();
    if !words.accept_symbol("(") || words.accept_symbol(")") {
        return Ok(targets);
    }
    loop {
        match words.peek() {
            Word::Bare(word) if word.starts_with('@') && !word.starts_with("@@") && word.len() > 1 => {
                targets.push(FieldTarget::Variable(word[1..].to_lowercase()));
                words.next();
            }
            _ => {
                let mut path = vec![words.name()?];
                while words.accept_symbol(".") {
                    path.push(words.name()?);
                }
                targets.push(FieldTarget::Column(path));
            }
        }
        if !words.accept_symbol(",") {
            break;
        }
    }
    words.expect_symbol(")")?;
    Ok(targets)
}
