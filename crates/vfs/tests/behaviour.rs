//! Every file tree behaves alike; the faulty one also fails as told.

use base::sync::Arc;
use latchwork_vfs::{Create, Fault, FaultyVfs, MemVfs, Operation, OsVfs, Overlay, SimVfs, Vfs};
use std::io::ErrorKind;
use std::path::Path;

fn behaves(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a/b/file");
    assert!(vfs.open(&path, Create::New).is_err(), "the folder is missing");
    vfs.create_dir_all(&dir.join("a/b")).unwrap();
    assert_eq!(vfs.open(&path, Create::Never).unwrap_err().kind(), ErrorKind::NotFound);
    let file = vfs.open(&path, Create::New).unwrap();
    assert_eq!(vfs.open(&path, Create::New).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(file.is_empty().unwrap());
    file.write_at(b"hello", 10).unwrap();
    assert_eq!(file.len().unwrap(), 15);
    let mut buffer = [7; 6];
    file.read_at(&mut buffer, 9).unwrap();
    assert_eq!(&buffer, b"\0hello");
    assert_eq!(file.read_at(&mut buffer, 10).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    file.reserve(20).unwrap();
    assert_eq!(file.len().unwrap(), 20);
    file.reserve(10).unwrap();
    assert_eq!(file.len().unwrap(), 20, "to reserve less than there is cuts nothing");
    file.read_at(&mut buffer, 10).unwrap();
    assert_eq!(&buffer, b"hello\0");
    file.set_len(12).unwrap();
    file.sync().unwrap();
    assert_eq!(vfs.open(&path, Create::IfMissing).unwrap().len().unwrap(), 12);
    vfs.rename(&path, &dir.join("a/other")).unwrap();
    vfs.sync_dir(&dir.join("a")).unwrap();
    assert_eq!(vfs.list(&dir.join("a")).unwrap(), [Path::new("b"), Path::new("other")]);
    assert!(!vfs.exists(&path).unwrap());
    assert!(vfs.remove_dir(&dir.join("a")).is_err());
    vfs.remove_dir(&dir.join("a/b")).unwrap();
    vfs.remove(&dir.join("a/other")).unwrap();
    vfs.remove_dir(&dir.join("a")).unwrap();
    assert!(vfs.list(&dir.join("a")).is_err());
}

fn locks_belong_to_handles(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("lock");
    let first = vfs.open(&path, Create::IfMissing).unwrap();
    let second = vfs.open(&path, Create::IfMissing).unwrap();
    first.try_lock_exclusive().unwrap();
    assert_eq!(second.try_lock_exclusive().unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(first);
    second.try_lock_exclusive().unwrap();
}

#[test]
fn the_operating_system_and_memory_behave_alike() {
    let dir = std::env::temp_dir().join(format!("latchwork-vfs-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    behaves(&OsVfs, &dir);
    locks_belong_to_handles(&OsVfs, &dir);
    std::fs::remove_dir_all(&dir).unwrap();
    behaves(&MemVfs::new(), Path::new(""));
    locks_belong_to_handles(&MemVfs::new(), Path::new(""));
    behaves(&SimVfs::new(), Path::new(""));
    locks_belong_to_handles(&SimVfs::new(), Path::new(""));
    behaves(&FaultyVfs::new(Arc::new(MemVfs::new())), Path::new(""));
    behaves(&Overlay::new(Arc::new(MemVfs::new())), Path::new(""));
    locks_belong_to_handles(&Overlay::new(Arc::new(MemVfs::new())), Path::new(""));
}

#[test]
fn the_nth_write_fails_once_and_only_there() {
    let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
    let file = vfs.open(Path::new("file"), Create::New).unwrap();
    vfs.faults().fail_nth(Operation::Write, 2, Fault::Torn(ErrorKind::Other));
    file.write_at(b"1111", 0).unwrap();
    assert_eq!(file.write_at(b"2222", 0).unwrap_err().kind(), ErrorKind::Other);
    let mut buffer = [0; 4];
    file.read_at(&mut buffer, 0).unwrap();
    assert_eq!(&buffer, b"2211");
    file.write_at(b"3333", 0).unwrap();
    assert_eq!(vfs.faults().count(Operation::Write), 3);
}

#[test]
fn a_full_disk_takes_what_fits_and_overwrites_still_work() {
    let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
    let file = vfs.open(Path::new("file"), Create::New).unwrap();
    vfs.faults().set_free_bytes(Some(6));
    file.write_at(b"1111", 0).unwrap();
    assert_eq!(file.write_at(b"2222", 4).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().unwrap(), 6);
    file.write_at(b"333333", 0).unwrap();
    vfs.faults().heal();
    file.write_at(b"4444", 4).unwrap();
}

#[test]
fn faults_can_be_aimed_at_one_file() {
    let vfs = FaultyVfs::new(Arc::new(MemVfs::new()));
    let bad = vfs.open(Path::new("bad"), Create::New).unwrap();
    let good = vfs.open(Path::new("good"), Create::New).unwrap();
    vfs.faults().fail_file_from(Path::new("bad"), Operation::Sync, 1, Fault::Error(ErrorKind::Other));
    good.sync().unwrap();
    assert!(bad.sync().is_err());
    assert!(bad.sync().is_err());
}
