//! Checks a definition that a statement wrote, and makes the engine's definition of it.

use crate::definition::check::Check;
use crate::definition::expression::{self, ExpressionSpec};
use crate::definition::foreign_key::{self, ForeignKey, Reference};
use crate::definition::metadata::TableMetadata;
use crate::definition::options::{self, Asking, Meaning};
use crate::definition::parse::invalid_default;
use crate::definition::*;
use crate::expr::{CoerceIssue, coerce};
use crate::plan::checks::Checks;
use crate::plan::computed::{Computed, not_allowed};
use crate::text::LexicalMode;
use crate::variables::SqlMode;
use crate::variables::assign::engine_named;
use crate::variables::time_zones::Zone;
use crate::{ErrorKind, SqlError, Warnings, names};
use bumpalo::Bump;
use engine::{IndexDef, TableDef};
use types::row::trim_trailing_spaces;
use types::{Collation, Column, ColumnType, KeyPart, Members, ValueRef};

/// The longest key in bytes, for any size of page.
const KEY_BYTES_MAX: usize = 3072;
/// The largest number of columns in one index.
const KEY_PARTS_MAX: usize = 32;
const INDEXES_MAX: usize = 64;
const COLUMNS_MAX: usize = 4096;
/// The longest row in bytes. TEXT and BLOB columns do not count.
const ROW_BYTES_MAX: usize = 65_535;

/// What a definition takes from the session.
pub(super) struct Surroundings<'a> {
    pub database: &'a str,
    /// The collation of the database.
    pub collation: Collation,
    pub sql_mode: SqlMode,
    pub zone: Zone,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_timestamps: bool,
    pub default_engine: String,
    /// `innodb_strict_mode`.
    pub strict_options: bool,
    /// `innodb_page_size`.
    pub page_size: u32,
    /// ALTER TABLE: the engine that was asked for when the table was created.
    pub altering: Option<String>,
    /// Seconds since 1970.
    pub now: u64,
}

fn error(kind: ErrorKind, message: impl Into<String>) -> SqlError {
    SqlError::new(kind, message)
}

/// The engine's definition of a table.
///
/// # Errors
/// Those of CREATE TABLE: 1060 to 1075, 1089, 1113, 1117, 1118, 1170, 1171, 1280, 1286...
pub(super) fn build(
    name: &str,
    mut spec: TableSpec,
    around: &Surroundings<'_>,
    warnings: &mut Warnings,
) -> Result<TableDef, SqlError> {
    names::check_table(name)?;
    check_count(&spec.columns)?;
    let engine = chosen_engine(name, &spec, around, warnings)?;
    for what in &spec.ignored {
        warnings.warn(ErrorKind::NotSupported, format!("{what} is accepted and has no effect"));
    }
    check_duplicates(&spec.columns)?;
    keys_of_columns(&mut spec);
    let checks = checks(&mut spec)?;
    settle_expressions(&mut spec)?;
    let foreign_keys = foreign_keys(name, around.database, &mut spec)?;
    let primary = primary_key(&mut spec)?;
    let auto_increment = auto_increment_column(&spec)?;
    if !around.explicit_timestamps {
        settle_timestamps(&mut spec.columns);
    }
    check_defaults(&mut spec.columns, around)?;
    let columns: Vec<Column> = spec
        .columns
        .iter()
        .map(|column| Column {
            name: column.name.clone(),
            column_type: column.column_type.clone(),
            nullable: column.nullable.unwrap_or(true),
        })
        .collect();
    check_row_size(&columns)?;
    let options: Vec<(String, String)> = std::mem::take(&mut spec.options.shown)
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let meaning = Meaning::of(&options);
    let page_size = meaning.page_size.unwrap_or(around.page_size);
    let key_bytes_max = engine::key_bytes_max(page_size as usize);
    let mut index_options = Vec::new();
    let primary_parts = match primary {
        Some(position) => {
            let key = &spec.keys[position];
            index_options.push((String::from("PRIMARY"), key.options.clone()));
            Some(key_parts(&columns, key, key_bytes_max)?)
        }
        None => None,
    };
    let mut indexes = secondary_indexes(&columns, &spec.keys, key_bytes_max, &mut index_options)?;
    if indexes.len() + usize::from(primary.is_some()) > INDEXES_MAX {
        return Err(error(
            ErrorKind::TooManyKeys,
            format!("Too many keys specified; max {INDEXES_MAX} keys allowed"),
        ));
    }
    indexes.sort_by_key(|index| rank(&columns, index));
    let asking = Asking {
        database: around.database,
        table: name,
        engine: around.altering.as_ref().unwrap_or(&engine),
        strict: around.strict_options,
        alters: around.altering.is_some(),
    };
    options::check(&options, asking, warnings)?;
    let pack_keys = meaning.pack_keys;
    let compressed = meaning.is_compressed(asking.engine);
    let mut metadata = TableMetadata {
        collation: spec.options.collation.unwrap_or(around.collation),
        created: around.now,
        engine,
        comment: spec.options.comment.take().unwrap_or_default(),
        options,
        columns: spec.columns.into_iter().map(|column| column.extras).collect(),
        index_comments: Vec::new(),
        foreign_keys,
        checks,
        ignored_indexes: Vec::new(),
    };
    index_options.iter().for_each(|(name, options)| metadata.note_index(name, options));
    check_generated_keys(&metadata.foreign_keys, &metadata.columns, &columns)?;
    let def = TableDef {
        database: around.database.to_owned(),
        name: name.to_owned(),
        columns,
        primary: primary_parts,
        indexes,
        auto_increment,
        page_size: Some(page_size),
        pack_keys,
        compressed,
        sql_metadata: metadata.encode(),
    };
    // What cannot be evaluated is refused here.
    Checks::of(&def, &metadata)?;
    Computed::of(&def, &metadata)?;
    Ok(def)
}

/// Gives the columns the texts of their expressions.
///
/// # Errors
/// 1064, 1113, 1903, 1905, 4108.
fn settle_expressions(spec: &mut TableSpec) -> Result<(), SqlError> {
    let mut texts = Vec::new();
    for column in &spec.columns {
        let text = |spec_of: &ExpressionSpec| expression::normal_text(spec_of, &spec.columns);
        let generated = column.generated.as_ref().map(|(written, _)| text(written)).transpose()?;
        texts.push((generated, column.default.as_ref().map(text).transpose()?));
    }
    for (column, (generated, default)) in spec.columns.iter_mut().zip(texts) {
        if let (Some(expression), Some((_, stored))) = (generated, &column.generated) {
            column.extras.generated = Some(Generated { expression, stored: *stored });
        }
        if let Some(text) = default {
            column.extras.default = ColumnDefault::Expression(text);
        }
    }
    if spec.columns.iter().all(|column| column.extras.invisible) {
        return Err(error(ErrorKind::TableNeedsColumns, "A table must have at least 1 column"));
    }
    let is_primary =
        |name: &str| spec.keys.iter().any(|key| key.kind == KeyKind::Primary && has_part(key, name));
    for column in &spec.columns {
        let extras = &column.extras;
        if extras.generated.is_some() && is_primary(&column.name) {
            let text = "Primary key cannot be defined upon a generated column";
            return Err(error(ErrorKind::PrimaryKeyOnGenerated, text));
        }
        let has_value = column.nullable != Some(false) && !is_primary(&column.name)
            || column.auto_increment
            || extras.generated.is_some()
            || extras.default != ColumnDefault::Unset;
        if extras.invisible && !has_value {
            let name = quoted(&column.name, LexicalMode::NONE);
            let text = format!("Invisible column {name} must have a default value");
            return Err(error(ErrorKind::InvisibleNeedsDefault, text));
        }
    }
    Ok(())
}

fn has_part(key: &KeySpec, column: &str) -> bool {
    key.parts.iter().any(|part| part.column.eq_ignore_ascii_case(column))
}

/// Refuses what a FOREIGN KEY would do to generated columns, or to columns that they are made from.
///
/// # Errors
/// 1235, 1905.
fn check_generated_keys(
    keys: &[ForeignKey],
    metadata: &[ColumnExtras],
    columns: &[Column],
) -> Result<(), SqlError> {
    use foreign_key::ReferentialAction::{Cascade, SetNull};
    let is_generated = |name: &String| {
        let at = columns.iter().position(|column| column.name == *name);
        at.is_some_and(|at| metadata[at].generated.is_some())
    };
    // Where an expression reads the column, the column that it makes, and whether that is STORED.
    let reader = |name: &String| {
        let quoted = quoted(name, LexicalMode::NONE);
        columns.iter().zip(metadata).find_map(|(column, extras)| {
            let made = extras.generated.as_ref().filter(|made| made.expression.contains(&quoted))?;
            Some((name.clone(), column.name.clone(), made.stored))
        })
    };
    for key in keys {
        let clauses = [
            (key.on_delete == SetNull, "ON DELETE SET NULL"),
            (key.on_update == Cascade, "ON UPDATE CASCADE"),
            (key.on_update == SetNull, "ON UPDATE SET NULL"),
        ];
        let Some((_, clause)) = clauses.iter().find(|(changes, _)| *changes) else { continue };
        if key.columns.iter().any(is_generated) {
            let text = format!("Cannot define foreign key with {clause} clause on a generated column");
            return Err(error(ErrorKind::ForeignKeyOnGenerated, text));
        }
        if let Some((read, made, stored)) = key.columns.iter().find_map(reader) {
            let what = format!("{clause} of a column that others are made from");
            return Err(match stored {
                true => not_allowed(&read, "GENERATED ALWAYS AS", &made),
                false => SqlError::not_supported(&what),
            });
        }
    }
    Ok(())
}

/// Gives the columns their conditions. Returns those of the table.
///
/// # Errors
/// 1064, 1826.
fn checks(spec: &mut TableSpec) -> Result<Vec<Check>, SqlError> {
    let mut conditions = Vec::new();
    for column in &spec.columns {
        let own = column
            .check
            .as_ref()
            .map(|check| expression::normal_text(&check.condition, &spec.columns))
            .transpose()?;
        conditions.push(own);
    }
    for (column, own) in spec.columns.iter_mut().zip(conditions) {
        column.extras.check = own.or(column.extras.check.take());
    }
    let mut checks = std::mem::take(&mut spec.old_checks);
    for written in std::mem::take(&mut spec.checks) {
        let condition = expression::normal_text(&written.condition, &spec.columns)?;
        let is_taken = |name: &str| checks.iter().any(|other| other.name.eq_ignore_ascii_case(name));
        let name = match written.name {
            Some(name) if is_taken(&name) => {
                let text = format!("Duplicate CHECK constraint name '{name}'");
                return Err(error(ErrorKind::DuplicateConstraintName, text));
            }
            Some(name) => {
                names::check_index(&name)?;
                name
            }
            None => {
                let mut number = 1;
                while is_taken(&format!("CONSTRAINT_{number}")) {
                    number += 1;
                }
                format!("CONSTRAINT_{number}")
            }
        };
        checks.push(Check { name, condition });
    }
    Ok(checks)
}

/// The indexes besides the primary key, in the order in which they are written. Appends their options.
fn secondary_indexes(
    columns: &[Column],
    keys: &[KeySpec],
    key_bytes_max: usize,
    index_options: &mut Vec<(String, IndexOptions)>,
) -> Result<Vec<IndexDef>, SqlError> {
    let mut indexes: Vec<IndexDef> = Vec::new();
    let secondary = keys.iter().filter(|key| key.kind != KeyKind::Primary);
    let taken: Vec<String> = secondary.clone().filter_map(|key| key.name.clone()).collect();
    for key in secondary {
        let parts = key_parts(columns, key, key_bytes_max)?;
        let name = match &key.name {
            Some(name) => {
                names::check_index(name)?;
                if indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name)) {
                    return Err(duplicate_key_name(name));
                }
                name.clone()
            }
            None => generated_name(&columns[parts[0].column].name, &indexes, &taken),
        };
        index_options.push((name.clone(), key.options.clone()));
        indexes.push(IndexDef { name, unique: key.kind == KeyKind::Unique, parts });
    }
    Ok(indexes)
}

/// The engine that the statement names. All names mean the one engine that there is.
fn chosen_engine(
    name: &str,
    spec: &TableSpec,
    around: &Surroundings<'_>,
    warnings: &mut Warnings,
) -> Result<String, SqlError> {
    let Some(asked) = &spec.options.engine else { return Ok(around.default_engine.clone()) };
    match engine_named(asked) {
        Ok(engine) => Ok(engine.to_owned()),
        Err(unknown) if around.sql_mode.contains(SqlMode::NO_ENGINE_SUBSTITUTION) => Err(unknown),
        Err(unknown) => {
            warnings.warn(unknown.kind, unknown.message);
            warnings.warn(
                ErrorKind::EngineSubstituted,
                format!("Using storage engine {} for table '{name}'", around.default_engine),
            );
            Ok(around.default_engine.clone())
        }
    }
}

/// # Errors
/// 1113, 1117.
fn check_count(columns: &[ColumnSpec]) -> Result<(), SqlError> {
    if columns.is_empty() {
        return Err(error(ErrorKind::TableNeedsColumns, "A table must have at least 1 column"));
    }
    if columns.len() > COLUMNS_MAX {
        return Err(error(ErrorKind::TooManyColumns, "Too many columns"));
    }
    Ok(())
}

fn check_duplicates(columns: &[ColumnSpec]) -> Result<(), SqlError> {
    for (position, column) in columns.iter().enumerate() {
        if columns[..position].iter().any(|other| other.name.eq_ignore_ascii_case(&column.name)) {
            return Err(SqlError::new(
                ErrorKind::DuplicateColumn,
                format!("Duplicate column name '{}'", column.name),
            ));
        }
    }
    Ok(())
}

pub(super) fn duplicate_key_name(name: &str) -> SqlError {
    error(ErrorKind::DuplicateKeyName, format!("Duplicate key name '{name}'"))
}

/// Makes keys of the table from PRIMARY KEY and UNIQUE behind columns.
fn keys_of_columns(spec: &mut TableSpec) {
    let mut keys = Vec::new();
    for column in &spec.columns {
        for (wanted, kind) in [(column.primary, KeyKind::Primary), (column.unique, KeyKind::Unique)] {
            if wanted {
                let part = KeyPartSpec { column: column.name.clone(), prefix: None, descending: false };
                keys.push(key_of_column(kind, part, None));
            }
        }
        if let Some(reference) = &column.reference {
            let part = KeyPartSpec { column: column.name.clone(), prefix: None, descending: false };
            keys.push(key_of_column(KeyKind::Foreign, part, Some(reference.clone())));
        }
    }
    keys.append(&mut spec.keys);
    spec.keys = keys;
}

fn key_of_column(kind: KeyKind, part: KeyPartSpec, reference: Option<Reference>) -> KeySpec {
    KeySpec { kind, name: None, parts: vec![part], options: IndexOptions::default(), reference }
}

/// Takes the FOREIGN KEYs out of the keys. What stays of one is an index, unless another key begins with the
/// same columns. Returns the table's constraints.
///
/// # Errors
/// 1072, 1239.
fn foreign_keys(table: &str, database: &str, spec: &mut TableSpec) -> Result<Vec<ForeignKey>, SqlError> {
    let mut constraints = std::mem::take(&mut spec.foreign_keys);
    let mut kept: Vec<KeySpec> = Vec::new();
    for mut key in std::mem::take(&mut spec.keys) {
        let Some(reference) = key.reference.take() else {
            kept.push(key);
            continue;
        };
        let columns = named_columns(&key.parts, &spec.columns)?;
        let parent_columns = if reference.columns.is_empty() { columns.clone() } else { reference.columns };
        if columns.len() != parent_columns.len() {
            let name = reference.constraint.as_deref().unwrap_or("foreign key without name");
            let text = format!(
                "Incorrect foreign key definition for '{name}': Key reference and table reference don't match"
            );
            return Err(error(ErrorKind::WrongForeignKey, text));
        }
        let name = match reference.constraint {
            Some(name) => {
                names::check_index(&name)?;
                name
            }
            None => foreign_key::generated_name(table, foreign_key::next_number(table, &constraints)),
        };
        constraints.push(ForeignKey {
            name,
            columns,
            parent_database: reference.database.unwrap_or_else(|| database.to_owned()),
            parent_table: reference.table,
            parent_columns,
            on_delete: reference.on_delete,
            on_update: reference.on_update,
        });
        key.kind = KeyKind::Foreign;
        kept.push(key);
    }
    let begins_with = |key: &KeySpec, columns: &[KeyPartSpec]| {
        key.parts.len() >= columns.len()
            && key.parts.iter().zip(columns).all(|(part, column)| {
                part.prefix.is_none() && part.column.eq_ignore_ascii_case(&column.column)
            })
    };
    for position in (0..kept.len()).rev() {
        if kept[position].kind != KeyKind::Foreign {
            continue;
        }
        let parts = kept[position].parts.clone();
        let serves = |(other, key): (usize, &KeySpec)| {
            // Of two that are alike the first stays.
            let comes_first =
                key.kind != KeyKind::Foreign || other < position || key.parts.len() > parts.len();
            other != position && comes_first && begins_with(key, &parts)
        };
        match kept.iter().enumerate().any(serves) {
            true => drop(kept.remove(position)),
            false => kept[position].kind = KeyKind::Plain,
        }
    }
    spec.keys = kept;
    // As in InnoDB, they are listed by name.
    constraints.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(constraints)
}

/// The names of a key's columns, as the table has them.
fn named_columns(parts: &[KeyPartSpec], columns: &[ColumnSpec]) -> Result<Vec<String>, SqlError> {
    let name = |part: &KeyPartSpec| {
        let column = columns.iter().find(|column| column.name.eq_ignore_ascii_case(&part.column));
        column.map(|column| column.name.clone()).ok_or_else(|| no_key_column(&part.column))
    };
    parts.iter().map(name).collect()
}

fn no_key_column(name: &str) -> SqlError {
    error(ErrorKind::KeyColumnDoesNotExist, format!("Key column '{name}' doesn't exist in table"))
}

/// The position of the primary key. Its columns become NOT NULL.
fn primary_key(spec: &mut TableSpec) -> Result<Option<usize>, SqlError> {
    let mut primaries =
        spec.keys.iter().enumerate().filter(|(_, key)| key.kind == KeyKind::Primary).map(|(at, _)| at);
    let first = primaries.next();
    if primaries.next().is_some() {
        return Err(error(ErrorKind::MultiplePrimaryKeys, "Multiple primary key defined"));
    }
    let Some(position) = first else { return Ok(None) };
    if spec.keys[position].options.ignored {
        return Err(error(ErrorKind::PrimaryKeyIgnored, "A primary key cannot be marked as IGNORE"));
    }
    for part in &spec.keys[position].parts {
        if let Some(column) =
            spec.columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(&part.column))
        {
            column.nullable = Some(false);
            if column.extras.default == ColumnDefault::Null {
                return Err(invalid_default(&column.name));
            }
        }
    }
    Ok(Some(position))
}

fn auto_increment_column(spec: &TableSpec) -> Result<Option<usize>, SqlError> {
    let mut found = None;
    for (position, column) in spec.columns.iter().enumerate() {
        if !column.auto_increment {
            continue;
        }
        let number = matches!(
            column.column_type,
            ColumnType::Int { .. } | ColumnType::Float { .. } | ColumnType::Double { .. }
        );
        if !number {
            return Err(error(
                ErrorKind::WrongColumnSpecifier,
                format!("Incorrect column specifier for column '{}'", column.name),
            ));
        }
        if column.extras.default != ColumnDefault::Unset {
            return Err(invalid_default(&column.name));
        }
        let leads_a_key = spec
            .keys
            .iter()
            .any(|key| key.parts.first().is_some_and(|part| part.column.eq_ignore_ascii_case(&column.name)));
        if found.is_some() || !leads_a_key {
            return Err(error(
                ErrorKind::WrongAutoIncrementKey,
                "Incorrect table definition; there can be only one auto column and it must be defined as a key",
            ));
        }
        if !matches!(column.column_type, ColumnType::Int { .. }) {
            return Err(SqlError::not_supported("AUTO_INCREMENT of a floating-point column"));
        }
        found = Some(position);
    }
    Ok(found)
}

/// What TIMESTAMP columns are where the session does not ask for explicit defaults: NOT NULL, the first of
/// them with the present time, and the others with the date of nought.
fn settle_timestamps(columns: &mut [ColumnSpec]) {
    let timestamps = columns.iter_mut().filter(|column| column.column_type.is_timestamp());
    for (position, column) in timestamps.enumerate() {
        if column.nullable.is_some_and(|nullable| nullable) {
            continue;
        }
        column.nullable = Some(false);
        let is_bare = column.extras.default == ColumnDefault::Unset && !column.extras.on_update_now;
        if is_bare && position == 0 {
            column.extras.default = ColumnDefault::Now;
            column.extras.on_update_now = true;
        } else if column.extras.default == ColumnDefault::Unset {
            column.extras.default = ColumnDefault::Text(types::DateTime::ZERO.to_string());
        }
    }
}

/// Decides which columns are nullable, and checks that every default fits its column.
fn check_defaults(columns: &mut [ColumnSpec], around: &Surroundings<'_>) -> Result<(), SqlError> {
    for column in columns {
        if column.auto_increment {
            column.nullable = Some(false);
        }
        let nullable = column.nullable.unwrap_or(true);
        let now = ColumnDefault::Now;
        if column.extras.default == now
            && !matches!(column.column_type, ColumnType::DateTime { .. } | ColumnType::Timestamp { .. })
        {
            return Err(invalid_default(&column.name));
        }
        if column.extras.default == ColumnDefault::Null && !nullable {
            return Err(invalid_default(&column.name));
        }
        let described =
            Column { name: column.name.clone(), column_type: column.column_type.clone(), nullable };
        column.extras.default = settled_default(&column.extras.default, &described, around)?;
    }
    Ok(())
}

/// A default in the form in which SHOW CREATE TABLE prints it. Numbers are as their column stores them.
pub(super) fn settled_default(
    default: &ColumnDefault,
    column: &Column,
    around: &Surroundings<'_>,
) -> Result<ColumnDefault, SqlError> {
    let mode = around.sql_mode;
    let Some(value) = literal(default) else { return Ok(default.clone()) };
    let arena = Bump::new();
    if let Some(members) = column.column_type.members() {
        return settled_members(default, column, members);
    }
    let coerced = coerce(value, column, Some(&around.zone), &arena);
    if let (ColumnType::Code(code), ValueRef::Binary(bytes), None) =
        (&column.column_type, coerced.value, &coerced.issue)
    {
        let mut text = String::new();
        code.write(bytes, &mut text);
        return Ok(ColumnDefault::Text(text));
    }
    let is_allowed = coerced.clone().in_mode(&value, column, mode.into()) == coerced;
    let fits = match &coerced.issue {
        _ if !is_allowed => false,
        // The moment is not one that a TIMESTAMP has.
        Some(CoerceIssue::TimeOutOfRange { .. }) if column.column_type.is_timestamp() => false,
        None | Some(CoerceIssue::TruncatedNote) => true,
        Some(_) => !mode.is_strict() && !matches!(coerced.issue, Some(CoerceIssue::Incorrect { .. })),
    };
    if !fits {
        return Err(invalid_default(&column.name));
    }
    Ok(match coerced.value {
        ValueRef::Int(value) => ColumnDefault::Number(value.to_string()),
        ValueRef::UInt(value) => ColumnDefault::Number(value.to_string()),
        ValueRef::Decimal(value) => ColumnDefault::Number(value.to_string()),
        ValueRef::Float(_) | ValueRef::Double(_) => match default {
            ColumnDefault::Text(text) | ColumnDefault::Number(text) => ColumnDefault::Number(text.clone()),
            other => other.clone(),
        },
        ValueRef::Text(_) | ValueRef::Binary(_) => match default {
            ColumnDefault::Number(text) => ColumnDefault::Text(text.clone()),
            other => other.clone(),
        },
        ValueRef::Date(date) => ColumnDefault::Text(date.to_string()),
        ValueRef::Time(time) => ColumnDefault::Text(time.to_string()),
        ValueRef::DateTime(moment) => ColumnDefault::Text(moment.to_string()),
        ValueRef::Null => ColumnDefault::Null,
    })
}

/// The default of an ENUM or SET names its members: their numbers are no default.
fn settled_members(
    default: &ColumnDefault,
    column: &Column,
    members: &Members,
) -> Result<ColumnDefault, SqlError> {
    let invalid = || invalid_default(&column.name);
    let text = match default {
        ColumnDefault::Text(text) => text.as_bytes(),
        ColumnDefault::Binary(bytes) => bytes,
        _ => return Err(invalid()),
    };
    let text = trim_trailing_spaces(text);
    let mut settled = Vec::new();
    match &column.column_type {
        ColumnType::Set { .. } => match members.read_set(text) {
            (number, true) => members.write_set(number, &mut settled),
            (_, false) => return Err(invalid()),
        },
        _ => {
            let at = members.find(text).ok_or_else(invalid)?;
            settled.extend_from_slice(members.of_enum(at as u64 + 1));
        }
    }
    String::from_utf8(settled).map(ColumnDefault::Text).map_err(|_| invalid())
}

fn is_blob(column_type: &ColumnType) -> bool {
    matches!(column_type, ColumnType::Text { .. } | ColumnType::Blob { .. })
}

fn check_row_size(columns: &[Column]) -> Result<(), SqlError> {
    let bytes: usize = columns
        .iter()
        .map(|column| match &column.column_type {
            blob if is_blob(blob) => 12,
            ColumnType::Varchar { chars, collation } => {
                *chars as usize * collation.character_bytes_max() as usize + 2
            }
            ColumnType::Char { chars, collation } => {
                *chars as usize * collation.character_bytes_max() as usize
            }
            other => other.image_bytes_max(),
        })
        .sum();
    if bytes <= ROW_BYTES_MAX {
        return Ok(());
    }
    Err(error(
        ErrorKind::RowTooLarge,
        format!(
            "Row size too large. The maximum row size for the used table type, not counting BLOBs, is \
             {ROW_BYTES_MAX}. This includes storage overhead, check the manual. You have to change some columns \
             to TEXT or BLOBs"
        ),
    ))
}

/// The parts of a key. They are checked against the columns, and against the space in a page of the table.
pub(super) fn key_parts(
    columns: &[Column],
    key: &KeySpec,
    key_bytes_max: usize,
) -> Result<Vec<KeyPart>, SqlError> {
    let key_bytes_max = key_bytes_max.min(KEY_BYTES_MAX);
    if key.parts.len() > KEY_PARTS_MAX {
        return Err(error(
            ErrorKind::TooManyKeyParts,
            format!("Too many key parts specified; max {KEY_PARTS_MAX} parts allowed"),
        ));
    }
    let mut parts: Vec<KeyPart> = Vec::with_capacity(key.parts.len());
    let mut bytes = 0;
    for part in &key.parts {
        let position = columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(&part.column))
            .ok_or_else(|| no_key_column(&part.column))?;
        if parts.iter().any(|other| other.column == position) {
            return Err(SqlError::new(
                ErrorKind::DuplicateColumn,
                format!("Duplicate column name '{}'", part.column),
            ));
        }
        let column = &columns[position];
        let (length, width) = match &column.column_type {
            ColumnType::Char { chars, collation } | ColumnType::Varchar { chars, collation } => {
                (Some(*chars), collation.character_bytes_max())
            }
            ColumnType::Binary { bytes } | ColumnType::Varbinary { bytes } => (Some(*bytes), 1),
            ColumnType::Text { bytes_max, collation } => {
                let width = collation.character_bytes_max();
                (Some(bytes_max / width), width)
            }
            ColumnType::Blob { bytes_max } => (Some(*bytes_max), 1),
            _ => (None, 1),
        };
        let prefix = match (part.prefix, length) {
            (None, _) if is_blob(&column.column_type) => {
                return Err(error(
                    ErrorKind::BlobKeyWithoutLength,
                    format!(
                        "BLOB/TEXT column '{}' used in key specification without a key length",
                        column.name
                    ),
                ));
            }
            (None, _) => None,
            // A number is in a key as a whole.
            (Some(prefix), None) if is_in_number(prefix, &column.column_type) => None,
            (Some(prefix), Some(length)) if prefix < length => Some(prefix),
            (Some(prefix), Some(length)) if prefix == length && !is_blob(&column.column_type) => None,
            // As in MariaDB, a TEXT is no longer than its type.
            (Some(_), Some(length)) if is_blob(&column.column_type) => Some(length),
            (Some(_), _) => return Err(incorrect_prefix()),
        };
        bytes += match length {
            Some(length) => prefix.unwrap_or(length) as usize * width as usize,
            None => column.column_type.image_bytes_max(),
        };
        parts.push(KeyPart { column: position, prefix_chars: prefix, descending: part.descending });
    }
    if bytes > key_bytes_max {
        return Err(error(
            ErrorKind::KeyTooLong,
            format!("Specified key was too long; max key length is {key_bytes_max} bytes"),
        ));
    }
    Ok(parts)
}

/// True if so many characters are no longer than the number of a member.
fn is_in_number(prefix: u32, column_type: &ColumnType) -> bool {
    column_type.members().is_some_and(|members| {
        let bytes = u64::from(prefix) * u64::from(members.collation().character_bytes_max());
        bytes <= column_type.image_bytes_max() as u64
    })
}

fn incorrect_prefix() -> SqlError {
    SqlError::new(
        ErrorKind::WrongPrefixKey,
        "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or \
         the storage engine doesn't support unique prefix keys",
    )
}

/// The name of a key that was given none: the name of its first column, with a number if that name is taken.
pub(super) fn generated_name(column: &str, indexes: &[IndexDef], taken: &[String]) -> String {
    let is_free = |name: &str| {
        !name.eq_ignore_ascii_case("PRIMARY")
            && !indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name))
            && !taken.iter().any(|other| other.eq_ignore_ascii_case(name))
    };
    if is_free(column) {
        return column.to_owned();
    }
    let numbered = (2..=INDEXES_MAX + 2).map(|number| format!("{column}_{number}"));
    numbered.into_iter().find(|name| is_free(name)).unwrap_or_else(|| column.to_owned())
}
