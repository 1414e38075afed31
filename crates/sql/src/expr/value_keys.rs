//! Keys of rows of values: what DISTINCT, UNION, GROUP BY and ORDER BY compare.

use types::{Column, ColumnType, KeyCodec, KeyPart, ValueRef};

/// Makes the keys of rows of values that are of certain types, or can be made so.
#[derive(Debug)]
pub(crate) struct ValueKeys {
    codec: KeyCodec,
    columns: Vec<Column>,
}

impl ValueKeys {
    /// Keys of values of `columns`, all of them.
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> ValueKeys {
        ValueKeys::ordered(columns.into_iter().map(|column| (column, false)))
    }

    /// Keys of values of columns, each with whether it descends.
    pub(crate) fn ordered(columns: impl IntoIterator<Item = (Column, bool)>) -> ValueKeys {
        let (columns, descending): (Vec<Column>, Vec<bool>) = columns
            .into_iter()
            .map(|(column, descending)| (Column { nullable: true, ..column }, descending))
            .unzip();
        let part = |(column, descending)| KeyPart { column, prefix_chars: None, descending };
        let parts: Vec<KeyPart> = descending.into_iter().enumerate().map(part).collect();
        ValueKeys { codec: KeyCodec::new(&columns, &parts), columns }
    }

    /// Appends the key of values that may not be quite of their columns' types.
    pub(crate) fn encode(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) {
        let fits = self.columns.iter().zip(values).all(|(column, value)| is_of_type(value, column));
        if fits {
            self.codec.encode_prefix(values, key);
            return;
        }
        let arena = bumpalo::Bump::new();
        let coerced: Vec<ValueRef<'_>> = self
            .columns
            .iter()
            .zip(values)
            .map(|(column, value)| match is_of_type(value, column) {
                true => *value,
                false => crate::expr::coerce(*value, column, None, &arena).value,
            })
            .collect();
        self.codec.encode_prefix(&coerced, key);
    }
}

/// True if a codec takes the value as one of the column's.
pub(crate) fn is_of_type(value: &ValueRef<'_>, column: &Column) -> bool {
    use ColumnType as Type;
    match (value, &column.column_type) {
        (ValueRef::Null, _) => true,
        (ValueRef::Int(number), Type::Int { bytes, unsigned }) => !unsigned || (*bytes == 8 && *number >= 0),
        (ValueRef::UInt(number), Type::Int { bytes, unsigned }) => {
            *unsigned || (*bytes == 8 && i64::try_from(*number).is_ok())
        }
        (ValueRef::Decimal(number), Type::Decimal { scale, .. }) => number.scale() == *scale,
        // A FLOAT shows fewer digits than the same number as a DOUBLE.
        (ValueRef::Float(_), Type::Double { .. }) => false,
        (ValueRef::Float(_) | ValueRef::Double(_), Type::Float { .. } | Type::Double { .. }) => true,
        (ValueRef::Text(_), text) => text.is_text(),
        (ValueRef::Binary(bytes), Type::Code(code)) => bytes.len() == code.bytes(),
        (ValueRef::Binary(_), binary) => binary.is_binary(),
        (ValueRef::Date(_), Type::Date) | (ValueRef::Time(_), Type::Time { .. }) => true,
        (ValueRef::DateTime(_), Type::DateTime { .. } | Type::Timestamp { .. }) => true,
        (ValueRef::UInt(_) | ValueRef::Int(_), Type::Year) => true,
        (ValueRef::UInt(_), Type::Enum { .. } | Type::Set { .. } | Type::Bit { .. }) => true,
        _ => false,
    }
}
