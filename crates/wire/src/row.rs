//! Binary rows. (A text row is just its values, written one after the other by [`crate::put`].)

use crate::Malformed;
use crate::cursor::Cursor;
use crate::value::{WireType, WireValue};

/// Writes a binary row's head and marks its NULLs; the values that are not NULL follow by
/// `out.extend_from_slice` and [`crate::put`], in column order.
#[derive(Clone, Copy, Debug)]
pub struct BinaryRow {
    bitmap: usize,
    columns: usize,
}

impl BinaryRow {
    pub fn begin(out: &mut Vec<u8>, columns: usize) -> BinaryRow {
        out.push(0);
        let bitmap = out.len();
        out.resize(bitmap + (columns + 9) / 8, 0);
        BinaryRow { bitmap, columns }
    }

    pub fn null(&self, out: &mut [u8], column: usize) {
        debug_assert!(column < self.columns);
        let bit = column + 2;
        out[self.bitmap + bit / 8] |= 1 << (bit % 8);
    }
}

/// Reads a binary row.
#[derive(Clone, Debug)]
pub struct BinaryRowReader<'a> {
    bitmap: &'a [u8],
    values: Cursor<'a>,
    column: usize,
}

impl<'a> BinaryRowReader<'a> {
    /// Begins to read a row of this many columns.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn new(payload: &'a [u8], columns: usize) -> Result<BinaryRowReader<'a>, Malformed> {
        let mut values = Cursor::new(payload);
        if values.u8("binary row")? != 0 {
            return Err(Malformed::new("binary row"));
        }
        let bitmap = values.bytes((columns + 9) / 8, "null bitmap")?;
        Ok(BinaryRowReader { bitmap, values, column: 0 })
    }

    /// The next value. To be called once for each column.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn value(&mut self, of: WireType) -> Result<WireValue<'a>, Malformed> {
        let bit = self.column + 2;
        self.column += 1;
        let byte = self.bitmap.get(bit / 8).ok_or(Malformed::new("binary row"))?;
        if byte & 1 << (bit % 8) != 0 {
            return Ok(WireValue::Null);
        }
        WireValue::read(&mut self.values, of)
    }
}
