//! Column definitions from the SQL layer's metadata.

use super::cells::{self, Cell, ResultCharset};
use sql::{ColumnMeta, ToldAs};
use types::{Collation, ColumnType, ValueRef};
use wire::constants::{charset, column_flag, kind};
use wire::{ColumnDefinition, PacketWriter};

/// The number of the collation that is sent with results in a character set.
fn result_charset_id(result: ResultCharset) -> u16 {
    match result {
        ResultCharset::AsStored => charset::UTF8MB4_GENERAL_CI,
        ResultCharset::Utf8mb3 => charset::UTF8MB3_GENERAL_CI,
        ResultCharset::OneByte(map) => map.collation_id,
        ResultCharset::Ascii => charset::ASCII_GENERAL_CI,
    }
}

pub(super) fn write(writer: &mut PacketWriter, column: &ColumnMeta, result: ResultCharset) {
    definition(column, result).write(writer);
}

/// A column and its default, for COM_FIELD_LIST.
pub(super) fn write_with_default(
    writer: &mut PacketWriter,
    column: &ColumnMeta,
    result: ResultCharset,
    default: &ValueRef<'_>,
) {
    definition(column, result).write_open(writer);
    cells::text(writer.payload(), default, Cell::of(column), result, &mut String::new());
    writer.finish();
}

fn definition(column: &ColumnMeta, result: ResultCharset) -> ColumnDefinition<'_> {
    let column_type = &column.column_type;
    let is_text = match column_type {
        // Clients see them as texts.
        ColumnType::Code(_) => true,
        _ => column_type.has_characters() && column.collation != Collation::Binary,
    };
    let (charset, bytes_max) = match (is_text, result) {
        (false, _) => (charset::BINARY, 1),
        (true, ResultCharset::AsStored) => (result_charset_id(result), 4),
        (true, ResultCharset::Utf8mb3) => (result_charset_id(result), 3),
        (true, _) => (result_charset_id(result), 1),
    };
    // As in MariaDB, which takes the bytes of a long computed text for characters.
    let chars = match column_type {
        ColumnType::Text { bytes_max, .. } if column.org_name.is_empty() => *bytes_max,
        _ => column.display_chars,
    };
    ColumnDefinition {
        database: column.database.as_bytes(),
        table: column.table.as_bytes(),
        org_table: column.org_table.as_bytes(),
        name: column.name.as_bytes(),
        org_name: column.org_name.as_bytes(),
        charset,
        length: chars.saturating_mul(bytes_max),
        kind: wire_kind(column),
        flags: flags(column),
        decimals: column.decimals,
    }
}

fn wire_kind(column: &ColumnMeta) -> u8 {
    let is_computed = column.org_name.is_empty();
    match (&column.column_type, column.traits.told_as) {
        (_, ToldAs::Char) => kind::STRING,
        (_, ToldAs::Blob) => kind::BLOB,
        (_, ToldAs::LongBlob) => kind::LONG_BLOB,
        // NULL alone.
        (ColumnType::Binary { bytes: 0 }, _) if is_computed => kind::NULL,
        // MariaDB tells BLOB for columns of tables, however long they may be.
        (ColumnType::Text { bytes_max, .. } | ColumnType::Blob { bytes_max }, _) if is_computed => {
            match *bytes_max {
                0..=0xffff => kind::BLOB,
                0x1_0000..=0xff_ffff => kind::MEDIUM_BLOB,
                _ => kind::LONG_BLOB,
            }
        }
        (column_type, _) => cells::wire_kind(column_type),
    }
}

fn flags(column: &ColumnMeta) -> u16 {
    let column_type = &column.column_type;
    let mut flags = 0;
    let mut set = |on: bool, flag: u16| flags |= if on { flag } else { 0 };
    let traits = &column.traits;
    let is_computed = column.org_name.is_empty();
    set(column.not_null, column_flag::NOT_NULL);
    set(traits.primary_key, column_flag::PRIMARY_KEY);
    set(traits.unique_key, column_flag::UNIQUE_KEY);
    set(traits.multiple_key, column_flag::MULTIPLE_KEY);
    set(traits.in_key, column_flag::PART_KEY);
    set(traits.auto_increment, column_flag::AUTO_INCREMENT);
    set(traits.no_default, column_flag::NO_DEFAULT_VALUE);
    set(traits.on_update_now, column_flag::ON_UPDATE_NOW);
    let is_blob = matches!(column_type, ColumnType::Text { .. } | ColumnType::Blob { .. });
    set(is_blob && (!is_computed || traits.is_kept), column_flag::BLOB);
    let is_year = matches!(column_type, ColumnType::Year) && !is_computed;
    let is_coded = matches!(column_type, ColumnType::Bit { .. } | ColumnType::Code(_));
    let unsigned = is_coded || is_unsigned(column_type) || traits.told_as == ToldAs::Hexadecimal;
    set(unsigned, column_flag::UNSIGNED);
    set(traits.zerofill || is_year, column_flag::ZEROFILL);
    set(matches!(column_type, ColumnType::Enum { .. }), column_flag::ENUM);
    set(matches!(column_type, ColumnType::Set { .. }), column_flag::SET);
    let is_timestamp = matches!(column_type, ColumnType::Timestamp { .. });
    set(is_timestamp && traits.takes_present, column_flag::TIMESTAMP);
    // As in MariaDB, where numbers of tables have no collation, and those that are computed have one.
    let binary = match column_type {
        ColumnType::Code(_) => !is_computed,
        ColumnType::Bit { .. } => false,
        _ if column_type.has_characters() => column.collation.is_bin(),
        _ => !is_number(column_type) || (is_computed && !traits.is_kept),
    };
    set(binary, column_flag::BINARY);
    flags
}

fn is_number(column_type: &ColumnType) -> bool {
    matches!(
        column_type,
        ColumnType::Int { .. }
            | ColumnType::Float { .. }
            | ColumnType::Double { .. }
            | ColumnType::Decimal { .. }
            | ColumnType::Year
    )
}

fn is_unsigned(column_type: &ColumnType) -> bool {
    match column_type {
        ColumnType::Int { unsigned, .. }
        | ColumnType::Float { unsigned }
        | ColumnType::Double { unsigned }
        | ColumnType::Decimal { unsigned, .. } => *unsigned,
        // As MariaDB, which counts a TIMESTAMP from 1970 on.
        ColumnType::Year | ColumnType::Timestamp { .. } => true,
        _ => false,
    }
}

/// The definition of a parameter. Its type is unknown until the client sends a value.
pub(super) fn write_parameter(writer: &mut PacketWriter) {
    let definition = ColumnDefinition {
        name: b"?",
        charset: charset::BINARY,
        kind: wire::constants::kind::VAR_STRING,
        flags: column_flag::BINARY,
        ..ColumnDefinition::default()
    };
    definition.write(writer);
}
