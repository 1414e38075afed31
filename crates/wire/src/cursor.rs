//! Reading the fields of a payload, from front to back.

use crate::Malformed;

/// The unread rest of a payload. Every method takes bytes from the front, or fails. None panics.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    left: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub const fn new(payload: &'a [u8]) -> Cursor<'a> {
        Cursor { left: payload }
    }

    pub const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub const fn len(&self) -> usize {
        self.left.len()
    }

    /// The next byte, which stays.
    pub fn peek(&self) -> Option<u8> {
        self.left.first().copied()
    }

    /// Takes everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// If fewer bytes are left. `what` names the missing part.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.left.split_at_checked(count).ok_or(Malformed::new(what))?;
        self.left = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.left.split_first_chunk::<N>().ok_or(Malformed::new(what))?;
        self.left = tail;
        Ok(*head)
    }

    /// An integer of one byte.
    ///
    /// # Errors
    /// If fewer bytes are left. `what` names the missing part.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(what).map(|bytes| bytes[0])
    }

    /// An integer of two bytes.
    ///
    /// # Errors
    /// If fewer bytes are left. `what` names the missing part.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// An integer of three bytes.
    ///
    /// # Errors
    /// If fewer bytes are left. `what` names the missing part.
    pub fn u24(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.array::<3>(what).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// An integer of four bytes.
    ///
    /// # Errors
    /// If fewer bytes are left. `what` names the missing part.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// An integer of eight bytes.
    ///
    /// # Errors
    /// If fewer bytes are left. `what` names the missing part.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A length-encoded integer. 0xfb (NULL in a row) and 0xff are malformed here.
    ///
    /// # Errors
    /// If the bytes end too soon or begin no integer. `what` names the part that is wrong.
    pub fn lenenc(&mut self, what: &'static str) -> Result<u64, Malformed> {
        match self.u8(what)? {
            small @ 0..=0xfa => Ok(small.into()),
            0xfc => self.u16(what).map(u64::from),
            0xfd => self.u24(what).map(u64::from),
            0xfe => self.u64(what),
            0xfb | 0xff => Err(Malformed::new(what)),
        }
    }

    /// A string behind its length-encoded length.
    ///
    /// # Errors
    /// If the bytes end too soon or the length is none. `what` names the part that is wrong.
    pub fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let length = self.lenenc(what)?;
        let length = usize::try_from(length).map_err(|_| Malformed::new(what))?;
        self.bytes(length, what)
    }

    /// A value of a text row: `None` is NULL.
    ///
    /// # Errors
    /// If the bytes end too soon or the length is none. `what` names the part that is wrong.
    pub fn lenenc_bytes_or_null(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, Malformed> {
        if self.peek() == Some(0xfb) {
            self.left = &self.left[1..];
            return Ok(None);
        }
        self.lenenc_bytes(what).map(Some)
    }

    /// A string that ends at a zero byte, which is taken and not returned.
    ///
    /// # Errors
    /// If there is no zero byte. `what` names the part that is wrong.
    pub fn nul_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.left.iter().position(|&byte| byte == 0).ok_or(Malformed::new(what))?;
        let string = &self.left[..end];
        self.left = &self.left[end + 1..];
        Ok(string)
    }
}
