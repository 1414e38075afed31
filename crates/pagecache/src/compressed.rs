//! Compressed images of pages: how a page of a compressed file lies on the device, and in memory while it is cold.
//!
//! An image lies where the page would, and takes whole blocks of the device; the rest of the page's place is given back to the file system
//! ([`vfs::File::discard`]). A page that would save no block is written as it is, so data that cannot be compressed takes no more room
//! than in a file that is not compressed, and which of the two a place holds is told by the format byte.
//!
//! | byte | size | field    | checked                                       |
//! |------|------|----------|-----------------------------------------------|
//! | 0    | 4    | checksum | CRC-32 of the rest of the image               |
//! | 4    | 1    | format   | [`FORMAT`]                                    |
//! | 5    | 1    | method   | [`LZ4`]                                       |
//! | 6    | 2    | zero     |                                               |
//! | 8    | 8    | lsn      | the page's; named in errors                   |
//! | 16   | 4    | page_no  | a page of another place was misdirected       |
//! | 20   | 4    | file_id  | as above                                      |
//! | 24   | 4    | bytes    | of the image, this header with it             |
//! | 28   | 4    | size     | of the page                                   |
//! | 32   |      | bytes 4.. of the page, compressed                        |

use crate::files::{array, header};
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

/// What a file system gives back or takes at the least, in bytes.
pub(crate) const BLOCK: usize = 4096;

/// True for an image, false for a page as it is, if it is either.
pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes[header::FORMAT] == FORMAT
}

/// Bytes that an image may have at the most, to be kept instead of its page.
fn bytes_max(page_size: usize) -> usize {
    page_size / 4 * 3
}

/// Compresses all of a page but its checksum, behind `header` bytes of zeroes; `None` if that is hardly smaller than the page.
fn compress_behind(header_bytes: usize, page: &[u8]) -> Option<Vec<u8>> {
    let rest = &page[header::FORMAT..];
    let mut image = vec![0; header_bytes + lz4_flex::block::get_maximum_output_size(rest.len())];
    let bytes = header_bytes + lz4_flex::block::compress_into(rest, &mut image[header_bytes..]).ok()?;
    if bytes > bytes_max(page.len()) {
        return None;
    }
    // A copy: what an allocator cuts off a larger piece is lost to the next page, which asks for the larger piece again.
    Some(image[..bytes].to_vec())
}

/// An image for memory: without header, since nothing tears it.
pub(crate) fn squeeze(page: &[u8]) -> Option<Vec<u8>> {
    compress_behind(0, page)
}

/// The image of a sealed page, or `None` if it would be hardly smaller than the page.
pub(crate) fn compress(page: &[u8]) -> Option<Vec<u8>> {
    let mut image = compress_behind(HEADER, page)?;
    let bytes = image.len();
    image[header::LSN..BYTES].copy_from_slice(&page[header::LSN..BYTES]);
    image[header::FORMAT] = FORMAT;
    image[METHOD] = LZ4;
    image[BYTES..SIZE].copy_from_slice(&(bytes as u32).to_le_bytes());
    image[SIZE..HEADER].copy_from_slice(&(page.len() as u32).to_le_bytes());
    let sum = checksum(0, &image[header::FORMAT..]);
    image[header::CHECKSUM..][..4].copy_from_slice(&sum.to_le_bytes());
    Some(image)
}

/// Says what is wrong with an image read for `id`, which `bytes` starts with; else how long it is.
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

/// Opens an image of the device that is in order; `page` gets all of the page but its checksum, which is zero.
pub(crate) fn open(image: &[u8], page: &mut [u8]) -> Result<(), String> {
    unsqueeze(&image[HEADER..], page)
}

/// Opens an image of memory.
pub(crate) fn unsqueeze(image: &[u8], page: &mut [u8]) -> Result<(), String> {
    let (sum, rest) = page.split_at_mut(header::FORMAT);
    sum.fill(0);
    match lz4_flex::block::decompress_into(image, rest) {
        Ok(bytes) if bytes == rest.len() => Ok(()),
        Ok(bytes) => Err(format!("a compressed page opened to {bytes} bytes")),
        Err(error) => Err(format!("a compressed page that cannot be opened: {error}")),
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::files::seal;
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
    fn an_image_opens_to_its_page_and_knows_its_place() {
        let page = page(|at| (at / 100) as u8);
        let image = compress(&page).expect("it repeats itself");
        assert!(image.len() < SIZE / 5 && is_image(&image) && !is_image(&page));
        let mut padded = image.clone();
        padded.resize(BLOCK, 0);
        assert_eq!(verify(&padded, id(), SIZE), Ok(image.len()));
        let mut opened = vec![1; SIZE];
        open(&image, &mut opened).unwrap();
        assert_eq!(opened[header::FORMAT..], page[header::FORMAT..]);
        assert!(verify(&padded, PageId::new(FileId(3), PageNo(71)), SIZE).unwrap_err().contains("astray"));
        assert!(verify(&padded, id(), SIZE / 2).is_err());
    }

    #[test]
    fn a_page_that_cannot_be_compressed_has_no_image() {
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..SIZE)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        assert_eq!(compress(&page(|at| noise[at])), None);
    }

    #[test]
    fn no_change_of_an_image_goes_unnoticed_or_panics() {
        let image = compress(&page(|at| (at / 64) as u8)).unwrap();
        for at in 0..image.len() {
            for bit in [0, 7] {
                let mut torn = image.clone();
                torn[at] ^= 1 << bit;
                assert!(verify(&torn, id(), SIZE).is_err() || at == 6 || at == 7, "byte {at}");
                let mut opened = vec![0; SIZE];
                let _ = open(&torn, &mut opened);
            }
        }
    }
}
