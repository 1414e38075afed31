//! Row images.
//!
//! | bytes | what |
//! |---|---|
//! | ⌈n / 8⌉ | null bitmap: one bit a nullable column, in column order, low bit first; 1 = NULL |
//! | fixed | columns of fixed size in column order, at constant offsets (all zero if NULL) |
//! | 2 or 4 each | end offsets of the columns of variable size, from the start of the image (below) |
//! | the rest | bytes of the columns of variable size |
//!
//! End offsets are little-endian. They take 2 bytes if every image of the table fits in 65,535 bytes, else 4.
//!
//! Fixed sizes, all little-endian: integers 1, 2, 3, 4 or 8; FLOAT 4; DOUBLE 8; DECIMAL two's complement of
//! [`bytes_for_precision`](crate::decimal::bytes_for_precision) bytes; BINARY(n) n; DATE 3
//! (`Date::to_packed`); TIME 3 (seconds), with fraction 8 (microseconds); DATETIME and TIMESTAMP 5 (packed
//! without microseconds), with fraction 8; YEAR 1 (year - 1900, or 0). CHAR is stored without trailing
//! spaces. ENUM is the member's number in 1 or 2 bytes, SET its members' bits in 1, 2, 3, 4 or 8, BIT(n) its
//! bits in as many; UUID and INET6 16 bytes, INET4 4.

use crate::{Column, ColumnType, Date, DateTime, Decimal, Time, Value, ValueRef};
use base::sync::Arc;
use ethnum::I256;
use std::fmt;

/// Writes and reads the row images of one table. Built once a table, shared by all sessions; cloning is
/// cheap.
#[derive(Clone, Debug)]
pub struct RowCodec {
    pub(crate) fields: Arc<[Field]>,
    ends_start: usize,
    variable_start: usize,
    wide_ends: bool,
}

/// Where and how a column lies in an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub kind: Kind,
    /// Fixed columns: offset in the image. Variable ones: offset of their end offset.
    pub offset: usize,
    /// The column's bit in the null bitmap, or `NOT_NULL`.
    pub null_bit: u32,
}

const NOT_NULL: u32 = u32::MAX;

// The fixed sizes of the table above. Images on disk have them, so they cannot change.
const _: () = {
    assert!(ColumnType::Float { unsigned: false }.image_bytes_max() == 4);
    assert!(ColumnType::Double { unsigned: false }.image_bytes_max() == 8);
    assert!(ColumnType::Date.image_bytes_max() == 3 && ColumnType::Year.image_bytes_max() == 1);
    assert!(ColumnType::Time { fsp: 0 }.image_bytes_max() == 3);
    assert!(ColumnType::Time { fsp: 6 }.image_bytes_max() == 8);
    assert!(ColumnType::DateTime { fsp: 0 }.image_bytes_max() == 5);
    assert!(ColumnType::DateTime { fsp: 6 }.image_bytes_max() == 8);
    assert!(ColumnType::Timestamp { fsp: 0 }.image_bytes_max() == 5);
    assert!(ColumnType::Timestamp { fsp: 6 }.image_bytes_max() == 8);
};

/// Where an integer column lies in every image of a table, little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntegerPlace {
    pub offset: usize,
    pub bytes: u8,
    pub unsigned: bool,
    /// Its bit in the null bitmap, which the image begins with; `None` if it is never NULL.
    pub null_bit: Option<u32>,
}

/// A column's representation in an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Int { bytes: u8, unsigned: bool },
    Float,
    Double,
    Decimal { bytes: u8, scale: u8 },
    FixedBinary { bytes: u32 },
    Date,
    Time { fsp: u8 },
    DateTime { fsp: u8 },
    Year,
    Char,
    Text,
    Binary,
}

impl Kind {
    pub(crate) fn of(column_type: &ColumnType) -> Kind {
        match *column_type {
            ColumnType::Int { bytes, unsigned } => Kind::Int { bytes, unsigned },
            ColumnType::Float { .. } => Kind::Float,
            ColumnType::Double { .. } => Kind::Double,
            ColumnType::Decimal { precision, scale, .. } => {
                Kind::Decimal { bytes: crate::decimal::bytes_for_precision(precision) as u8, scale }
            }
            ColumnType::Char { .. } => Kind::Char,
            ColumnType::Varchar { .. } | ColumnType::Text { .. } => Kind::Text,
            ColumnType::Binary { bytes } => Kind::FixedBinary { bytes },
            ColumnType::Varbinary { .. } | ColumnType::Blob { .. } => Kind::Binary,
            ColumnType::Date => Kind::Date,
            ColumnType::Time { fsp } => Kind::Time { fsp },
            ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => Kind::DateTime { fsp },
            ColumnType::Year => Kind::Year,
            ColumnType::Enum { bytes, .. } | ColumnType::Set { bytes, .. } => {
                Kind::Int { bytes, unsigned: true }
            }
            ColumnType::Bit { .. } => {
                Kind::Int { bytes: column_type.image_bytes_max() as u8, unsigned: true }
            }
            ColumnType::Code(code) => Kind::FixedBinary { bytes: code.bytes() as u32 },
        }
    }

    fn is_variable(self) -> bool {
        matches!(self, Kind::Char | Kind::Text | Kind::Binary)
    }
}

/// A row image that is not one of its table's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CorruptRow {
    /// The first column that does not fit, counted from 0; the number of columns for trailing bytes.
    pub column: usize,
    pub why: &'static str,
}

impl fmt::Display for CorruptRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {} of the row: {}", self.column, self.why)
    }
}

impl std::error::Error for CorruptRow {}

impl RowCodec {
    pub fn new(columns: &[Column]) -> RowCodec {
        let nullable = columns.iter().filter(|column| column.nullable).count();
        let variable = columns.iter().filter(|column| Kind::of(&column.column_type).is_variable()).count();
        let fixed_start = nullable.div_ceil(8);
        let fixed_bytes: usize = columns
            .iter()
            .filter(|column| !Kind::of(&column.column_type).is_variable())
            .map(|column| column.column_type.image_bytes_max())
            .sum();
        let ends_start = fixed_start + fixed_bytes;
        let image_bytes_max = columns
            .iter()
            .filter(|column| Kind::of(&column.column_type).is_variable())
            .fold(ends_start + 2 * variable, |sum, column| {
                sum.saturating_add(column.column_type.image_bytes_max())
            });
        let wide_ends = image_bytes_max > u16::MAX as usize;
        let end_bytes = if wide_ends { 4 } else { 2 };
        let (mut next_bit, mut next_fixed, mut next_end) = (0, fixed_start, ends_start);
        let fields = columns
            .iter()
            .map(|column| {
                let kind = Kind::of(&column.column_type);
                let offset = if kind.is_variable() {
                    next_end += end_bytes;
                    next_end - end_bytes
                } else {
                    let bytes = column.column_type.image_bytes_max();
                    next_fixed += bytes;
                    next_fixed - bytes
                };
                let null_bit = if column.nullable {
                    next_bit += 1;
                    next_bit - 1
                } else {
                    NOT_NULL
                };
                Field { kind, offset, null_bit }
            })
            .collect();
        RowCodec { fields, ends_start, variable_start: next_end, wide_ends }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.fields.len()
    }

    /// Where an integer column lies in every image. `None` for other columns.
    pub fn integer_place(&self, column: usize) -> Option<IntegerPlace> {
        let field = self.fields.get(column)?;
        let Kind::Int { bytes, unsigned } = field.kind else { return None };
        let null_bit = (field.null_bit != NOT_NULL).then_some(field.null_bit);
        Some(IntegerPlace { offset: field.offset, bytes, unsigned, null_bit })
    }

    /// Appends the image of `values`, one a column, already coerced to their columns' types.
    ///
    /// A value that is not of its column's type is stored as zero or empty, and so are NULL in a NOT NULL
    /// column and a missing value. The caller coerces values before and tells the user.
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        debug_assert_eq!(values.len(), self.fields.len());
        let start = out.len();
        out.resize(start + self.variable_start, 0);
        for (field, value) in self.fields.iter().zip(values) {
            if value.is_null() {
                if field.null_bit != NOT_NULL {
                    out[start + field.null_bit as usize / 8] |= 1 << (field.null_bit % 8);
                }
                if !field.kind.is_variable() {
                    continue;
                }
            }
            if field.kind.is_variable() {
                let bytes = value.as_bytes().unwrap_or(&[]);
                let bytes = if field.kind == Kind::Char { trim_trailing_spaces(bytes) } else { bytes };
                out.extend_from_slice(bytes);
                let end = out.len() - start;
                let at = start + field.offset;
                if self.wide_ends {
                    out[at..at + 4].copy_from_slice(&(end as u32).to_le_bytes());
                } else {
                    out[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
                }
            } else {
                write_fixed(field.kind, value, &mut out[start + field.offset..]);
            }
        }
    }

    /// A view of an image; columns are decoded on demand. Total on corrupt input: a column that does not lie
    /// within the image reads as NULL or empty.
    #[inline]
    pub fn view<'a>(&'a self, image: &'a [u8]) -> RowView<'a> {
        RowView { codec: self, image }
    }

    /// Checks that `image` is one that [`RowCodec::encode`] could have written.
    pub fn validate(&self, image: &[u8]) -> Result<(), CorruptRow> {
        let corrupt = |column, why| Err(CorruptRow { column, why });
        if image.len() < self.variable_start {
            return corrupt(0, "the image is shorter than the columns of fixed size");
        }
        let view = self.view(image);
        let mut end_previous = self.variable_start;
        for (column, field) in self.fields.iter().enumerate() {
            if field.kind.is_variable() {
                let end = self.end_at(image, field.offset);
                if end < end_previous || end > image.len() {
                    return corrupt(column, "its end offset lies outside the image");
                }
                if view.is_null(column) && end != end_previous {
                    return corrupt(column, "it is NULL and has bytes");
                }
                end_previous = end;
            }
            match view.get(column) {
                ValueRef::Text(bytes) if std::str::from_utf8(bytes).is_err() => {
                    return corrupt(column, "its characters are not UTF-8");
                }
                ValueRef::Text([.., b' ']) if field.kind == Kind::Char => {
                    return corrupt(column, "it is a CHAR and ends in a space");
                }
                ValueRef::Date(date) if !date.is_well_formed() => {
                    return corrupt(column, "it is no date");
                }
                ValueRef::DateTime(datetime) if !datetime.is_well_formed() => {
                    return corrupt(column, "it is no date and time");
                }
                _ => {}
            }
        }
        if end_previous != image.len() {
            return corrupt(self.fields.len(), "bytes follow the last column");
        }
        Ok(())
    }

    /// The end offset stored at `at`; 0 if that lies outside the image.
    #[inline]
    fn end_at(&self, image: &[u8], at: usize) -> usize {
        if self.wide_ends {
            image
                .get(at..at + 4)
                .map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().unwrap_or([0; 4])) as usize)
        } else {
            image
                .get(at..at + 2)
                .map_or(0, |bytes| u16::from_le_bytes(bytes.try_into().unwrap_or([0; 2])) as usize)
        }
    }
}

/// The bytes without the spaces at their end.
#[inline]
pub fn trim_trailing_spaces(bytes: &[u8]) -> &[u8] {
    let mut end = bytes.len();
    while end > 0 && bytes[end - 1] == b' ' {
        end -= 1;
    }
    &bytes[..end]
}

/// Writes a value of fixed size to the start of `to`.
fn write_fixed(kind: Kind, value: &ValueRef<'_>, to: &mut [u8]) {
    match (kind, *value) {
        (Kind::Int { bytes, .. }, ValueRef::Int(value)) => write_int(value as u64, bytes, to),
        (Kind::Int { bytes, .. }, ValueRef::UInt(value)) => write_int(value, bytes, to),
        (Kind::Float, ValueRef::Float(value)) => to[..4].copy_from_slice(&value.to_le_bytes()),
        (Kind::Float, ValueRef::Double(value)) => to[..4].copy_from_slice(&(value as f32).to_le_bytes()),
        (Kind::Double, ValueRef::Double(value)) => to[..8].copy_from_slice(&value.to_le_bytes()),
        (Kind::Double, ValueRef::Float(value)) => to[..8].copy_from_slice(&(value as f64).to_le_bytes()),
        (Kind::Decimal { bytes, scale }, ValueRef::Decimal(value)) => {
            debug_assert_eq!(value.scale(), scale);
            to[..bytes as usize].copy_from_slice(&value.unscaled().to_le_bytes()[..bytes as usize]);
        }
        (Kind::FixedBinary { bytes }, ValueRef::Binary(value) | ValueRef::Text(value)) => {
            let length = value.len().min(bytes as usize);
            to[..length].copy_from_slice(&value[..length]);
        }
        (Kind::Date, ValueRef::Date(value)) => write_int(value.to_packed() as u64, 3, to),
        (Kind::Time { fsp: 0 }, ValueRef::Time(value)) => write_int((value.micros / 1_000_000) as u64, 3, to),
        (Kind::Time { .. }, ValueRef::Time(value)) => write_int(value.micros as u64, 8, to),
        (Kind::DateTime { fsp: 0 }, ValueRef::DateTime(value)) => write_int(value.to_packed() >> 20, 5, to),
        (Kind::DateTime { .. }, ValueRef::DateTime(value)) => write_int(value.to_packed(), 8, to),
        (Kind::Year, ValueRef::UInt(value)) => to[0] = value.saturating_sub(1900) as u8,
        (Kind::Year, ValueRef::Int(value)) => to[0] = value.saturating_sub(1900).max(0) as u8,
        _ => debug_assert!(false, "{value:?} is not of the column's type {kind:?}"),
    }
}

#[inline]
fn write_int(value: u64, bytes: u8, to: &mut [u8]) {
    let le = value.to_le_bytes();
    match bytes {
        1 => to[0] = le[0],
        2 => to[..2].copy_from_slice(&le[..2]),
        3 => to[..3].copy_from_slice(&le[..3]),
        4 => to[..4].copy_from_slice(&le[..4]),
        5 => to[..5].copy_from_slice(&le[..5]),
        _ => to[..8].copy_from_slice(&le),
    }
}

/// A row image seen through its codec.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    codec: &'a RowCodec,
    image: &'a [u8],
}

impl<'a> RowView<'a> {
    /// The image itself.
    pub fn image(&self) -> &'a [u8] {
        self.image
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.codec.fields.len()
    }

    /// True if the column is NULL (or does not exist).
    #[inline]
    pub fn is_null(&self, column: usize) -> bool {
        self.codec.fields.get(column).is_none_or(|field| self.slot_is_null(field))
    }

    #[inline]
    fn slot_is_null(&self, field: &Field) -> bool {
        field.null_bit != NOT_NULL
            && self
                .image
                .get(field.null_bit as usize / 8)
                .is_none_or(|byte| byte & (1 << (field.null_bit % 8)) != 0)
    }

    /// Appends what [`RowView::get`] gives. The value is built in its place: a copy right after building it
    /// would have to wait until its parts are stored.
    #[inline]
    pub fn push_to(&self, column: usize, values: &mut Vec<ValueRef<'a>>) {
        match self.codec.fields.get(column) {
            Some(field) if !self.slot_is_null(field) => match field.kind {
                Kind::Int { bytes: 4, unsigned: false } => match self.array(field.offset) {
                    Some(le) => values.push(ValueRef::Int(i32::from_le_bytes(le).into())),
                    None => values.push(ValueRef::Null),
                },
                Kind::Char | Kind::Text => values.push(ValueRef::Text(self.variable(field))),
                _ => values.push(self.get(column)),
            },
            _ => values.push(ValueRef::Null),
        }
    }

    /// The value of a column, in constant time and without allocation. Text and binary values are the bytes
    /// in the image; CHAR comes without trailing spaces.
    #[inline]
    pub fn get(&self, column: usize) -> ValueRef<'a> {
        let Some(field) = self.codec.fields.get(column) else { return ValueRef::Null };
        if self.slot_is_null(field) {
            return ValueRef::Null;
        }
        match field.kind {
            Kind::Int { bytes, unsigned } => self.int(field.offset, bytes, unsigned),
            Kind::Char | Kind::Text => ValueRef::Text(self.variable(field)),
            Kind::Binary => ValueRef::Binary(self.variable(field)),
            _ => self.other_fixed(field).unwrap_or(ValueRef::Null),
        }
    }

    #[inline]
    fn int(&self, offset: usize, bytes: u8, unsigned: bool) -> ValueRef<'a> {
        let value = match bytes {
            4 => self.array::<4>(offset).map(|le| {
                if unsigned { u32::from_le_bytes(le) as u64 } else { i32::from_le_bytes(le) as i64 as u64 }
            }),
            8 => self.array::<8>(offset).map(u64::from_le_bytes),
            _ => self.small_int(offset, bytes, unsigned),
        };
        match value {
            None => ValueRef::Null,
            Some(value) if unsigned => ValueRef::UInt(value),
            Some(value) => ValueRef::Int(value as i64),
        }
    }

    fn small_int(&self, offset: usize, bytes: u8, unsigned: bool) -> Option<u64> {
        let value = self.raw_int(offset, bytes)?;
        let unused_bits = 64 - 8 * bytes as u32;
        Some(if unsigned { value } else { ((value << unused_bits) as i64 >> unused_bits) as u64 })
    }

    /// An unsigned integer of 1 to 8 bytes.
    fn raw_int(&self, offset: usize, bytes: u8) -> Option<u64> {
        let mut le = [0; 8];
        le[..bytes as usize].copy_from_slice(self.image.get(offset..offset + bytes as usize)?);
        Some(u64::from_le_bytes(le))
    }

    #[inline]
    fn array<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.image.get(offset..offset + N)?.try_into().ok()
    }

    fn other_fixed(&self, field: &Field) -> Option<ValueRef<'a>> {
        let at = field.offset;
        Some(match field.kind {
            Kind::Float => ValueRef::Float(f32::from_le_bytes(self.array(at)?)),
            Kind::Double => ValueRef::Double(f64::from_le_bytes(self.array(at)?)),
            Kind::Decimal { bytes, scale } => {
                let bytes = self.image.get(at..at + bytes as usize)?;
                let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
                let mut le = [if negative { 0xff } else { 0 }; 32];
                le[..bytes.len()].copy_from_slice(bytes);
                ValueRef::Decimal(Decimal::new(I256::from_le_bytes(le), scale))
            }
            Kind::FixedBinary { bytes } => ValueRef::Binary(self.image.get(at..at + bytes as usize)?),
            Kind::Date => ValueRef::Date(Date::from_packed(self.raw_int(at, 3)? as u32)),
            Kind::Time { fsp: 0 } => {
                let seconds = self.small_int(at, 3, false)? as i64;
                ValueRef::Time(Time { micros: seconds * 1_000_000, fsp: 0 })
            }
            Kind::Time { fsp } => ValueRef::Time(Time { micros: self.raw_int(at, 8)? as i64, fsp }),
            Kind::DateTime { fsp: 0 } => {
                ValueRef::DateTime(DateTime::from_packed(self.raw_int(at, 5)? << 20, 0))
            }
            Kind::DateTime { fsp } => ValueRef::DateTime(DateTime::from_packed(self.raw_int(at, 8)?, fsp)),
            Kind::Year => match *self.image.get(at)? {
                0 => ValueRef::UInt(0),
                year => ValueRef::UInt(year as u64 + 1900),
            },
            Kind::Int { .. } | Kind::Char | Kind::Text | Kind::Binary => return None,
        })
    }

    #[inline]
    fn variable(&self, field: &Field) -> &'a [u8] {
        let codec = self.codec;
        let end = codec.end_at(self.image, field.offset);
        let start = if field.offset == codec.ends_start {
            codec.variable_start
        } else {
            codec.end_at(self.image, field.offset - if codec.wide_ends { 4 } else { 2 })
        };
        self.image.get(start..end).unwrap_or(&[])
    }

    /// All columns, owned.
    pub fn to_values(&self) -> Vec<Value> {
        (0..self.columns()).map(|column| self.get(column).to_value()).collect()
    }

    /// Replaces `out` by all columns, borrowed from the image.
    pub fn read_into(&self, out: &mut Vec<ValueRef<'a>>) {
        out.clear();
        out.extend((0..self.columns()).map(|column| self.get(column)));
    }
}

#[cfg(test)]
pub(crate) mod tests;
