//! Compressed pages: how a page of a compressed file lies on the device, and in memory while it is cold.
//!
//! On the device a compressed page begins where the page would begin and takes whole blocks; the rest of the
//! page's place is given back to the file system ([`vfs::File::discard`]). A page that would save no block is
//! written as it is, so data that cannot be compressed takes no more room than in a plain file. The format
//! byte tells the two apart.
//!
//! | byte | size | field    | checked                                       |
//! |------|------|----------|-----------------------------------------------|
//! | 0    | 4    | checksum | CRC-32 of the rest of the compressed page     |
//! | 4    | 1    | format   | [`FORMAT`]                                    |
//! | 5    | 1    | method   | [`LZ4`]                                       |
//! | 6    | 2    | zero     |                                               |
//! | 8    | 8    | lsn      | the page's; named in errors                   |
//! | 16   | 4    | page_no  | a page of another place was misdirected       |
//! | 20   | 4    | file_id  | as above                                      |
//! | 24   | 4    | bytes    | of the compressed page, this header included  |
//! | 28   | 4    | size     | of the page                                   |
//! | 32   |      | bytes 4.. of the page, compressed                        |
//!
//! In memory there is no header: nothing tears what lies in memory.

use crate::page_header::{array, header};
use base::PageId;
use base::checksum::checksum;

/// Owners of pages use other format bytes.
pub const FORMAT: u8 = 0xc7;
/// The block format of LZ4.
const LZ4: u8 = 1;

const METHOD: usize = 5;
const BYTES: usize = 24;
const SIZE: usize = 28;
const HEADER: usize = 32;
// The header begins with the fields of a plain page's header, then come the two lengths.
const _: () = assert!(BYTES == header::LEN && SIZE == BYTES + 4 && HEADER == SIZE + 4);

/// The smallest piece that a file system gives back or takes, in bytes.
pub(crate) const BLOCK: usize = 4096;

/// True for a compressed page, false for a plain one. The bytes must be one of the two.
pub(crate) fn is_compressed(bytes: &[u8]) -> bool {
    bytes[header::FORMAT] == FORMAT
}

/// The most bytes that a compressed page may have. With more it is stored as it is.
fn bytes_max(page_size: usize) -> usize {
    page_size / 4 * 3
}

/// Compresses all of a page but its checksum, behind `header_bytes` bytes of zeroes. `None` if the result is
/// hardly smaller than the page.
fn compress_behind(header_bytes: usize, page: &[u8]) -> Option<Vec<u8>> {
    let rest = &page[header::FORMAT..];
    let mut compressed = vec![0; header_bytes + lz4_flex::block::get_maximum_output_size(rest.len())];
    let bytes = header_bytes + lz4_flex::block::compress_into(rest, &mut compressed[header_bytes..]).ok()?;
    if bytes > bytes_max(page.len()) {
        return None;
    }
    // A copy of the right length. If the long buffer were cut instead, the allocator could not use what was
    // cut off for the next page, which asks for a long buffer again.
    Some(compressed[..bytes].to_vec())
}

/// The page as it is kept in memory: without a header.
pub(crate) fn compress_for_memory(page: &[u8]) -> Option<Vec<u8>> {
    compress_behind(0, page)
}

/// A sealed page as it lies on the device. `None` if that would be hardly smaller than the page.
pub(crate) fn compress_for_device(page: &[u8]) -> Option<Vec<u8>> {
    let mut compressed = compress_behind(HEADER, page)?;
    let bytes = compressed.len();
    compressed[header::LSN..BYTES].copy_from_slice(&page[header::LSN..BYTES]);
    compressed[header::FORMAT] = FORMAT;
    compressed[METHOD] = LZ4;
    compressed[BYTES..SIZE].copy_from_slice(&(bytes as u32).to_le_bytes());
    compressed[SIZE..HEADER].copy_from_slice(&(page.len() as u32).to_le_bytes());
    let sum = checksum(0, &compressed[header::FORMAT..]);
    compressed[header::CHECKSUM..][..4].copy_from_slice(&sum.to_le_bytes());
    Some(compressed)
}

/// Checks the compressed page at the start of `bytes`, which was read for `id`, and gives its length in
/// bytes.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn verify(bytes: &[u8], id: PageId, page_size: usize) -> Result<usize, String> {
    let len = u32::from_le_bytes(array(bytes, BYTES)) as usize;
    if !(HEADER..=bytes_max(page_size)).contains(&len) || len > bytes.len() {
        return Err(format!("a compressed page of {len} bytes"));
    }
    let stored = u32::from_le_bytes(array(bytes, header::CHECKSUM));
    let computed = checksum(0, &bytes[header::FORMAT..len]);
    if stored != computed {
        return Err(format!("compressed: checksum {stored:08x} stored, {computed:08x} computed"));
    }
    let page = u32::from_le_bytes(array(bytes, header::PAGE_NO));
    let file = u32::from_le_bytes(array(bytes, header::FILE_ID));
    if (page, file) != (id.page.0, id.file.0) {
        return Err(format!("a write went astray: this is compressed page {page} of file {file}"));
    }
    let size = u32::from_le_bytes(array(bytes, SIZE)) as usize;
    if (bytes[METHOD], size) != (LZ4, page_size) {
        return Err(format!(
            "compressed by method {} from {size} bytes, expected {LZ4} and {page_size}",
            bytes[METHOD]
        ));
    }
    Ok(len)
}

/// Opens a compressed page of the device that [`verify`] has passed. `page` gets all of the page but its
/// checksum, which becomes zero.
pub(crate) fn open_from_device(compressed: &[u8], page: &mut [u8]) -> Result<(), String> {
    open_from_memory(&compressed[HEADER..], page)
}

/// Opens a compressed page of memory. As [`open_from_device`].
pub(crate) fn open_from_memory(compressed: &[u8], page: &mut [u8]) -> Result<(), String> {
    let (sum, rest) = page.split_at_mut(header::FORMAT);
    sum.fill(0);
    match lz4_flex::block::decompress_into(compressed, rest) {
        Ok(bytes) if bytes == rest.len() => Ok(()),
        Ok(bytes) => Err(format!("a compressed page opened to {bytes} bytes")),
        Err(error) => Err(format!("a compressed page that cannot be opened: {error}")),
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::page_header::seal;
    use base::{FileId, PageNo};

    const SIZE: usize = 16 << 10;

    fn id() -> PageId {
        PageId::new(FileId(3), PageNo(70))
    }

    fn page(byte: impl Fn(usize) -> u8) -> Vec<u8> {
        let mut page: Vec<u8> = (0..SIZE).map(byte).collect();
        page[header::FORMAT] = 2;
        seal(&mut page, id());
        page
    }

    #[test]
    fn a_compressed_page_opens_to_its_page_and_knows_its_place() {
        let page = page(|at| (at / 100) as u8);
        let compressed = compress_for_device(&page).expect("it repeats itself");
        assert!(compressed.len() < SIZE / 5 && is_compressed(&compressed) && !is_compressed(&page));
        let mut padded = compressed.clone();
        padded.resize(BLOCK, 0);
        assert_eq!(verify(&padded, id(), SIZE), Ok(compressed.len()));
        let mut opened = vec![1; SIZE];
        open_from_device(&compressed, &mut opened).unwrap();
        assert_eq!(opened[header::FORMAT..], page[header::FORMAT..]);
        assert!(verify(&padded, PageId::new(FileId(3), PageNo(71)), SIZE).unwrap_err().contains("astray"));
        assert!(verify(&padded, id(), SIZE / 2).is_err());
    }

    #[test]
    fn noise_is_not_compressed() {
        let mut random = base::random::Random::new(1, 0);
        let noise: Vec<u8> = (0..SIZE).map(|_| random.next_u64() as u8).collect();
        assert_eq!(compress_for_device(&page(|at| noise[at])), None);
    }

    #[test]
    fn no_change_of_a_compressed_page_goes_unnoticed_or_panics() {
        let compressed = compress_for_device(&page(|at| (at / 64) as u8)).unwrap();
        for at in 0..compressed.len() {
            for bit in [0, 7] {
                let mut torn = compressed.clone();
                torn[at] ^= 1 << bit;
                assert!(verify(&torn, id(), SIZE).is_err() || at == 6 || at == 7, "byte {at}");
                let mut opened = vec![0; SIZE];
                let _ = open_from_device(&torn, &mut opened);
            }
        }
    }
}
