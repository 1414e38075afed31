//! An overlay behaves like the tree below it with the changes applied, and leaves that tree as it is.

use base::random::Random;
use base::sync::Arc;
use latchwork_vfs::{Create, MemVfs, OsVfs, Overlay, Vfs};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The bytes of every file in the folder.
fn contents(vfs: &dyn Vfs, dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = vfs.list(dir).unwrap().into_iter().map(|name| {
        let file = vfs.open(&dir.join(&name), Create::Never).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        (name, bytes)
    });
    files.collect()
}

#[test]
fn whatever_is_done_it_reads_as_a_tree_that_is_written_to_and_the_base_stays() {
    let dir = Path::new("d");
    for seed in 1..200 {
        let mut random = Random::new(seed, 0);
        let (base, model) = (MemVfs::new(), MemVfs::new());
        for vfs in [&base, &model] {
            vfs.create_dir_all(dir).unwrap();
        }
        for name in 0..3 {
            let bytes: Vec<u8> = (0..random.below(30_000)).map(|i| (i % 250) as u8 + 1).collect();
            for vfs in [&base, &model] {
                let file = vfs.open(&dir.join(name.to_string()), Create::New).unwrap();
                file.write_at(&bytes, 0).unwrap();
            }
        }
        let before = contents(&base, dir);
        let overlay = Overlay::new(Arc::new(base.clone()));
        for _ in 0..60 {
            let (one, other) = (random.below(5), random.below(5));
            let (path, other) = (dir.join(one.to_string()), dir.join(other.to_string()));
            let (offset, len) = (random.below_u64(30_000), random.below_u64(10_000));
            let fill = random.below(3) as u8;
            let what = random.below(12);
            let run = |vfs: &dyn Vfs| -> Result<u64, ErrorKind> {
                let create = if what.is_multiple_of(2) { Create::Never } else { Create::IfMissing };
                let open = || vfs.open(&path, create);
                let result = match what {
                    0 => vfs.remove(&path),
                    1 => vfs.rename(&path, &other),
                    2 => vfs.open(&path, Create::New).map(drop),
                    3 | 4 => open().and_then(|file| file.set_len(offset)),
                    5 => open().and_then(|file| file.reserve(offset)),
                    _ => open().and_then(|file| file.write_at(&vec![fill; len as usize], offset)),
                };
                result.map_err(|error| error.kind())?;
                vfs.open(&path, Create::Never).and_then(|file| file.len()).map_err(|error| error.kind())
            };
            assert_eq!(run(&overlay), run(&model), "seed {seed}: {what} on {path:?}");
            assert_eq!(contents(&overlay, dir), contents(&model, dir), "seed {seed}: {what} on {path:?}");
            if let Ok(file) = overlay.open(&path, Create::Never) {
                let mut buffer = vec![0; len as usize];
                let mut expected = buffer.clone();
                let read = file.read_at(&mut buffer, offset).map_err(|error| error.kind());
                let file = model.open(&path, Create::Never).unwrap();
                assert_eq!(read, file.read_at(&mut expected, offset).map_err(|error| error.kind()));
                assert_eq!(buffer, expected);
            }
        }
        assert_eq!(contents(&base, dir), before, "seed {seed}");
    }
}

#[test]
fn on_the_operating_systems_files_it_changes_none() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("old"), [1; 10_000]).unwrap();
    let before: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let overlay = Overlay::new(Arc::new(OsVfs));
    overlay.create_dir_all(&dir.join("folder/in it")).unwrap();
    assert_eq!(overlay.create_dir_all(&dir.join("old")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let new = dir.join("folder/in it/new");
    overlay.open(&new, Create::New).unwrap().write_at(b"hello", 5_000).unwrap();
    overlay.rename(&dir.join("old"), &dir.join("folder/old")).unwrap();
    overlay.open(&dir.join("folder/old"), Create::Never).unwrap().set_len(5).unwrap();
    overlay.sync_dir(&dir.join("folder")).unwrap();
    assert_eq!(overlay.list(dir).unwrap(), [Path::new("folder")]);
    assert_eq!(overlay.list(&dir.join("folder")).unwrap(), [Path::new("in it"), Path::new("old")]);
    assert!(!overlay.exists(&dir.join("old")).unwrap() && overlay.exists(&new).unwrap());
    assert_eq!(overlay.open(&dir.join("old"), Create::Never).unwrap_err().kind(), ErrorKind::NotFound);
    let error = overlay.open(&dir.join("nowhere/file"), Create::IfMissing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let after: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(before, after);
    assert_eq!(std::fs::read(dir.join("old")).unwrap(), [1; 10_000]);
}

#[test]
fn it_holds_what_was_written_and_not_what_was_read_nor_zeroes() {
    let base = MemVfs::new();
    let path = Path::new("file");
    base.open(path, Create::New).unwrap().write_at(&vec![1; 1 << 20], 0).unwrap();
    let overlay = Overlay::new(Arc::new(base));
    let file = overlay.open(path, Create::Never).unwrap();
    file.read_at(&mut vec![0; 1 << 20], 0).unwrap();
    file.write_at(&vec![0; 1 << 19], 4_096).unwrap();
    file.reserve(1 << 30).unwrap();
    assert_eq!(overlay.bytes_held(), 0);
    file.write_at(&[7], 4_095).unwrap();
    file.write_at(&[7; 4_097], 1 << 29).unwrap();
    assert_eq!(overlay.bytes_held(), 3 * 4_096);
    file.set_len(4_095).unwrap();
    assert_eq!(overlay.bytes_held(), 4_096);
}

#[test]
fn its_locks_are_those_of_the_tree_below_where_that_has_the_file() {
    let base = MemVfs::new();
    let (old, new) = (Path::new("old"), Path::new("new"));
    let below = base.open(old, Create::New).unwrap();
    let overlay = Overlay::new(Arc::new(base));
    let one = overlay.open(old, Create::IfMissing).unwrap();
    one.try_lock_exclusive().unwrap();
    one.try_lock_exclusive().unwrap();
    assert_eq!(below.try_lock_exclusive().unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(one);
    below.try_lock_exclusive().unwrap();
    let other = overlay.open(old, Create::Never).unwrap();
    assert_eq!(other.try_lock_exclusive().unwrap_err().kind(), ErrorKind::WouldBlock);
    let (one, other) = (overlay.open(new, Create::New).unwrap(), overlay.open(new, Create::Never).unwrap());
    one.try_lock_exclusive().unwrap();
    assert_eq!(other.try_lock_exclusive().unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(one);
    other.try_lock_exclusive().unwrap();
}
