//! Reads fields from the front of bytes: numbers, and bytes behind their length. Little-endian.

/// The unread bytes. Each method gives `None` if its field is cut short, and then nothing was read.
#[derive(Clone, Debug)]
pub struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// Bytes behind their number, which is a `u32`.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let mut behind = self.clone();
        let length = behind.u32()?;
        let (first, rest) = behind.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(first)
    }

    /// UTF-8 behind the number of its bytes; `None` for what is none as well.
    pub fn text(&mut self) -> Option<String> {
        let mut behind = self.clone();
        let text = String::from_utf8(behind.bytes()?.to_vec()).ok()?;
        *self = behind;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_and_what_is_cut_short_is_not_read() {
        let mut reader = ByteReader::new(&[1, 2, 0, 3, 0, 0, 0, b'a', b'b', b'c', 9, 0, 0, 0, b'd']);
        assert_eq!((reader.u8(), reader.u16(), reader.text()), (Some(1), Some(2), Some("abc".to_string())));
        assert_eq!((reader.bytes(), reader.u64()), (None, None));
        assert_eq!((reader.u32(), reader.is_empty()), (Some(9), false));
        assert_eq!((reader.take::<1>(), reader.u8(), reader.is_empty()), (Some([b'd']), None, true));
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused() {
        assert_eq!(ByteReader::new(&[1, 0, 0, 0, 0xff]).text(), None);
    }
}
