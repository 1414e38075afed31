//! COLUMNS.

use super::{Definition, each_virtual_table};
use crate::accounts::Rights;
use crate::definition::ColumnExtras;
use crate::definition::column_types::type_text;
use crate::definition::metadata::TableMetadata;
use crate::names::charsets::describe;
use crate::statements::show::{default_text, extra_text, rights_text};
use crate::text::LexicalMode;
use crate::{Session, SqlError};
use engine::TableDef;
use types::{Column, ColumnType, Members, Value};

pub(super) static DEFINITIONS: &[Definition] = &[(
    "COLUMNS",
    "TABLE_CATALOG varchar(512) NOT NULL, TABLE_SCHEMA varchar(64) NOT NULL, TABLE_NAME varchar(64) NOT NULL, \
     COLUMN_NAME varchar(64) NOT NULL, ORDINAL_POSITION bigint(21) unsigned NOT NULL, COLUMN_DEFAULT longtext, \
     IS_NULLABLE varchar(3) NOT NULL, DATA_TYPE varchar(64) NOT NULL, \
     CHARACTER_MAXIMUM_LENGTH bigint(21) unsigned, CHARACTER_OCTET_LENGTH bigint(21) unsigned, \
     NUMERIC_PRECISION bigint(21) unsigned, NUMERIC_SCALE bigint(21) unsigned, \
     DATETIME_PRECISION bigint(21) unsigned, CHARACTER_SET_NAME varchar(32), COLLATION_NAME varchar(64), \
     COLUMN_TYPE longtext NOT NULL, COLUMN_KEY varchar(3) NOT NULL, EXTRA varchar(80) NOT NULL, \
     PRIVILEGES varchar(80) NOT NULL, COLUMN_COMMENT varchar(1024) NOT NULL, IS_GENERATED varchar(6) NOT NULL, \
     GENERATION_EXPRESSION longtext",
    rows,
)];

/// `PRI`, `UNI`, `MUL` or nothing.
pub(crate) fn column_key(def: &TableDef, column: usize) -> &'static str {
    if def.primary.as_ref().is_some_and(|parts| parts.iter().any(|part| part.column == column)) {
        return "PRI";
    }
    let leads = |unique: bool, single: bool| {
        def.indexes.iter().any(|index| {
            index.unique == unique
                && index.parts.first().is_some_and(|part| part.column == column)
                && (!single || index.parts.len() == 1)
        })
    };
    if leads(true, true) {
        // Without a primary key, a unique key over NOT NULL columns is shown as PRI.
        let stands_in = def.primary.is_none() && !def.columns[column].nullable;
        return if stands_in { "PRI" } else { "UNI" };
    }
    if leads(true, false) || leads(false, false) { "MUL" } else { "" }
}

fn optional(number: Option<u64>) -> Value {
    number.map_or(Value::Null, Value::UInt)
}

/// Precision and scale of a number.
fn numeric(column_type: &ColumnType, extras: &ColumnExtras) -> (Option<u64>, Option<u64>) {
    match *column_type {
        ColumnType::Int { bytes, unsigned } => {
            let digits = match (bytes, unsigned) {
                (1, _) => 3,
                (2, _) => 5,
                (3, false) => 7,
                (3, true) => 8,
                (4, _) => 10,
                (_, false) => 19,
                (_, true) => 20,
            };
            (Some(digits), Some(0))
        }
        ColumnType::Bit { bits } => (Some(bits.into()), None),
        ColumnType::Decimal { precision, scale, .. } => (Some(precision.into()), Some(scale.into())),
        ColumnType::Float { .. } | ColumnType::Double { .. } => match extras.float_digits {
            Some((precision, scale)) => (Some(precision.into()), Some(scale.into())),
            None if matches!(column_type, ColumnType::Float { .. }) => (Some(12), None),
            None => (Some(22), None),
        },
        _ => (None, None),
    }
}

/// Length in characters and in bytes.
fn lengths(column_type: &ColumnType) -> (Option<u64>, Option<u64>) {
    match *column_type {
        ColumnType::Char { chars, collation } | ColumnType::Varchar { chars, collation } => {
            (Some(chars.into()), Some(u64::from(chars) * u64::from(collation.character_bytes_max())))
        }
        ColumnType::Text { bytes_max, .. } | ColumnType::Blob { bytes_max } => {
            (Some(bytes_max.into()), Some(bytes_max.into()))
        }
        ColumnType::Binary { bytes } | ColumnType::Varbinary { bytes } => {
            (Some(bytes.into()), Some(bytes.into()))
        }
        ColumnType::Enum { ref members, .. } => of_members(members.enum_chars(), members),
        ColumnType::Set { ref members, .. } => of_members(members.set_chars(), members),
        _ => (None, None),
    }
}

fn of_members(chars: u32, members: &Members) -> (Option<u64>, Option<u64>) {
    let character_bytes = u64::from(members.collation().character_bytes_max());
    (Some(chars.into()), Some(u64::from(chars) * character_bytes))
}

/// What a table makes of a column, and what the session may do with it.
struct Place<'a> {
    key: &'a str,
    auto_increment: bool,
    rights: Rights,
}

fn row(
    database: &str,
    table: &str,
    position: usize,
    column: &Column,
    extras: &ColumnExtras,
    place: &Place<'_>,
) -> Vec<Value> {
    let Place { key, auto_increment, rights } = *place;
    let full_type = type_text(&column.column_type, extras);
    let data_type: String = full_type.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    let (chars, bytes) = lengths(&column.column_type);
    let (precision, scale) = numeric(&column.column_type, extras);
    let fraction = match column.column_type {
        ColumnType::Time { fsp } | ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => {
            Some(u64::from(fsp))
        }
        _ => None,
    };
    let info = column.column_type.has_characters().then(|| describe(column.column_type.collation()));
    let default = if auto_increment { None } else { default_text(column, extras, LexicalMode::NONE) };
    vec![
        Value::text("def"),
        Value::text(database),
        Value::text(table),
        Value::text(&column.name),
        Value::UInt(position as u64 + 1),
        default.map_or(Value::Null, Value::text),
        Value::text(if column.nullable { "YES" } else { "NO" }),
        Value::text(data_type),
        optional(chars),
        optional(bytes),
        optional(precision),
        optional(scale),
        optional(fraction),
        info.map_or(Value::Null, |info| Value::text(info.charset)),
        info.map_or(Value::Null, |info| Value::text(info.name)),
        Value::text(full_type),
        Value::text(key),
        Value::text(extra_text(&column.column_type, extras, auto_increment)),
        Value::text(rights_text(rights)),
        Value::text(&extras.comment),
        Value::text(if extras.generated.is_some() { "ALWAYS" } else { "NEVER" }),
        extras.generated.as_ref().map_or(Value::Null, |generated| Value::text(&generated.expression)),
    ]
}

fn rows(session: &Session) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut rows = Vec::new();
    let plain = ColumnExtras::default();
    let place = Place { key: "", auto_increment: false, rights: Rights::SELECT };
    each_virtual_table(session, |table| {
        for (position, column) in table.columns.iter().enumerate() {
            rows.push(row(table.database, table.name, position, column, &plain, &place));
        }
    });
    session.each_table(|database, table| {
        let def = table.def();
        let metadata = TableMetadata::of(&def)?.in_zone(&def, session.variables.zone());
        for (position, column) in def.columns.iter().enumerate() {
            let extras = &metadata.columns[position];
            let key = column_key(&def, position);
            let auto = def.auto_increment == Some(position);
            let rights = session.access.on_column(database, &def.name, &column.name);
            if !rights.is_empty() {
                let place = Place { key, auto_increment: auto, rights };
                rows.push(row(database, &def.name, position, column, extras, &place));
            }
        }
        Ok(())
    })?;
    Ok(rows)
}
