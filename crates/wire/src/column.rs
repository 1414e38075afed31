//! Column definitions of result sets and of prepared statements.

use crate::cursor::Cursor;
use crate::value::WireType;
use crate::{Malformed, PacketWriter, constants::column_flag, put};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ColumnDefinition<'a> {
    pub database: &'a [u8],
    /// The table's alias and its own name.
    pub table: &'a [u8],
    pub org_table: &'a [u8],
    /// The column's alias and its own name.
    pub name: &'a [u8],
    pub org_name: &'a [u8],
    /// A number of [`crate::constants::charset`].
    pub charset: u16,
    /// The widest value, in bytes.
    pub length: u32,
    /// One of [`crate::constants::kind`].
    pub kind: u8,
    /// Flags of [`column_flag`].
    pub flags: u16,
    pub decimals: u8,
}

impl<'a> ColumnDefinition<'a> {
    pub fn write(&self, writer: &mut PacketWriter) {
        self.write_open(writer);
        writer.finish();
    }

    /// The same, and leaves the packet open: in the answer to COM_FIELD_LIST the column's default follows, as
    /// a value of a text row.
    pub fn write_open(&self, writer: &mut PacketWriter) {
        let out = writer.begin();
        put::lenenc_bytes(out, b"def");
        for name in [self.database, self.table, self.org_table, self.name, self.org_name] {
            put::lenenc_bytes(out, name);
        }
        out.push(0x0c);
        out.extend_from_slice(&self.charset.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.push(self.kind);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&[self.decimals, 0, 0]);
    }

    /// Reads a column definition.
    ///
    /// # Errors
    /// If the payload ends too soon or does not follow the protocol.
    pub fn parse(payload: &'a [u8]) -> Result<ColumnDefinition<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        cursor.lenenc_bytes("catalog")?;
        let database = cursor.lenenc_bytes("database of a column")?;
        let table = cursor.lenenc_bytes("table of a column")?;
        let org_table = cursor.lenenc_bytes("table of a column")?;
        let name = cursor.lenenc_bytes("name of a column")?;
        let org_name = cursor.lenenc_bytes("name of a column")?;
        cursor.lenenc("length of a column definition")?;
        let charset = cursor.u16("charset of a column")?;
        let length = cursor.u32("length of a column")?;
        let kind = cursor.u8("type of a column")?;
        let flags = cursor.u16("flags of a column")?;
        let decimals = cursor.u8("decimals of a column")?;
        Ok(ColumnDefinition {
            database,
            table,
            org_table,
            name,
            org_name,
            charset,
            length,
            kind,
            flags,
            decimals,
        })
    }

    pub fn wire_type(&self) -> WireType {
        WireType { kind: self.kind, unsigned: self.flags & column_flag::UNSIGNED != 0 }
    }
}
