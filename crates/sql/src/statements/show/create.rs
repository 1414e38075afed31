//! SHOW CREATE TABLE and SHOW CREATE DATABASE.

use super::listing::{Listing, characters};
use crate::accounts::Rights;
use crate::definition::check::Check;
use crate::definition::column_types::type_text;
use crate::definition::expression::is_simple;
use crate::definition::metadata::TableMetadata;
use crate::definition::options;
use crate::definition::rank;
use crate::definition::{ColumnDefault, ColumnExtras, Generated};
use crate::definition::{quoted, quoted_text};
use crate::names::charsets::describe;
use crate::names::{INFORMATION_SCHEMA, virtual_database};
use crate::plan::plan::VirtualTable;
use crate::statements::show::infoschema;
use crate::text::LexicalMode;
use crate::text::parse::Words;
use crate::{ResultSink, Session, SqlError};
use engine::{IndexDef, Table, TableDef};
use std::fmt::Write;
use types::{Collation, Column, ColumnType, KeyPart, Value};

/// The default of a column as SHOW CREATE TABLE and `information_schema` print it; `None` for none.
pub(crate) fn default_text(column: &Column, extras: &ColumnExtras, mode: LexicalMode) -> Option<String> {
    match &extras.default {
        ColumnDefault::Unset if !column.nullable => None,
        ColumnDefault::Unset | ColumnDefault::Null => Some("NULL".to_owned()),
        ColumnDefault::Number(number) if matches!(column.column_type, ColumnType::Bit { .. }) => {
            Some(format!("b'{:b}'", number.parse::<u64>().unwrap_or(0)))
        }
        ColumnDefault::Number(number) => Some(number.clone()),
        ColumnDefault::Text(text) => Some(quoted_text(text, mode)),
        ColumnDefault::Binary(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Some(quoted_text(text, mode)),
            Err(_) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(format!("x'{digits}'"))
            }
        },
        ColumnDefault::Now => Some(now_text(&column.column_type)),
        ColumnDefault::Expression(text) if is_simple(text) => Some(text.clone()),
        ColumnDefault::Expression(text) => Some(format!("({text})")),
    }
}

/// `current_timestamp()` with the column's digits of a second.
pub(crate) fn now_text(column_type: &ColumnType) -> String {
    match column_type {
        ColumnType::DateTime { fsp: 0 } | ColumnType::Timestamp { fsp: 0 } => {
            "current_timestamp()".to_owned()
        }
        ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => format!("current_timestamp({fsp})"),
        _ => "current_timestamp()".to_owned(),
    }
}

/// The positions in `def.indexes`, in the order in which MySQL lists indexes.
pub(crate) fn index_order(def: &TableDef) -> Vec<usize> {
    let mut order: Vec<usize> = (0..def.indexes.len()).collect();
    order.sort_by_key(|position| rank(&def.columns, &def.indexes[*position]));
    order
}

fn key_list(def: &TableDef, parts: &[KeyPart], mode: LexicalMode) -> String {
    let mut list = String::new();
    for (position, part) in parts.iter().enumerate() {
        if position > 0 {
            list.push(',');
        }
        list.push_str(&quoted(&def.columns[part.column].name, mode));
        if let Some(prefix) = part.prefix_chars {
            list.push_str(&format!("({prefix})"));
        }
        if part.descending {
            list.push_str(" DESC");
        }
    }
    list
}

fn column_line(def: &TableDef, metadata: &TableMetadata, position: usize, mode: LexicalMode) -> String {
    let column = &def.columns[position];
    let extras = &metadata.columns[position];
    let mut line = format!("  {} {}", quoted(&column.name, mode), type_text(&column.column_type, extras));
    if column.column_type.has_characters() && column.column_type.collation() != metadata.collation {
        let info = describe(column.column_type.collation());
        line.push_str(&format!(" CHARACTER SET {}", info.charset));
        if column.column_type.collation() != Collation::Binary {
            line.push_str(&format!(" COLLATE {}", info.name));
        }
    }
    if let Some(Generated { expression, stored }) = &extras.generated {
        let kind = if *stored { "STORED" } else { "VIRTUAL" };
        line.push_str(&format!(" GENERATED ALWAYS AS ({expression}) {kind}"));
    } else if !column.nullable {
        line.push_str(" NOT NULL");
    } else if matches!(column.column_type, ColumnType::Timestamp { .. }) {
        line.push_str(" NULL");
    }
    if extras.invisible {
        line.push_str(" INVISIBLE");
    }
    if extras.generated.is_some() {
    } else if def.auto_increment == Some(position) {
        line.push_str(" AUTO_INCREMENT");
    } else if let Some(default) = default_text(column, extras, mode) {
        line.push_str(&format!(" DEFAULT {default}"));
    }
    if extras.on_update_now {
        line.push_str(&format!(" ON UPDATE {}", now_text(&column.column_type)));
    }
    if !extras.comment.is_empty() {
        line.push_str(&format!(" COMMENT {}", quoted_text(&extras.comment, mode)));
    }
    if let Some(condition) = &extras.check {
        line.push_str(&format!(" CHECK ({condition})"));
    }
    line
}

fn index_line(def: &TableDef, metadata: &TableMetadata, index: &IndexDef, mode: LexicalMode) -> String {
    let kind = if index.unique { "UNIQUE KEY" } else { "KEY" };
    let mut line = format!("  {kind} {} ({})", quoted(&index.name, mode), key_list(def, &index.parts, mode));
    push_comment(metadata.index_comment(&index.name), &mut line, mode);
    if metadata.is_ignored(&index.name) {
        line.push_str(" IGNORED");
    }
    line
}

fn push_comment(comment: &str, line: &mut String, mode: LexicalMode) {
    if !comment.is_empty() {
        line.push_str(&format!(" COMMENT {}", quoted_text(comment, mode)));
    }
}

/// The statement that would create the table as it is, for this session.
///
/// # Errors
/// 1105 for a damaged catalogue.
pub(super) fn create_statement(table: &Table, session: &Session) -> Result<String, SqlError> {
    let def = table.def();
    let mode = session.lexical();
    let metadata = TableMetadata::of(&def)?.in_zone(&def, session.variables.zone());
    let mut lines: Vec<String> =
        (0..def.columns.len()).map(|position| column_line(&def, &metadata, position, mode)).collect();
    if let Some(primary) = &def.primary {
        let mut line = format!("  PRIMARY KEY ({})", key_list(&def, primary, mode));
        push_comment(metadata.index_comment("PRIMARY"), &mut line, mode);
        lines.push(line);
    }
    for position in index_order(&def) {
        lines.push(index_line(&def, &metadata, &def.indexes[position], mode));
    }
    lines.extend(metadata.foreign_keys.iter().map(|key| format!("  {}", key.clause(&def.database, mode))));
    let check =
        |check: &Check| format!("  CONSTRAINT {} CHECK ({})", quoted(&check.name, mode), check.condition);
    lines.extend(metadata.checks.iter().map(check));
    let mut statement = format!("CREATE TABLE {} (\n{}\n)", quoted(&def.name, mode), lines.join(",\n"));
    let _ = write!(statement, " ENGINE={}", metadata.shown_engine());
    let next = table.next_auto_increment();
    let info = describe(metadata.collation);
    // Writing to a string cannot fail.
    if def.auto_increment.is_some() && next > 1 {
        let _ = write!(statement, " AUTO_INCREMENT={next}");
    }
    let _ = write!(statement, " DEFAULT CHARSET={} COLLATE={}", info.charset, info.name);
    let (options, attributes) = options::shown(&metadata.options);
    for option in options {
        let _ = write!(statement, " {option}");
    }
    if !metadata.comment.is_empty() {
        let _ = write!(statement, " COMMENT={}", quoted_text(&metadata.comment, mode));
    }
    for attribute in attributes {
        let _ = write!(statement, " {attribute}");
    }
    Ok(statement)
}

/// What SHOW CREATE TABLE prints for a table that is computed.
fn virtual_statement(table: &VirtualTable, mode: LexicalMode) -> String {
    let column = |column: &Column| {
        let null = if column.nullable { "" } else { " NOT NULL" };
        let column_type = type_text(&column.column_type, &ColumnExtras::default());
        format!("  {} {column_type}{null}", quoted(&column.name, mode))
    };
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    format!(
        "CREATE TEMPORARY TABLE {} (\n{}\n) ENGINE={} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
        quoted(table.name, mode),
        columns.join(",\n"),
        infoschema::engine_of(table.database),
    )
}

/// SHOW CREATE, behind those words.
pub(super) fn show_create(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    if words.accept("TABLE") {
        let (database, name) = words.qualified_name()?;
        words.end()?;
        let database = session.resolve_database(database)?;
        let computed = infoschema::find(&database, &name);
        let is_free = computed.is_some_and(|table| table.database == INFORMATION_SCHEMA);
        if !is_free && !session.access.on_table(&database, &name).rights.intersects(Rights::OF_TABLES) {
            return Err(session.access.command_denied("SHOW", &database, &name));
        }
        let (name, statement) = match computed {
            Some(table) => (table.name.to_owned(), virtual_statement(table, session.lexical())),
            None => {
                let statement = create_statement(&*session.table(&database, &name)?, session)?;
                (name, statement)
            }
        };
        let mut listing = Listing::new([("Table", characters(64)), ("Create Table", characters(1024))]);
        listing.push(vec![Value::text(name), Value::text(statement)]);
        return listing.send(session, sink);
    }
    if words.accept("DATABASE") || words.accept("SCHEMA") {
        let if_not_exists = words.accept_all(&["IF", "NOT", "EXISTS"]);
        let name = words.name()?;
        words.end()?;
        let computed = virtual_database(&name);
        if !session.access.sees_database(&name) && computed != Some(INFORMATION_SCHEMA) {
            return Err(session.access.database_denied(&name));
        }
        let info = match computed {
            Some(_) => describe(types::Collation::Utf8mb4GeneralCi),
            None => describe(session.database_collation(&name)?),
        };
        let condition = if if_not_exists { "/*!32312 IF NOT EXISTS*/ " } else { "" };
        let statement = format!(
            "CREATE DATABASE {condition}{} /*!40100 DEFAULT CHARACTER SET {} COLLATE {} */",
            quoted(&name, session.lexical()),
            info.charset,
            info.name
        );
        let mut listing = Listing::new([("Database", characters(64)), ("Create Database", characters(1024))]);
        listing.push(vec![Value::text(name), Value::text(statement)]);
        return listing.send(session, sink);
    }
    for kind in ["VIEW", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "SEQUENCE", "PACKAGE"] {
        if words.is(kind) {
            return Err(SqlError::not_supported(&format!("SHOW CREATE {kind}")));
        }
    }
    Err(words.error())
}
