//! Table options that are stored and shown, and their meaning here.
//!
//! Combinations of options follow InnoDB's rules and have its messages, unless the table asks for another
//! engine. A script that InnoDB refuses is refused. Under `innodb_strict_mode = OFF`, mistakes that InnoDB
//! overlooks are overlooked.

use super::column_types::number;
use crate::text::parse::{Word, Words};
use crate::{ErrorKind, SqlError, Warnings};
use engine::PackKeys;

/// An option and its value as SHOW CREATE TABLE prints it; `None` is the default, which is not shown.
pub(crate) type ShownOption = (String, Option<String>);

/// How an option's value is written.
#[derive(Clone, Copy)]
enum Form {
    /// A number; 0 is the default.
    Number,
    /// A number. It only matters whether it is 0, the default.
    Flag,
    /// 0, 1 or DEFAULT.
    Choice,
    NumberOrDefault,
    RowFormat,
}

/// In the order in which MariaDB prints them.
const OPTIONS: &[(&str, Form)] = &[
    ("MIN_ROWS", Form::Number),
    ("MAX_ROWS", Form::Number),
    ("AVG_ROW_LENGTH", Form::Number),
    ("PACK_KEYS", Form::Choice),
    ("STATS_PERSISTENT", Form::Choice),
    ("STATS_AUTO_RECALC", Form::Choice),
    ("STATS_SAMPLE_PAGES", Form::NumberOrDefault),
    ("CHECKSUM", Form::Flag),
    ("PAGE_CHECKSUM", Form::Choice),
    ("DELAY_KEY_WRITE", Form::Flag),
    ("ROW_FORMAT", Form::RowFormat),
    ("KEY_BLOCK_SIZE", Form::Number),
    ("TRANSACTIONAL", Form::Choice),
];

/// The options that MariaDB calls engine attributes. They are printed after everything else, with name and
/// value in quotes.
const ATTRIBUTES: [&str; 3] = ["PAGE_SIZE", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL"];

const ROW_FORMATS: [&str; 6] = ["DYNAMIC", "FIXED", "COMPRESSED", "REDUNDANT", "COMPACT", "PAGE"];

/// Reads an option, if the next words are one.
///
/// # Errors
/// 1064; 1912 for a value that an attribute cannot have.
pub(crate) fn option(words: &mut Words<'_>) -> Result<Option<ShownOption>, SqlError> {
    if let Some(name) = attribute_name(words) {
        return attribute(words, name).map(|value| Some((name.to_owned(), value)));
    }
    let written = if words.is("TABLE_CHECKSUM") { "TABLE_CHECKSUM" } else { "" };
    let known = OPTIONS.iter().find(|(name, _)| words.is(name) || *name == "CHECKSUM" && !written.is_empty());
    let Some((name, form)) = known else { return Ok(None) };
    words.next();
    words.accept_symbol("=");
    let value = value(words, *form)?;
    Ok(Some(((*name).to_owned(), value)))
}

fn value(words: &mut Words<'_>, form: Form) -> Result<Option<String>, SqlError> {
    let takes_default = !matches!(form, Form::Number | Form::Flag);
    if takes_default && words.accept("DEFAULT") {
        return Ok(None);
    }
    if let Form::RowFormat = form {
        let found = ROW_FORMATS.iter().find(|format| words.is(format)).ok_or_else(|| words.error())?;
        words.next();
        return Ok(Some((*found).to_owned()));
    }
    let before = words.error();
    let value = number(words)?;
    match form {
        Form::Number | Form::Flag if value == 0 => Ok(None),
        Form::Flag => Ok(Some("1".to_owned())),
        Form::Choice if value > 1 => Err(before),
        _ => Ok(Some(value.to_string())),
    }
}

/// The attribute, if `name =` begins one.
fn attribute_name(words: &Words<'_>) -> Option<&'static str> {
    let (Word::Bare(written) | Word::Name(written)) = words.peek() else { return None };
    ATTRIBUTES.into_iter().find(|name| name.eq_ignore_ascii_case(written))
}

fn attribute(words: &mut Words<'_>, name: &str) -> Result<Option<String>, SqlError> {
    words.next();
    words.expect_symbol("=")?;
    let before = words.error();
    // A reserved word must be in quotes here.
    if words.is("ON") {
        return Err(before);
    }
    let (Word::Bare(text) | Word::Text(text) | Word::Number(text)) = words.next() else { return Err(before) };
    if text.eq_ignore_ascii_case("DEFAULT") {
        return Ok(None);
    }
    let shown = match name {
        "PAGE_COMPRESSED" => switch(&text).map(|_| text.clone()),
        "PAGE_COMPRESSION_LEVEL" => {
            text.parse().ok().filter(|level| (1..=9).contains(level)).map(|level: u8| level.to_string())
        }
        _ => bytes(&text).filter(|size| is_page_size(*size)).map(|size| size.to_string()),
    };
    match shown {
        Some(shown) => Ok(Some(shown)),
        None => {
            let text = format!("Incorrect value '{text}' for option '{name}'");
            Err(SqlError::new(ErrorKind::BadOptionValue, text))
        }
    }
}

/// True for a possible page size: a power of two from 1 to 64 KiB.
pub(crate) fn is_page_size(bytes: u64) -> bool {
    bytes.is_power_of_two() && (1 << 10..=64 << 10).contains(&bytes)
}

/// `8192`, `8K`.
fn bytes(text: &str) -> Option<u64> {
    match text.strip_suffix(['k', 'K']) {
        Some(kilobytes) => kilobytes.parse::<u64>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

fn switch(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["1", "ON", "YES"]) { Some(true) } else { is(&["0", "OFF", "NO"]).then_some(false) }
}

/// 1911 if an option with an unknown name comes next.
pub(crate) fn unknown(words: &Words<'_>) -> Option<SqlError> {
    let (Word::Bare(name) | Word::Name(name)) = words.peek() else { return None };
    let is_option = matches!(words.peek_second(), Word::Symbol(symbol) if symbol == "=");
    is_option.then(|| SqlError::new(ErrorKind::UnknownOption, format!("Unknown option '{name}'")))
}

/// The options as SHOW CREATE TABLE prints them: first those before the comment, then those after it.
pub(crate) fn shown(options: &[(String, String)]) -> (Vec<String>, Vec<String>) {
    let in_order = |(name, _): &&(String, String)| OPTIONS.iter().position(|(known, _)| known == name);
    let mut plain: Vec<&(String, String)> =
        options.iter().filter(|(name, _)| !ATTRIBUTES.contains(&name.as_str())).collect();
    plain.sort_by_key(in_order);
    let attributes = options.iter().filter(|(name, _)| ATTRIBUTES.contains(&name.as_str()));
    (
        plain.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        attributes.map(|(name, value)| format!("`{name}`='{value}'")).collect(),
    )
}

/// CREATE_OPTIONS of `information_schema.TABLES`.
pub(crate) fn create_options(options: &[(String, String)]) -> String {
    let (plain, attributes) = shown(options);
    let small = plain.iter().map(|option| match option.split_once('=') {
        Some((name, value)) => format!("{}={value}", name.to_ascii_lowercase()),
        None => option.clone(),
    });
    small.chain(attributes).collect::<Vec<_>>().join(" ")
}

/// The meaning of a table's options, as far as it has an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meaning<'o> {
    row_format: Option<&'o str>,
    /// In KiB.
    key_block_size: Option<u64>,
    page_compressed: bool,
    level: Option<u64>,
    pub page_size: Option<u32>,
    pub pack_keys: PackKeys,
}

impl<'o> Meaning<'o> {
    pub(crate) fn of(options: &'o [(String, String)]) -> Meaning<'o> {
        let text =
            |name: &str| options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let number = |name: &str| text(name).and_then(|text| text.parse().ok());
        Meaning {
            row_format: text("ROW_FORMAT"),
            key_block_size: number("KEY_BLOCK_SIZE"),
            page_compressed: text("PAGE_COMPRESSED").and_then(switch).unwrap_or(false),
            level: number("PAGE_COMPRESSION_LEVEL"),
            page_size: number("PAGE_SIZE").and_then(|size| u32::try_from(size).ok()),
            pack_keys: match text("PACK_KEYS") {
                Some("0") => PackKeys::Never,
                Some(_) => PackKeys::Always,
                None => PackKeys::Default,
            },
        }
    }

    fn valid_block(&self) -> bool {
        self.key_block_size.is_some_and(|size| matches!(size, 1 | 2 | 4 | 8 | 16))
    }

    /// True if pages are to be compressed.
    pub(crate) fn is_compressed(&self, engine: &str) -> bool {
        self.page_compressed || self.row_format(engine) == "Compressed"
    }

    /// ROW_FORMAT of `information_schema.TABLES`.
    pub(crate) fn row_format(&self, engine: &str) -> &'static str {
        match self.row_format {
            Some("FIXED") if !is_innodb(engine) => "Fixed",
            Some("COMPRESSED") => "Compressed",
            Some("REDUNDANT") => "Redundant",
            Some("COMPACT") => "Compact",
            None if self.valid_block() && is_innodb(engine) => "Compressed",
            _ => "Dynamic",
        }
    }
}

/// False if the table asked for another engine, which accepts any combination of these options.
fn is_innodb(engine: &str) -> bool {
    !["MyISAM", "Aria", "MEMORY"].iter().any(|other| other.eq_ignore_ascii_case(engine))
}

/// The statement whose options are checked.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub database: &'a str,
    pub table: &'a str,
    pub engine: &'a str,
    /// `innodb_strict_mode`.
    pub strict: bool,
    pub alters: bool,
}

/// Refuses options that InnoDB refuses, and warns as InnoDB does.
///
/// # Errors
/// 1005 for CREATE TABLE, 1478 for ALTER TABLE. The warnings say what is wrong.
pub(crate) fn check(
    options: &[(String, String)],
    asking: Asking<'_>,
    warnings: &mut Warnings,
) -> Result<(), SqlError> {
    if !is_innodb(asking.engine) {
        return Ok(());
    }
    let meaning = Meaning::of(options);
    if let Some((option, why)) = compression_conflict(&meaning) {
        warnings.warn(ErrorKind::WrongCreateOption, format!("InnoDB: {why}"));
        return Err(refused(option, asking));
    }
    let mut wrong = None;
    let mut refuse = |option: &'static str, text: String, warnings: &mut Warnings| {
        warnings.warn(ErrorKind::IllegalCreateOption, format!("InnoDB: {text}"));
        wrong = wrong.or(Some(option));
    };
    let row_format = meaning.row_format.filter(|format| *format != "COMPRESSED");
    let has_no_blocks = row_format.filter(|format| matches!(*format, "DYNAMIC" | "COMPACT" | "REDUNDANT"));
    let is_foreign = matches!(row_format, Some("FIXED" | "PAGE"));
    if asking.strict {
        if let Some(size) = meaning.key_block_size.filter(|_| !meaning.valid_block()) {
            let text = format!("invalid KEY_BLOCK_SIZE = {size}. Valid values are [1, 2, 4, 8, 16]");
            refuse("KEY_BLOCK_SIZE", text, warnings);
        }
        if let (Some(format), Some(_)) = (has_no_blocks, meaning.key_block_size) {
            let text = format!("cannot specify ROW_FORMAT = {format} with KEY_BLOCK_SIZE.");
            refuse("KEY_BLOCK_SIZE", text, warnings);
        }
        if is_foreign {
            refuse("ROW_TYPE", "invalid ROW_FORMAT specifier.".to_owned(), warnings);
        }
        return match wrong {
            None => Ok(()),
            Some(option) => Err(refused(option, asking)),
        };
    }
    match meaning.key_block_size {
        Some(size) if !meaning.valid_block() => {
            warnings.warn(ErrorKind::IllegalCreateOption, format!("InnoDB: ignoring KEY_BLOCK_SIZE={size}."));
        }
        Some(size) if row_format.is_some() => {
            let text = format!("InnoDB: ignoring KEY_BLOCK_SIZE={size} unless ROW_FORMAT=COMPRESSED.");
            warnings.warn(ErrorKind::IllegalCreateOption, text);
        }
        _ => {}
    }
    if is_foreign {
        warnings.warn(ErrorKind::IllegalCreateOption, "InnoDB: assuming ROW_FORMAT=DYNAMIC.");
    }
    Ok(())
}

/// An option that cannot be combined with PAGE_COMPRESSED, in strict mode or not, and the reason.
fn compression_conflict(meaning: &Meaning<'_>) -> Option<(&'static str, String)> {
    if !meaning.page_compressed {
        let why = "PAGE_COMPRESSION_LEVEL requires PAGE_COMPRESSED";
        return meaning.level.map(|_| ("PAGE_COMPRESSION_LEVEL", why.to_owned()));
    }
    if let Some(format @ ("COMPRESSED" | "REDUNDANT")) = meaning.row_format {
        let why = format!("PAGE_COMPRESSED table can't have ROW_TYPE={format}");
        return Some(("PAGE_COMPRESSED", why));
    }
    let why = "PAGE_COMPRESSED table can't have key_block_size";
    meaning.key_block_size.map(|_| ("PAGE_COMPRESSED", why.to_owned()))
}

fn refused(option: &str, asking: Asking<'_>) -> SqlError {
    if asking.alters {
        let text = format!("Table storage engine 'InnoDB' does not support the create option '{option}'");
        return SqlError::new(ErrorKind::IllegalCreateOption, text);
    }
    let Asking { database, table, .. } = asking;
    let text = format!("Can't create table `{database}`.`{table}` (errno: 140 \"Wrong create options\")");
    SqlError::new(ErrorKind::CannotCreateTable, text)
}
