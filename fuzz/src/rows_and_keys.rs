//! Row images and keys: invalid bytes are refused without a panic, and a codec reads back its own bytes.

use types::{Collation, Column, ColumnType, KeyCodec, KeyPart, RowCodec, ValueRef};

fn columns() -> Vec<Column> {
    let types = [
        ColumnType::Int { bytes: 4, unsigned: false },
        ColumnType::Int { bytes: 8, unsigned: true },
        ColumnType::Double { unsigned: false },
        ColumnType::Decimal { precision: 20, scale: 4, unsigned: false },
        ColumnType::Char { chars: 10, collation: Collation::Utf8mb4GeneralCi },
        ColumnType::Varchar { chars: 300, collation: Collation::Utf8mb4Bin },
        ColumnType::Varbinary { bytes: 300 },
        ColumnType::Binary { bytes: 4 },
        ColumnType::Date,
        ColumnType::Time { fsp: 3 },
        ColumnType::DateTime { fsp: 6 },
        ColumnType::Year,
    ];
    let column = |(position, column_type)| Column {
        name: format!("c{position}"),
        column_type,
        nullable: position != 0 && position != 6,
    };
    types.into_iter().enumerate().map(column).collect()
}

pub fn rows_and_keys(bytes: &[u8]) {
    let columns = columns();
    let rows = RowCodec::new(&columns);
    let part = |column| KeyPart { column, prefix_chars: None, descending: column % 2 == 1 };
    let keys: Vec<KeyCodec> = (0..columns.len())
        .map(|column| KeyCodec::new(&columns, &[part(column), part((column + 5) % columns.len())]))
        .collect();

    // Any bytes as a row image, and as a key.
    let row = rows.view(bytes);
    for column in 0..columns.len() {
        let _ = (row.is_null(column), row.get(column));
    }
    for key in &keys {
        let mut out = Vec::new();
        let _ = key.row_has_null(&row);
        key.encode_row(&row, &mut out);
        let _ = key.len_in(bytes);
        let _ = key.decode(bytes, &mut Vec::new());
    }
    // An image that passes validation is one whose values make an image with the same values.
    if rows.validate(bytes).is_ok() {
        let values = row.to_values();
        let borrowed: Vec<ValueRef<'_>> = values.iter().map(|value| value.as_ref()).collect();
        let mut again = Vec::new();
        rows.encode(&borrowed, &mut again);
        assert_eq!(rows.view(&again).to_values(), values);
    }

    // A row made of the bytes: it comes back, and each of its keys knows its own length.
    let image = build(&rows, bytes);
    rows.validate(&image).expect("an image just written is valid");
    let row = rows.view(&image);
    for key in &keys {
        let mut encoded = Vec::new();
        key.encode_row(&row, &mut encoded);
        let own = encoded.len();
        encoded.extend_from_slice(bytes);
        assert_eq!(key.len_in(&encoded), Some(own));
    }
}

/// A row whose values are cut from `bytes`.
fn build(rows: &RowCodec, bytes: &[u8]) -> Vec<u8> {
    let number = |at: usize| {
        let mut word = [0; 8];
        for (position, byte) in word.iter_mut().enumerate() {
            *byte = bytes.get(at + position).copied().unwrap_or_default();
        }
        u64::from_le_bytes(word)
    };
    let double = f64::from_bits(number(8));
    let text = String::from_utf8_lossy(bytes);
    let short: String = text.chars().take(10).collect();
    let long: String = text.chars().take(300).collect();
    let null_or = |bit: u32, value| if number(0) >> bit & 1 == 1 { ValueRef::Null } else { value };
    let values = [
        ValueRef::Int(i64::from(number(0) as i32)),
        null_or(1, ValueRef::UInt(number(4))),
        null_or(2, ValueRef::Double(if double.is_finite() { double } else { 0.0 })),
        ValueRef::Null,
        null_or(4, ValueRef::Text(short.trim_end_matches(' ').as_bytes())),
        null_or(5, ValueRef::Text(long.as_bytes())),
        ValueRef::Binary(&bytes[..bytes.len().min(300)]),
        null_or(7, ValueRef::Binary(b"abcd")),
        null_or(8, ValueRef::Null),
    ];
    let mut image = Vec::new();
    // The date and time columns are exercised by arbitrary images above.
    let mut all = values.to_vec();
    all.resize(rows.columns(), ValueRef::Null);
    rows.encode(&all, &mut image);
    image
}

#[cfg(test)]
pub fn seeds() -> Vec<Vec<u8>> {
    let rows = RowCodec::new(&columns());
    let inputs: [&[u8]; 5] =
        [b"", b"abcdefghijklmnop", &[0xff; 64], "Öl und 日本語 😀 ".as_bytes(), &[0; 400]];
    let mut seeds: Vec<Vec<u8>> = inputs.iter().map(|input| build(&rows, input)).collect();
    seeds.extend(inputs.iter().map(|input| input.to_vec()));
    seeds
}
