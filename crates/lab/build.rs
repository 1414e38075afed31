//! Tells the lab which commit it is built from, so that results can name it. Without git there is none.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD changes with every commit and checkout. Git says where it is, also in a linked
    // worktree.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=LATCHWORK_COMMIT={commit}");
    }
}
