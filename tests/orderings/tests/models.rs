//! Runs the models of every crate: see the library.

use std::process::Command;

fn run(program: &str) {
    let output = Command::new(program).output().expect("Cargo has built it");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
}

#[test]
fn base_needs_its_orderings_and_no_stronger_ones() {
    run(env!("CARGO_BIN_EXE_orderings-base"));
}

#[test]
fn pagecache_needs_its_orderings_and_no_stronger_ones() {
    run(env!("CARGO_BIN_EXE_orderings-pagecache"));
}

#[test]
fn wal_needs_its_orderings_and_no_stronger_ones() {
    run(env!("CARGO_BIN_EXE_orderings-wal"));
}

#[test]
fn transactions_needs_its_orderings_and_no_stronger_ones() {
    run(env!("CARGO_BIN_EXE_orderings-transactions"));
}

#[test]
fn rowtier_needs_its_orderings_and_no_stronger_ones() {
    run(env!("CARGO_BIN_EXE_orderings-rowtier"));
}

#[test]
fn engine_needs_its_orderings_and_no_stronger_ones() {
    run(env!("CARGO_BIN_EXE_orderings-engine"));
}

#[test]
fn sql_needs_its_orderings_and_no_stronger_ones() {
    run(env!("CARGO_BIN_EXE_orderings-sql"));
}
