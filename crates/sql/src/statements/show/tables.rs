//! SHOW TABLES, COLUMNS, INDEX, TABLE STATUS, and DESCRIBE.

use super::create::{index_order, now_text};
use super::default_text;
use super::listing::{Listing, characters, number};
use crate::accounts::Rights;
use crate::accounts::access::Access;
use crate::definition::column_types::type_text;
use crate::definition::metadata::TableMetadata;
use crate::definition::{ColumnDefault, ColumnExtras};
use crate::names::{INFORMATION_SCHEMA, charsets, virtual_database};
use crate::plan::plan::VirtualTable;
use crate::statements::show::infoschema::{self, column_key, status_of, table_status_row};
use crate::text::LexicalMode;
use crate::text::parse::{Word, Words};
use crate::{ResultSink, Session, SqlError};
use engine::{Error, Table};
use std::sync::Arc;
use types::{Column, ColumnType, Value};

impl Session {
    /// The tables of a database.
    fn tables_of(&self, database: &str) -> Result<Vec<Arc<Table>>, SqlError> {
        if !self.access.sees_tables_of(database) {
            return Err(self.access.database_denied(database));
        }
        let tables = self.instance.database.tables(database).map_err(|error| match error {
            Error::NoSuchDatabase => SqlError::unknown_database(database),
            other => SqlError::from(other),
        });
        let sees = |table: &Arc<Table>| self.access.sees_table(database, &table.def().name);
        Ok(tables?.into_iter().filter(sees).collect())
    }
}

/// FROM database or IN database. Without either, the session's database.
fn database_of(session: &Session, words: &mut Words<'_>) -> Result<String, SqlError> {
    let written = if words.accept("FROM") || words.accept("IN") { Some(words.name()?) } else { None };
    session.resolve_database(written)
}

/// The tables of a database whose tables are all computed.
fn virtual_tables(session: &Session, database: &str) -> Result<Option<&'static [VirtualTable]>, SqlError> {
    let Some(database) = virtual_database(database) else { return Ok(None) };
    if database != INFORMATION_SCHEMA && !session.access.sees_tables_of(database) {
        return Err(session.access.database_denied(database));
    }
    Ok(Some(infoschema::all(database)))
}

/// The name of a table behind FROM or IN, with its database. The database may follow in a second FROM.
fn table_name(session: &Session, words: &mut Words<'_>) -> Result<(String, String), SqlError> {
    if !words.accept("FROM") {
        words.expect("IN")?;
    }
    let (database, name) = words.qualified_name()?;
    let database = match database {
        Some(database) => database,
        None => database_of(session, words)?,
    };
    Ok((database, name))
}

/// The pattern of LIKE, if it comes next. The heading of SHOW TABLES shows it.
fn pattern_ahead(words: &Words<'_>) -> Option<String> {
    let mut ahead = words.clone();
    if !ahead.accept("LIKE") {
        return None;
    }
    ahead.string().ok()
}

pub(super) fn show_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    full: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let database = database_of(session, words)?;
    let mut heading = format!("Tables_in_{database}");
    if let Some(pattern) = pattern_ahead(words) {
        heading = format!("{heading} ({pattern})");
    }
    let mut columns = vec![(heading, characters(64))];
    if full {
        columns.push(("Table_type".to_owned(), characters(64)));
    }
    let mut listing = Listing::new(columns);
    let mut push = |name: &str, kind: &str| {
        let mut row = vec![Value::text(name)];
        if full {
            row.push(Value::text(kind));
        }
        listing.push(row);
    };
    if let Some(tables) = virtual_tables(session, &database)? {
        for table in tables {
            push(table.name, infoschema::kind_of(table.database));
        }
    } else {
        for table in session.tables_of(&database)? {
            push(&table.def().name, "BASE TABLE");
        }
    }
    listing.filter(words)?;
    words.end()?;
    listing.send(session, sink)
}

pub(super) fn show_open_tables(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let database = database_of(session, words).ok();
    let mut listing = Listing::new([
        ("Database", characters(64)),
        ("Table", characters(64)),
        ("In_use", number()),
        ("Name_locked", number()),
    ]);
    session.each_table(|in_database, table| {
        if database.as_ref().is_none_or(|wanted| wanted == in_database) {
            let name = table.def().name.clone();
            listing.push(vec![Value::text(in_database), Value::text(name), Value::UInt(0), Value::UInt(0)]);
        }
        Ok(())
    })?;
    listing.filter(words)?;
    words.end()?;
    listing.send(session, sink)
}

pub(super) fn show_table_status(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let database = database_of(session, words)?;
    let names = [
        "Version",
        "Rows",
        "Avg_row_length",
        "Data_length",
        "Max_data_length",
        "Index_length",
        "Data_free",
        "Auto_increment",
        "Checksum",
        "Max_index_length",
    ];
    let columns = [
        "Name",
        "Engine",
        "Version",
        "Row_format",
        "Rows",
        "Avg_row_length",
        "Data_length",
        "Max_data_length",
        "Index_length",
        "Data_free",
        "Auto_increment",
        "Create_time",
        "Update_time",
        "Check_time",
        "Collation",
        "Checksum",
        "Create_options",
        "Comment",
        "Max_index_length",
        "Temporary",
    ];
    let mut listing = Listing::new(columns.into_iter().map(|name| {
        let kind = match name {
            name if names.contains(&name) => number(),
            "Create_time" | "Update_time" | "Check_time" => ColumnType::DateTime { fsp: 0 },
            "Create_options" | "Comment" => characters(2048),
            _ => characters(64),
        };
        (name, kind)
    }));
    if let Some(tables) = virtual_tables(session, &database)? {
        for table in tables {
            listing.push(table_status_row(table));
        }
    } else {
        for table in session.tables_of(&database)? {
            let mut row = vec![Value::text(&table.def().name)];
            row.extend(status_of(session, &table)?);
            listing.push(row);
        }
    }
    listing.filter(words)?;
    words.end()?;
    listing.send(session, sink)
}

/// The content of the column Extra.
pub(crate) fn extra_text(column_type: &ColumnType, extras: &ColumnExtras, auto_increment: bool) -> String {
    let mut parts = Vec::new();
    if auto_increment {
        parts.push("auto_increment".to_owned());
    }
    if extras.on_update_now {
        parts.push(format!("on update {}", now_text(column_type)));
    }
    if let Some(generated) = &extras.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        parts.push(format!("{kind} GENERATED"));
    }
    if extras.invisible {
        parts.push("INVISIBLE".to_owned());
    }
    parts.join(", ")
}

/// A default in the form in which SHOW COLUMNS prints it: texts without quotes, and NULL both for a default
/// of NULL and for no default.
fn plain_default(column: &Column, extras: &ColumnExtras, auto_increment: bool) -> Value {
    match &extras.default {
        _ if auto_increment => Value::Null,
        ColumnDefault::Unset | ColumnDefault::Null => Value::Null,
        ColumnDefault::Text(text) => Value::text(text.clone()),
        _ => default_text(column, extras, LexicalMode::NONE).map_or(Value::Null, Value::text),
    }
}

/// The rights on a column as SHOW FULL COLUMNS lists them.
pub(crate) fn rights_text(rights: Rights) -> String {
    let names: Vec<&str> = (rights & Rights::OF_COLUMNS).names().collect();
    names.join(",").to_ascii_lowercase()
}

/// `full` has the rights on the column, for SHOW FULL COLUMNS.
fn column_row(
    column: &Column,
    extras: &ColumnExtras,
    key: &str,
    auto_increment: bool,
    full: Option<Rights>,
) -> Vec<Value> {
    let mut row = vec![Value::text(&column.name), Value::text(type_text(&column.column_type, extras))];
    if full.is_some() {
        row.push(if column.column_type.has_characters() {
            Value::text(charsets::describe(column.column_type.collation()).name)
        } else {
            Value::Null
        });
    }
    row.push(Value::text(if column.nullable { "YES" } else { "NO" }));
    row.push(Value::text(key));
    row.push(plain_default(column, extras, auto_increment));
    row.push(Value::text(extra_text(&column.column_type, extras, auto_increment)));
    if let Some(rights) = full {
        row.push(Value::text(rights_text(rights)));
        row.push(Value::text(&extras.comment));
    }
    row
}

fn columns_listing(session: &Session, database: &str, name: &str, full: bool) -> Result<Listing, SqlError> {
    let headings: &[&str] = if full {
        &["Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment"]
    } else {
        &["Field", "Type", "Null", "Key", "Default", "Extra"]
    };
    let mut listing = Listing::new(headings.iter().map(|heading| (*heading, characters(1024))));
    if let Some(table) = infoschema::find(database, name) {
        for column in &table.columns {
            let rights = full.then_some(Rights::SELECT);
            listing.push(column_row(column, &ColumnExtras::default(), "", false, rights));
        }
        return Ok(listing);
    }
    session.check_columns_seen(database, name)?;
    let table = session.table(database, name)?;
    let def = table.def();
    let metadata = TableMetadata::of(&def)?.in_zone(&def, session.variables.zone());
    for (position, column) in def.columns.iter().enumerate() {
        let rights = session.access.on_column(database, name, &column.name);
        if rights.is_empty() {
            continue;
        }
        let auto = def.auto_increment == Some(position);
        let key = column_key(&def, position);
        listing.push(column_row(column, &metadata.columns[position], key, auto, full.then_some(rights)));
    }
    Ok(listing)
}

pub(super) fn show_columns(
    session: &mut Session,
    words: &mut Words<'_>,
    full: bool,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let (database, name) = table_name(session, words)?;
    let mut listing = columns_listing(session, &database, &name, full)?;
    listing.filter(words)?;
    words.end()?;
    listing.send(session, sink)
}

/// DESCRIBE t [column or 'pattern'], behind that word.
pub(crate) fn describe(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let (database, name) = words.qualified_name()?;
    let database = session.resolve_database(database)?;
    session.state.warnings.forget_old();
    let mut listing = columns_listing(session, &database, &name, false)?;
    let pattern = match words.peek() {
        Word::End => None,
        Word::Text(_) => Some(words.string()?),
        _ => Some(words.name()?),
    };
    words.end()?;
    if let Some(pattern) = pattern {
        listing.rows.retain(|row| match &row[0] {
            Value::Text(field) => super::filter::like(&String::from_utf8_lossy(field), &pattern),
            _ => false,
        });
    }
    listing.send(session, sink)
}

/// The rows of SHOW INDEX, for columns that the session may see.
pub(crate) fn index_rows(access: &Access, table: &Table, metadata: &TableMetadata) -> Vec<Vec<Value>> {
    let def = table.def();
    let mut rows = Vec::new();
    let count = table.row_count();
    let statistics = table.statistics();
    let mut push = |index: usize, name: &str, unique: bool, parts: &[types::KeyPart]| {
        let counted = statistics.as_ref().and_then(|statistics| statistics.distinct.get(index));
        for (position, part) in parts.iter().enumerate() {
            let column = &def.columns[part.column];
            if !access.sees_column(&def.database, &def.name, &column.name) {
                continue;
            }
            // The number of different keys is known exactly for all parts of a unique key. For others it is
            // unknown until ANALYZE TABLE has run.
            let whole = (unique && position + 1 == parts.len()).then_some(count);
            let distinct = whole.or_else(|| counted.and_then(|counted| counted.get(position).copied()));
            rows.push(vec![
                Value::text(&def.name),
                Value::Int(i64::from(!unique)),
                Value::text(name),
                Value::UInt(position as u64 + 1),
                Value::text(&column.name),
                Value::text(if part.descending { "D" } else { "A" }),
                distinct.map_or(Value::Null, |distinct| Value::Int(distinct as i64)),
                part.prefix_chars.map_or(Value::Null, |prefix| Value::Int(prefix.into())),
                Value::Null,
                Value::text(if column.nullable { "YES" } else { "" }),
                Value::text("BTREE"),
                Value::text(""),
                Value::text(metadata.index_comment(name)),
                Value::text(if metadata.is_ignored(name) { "YES" } else { "NO" }),
            ]);
        }
    };
    if let Some(primary) = &def.primary {
        push(0, "PRIMARY", true, primary);
    }
    for position in index_order(&def) {
        let index = &def.indexes[position];
        push(position + 1, &index.name, index.unique, &index.parts);
    }
    rows
}

pub(super) fn show_index(
    session: &mut Session,
    words: &mut Words<'_>,
    sink: &mut dyn ResultSink,
) -> Result<(), SqlError> {
    let (database, name) = table_name(session, words)?;
    let texts = [
        "Table",
        "Non_unique",
        "Key_name",
        "Seq_in_index",
        "Column_name",
        "Collation",
        "Cardinality",
        "Sub_part",
        "Packed",
        "Null",
        "Index_type",
        "Comment",
        "Index_comment",
        "Ignored",
    ];
    let mut listing = Listing::new(texts.into_iter().map(|heading| {
        let numbers = ["Non_unique", "Cardinality", "Sub_part"];
        let kind = match heading {
            "Seq_in_index" => number(),
            heading if numbers.contains(&heading) => ColumnType::Int { bytes: 8, unsigned: false },
            _ => characters(1024),
        };
        (heading, kind)
    }));
    if infoschema::find(&database, &name).is_none() {
        session.check_columns_seen(&database, &name)?;
        let table = session.table(&database, &name)?;
        let metadata = TableMetadata::of(&table.def())?;
        for row in index_rows(&session.access, &table, &metadata) {
            listing.push(row);
        }
    }
    listing.filter(words)?;
    words.end()?;
    listing.send(session, sink)
}
