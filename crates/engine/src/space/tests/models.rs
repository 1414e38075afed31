//! Models: operations of several records, and checkpoints that end the doubt between them.
//!
//! `cargo test -p latchwork-engine --features shuttle --lib models`

use crate::space::tablespace::Tablespace;
use base::sync::{Arc, find_fault, shuttle, thread};
use pagecache::{CacheConfig, WriteBack};

const ITERATIONS: usize = 500;

fn explore(model: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(model, ITERATIONS);
    shuttle::check_pct(model, ITERATIONS, 3);
}

fn tablespace() -> Arc<Tablespace> {
    crate::tests::tablespace(CacheConfig {
        segments: 1,
        write_back: WriteBack::AtEvictionOnly,
        ..CacheConfig::new(pagecache::size_for_frames(5, 1024), 1024)
    })
}

/// An operation that takes two records: if the machine stops between them, the header has to say so.
fn operation(space: &Tablespace) {
    let operation = space.doubt().unwrap();
    assert!(space.header_is_in_doubt(), "the first record comes before that of the doubt");
    thread::yield_now();
    assert!(space.header_is_in_doubt(), "the doubt has ended in the middle of an operation");
    space.end_operation(operation);
}

#[test]
fn a_file_is_in_doubt_as_long_as_an_operation_is_under_way() {
    explore(|| {
        let space = tablespace();
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let space = space.clone();
                thread::spawn(move || (0..2).for_each(|_| operation(&space)))
            })
            .collect();
        // Checkpoints are taken by a thread, and by sessions.
        let checkpoints: Vec<_> = (0..2)
            .map(|_| {
                let space = space.clone();
                thread::spawn(move || (0..2).for_each(|_| space.end_doubt_if_idle().unwrap()))
            })
            .collect();
        workers.into_iter().chain(checkpoints).for_each(|thread| thread.join().unwrap());
        space.end_doubt_if_idle().unwrap();
        assert!(!space.is_in_doubt() && !space.header_is_in_doubt());
    });
}

#[test]
fn what_failed_keeps_the_file_in_doubt() {
    explore(|| {
        let space = tablespace();
        let failed = {
            let space = space.clone();
            thread::spawn(move || drop(space.doubt().unwrap()))
        };
        operation(&space);
        failed.join().unwrap();
        space.end_doubt_if_idle().unwrap();
        assert!(space.is_in_doubt() && space.header_is_in_doubt());
    });
}

/// The canary: a checkpoint that does not count operations.
#[test]
#[should_panic(expected = "the doubt")]
fn a_doubt_that_ends_whoever_is_at_work_is_found() {
    find_fault(|| {
        let space = tablespace();
        let worker = {
            let space = space.clone();
            thread::spawn(move || operation(&space))
        };
        space.end_doubt().unwrap();
        worker.join().unwrap();
    });
}
