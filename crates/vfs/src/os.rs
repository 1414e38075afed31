//! The operating system's files: pread, pwrite, fdatasync; through its page cache, or past it.

use crate::direct::ALIGNMENT;
use crate::{AlignedBuffer, Create, File, Vfs, open_and_remove};
use base::sync::Arc;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The operating system's file tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsVfs;

#[derive(Debug)]
struct OsFile {
    file: fs::File,
    /// Opened with O_DIRECT.
    is_direct: bool,
}

fn open_options(create: Create) -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    // The files hold other people's rows: only the user who runs the server may open them.
    options.read(true).write(true).mode(0o600);
    match create {
        Create::Never => {}
        Create::IfMissing => {
            options.create(true).truncate(false);
        }
        Create::New => {
            options.create_new(true);
        }
    }
    options
}

/// Refuses a file that cannot be read and written past the cache in blocks of `block` bytes.
fn check_direct(file: &fs::File, block: usize) -> io::Result<()> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let unsupported = |why: String| Err(io::Error::new(io::ErrorKind::Unsupported, why));
    let (memory, offset) = match statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(about) if about.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            (about.stx_dio_mem_align as usize, about.stx_dio_offset_align as usize)
        }
        // Before Linux 6.1, or a file system that does not tell: as much as any device asks for.
        _ => (ALIGNMENT, ALIGNMENT),
    };
    if offset == 0 || memory == 0 {
        return unsupported("the file system does not take O_DIRECT".to_string());
    }
    if memory > ALIGNMENT || !block.is_multiple_of(offset) {
        return unsupported(format!("O_DIRECT takes blocks of {offset} bytes here, not of {block}"));
    }
    Ok(())
}

impl Vfs for OsVfs {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let file = open_options(create).open(path)?;
        Ok(Arc::new(OsFile { file, is_direct: false }))
    }

    fn open_direct(&self, path: &Path, create: Create, block: usize) -> io::Result<Arc<dyn File>> {
        let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
        let file =
            open_options(create).custom_flags(flags).open(path).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => {
                    io::Error::new(io::ErrorKind::Unsupported, "the file system does not take O_DIRECT")
                }
                _ => error,
            })?;
        check_direct(&file, block)?;
        Ok(Arc::new(OsFile { file, is_direct: true }))
    }

    fn open_unnamed(&self, dir: &Path) -> io::Result<Arc<dyn File>> {
        let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
        match open_options(Create::Never).custom_flags(flags).open(dir) {
            Ok(file) => Ok(Arc::new(OsFile { file, is_direct: false })),
            // Not every file system has files without a name.
            Err(_) => open_and_remove(self, dir),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(PathBuf::from(entry?.file_name()));
        }
        names.sort();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }
}

impl OsFile {
    /// Reads from a file opened with O_DIRECT into aligned memory.
    fn read_blocks(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                // A part of a block is all that is left of the file: one cannot go on from there, nor is
                // there anything.
                Ok(bytes) if bytes == 0 || (done + bytes < buffer.len() && bytes % 512 != 0) => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if !self.is_direct {
            return self.file.read_exact_at(buffer, offset);
        }
        if buffer.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            return self.read_blocks(buffer, offset);
        }
        let mut aligned = AlignedBuffer::new(buffer.len());
        self.read_blocks(&mut aligned, offset)?;
        buffer.copy_from_slice(&aligned);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !self.is_direct || bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            return self.file.write_all_at(bytes, offset);
        }
        let mut aligned = AlignedBuffer::new(bytes.len());
        aligned.copy_from_slice(bytes);
        self.file.write_all_at(&aligned, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: the data and the length, which is all a reader after a crash needs.
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        let old = self.file.metadata()?.len();
        if len <= old {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::empty(), old, len - old) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.file.set_len(len),
            Err(error) => Err(error.into()),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, flags, offset, len) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn try_lock_exclusive(&self) -> io::Result<()> {
        match self.file.try_lock() {
            Ok(()) => Ok(()),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the operating system has the one open file of that name for one past its cache.
    fn is_direct(path: &Path) -> bool {
        let mut found = fs::read_dir("/proc/self/fd")
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == path));
        let descriptor = found.next().unwrap().file_name();
        assert!(found.next().is_none());
        let info = fs::read_to_string(Path::new("/proc/self/fdinfo").join(descriptor)).unwrap();
        let octal = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        u32::from_str_radix(octal.trim(), 8).unwrap() & rustix::fs::OFlags::DIRECT.bits() != 0
    }

    #[test]
    fn an_unnamed_file_is_in_no_folder_and_holds_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        for kind in 0..2 {
            let open = || match kind {
                0 => OsVfs.open_unnamed(folder.path()).unwrap(),
                _ => open_and_remove(&OsVfs, folder.path()).unwrap(),
            };
            let (one, other) = (open(), open());
            assert!(OsVfs.list(folder.path()).unwrap().is_empty());
            one.write_at(b"one", 0).unwrap();
            other.write_at(b"other", 0).unwrap();
            let mut read = [0; 3];
            one.read_at(&mut read, 0).unwrap();
            assert_eq!((&read, one.len().unwrap(), other.len().unwrap()), (b"one", 3, 5));
        }
        let missing = OsVfs.open_unnamed(&folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_past_the_cache_says_so_and_takes_any_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages");
        let file = OsVfs.open_direct(&path, Create::New, 4096).expect("the temporary folder takes O_DIRECT");
        assert!(is_direct(&path));
        let error = OsVfs.open_direct(&path, Create::Never, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        let bytes: Vec<u8> = (0..4096 * 5 + 1).map(|i| (i * 7 % 251) as u8).collect();
        let mut aligned = AlignedBuffer::new(4096 * 3);
        aligned.copy_from_slice(&bytes[..4096 * 3]);
        file.write_at(&aligned, 0).unwrap();
        // Odd addresses.
        file.write_at(&bytes[1..][..4096 * 2], 4096 * 3).unwrap();
        file.sync().unwrap();
        let mut read = vec![0; 4096 * 2 + 1];
        file.read_at(&mut read[1..], 4096).unwrap();
        assert_eq!(read[1..], bytes[4096..][..4096 * 2]);
        let mut read = AlignedBuffer::new(4096 * 2);
        file.read_at(&mut read, 4096 * 3).unwrap();
        assert_eq!(read[..], bytes[1..][..4096 * 2]);
        // What is seen through the cache is the same.
        let mut read = vec![0; 4096 * 3];
        OsVfs.open(&path, Create::Never).unwrap().read_at(&mut read, 0).unwrap();
        assert_eq!(read, bytes[..4096 * 3]);
    }

    #[test]
    fn a_file_past_the_cache_that_ends_within_a_block_is_too_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages");
        fs::write(&path, vec![1; 4096 + 700]).unwrap();
        let file = OsVfs.open_direct(&path, Create::Never, 4096).unwrap();
        let mut buffer = AlignedBuffer::new(4096);
        file.read_at(&mut buffer, 0).unwrap();
        for (offset, bytes) in [(4096, 4096), (0, 8192), (8192, 4096)] {
            let mut buffer = AlignedBuffer::new(bytes);
            let error = file.read_at(&mut buffer, offset).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{bytes} at {offset}");
        }
    }

    #[test]
    fn files_are_opened_through_the_cache_unless_asked_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages");
        let _file = OsVfs.open(&path, Create::New).unwrap();
        assert!(!is_direct(&path));
        let kind = OsVfs.open_direct(Path::new("/proc/self/comm"), Create::Never, 4096).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::Unsupported);
    }
}
