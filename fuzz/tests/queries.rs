//! Short runs of the fuzzers of queries, always the same cases.

use std::process::Command;

fn run(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_queries")).args(arguments).output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    println!("{text}");
}

#[test]
fn a_query_gives_what_its_partitions_give_however_it_is_planned() {
    run(&["partitions", "--cases", "25", "--seed", "7"]);
}
