//! Golden scripts: statements and their results, written for people to read.
//!
//! A script consists of blocks with empty lines between them. A block is a statement up to its `;` at the end
//! of a line, then the expected lines: the header and the rows of a result, `ok, n rows`, or an error. Lines
//! that start with `#` are comments. Each script starts with an empty database. `UPDATE_GOLDEN=1 cargo test
//! -p latchwork-sql --test golden` rewrites what is expected: read the diff.

mod support;

use std::path::Path;

/// The comments before a statement, the statement, and its expected result.
struct Block {
    comments: Vec<String>,
    statement: String,
    expected: Vec<String>,
}

fn blocks(script: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    for paragraph in script.split("\n\n") {
        let mut block = Block { comments: vec![], statement: String::new(), expected: vec![] };
        for line in paragraph.trim_matches('\n').lines() {
            if block.statement.is_empty() && line.starts_with('#') {
                block.comments.push(line.to_string());
            } else if block.statement.ends_with(';') {
                block.expected.push(line.trim_end().to_string());
            } else {
                if !block.statement.is_empty() {
                    block.statement.push('\n');
                }
                block.statement.push_str(line.trim_end());
            }
        }
        if !block.statement.is_empty() || !block.comments.is_empty() {
            blocks.push(block);
        }
    }
    blocks
}

fn run(path: &Path) -> Result<(), String> {
    let script = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut world = support::world();
    let mut written = Vec::new();
    let mut wrong = String::new();
    for block in blocks(&script) {
        let mut lines = block.comments.clone();
        if !block.statement.is_empty() {
            let sql = block.statement.trim_end_matches(';');
            // A value may have lines of its own.
            let rows = world.run(sql);
            let given: Vec<String> =
                rows.iter().flat_map(|row| row.split('\n')).map(|line| line.trim_end().to_string()).collect();
            if given != block.expected {
                wrong.push_str(&format!(
                    "{}\n  expected:\n    {}\n  given:\n    {}\n",
                    block.statement,
                    block.expected.join("\n    "),
                    given.join("\n    ")
                ));
            }
            lines.push(block.statement);
            lines.extend(given);
        }
        written.push(lines.join("\n"));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(path, written.join("\n\n") + "\n").map_err(|error| error.to_string());
    }
    Err(format!("{}:\n{wrong}", path.display()))
}

#[test]
fn statements_give_what_the_golden_scripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut scripts: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of scripts")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "test"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let only = std::env::var("GOLDEN").ok();
    let is_wanted = |path: &Path| only.as_ref().is_none_or(|name| path.to_string_lossy().contains(name));
    let wrong: Vec<String> =
        scripts.iter().filter(|path| is_wanted(path)).filter_map(|path| run(path).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
