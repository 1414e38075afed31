use super::*;
use crate::{Code, Collation, Members};

fn column(column_type: ColumnType, nullable: bool) -> Column {
    Column { name: "c".into(), column_type, nullable }
}

fn sbtest() -> Vec<Column> {
    let collation = Collation::Utf8mb4GeneralCi;
    vec![
        column(ColumnType::Int { bytes: 4, unsigned: false }, false),
        column(ColumnType::Int { bytes: 4, unsigned: false }, false),
        column(ColumnType::Char { chars: 120, collation }, false),
        column(ColumnType::Char { chars: 60, collation }, false),
    ]
}

fn members(count: u32) -> Members {
    Members::new((0..count).map(|number| format!("m{number}")), Collation::Utf8mb4GeneralCi)
}

pub(crate) fn one_of_each(nullable: bool) -> (Vec<Column>, Vec<Value>) {
    let collation = Collation::Utf8mb4Bin;
    let (date, time) = (Date { year: 2026, month: 11, day: 21 }, -5_000_000);
    let datetime = DateTime { date, hour: 23, minute: 59, second: 58, fsp: 0, micros: 0 };
    let pairs = [
        (ColumnType::Int { bytes: 1, unsigned: false }, Value::Int(-128)),
        (ColumnType::Int { bytes: 2, unsigned: true }, Value::UInt(65_535)),
        (ColumnType::Int { bytes: 3, unsigned: false }, Value::Int(-8_388_608)),
        (ColumnType::Int { bytes: 4, unsigned: true }, Value::UInt(u32::MAX as u64)),
        (ColumnType::Int { bytes: 8, unsigned: false }, Value::Int(i64::MIN)),
        (ColumnType::Int { bytes: 8, unsigned: true }, Value::UInt(u64::MAX)),
        (ColumnType::Float { unsigned: false }, Value::Float(-1.5)),
        (ColumnType::Double { unsigned: false }, Value::Double(1e300)),
        (
            ColumnType::Decimal { precision: 10, scale: 2, unsigned: false },
            Value::Decimal(Decimal::new(I256::new(-9_999_999_999), 2)),
        ),
        (ColumnType::Char { chars: 5, collation }, Value::Text("größ".into())),
        (ColumnType::Varchar { chars: 5, collation }, Value::Text(b"a ".to_vec())),
        (ColumnType::Text { bytes_max: 65_535, collation }, Value::Text(vec![])),
        (ColumnType::Binary { bytes: 3 }, Value::Binary(vec![1, 0, 0])),
        (ColumnType::Varbinary { bytes: 3 }, Value::Binary(vec![0, 0xff])),
        (ColumnType::Blob { bytes_max: 255 }, Value::Binary(vec![0x80; 100])),
        (ColumnType::Date, Value::Date(date)),
        (ColumnType::Time { fsp: 0 }, Value::Time(Time { micros: time, fsp: 0 })),
        (ColumnType::Time { fsp: 6 }, Value::Time(Time { micros: time - 1, fsp: 6 })),
        (ColumnType::DateTime { fsp: 0 }, Value::DateTime(datetime)),
        (ColumnType::Timestamp { fsp: 3 }, Value::DateTime(DateTime { fsp: 3, micros: 123_000, ..datetime })),
        (ColumnType::Year, Value::UInt(2155)),
        (ColumnType::of_enum(members(300)), Value::UInt(300)),
        (ColumnType::of_enum(members(255)), Value::UInt(0)),
        (ColumnType::of_set(members(17)), Value::UInt(0x1_0001)),
        (ColumnType::of_set(members(64)), Value::UInt(u64::MAX)),
        (ColumnType::Bit { bits: 33 }, Value::UInt(0x1_ffff_ffff)),
        (ColumnType::Bit { bits: 1 }, Value::UInt(1)),
        (ColumnType::Code(Code::Uuid), Value::Binary((0..16).collect())),
        (ColumnType::Code(Code::Inet6), Value::Binary(vec![0; 16])),
        (ColumnType::Code(Code::Inet4), Value::Binary(vec![127, 0, 0, 1])),
    ];
    let (types, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    (types.into_iter().map(|column_type| column(column_type, nullable)).collect(), values)
}

#[test]
fn a_row_of_every_type_reads_back_as_written() {
    for nullable in [false, true] {
        let (columns, values) = one_of_each(nullable);
        let codec = RowCodec::new(&columns);
        let mut image = Vec::new();
        let refs: Vec<_> = values.iter().map(Value::as_ref).collect();
        codec.encode(&refs, &mut image);
        assert_eq!(codec.view(&image).to_values(), values);
        assert_eq!(codec.validate(&image), Ok(()));
    }
}

#[test]
fn nulls_read_back_whichever_columns_they_are_in() {
    let (columns, values) = one_of_each(true);
    let codec = RowCodec::new(&columns);
    for null in 0..columns.len() {
        let mut values = values.clone();
        values[null] = Value::Null;
        let mut image = Vec::new();
        codec.encode(&values.iter().map(Value::as_ref).collect::<Vec<_>>(), &mut image);
        assert_eq!(codec.view(&image).to_values(), values);
        assert!(codec.view(&image).is_null(null));
        assert_eq!(codec.validate(&image), Ok(()));
    }
}

#[test]
fn a_sysbench_row_has_twelve_bytes_beside_its_text() {
    let codec = RowCodec::new(&sbtest());
    let mut image = vec![0xaa; 3];
    let text = "68487932199-96439406143-93774651418   ";
    let row = [ValueRef::Int(1), ValueRef::Int(-2), ValueRef::Text(text.as_bytes()), ValueRef::Text(b"x")];
    codec.encode(&row, &mut image);
    let image = &image[3..];
    assert_eq!(image.len(), 8 + 4 + 35 + 1);
    let view = codec.view(image);
    assert_eq!(view.get(1), ValueRef::Int(-2));
    let ValueRef::Text(stored) = view.get(2) else { panic!("CHAR is text") };
    assert_eq!(stored, text.trim_end().as_bytes());
    assert!(image.as_ptr_range().contains(&stored.as_ptr()), "the bytes of the image, not a copy");
}

#[test]
fn a_char_that_ends_in_a_space_is_no_image_that_was_written() {
    let codec = RowCodec::new(&sbtest());
    let mut image = Vec::new();
    codec.encode(
        &[ValueRef::Int(1), ValueRef::Int(2), ValueRef::Text(b"abc"), ValueRef::Text(b"x")],
        &mut image,
    );
    assert_eq!(codec.validate(&image), Ok(()));
    let end_of_c = image.len() - 2;
    image[end_of_c] = b' ';
    assert_eq!(codec.validate(&image).unwrap_err().column, 2);
}

#[test]
fn every_cut_and_every_flipped_byte_is_read_without_panic() {
    let (columns, values) = one_of_each(true);
    let codec = RowCodec::new(&columns);
    let mut image = Vec::new();
    codec.encode(&values.iter().map(Value::as_ref).collect::<Vec<_>>(), &mut image);
    for cut in 0..image.len() {
        codec.view(&image[..cut]).to_values();
        assert!(codec.validate(&image[..cut]).is_err());
    }
    for at in 0..image.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut image = image.clone();
            image[at] = byte;
            codec.view(&image).to_values();
            let _ = codec.validate(&image);
        }
    }
    assert_eq!(codec.view(&image).get(columns.len()), ValueRef::Null);
}
