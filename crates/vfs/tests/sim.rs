//! The crashing file system forgets what it may forget, and nothing else.

use base::random::Random;
use base::sync::{Arc, thread};
use latchwork_vfs::sim::{Cut, Dirty, EventKind, FailedSync, Plan, Points, SECTOR, SimVfs, every_cut};
use latchwork_vfs::{Create, Fault, FaultyVfs, File, Operation, Vfs};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const SEEDS: u64 = 1000;

fn path(path: &str) -> &Path {
    Path::new(path)
}

fn create(vfs: &SimVfs, name: &str) -> Arc<dyn File> {
    vfs.open(path(name), Create::New).unwrap()
}

/// A file that is durable, name and content.
fn stored(vfs: &SimVfs, name: &str, content: &[u8]) -> Arc<dyn File> {
    let file = create(vfs, name);
    file.write_at(content, 0).unwrap();
    file.sync().unwrap();
    vfs.sync_dir(path(name).parent().unwrap()).unwrap();
    file
}

fn content(vfs: &SimVfs, name: &str) -> Option<Vec<u8>> {
    let file = match vfs.open(path(name), Create::Never) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => panic!("{error}"),
    };
    Some(whole(&*file))
}

fn whole(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// What is seen after crashes with many seeds.
fn outcomes<T: Ord>(vfs: &SimVfs, look: impl Fn(&SimVfs) -> T) -> BTreeSet<T> {
    (0..SEEDS).map(|seed| look(&vfs.crash(seed))).collect()
}

fn listing(vfs: &SimVfs, dir: &str) -> Vec<String> {
    let names = vfs.list(path(dir)).unwrap();
    names.into_iter().map(|name| name.display().to_string()).collect()
}

/// Each sector of `bytes` by its first byte; panics unless it is uniform.
fn sectors(bytes: &[u8]) -> Vec<u8> {
    let uniform = |sector: &[u8]| sector.iter().all(|byte| *byte == sector[0]);
    bytes.chunks(SECTOR).map(|sector| uniform(sector).then_some(sector[0]).expect("a torn sector")).collect()
}

fn with_plan_of_sync(nth: u64, dirty: Dirty) -> SimVfs {
    SimVfs::with_plan(Plan { failed_sync: Some(FailedSync { nth, dirty }), ..Plan::default() })
}

#[test]
fn what_was_synced_survives_every_crash() {
    let vfs = SimVfs::new();
    vfs.create_dir_all(path("a/b")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    vfs.sync_dir(path("a")).unwrap();
    let file = stored(&vfs, "a/b/file", &[7; 3000]);
    file.set_len(2000).unwrap();
    file.write_at(&[8; 100], 2500).unwrap();
    file.sync().unwrap();
    let expected = content(&vfs, "a/b/file");
    assert_eq!(outcomes(&vfs, |left| content(left, "a/b/file")), BTreeSet::from([expected]));
}

#[test]
fn an_unsynced_write_is_there_or_not_or_torn_between_sectors() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", &[1; 3 * SECTOR]);
    file.write_at(&[2; 3 * SECTOR], 0).unwrap();
    let seen = outcomes(&vfs, |left| sectors(&content(left, "file").unwrap()));
    assert!(seen.iter().flatten().all(|byte| [1, 2].contains(byte)));
    assert_eq!(seen.len(), 8, "every mixture of old and new sectors");
}

#[test]
fn sectors_are_counted_from_the_start_of_the_file() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", &[1; 3 * SECTOR]);
    file.write_at(&[2; SECTOR], SECTOR as u64 / 2).unwrap();
    let seen = outcomes(&vfs, |left| {
        let bytes = content(left, "file").unwrap();
        bytes.chunks(SECTOR / 2).map(|half| half[0]).collect::<Vec<_>>()
    });
    let mixtures = [[1, 1, 1, 1, 1, 1], [1, 2, 1, 1, 1, 1], [1, 1, 2, 1, 1, 1], [1, 2, 2, 1, 1, 1]];
    assert_eq!(seen, mixtures.map(Vec::from).into_iter().collect());
}

#[test]
fn writes_to_different_sectors_arrive_in_any_order() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", &[0; 2 * SECTOR]);
    file.write_at(&[1; SECTOR], 0).unwrap();
    file.write_at(&[2; SECTOR], SECTOR as u64).unwrap();
    let seen = outcomes(&vfs, |left| sectors(&content(left, "file").unwrap()));
    assert_eq!(seen, [[0, 0], [1, 0], [0, 2], [1, 2]].map(Vec::from).into_iter().collect());
}

#[test]
fn of_writes_to_one_sector_a_later_one_brings_the_earlier_along() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", &[0; 3]);
    for at in 0..3 {
        file.write_at(&[9], at).unwrap();
    }
    let seen = outcomes(&vfs, |left| content(left, "file").unwrap());
    assert_eq!(seen, [[0, 0, 0], [9, 0, 0], [9, 9, 0], [9, 9, 9]].map(Vec::from).into_iter().collect());
}

#[test]
fn an_unsynced_length_is_old_or_new_whatever_becomes_of_the_data() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", b"");
    file.write_at(&[5; SECTOR], 0).unwrap();
    let seen = outcomes(&vfs, |left| sectors(&content(left, "file").unwrap()));
    assert_eq!(seen, BTreeSet::from([vec![], vec![0], vec![5]]));
    file.sync().unwrap();
    file.set_len(10).unwrap();
    file.reserve(20).unwrap();
    let seen = outcomes(&vfs, |left| content(left, "file").unwrap().len());
    assert_eq!(seen, BTreeSet::from([SECTOR, 10, 20]));
}

#[test]
fn what_was_cut_off_does_not_come_back_when_the_file_grows() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", &[5; 1000]);
    file.set_len(100).unwrap();
    file.reserve(900).unwrap();
    for bytes in outcomes(&vfs, |left| content(left, "file").unwrap()) {
        let kept = if bytes.len() == 1000 { 1000 } else { 100 };
        assert!(bytes[..kept].iter().all(|byte| *byte == 5) && bytes[kept..].iter().all(|byte| *byte == 0));
    }
    file.reserve(10).unwrap();
    assert_eq!(file.len().unwrap(), 900, "to reserve less than there is changes nothing");
}

#[test]
fn a_new_name_may_vanish_until_its_folder_is_synced_although_the_data_were() {
    let vfs = SimVfs::new();
    let file = create(&vfs, "file");
    file.write_at(b"data", 0).unwrap();
    file.sync().unwrap();
    let data = Some(b"data".to_vec());
    assert_eq!(outcomes(&vfs, |left| content(left, "file")), BTreeSet::from([None, data.clone()]));
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&vfs, |left| content(left, "file")), BTreeSet::from([data]));
}

#[test]
fn syncing_a_folder_keeps_names_and_not_data() {
    let vfs = SimVfs::new();
    create(&vfs, "file").write_at(b"data", 0).unwrap();
    vfs.sync_dir(path("")).unwrap();
    let seen = outcomes(&vfs, |left| content(left, "file"));
    assert_eq!(seen, [&b""[..], b"\0\0\0\0", b"data"].map(|bytes| Some(bytes.to_vec())).into());
}

#[test]
fn names_in_one_folder_arrive_in_any_order() {
    let vfs = SimVfs::new();
    create(&vfs, "a");
    create(&vfs, "b");
    let seen = outcomes(&vfs, |left| listing(left, "").concat());
    assert_eq!(seen, ["", "a", "b", "ab"].map(String::from).into());
}

#[test]
fn a_removed_file_may_come_back_until_its_folder_is_synced() {
    let vfs = SimVfs::new();
    stored(&vfs, "file", b"data");
    vfs.remove(path("file")).unwrap();
    let seen = outcomes(&vfs, |left| content(left, "file"));
    assert_eq!(seen, BTreeSet::from([None, Some(b"data".to_vec())]));
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&vfs, |left| content(left, "file")), BTreeSet::from([None]));
}

#[test]
fn a_rename_is_seen_whole_or_not_at_all() {
    let vfs = SimVfs::new();
    stored(&vfs, "old", b"1");
    stored(&vfs, "new", b"2");
    vfs.rename(path("new"), path("old")).unwrap();
    let look = |left: &SimVfs| (content(left, "old"), content(left, "new"));
    let (before, after) = ((Some(b"1".to_vec()), Some(b"2".to_vec())), (Some(b"2".to_vec()), None));
    assert_eq!(outcomes(&vfs, look), BTreeSet::from([before, after.clone()]));
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&vfs, look), BTreeSet::from([after]));
}

#[test]
fn a_rename_between_folders_is_durable_when_both_are_synced() {
    let vfs = SimVfs::new();
    vfs.create_dir_all(path("a")).unwrap();
    vfs.create_dir_all(path("b")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    stored(&vfs, "a/file", b"1");
    vfs.rename(path("a/file"), path("b/file")).unwrap();
    let look = |left: &SimVfs| (listing(left, "a").len(), listing(left, "b").len());
    vfs.sync_dir(path("b")).unwrap();
    assert_eq!(outcomes(&vfs, look), BTreeSet::from([(1, 0), (0, 1)]));
    vfs.sync_dir(path("a")).unwrap();
    assert_eq!(outcomes(&vfs, look), BTreeSet::from([(0, 1)]));
}

#[test]
fn a_durable_change_of_a_name_has_those_before_it_behind_it() {
    let vfs = SimVfs::new();
    vfs.create_dir_all(path("a")).unwrap();
    vfs.create_dir_all(path("b")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    stored(&vfs, "a/file", b"1");
    vfs.rename(path("a/file"), path("b/file")).unwrap();
    vfs.rename(path("b/file"), path("b/last")).unwrap();
    vfs.sync_dir(path("b")).unwrap();
    let look = |left: &SimVfs| (listing(left, "a"), listing(left, "b"));
    assert_eq!(outcomes(&vfs, look), BTreeSet::from([(vec![], vec!["last".to_string()])]));
}

#[test]
fn a_file_made_under_the_name_of_one_moved_away_does_not_replace_it() {
    let vfs = SimVfs::new();
    stored(&vfs, "log", b"old");
    vfs.rename(path("log"), path("log.1")).unwrap();
    create(&vfs, "log");
    let seen = outcomes(&vfs, |left| (content(left, "log"), content(left, "log.1")));
    let (old, empty) = (Some(b"old".to_vec()), Some(Vec::new()));
    assert_eq!(seen, BTreeSet::from([(old.clone(), None), (None, old.clone()), (empty, old)]));
}

#[test]
fn a_folder_takes_what_is_in_it_along_when_it_vanishes() {
    let vfs = SimVfs::new();
    vfs.create_dir_all(path("a/b")).unwrap();
    stored(&vfs, "a/b/file", b"data");
    vfs.sync_dir(path("a")).unwrap();
    let seen = outcomes(&vfs, |left| (left.exists(path("a")).unwrap(), content(left, "a/b/file").is_some()));
    assert_eq!(seen, BTreeSet::from([(false, false), (true, true)]));
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&vfs, |left| content(left, "a/b/file").is_some()), BTreeSet::from([true]));
}

#[test]
fn a_folder_is_removed_after_what_was_in_it() {
    let vfs = SimVfs::new();
    vfs.create_dir_all(path("a")).unwrap();
    vfs.create_dir_all(path("b")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    stored(&vfs, "a/file", b"data");
    vfs.rename(path("a/file"), path("b/file")).unwrap();
    vfs.remove_dir(path("a")).unwrap();
    for (a, file) in
        outcomes(&vfs, |left| (left.exists(path("a")).unwrap(), content(left, "b/file").is_some()))
    {
        assert!(a || file, "the folder is gone and its file with it");
    }
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&vfs, |left| listing(left, "b").len()), BTreeSet::from([1]));
    vfs.create_dir_all(path("a")).unwrap();
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&vfs, |left| listing(left, "a").len()), BTreeSet::from([0]));
}

#[test]
fn the_same_seed_leaves_the_same_and_a_crash_changes_nothing_here() {
    let vfs = SimVfs::new();
    let files: Vec<_> = (0..5).map(|n| create(&vfs, &format!("file{n}"))).collect();
    for (n, file) in files.iter().enumerate() {
        file.write_at(&vec![n as u8 + 1; 5000], 300).unwrap();
    }
    let image = |left: &SimVfs| (0..5).map(|n| content(left, &format!("file{n}"))).collect::<Vec<_>>();
    let before = image(&vfs);
    for seed in 0..50 {
        let left = vfs.crash(seed);
        assert_eq!(image(&left), image(&vfs.crash(seed)));
        assert_eq!(outcomes(&left, image), BTreeSet::from([image(&left)]), "what is left is durable");
    }
    assert_eq!(image(&vfs), before);
    assert!(outcomes(&vfs, image).len() > 100);
}

#[test]
fn some_crashes_lose_everything_and_some_nothing() {
    let vfs = SimVfs::new();
    for n in 0..20 {
        let file = stored(&vfs, &format!("file{n}"), &[1; 2 * SECTOR]);
        file.write_at(&[2; 2 * SECTOR], 0).unwrap();
    }
    (0..20).for_each(|n| drop(create(&vfs, &format!("new{n}"))));
    let written = |left: &SimVfs| {
        let sectors = (0..20).flat_map(|n| sectors(&content(left, &format!("file{n}")).unwrap()));
        sectors.filter(|byte| *byte == 2).count()
    };
    let seen = outcomes(&vfs, |left| (listing(left, "").len() - 20, written(left)));
    assert!(seen.contains(&(0, 0)) && seen.contains(&(20, 40)) && seen.len() > 100);
}

#[test]
fn a_sector_arrives_as_the_cache_had_it_with_zeroes_behind_a_cut() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", &[1; 2 * SECTOR]);
    file.set_len(100).unwrap();
    file.write_at(&[2; 50], 0).unwrap();
    for bytes in outcomes(&vfs, |left| content(left, "file").unwrap()) {
        assert!(bytes[0] == 1 || bytes.iter().take(SECTOR).skip(100).all(|byte| *byte == 0));
        assert!(bytes.iter().skip(SECTOR).all(|byte| *byte == 1));
    }
}

#[test]
fn locks_end_with_their_handle_and_with_the_machine() {
    let vfs = SimVfs::new();
    stored(&vfs, "lock", b"");
    let first = vfs.open(path("lock"), Create::Never).unwrap();
    let second = vfs.open(path("lock"), Create::Never).unwrap();
    first.try_lock_exclusive().unwrap();
    first.try_lock_exclusive().unwrap();
    assert_eq!(second.try_lock_exclusive().unwrap_err().kind(), ErrorKind::WouldBlock);
    let left = vfs.crash(0);
    left.open(path("lock"), Create::Never).unwrap().try_lock_exclusive().unwrap();
    drop(first);
    second.try_lock_exclusive().unwrap();
}

#[test]
fn nothing_works_after_the_cut() {
    let vfs = SimVfs::with_plan(Plan { cut: Some(Cut::AfterEvent(3)), ..Plan::default() });
    vfs.create_dir_all(path("dir")).unwrap();
    let file = create(&vfs, "dir/file");
    assert!(!vfs.stopped());
    file.write_at(b"data", 0).unwrap();
    assert!(vfs.stopped());
    let mut buffer = [0];
    let refused: [io::Result<()>; 15] = [
        file.read_at(&mut buffer, 0),
        file.write_at(b"x", 0),
        file.sync(),
        file.len().map(drop),
        file.set_len(1),
        file.reserve(10),
        file.try_lock_exclusive(),
        vfs.open(path("dir/file"), Create::Never).map(drop),
        vfs.exists(path("dir")).map(drop),
        vfs.remove(path("dir/file")),
        vfs.rename(path("dir/file"), path("other")),
        vfs.list(path("")).map(drop),
        vfs.create_dir_all(path("dir")),
        vfs.remove_dir(path("dir")),
        vfs.sync_dir(path("")),
    ];
    assert!(refused.iter().all(|result| matches!(result, Err(error) if error.kind() == ErrorKind::Other)));
    assert_eq!(vfs.events(), 3);
    let last = vfs.last_event().unwrap();
    assert_eq!((last.number, last.kind, &*last.path), (3, EventKind::Write, path("dir/file")));
    assert_eq!(outcomes(&vfs, |left| content(left, "dir/file").unwrap_or_default()).len(), 3);
    vfs.set_plan(Plan::default());
    assert_eq!(content(&vfs, "dir/file"), Some(b"data".to_vec()));
}

#[test]
fn a_killed_process_leaves_what_it_wrote_to_the_next_which_must_sync_it() {
    let vfs = SimVfs::new();
    let file = stored(&vfs, "file", &[1; SECTOR]);
    vfs.set_plan(Plan { cut: Some(Cut::AfterEvent(1)), ..Plan::default() });
    file.try_lock_exclusive().unwrap();
    file.write_at(&[2; SECTOR], 0).unwrap();
    assert!(file.sync().is_err());
    drop(file);
    vfs.set_plan(Plan::default());
    let file = vfs.open(path("file"), Create::Never).unwrap();
    file.try_lock_exclusive().unwrap();
    assert_eq!(whole(&*file), [2; SECTOR]);
    let seen = || outcomes(&vfs, |left| sectors(&content(left, "file").unwrap()));
    assert_eq!(seen(), BTreeSet::from([vec![1], vec![2]]));
    file.sync().unwrap();
    assert_eq!(seen(), BTreeSet::from([vec![2]]));
}

#[test]
fn reads_and_refused_operations_are_no_events() {
    let vfs = SimVfs::new();
    stored(&vfs, "file", b"data");
    assert_eq!((vfs.events(), vfs.syncs()), (4, 2));
    vfs.set_plan(Plan::default());
    content(&vfs, "file");
    vfs.list(path("")).unwrap();
    assert!(vfs.exists(path("file")).unwrap() && !vfs.exists(path("other")).unwrap());
    assert!(vfs.remove(path("other")).is_err());
    assert!(vfs.rename(path("other"), path("file")).is_err());
    assert!(vfs.open(path("file"), Create::New).is_err());
    assert!(vfs.open(path("file/under"), Create::New).is_err());
    assert!(vfs.create_dir_all(path("file")).is_err());
    assert!(vfs.remove_dir(path("file")).is_err());
    let file = vfs.open(path("file"), Create::Never).unwrap();
    assert_eq!(file.write_at(b"x", u64::MAX).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(vfs.events(), 0);
    vfs.rename(path("./file"), path("/file")).unwrap();
    assert_eq!((content(&vfs, "file"), vfs.events()), (Some(b"data".to_vec()), 1));
}

#[test]
fn a_cut_before_a_sync_leaves_everything_before_it_unsynced() {
    let vfs = SimVfs::with_plan(Plan { cut: Some(Cut::BeforeSync(2)), ..Plan::default() });
    let file = create(&vfs, "file");
    vfs.sync_dir(path("")).unwrap();
    file.write_at(&[1; SECTOR], 0).unwrap();
    assert!(file.sync().is_err() && vfs.stopped());
    assert!(file.len().is_err());
    assert_eq!(vfs.syncs(), 1);
    assert!(outcomes(&vfs, |left| content(left, "file")).contains(&Some(Vec::new())));
}

#[test]
fn a_full_disk_takes_what_fits_and_removal_makes_room() {
    let vfs = SimVfs::new();
    stored(&vfs, "old", &[1; 10]);
    vfs.set_plan(Plan { free_bytes: Some(6), ..Plan::default() });
    let file = create(&vfs, "file");
    file.write_at(b"1111", 0).unwrap();
    assert_eq!(file.write_at(b"2222", 4).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(whole(&*file), b"111122");
    file.write_at(b"333333", 0).unwrap();
    assert_eq!(file.reserve(7).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(file.write_at(b"x", 100).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(whole(&*file), b"333333");
    vfs.remove(path("old")).unwrap();
    file.reserve(16).unwrap();
    assert_eq!(file.set_len(17).unwrap_err().kind(), ErrorKind::StorageFull);
    file.set_len(0).unwrap();
    file.write_at(&[2; 16], 0).unwrap();
    vfs.set_plan(Plan::default());
    file.write_at(&[2; 160], 0).unwrap();
}

#[test]
fn data_that_a_failed_sync_kept_are_durable_after_the_next() {
    let vfs = with_plan_of_sync(3, Dirty::Kept);
    let file = stored(&vfs, "file", b"old");
    file.write_at(b"new", 0).unwrap();
    assert!(file.sync().is_err());
    assert_eq!(outcomes(&vfs, |left| content(left, "file").unwrap()).len(), 2);
    file.sync().unwrap();
    assert_eq!(outcomes(&vfs, |left| content(left, "file")), BTreeSet::from([Some(b"new".to_vec())]));
}

#[test]
fn data_that_a_failed_sync_forgot_are_read_until_the_crash_and_then_lost() {
    let mut durable = BTreeSet::new();
    for seed in 0..SEEDS {
        let vfs = with_plan_of_sync(3, Dirty::Forgotten { seed });
        let file = stored(&vfs, "file", &[1; 2 * SECTOR]);
        file.write_at(&[2; 2 * SECTOR], 0).unwrap();
        assert!(file.sync().is_err());
        file.sync().unwrap();
        assert_eq!(sectors(&whole(&*file)), [2, 2]);
        let left: BTreeSet<_> =
            (0..10).map(|seed| sectors(&content(&vfs.crash(seed), "file").unwrap())).collect();
        assert_eq!(left.len(), 1, "decided when the sync failed");
        durable.extend(left);
        // What is written again, or shares its sector with a later write, is saved by the next sync.
        file.write_at(&[3], 0).unwrap();
        file.sync().unwrap();
        let mut first = vec![2; SECTOR];
        first[0] = 3;
        assert_eq!(content(&vfs.crash(seed), "file").unwrap()[..SECTOR], first);
        file.write_at(&[4; 2 * SECTOR], 0).unwrap();
        file.sync().unwrap();
        assert_eq!(content(&vfs.crash(seed), "file").unwrap(), [4; 2 * SECTOR]);
    }
    assert_eq!(durable, [[1, 1], [1, 2], [2, 1], [2, 2]].map(Vec::from).into());
}

#[test]
fn names_are_not_forgotten_by_a_failed_sync() {
    let vfs = with_plan_of_sync(1, Dirty::Forgotten { seed: 0 });
    create(&vfs, "file");
    assert!(vfs.sync_dir(path("")).is_err());
    assert_eq!(outcomes(&vfs, |left| listing(left, "").len()), BTreeSet::from([0, 1]));
    vfs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&vfs, |left| listing(left, "").len()), BTreeSet::from([1]));
}

#[test]
fn a_lying_device_is_had_by_wrapping() {
    let vfs = SimVfs::new();
    let faulty = FaultyVfs::new(Arc::new(vfs.clone()));
    let file = faulty.open(path("file"), Create::New).unwrap();
    faulty.sync_dir(path("")).unwrap();
    faulty.faults().fail_from(Operation::Sync, 1, Fault::Lost);
    file.write_at(b"x", 0).unwrap();
    file.sync().unwrap();
    assert!(outcomes(&vfs, |left| content(left, "file")).contains(&Some(Vec::new())));
}

/// Steps of a replacement of a file's content that a careless programmer may leave out.
#[derive(Clone, Copy, PartialEq)]
enum LeftOut {
    Nothing,
    File,
    Sync,
    SyncDir,
}

fn replace(vfs: &SimVfs, new: &[u8], left_out: LeftOut) -> io::Result<()> {
    let name = if left_out == LeftOut::File { "settings" } else { "new" };
    let file = vfs.open(path(name), Create::IfMissing)?;
    file.set_len(0)?;
    file.write_at(new, 0)?;
    if left_out != LeftOut::Sync {
        file.sync()?;
    }
    if left_out != LeftOut::File {
        vfs.rename(path(name), path("settings"))?;
    }
    if left_out != LeftOut::SyncDir { vfs.sync_dir(path("")) } else { Ok(()) }
}

/// Replaces a content of several sectors three times; each crash must leave the last one acknowledged, or the
/// next.
fn replacements_hold(points: Points, left_out: LeftOut) -> u64 {
    let workload = |vfs: &SimVfs| (1..=3).take_while(|n| replace(vfs, &[*n; 2000], left_out).is_ok()).count();
    every_cut(points, 0..40, workload, |done, left| {
        let is = |n: usize| content(&left, "settings") == (n > 0).then(|| vec![n as u8; 2000]);
        assert!(is(*done) || is(*done + 1), "neither {done} nor the next");
    })
}

#[test]
fn the_loop_visits_every_event_and_every_sync() {
    // Three replacements of six events, two of them syncs; one run is cut before all of them, and one is not
    // cut.
    assert_eq!(replacements_hold(Points::Events, LeftOut::Nothing), 3 * 6 + 2);
    assert_eq!(replacements_hold(Points::Syncs, LeftOut::Nothing), 3 * 2 + 1);
}

#[test]
fn the_loop_finds_each_step_that_is_left_out() {
    for points in [Points::Events, Points::Syncs] {
        for left_out in [LeftOut::File, LeftOut::Sync, LeftOut::SyncDir] {
            assert!(catch_unwind(AssertUnwindSafe(|| replacements_hold(points, left_out))).is_err());
        }
    }
}

#[test]
fn whatever_is_done_to_a_file_each_sector_left_is_one_that_it_had_since_the_sync() {
    for run in 0..300 {
        let mut random = Random::new(run, 0);
        let vfs = SimVfs::new();
        let file = stored(&vfs, "file", &[]);
        // Every state of the file since the last sync, and whether it was cut short among them.
        let mut history = vec![Vec::new()];
        let mut cut = false;
        for step in 0..30 {
            match random.below(8) {
                0 => {
                    file.sync().unwrap();
                    history.clear();
                    cut = false;
                }
                1 => {
                    let len = random.below_u64(6 * SECTOR as u64);
                    cut |= len < file.len().unwrap();
                    file.set_len(len).unwrap();
                }
                _ => {
                    let bytes = vec![step + 1; random.index(3 * SECTOR)];
                    file.write_at(&bytes, random.below_u64(4 * SECTOR as u64)).unwrap();
                }
            }
            history.push(whole(&*file));
            let left = content(&vfs.crash(random.next_u64()), "file").unwrap();
            assert!(
                history.iter().any(|state| state.len() == left.len()),
                "run {run}: a length it never had"
            );
            let byte = |state: &Vec<u8>, at: usize| state.get(at).copied().unwrap_or(0);
            for (number, sector) in left.chunks(SECTOR).enumerate() {
                let places = || (number * SECTOR..).zip(sector);
                let whole = history.iter().any(|state| places().all(|(at, left)| byte(state, at) == *left));
                // A cut inside a sector may arrive without the writes before it.
                let pieces =
                    || places().all(|(at, left)| *left == 0 || history.iter().any(|s| byte(s, at) == *left));
                assert!(whole || cut && pieces(), "run {run}, step {step}: sector {number} was never so");
            }
        }
    }
}

#[test]
fn threads_may_use_it_together() {
    let vfs = SimVfs::with_plan(Plan { cut: Some(Cut::AfterEvent(200)), ..Plan::default() });
    let done: Vec<u64> = thread::scope(|scope| {
        let vfs = &vfs;
        let run = move |name: String| {
            let Ok(file) = vfs.open(Path::new(&name), Create::New) else { return 0 };
            let append = |n: u64| {
                file.write_at(&n.to_le_bytes(), 8 * (n - 1))?;
                file.sync()?;
                vfs.sync_dir(path(""))
            };
            (1..).take_while(|n| append(*n).is_ok()).count() as u64
        };
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || run(format!("file{n}")))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(vfs.events(), 200);
    for seed in 0..50 {
        let left = vfs.crash(seed);
        for (thread, done) in done.iter().enumerate().filter(|(_, done)| **done > 0) {
            let bytes = content(&left, &format!("file{thread}")).unwrap();
            let expected: Vec<u8> = (1..=*done).flat_map(u64::to_le_bytes).collect();
            assert_eq!(bytes[..expected.len()], expected);
        }
    }
}

#[test]
fn crashes_are_drawn_while_the_machine_goes_on_and_its_history_is_the_same() {
    let run = |gap| {
        let vfs = SimVfs::new();
        vfs.crash_at_random(gap, 5);
        let file = stored(&vfs, "a", b"");
        for i in 0..100_u8 {
            file.write_at(&[i; 600], u64::from(i) * 600).unwrap();
            if i % 10 == 9 {
                file.sync().unwrap();
            }
        }
        (vfs.events(), content(&vfs, "a"), vfs.take_crashes())
    };
    let (events, live, none) = run(None);
    let (same_events, same_live, crashes) = run(Some(4));
    assert!(none.is_empty() && events == same_events && live == same_live);
    assert!((15..60).contains(&crashes.len()), "{}", crashes.len());
    for crashed in crashes {
        // What was synced before its event is there.
        let synced = crashed.before.number.saturating_sub(5) / 11 * 10 * 600;
        let left = content(&crashed.left, "a").map_or(0, |bytes| bytes.len() as u64);
        assert!(left >= synced, "{}: {left} bytes of {synced}", crashed.before);
    }
}
