//! Disks that fill up, at any write, and get room again while the database is open: nothing that was
//! acknowledged is lost, what was not is taken back, and everything goes on without a restart.

use super::crashes::{Context, Outcome, Rows, Step, Tables, contents, def, image, open, seeds, verify};
use crate::tests::{int_key, part};
use crate::{Error, IndexDef, Isolation, Session, Table};
use base::random::Random;
use vfs::SimVfs;
use vfs::sim::Plan;

/// Works until the disk is full, goes on for a while, gets room, and goes on without an error. Gives what is
/// there, and whether the disk was full at all.
fn work_on_a_disk_that_fills(vfs: &SimVfs, free_bytes: u64, seed: u64, steps: usize) -> (Tables, bool) {
    let database = open(vfs).unwrap();
    database.create_database("d", b"").unwrap();
    database.create_table(def("t")).unwrap();
    let mut present = Tables::from([("t".to_owned(), Rows::new())]);
    let mut random = Random::new(seed, 0);
    vfs.set_plan(Plan { free_bytes: Some(free_bytes), ..Plan::default() });
    let mut failures = 0;
    for number in 0..steps {
        let step = Step::random(&mut random, &present);
        let after = step.after(&present);
        match step.run(&database, &present) {
            Ok(()) => present = after,
            Err(error) => {
                assert!(matches!(error, Error::Full), "{step:?}, the disk being full: {error}");
                let found = contents(&database);
                assert!(found == present || found == after, "half of step {number}, {step:?}, is there");
                present = found;
                failures += 1;
            }
        }
        if failures == 4 {
            failures += 1;
            vfs.set_plan(Plan::default());
        }
        if failures > 5 {
            panic!("there is room again, and step {number} fails, {step:?}");
        }
    }
    assert_eq!(contents(&database), present);
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
    if seed.is_multiple_of(2) {
        vfs.set_plan(Plan::default());
        database.close().unwrap();
    }
    (present, failures > 0)
}

#[test]
fn a_disk_that_is_full_at_any_write_and_gets_room_again_needs_no_restart() {
    const STEPS: usize = 60;
    let mut full = 0;
    for seed in seeds(0..6) {
        let mut free_bytes = 0;
        loop {
            let _context = Context(seed, format!("{free_bytes} bytes free"));
            let vfs = SimVfs::new();
            let (rows, was_full) = work_on_a_disk_that_fills(&vfs, free_bytes, seed, STEPS);
            let outcome =
                Outcome { opened: true, before: rows.clone(), after: rows, error: None, last: None };
            verify(&outcome, &vfs.crash(free_bytes));
            if !was_full {
                break;
            }
            full += 1;
            free_bytes += 1_500;
        }
    }
    println!("{full} full disks");
}

/// One of the statements of a large transaction: what is there afterwards.
pub(super) fn change_many(
    session: &mut Session,
    table: &Table,
    rows: &Rows,
    random: &mut Random,
) -> crate::Result<Rows> {
    let mut after = rows.clone();
    let mut statement = session.write()?;
    let (kind, first) = (random.below(3), random.below(300) as i32);
    for id in first..first + 40 + random.below(80) as i32 {
        // Rows that had become smaller, and are to get their room back, find it taken.
        let len = if kind == 1 { random.below(20) } else { 60 + random.below(160) };
        let bytes = vec![id as u8; len as usize];
        let new = image(table, id, &bytes);
        if kind == 2 && random.below(3) == 0 {
            statement.delete(table, &int_key(id), &mut |_| true)?;
            after.remove(&id);
            continue;
        }
        if rows.contains_key(&id) {
            statement.update(table, &int_key(id), &mut |_, out| {
                out.extend_from_slice(&new);
                true
            })?;
        } else {
            statement.insert(table, &new)?;
        }
        after.insert(id, bytes);
    }
    statement.commit()?;
    Ok(after)
}

/// Large transactions on a disk with so much room, which gets more after some of them have met its end. Gives
/// what is there at last, and how often it was full.
fn large_transactions(vfs: &SimVfs, free_bytes: u64, seed: u64) -> (Tables, usize) {
    let database = open(vfs).unwrap();
    database.create_database("d", b"").unwrap();
    let table = database.create_table(def("t")).unwrap();
    let index = IndexDef { name: "k".into(), unique: false, parts: vec![part(1)] };
    database.create_index(&table, index).unwrap();
    vfs.set_plan(Plan { free_bytes: Some(free_bytes), ..Plan::default() });
    let (mut random, mut present) = (Random::new(seed, 1), Rows::new());
    let (mut session, mut failures, mut since) = (database.session(), 0, 0);
    let found =
        |there: &Rows| assert_eq!(contents(&database), Tables::from([("t".to_owned(), there.clone())]));
    while since < 6 {
        session.begin(Isolation::RepeatableRead).unwrap();
        let mut after = present.clone();
        let mut was_full = false;
        for _ in 0..1 + random.below(5) {
            match change_many(&mut session, &table, &after, &mut random) {
                Ok(rows) => after = rows,
                Err(Error::Full) => was_full = true,
                Err(error) => panic!("{error}"),
            }
        }
        let is_kept = random.below(2) == 0;
        match if is_kept { session.commit() } else { session.roll_back() } {
            Ok(()) if is_kept => present = after,
            Ok(()) => {}
            Err(Error::Full) => was_full = true,
            Err(error) => panic!("{error}"),
        }
        found(&present);
        failures += usize::from(was_full);
        assert!(!was_full || since == 0, "there is room again");
        if failures >= 3 || free_bytes == u64::MAX {
            vfs.set_plan(Plan::default());
            since += 1;
        }
        if since == 0 && failures == 0 && database.status().log_end.0 > 4 * free_bytes + 1_000_000 {
            break;
        }
    }
    drop(session);
    let report = database.check().unwrap();
    assert!(report.is_clean(), "{report}");
    found(&present);
    (Tables::from([("t".to_owned(), present)]), failures)
}

#[test]
fn large_transactions_that_meet_a_full_disk_are_taken_back_and_all_goes_on_when_there_is_room() {
    let mut full = 0;
    for seed in seeds(0..4) {
        for free_bytes in (0..160_000).step_by(2_900) {
            let _context = Context(seed, format!("{free_bytes} bytes free"));
            let vfs = SimVfs::new();
            let (rows, failures) = large_transactions(&vfs, free_bytes, seed);
            full += failures;
            let outcome =
                Outcome { opened: true, before: rows.clone(), after: rows, error: None, last: None };
            verify(&outcome, &vfs.crash(free_bytes));
        }
    }
    println!("{full} times full");
    assert!(full > 100, "{full}");
}
