//! Text as a client might send it, given to everything that reads the text of statements.

use sql::parse::{LexicalMode, Statement, Word, count_placeholders, parse, split, unwrap_comments, utf8};

pub fn statements(bytes: &[u8]) {
    let Ok(text) = utf8(bytes) else { return };
    // The mode comes from the text, so that one input is always read alike.
    let bits = bytes.len();
    let mode = LexicalMode::NONE
        .with(LexicalMode::NO_BACKSLASH_ESCAPES, bits & 1 != 0)
        .with(LexicalMode::ANSI_QUOTES, bits & 2 != 0)
        .with(LexicalMode::PIPES_AS_CONCAT, bits & 4 != 0)
        .with(LexicalMode::HIGH_NOT_PRECEDENCE, bits & 8 != 0);
    let pieces = split(text, mode);
    assert!(pieces.iter().map(|piece| piece.len()).sum::<usize>() <= text.len());
    for piece in pieces {
        let piece = unwrap_comments(piece, mode);
        let _ = count_placeholders(&piece, mode);
        match parse(&piece, mode) {
            Ok(Statement::Other(other)) => read_words(&other),
            Ok(_) => {}
            Err(error) => assert!(error.code() >= 1000, "{error}"),
        }
    }
}

fn read_words(other: &sql::parse::OtherStatement) {
    let _ = other.ast();
    let Ok(mut words) = other.words() else { return };
    for _ in 0..=other.text.len() {
        if words.next() == Word::End {
            return;
        }
    }
    panic!("more words than characters in {:?}", other.text);
}

#[cfg(test)]
pub fn seeds() -> Vec<Vec<u8>> {
    let scripts = "../crates/latchwork/tests/e2e/sql";
    let mut seeds: Vec<Vec<u8>> = std::fs::read_dir(scripts)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .flat_map(|path| {
            let script = std::fs::read_to_string(path).unwrap();
            script.lines().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>()
        })
        .collect();
    for text in [
        "SELECT ((((((((((1))))))))))",
        "/*!50000 SELECT */ 1",
        "SELECT 'a' 'b' \"c\" `d` -- x\n, ?;SELECT 2",
    ] {
        seeds.push(text.as_bytes().to_vec());
    }
    seeds.push("(".repeat(5000).into_bytes());
    seeds.push(format!("SELECT {}1", "NOT ".repeat(5000)).into_bytes());
    seeds.push(format!("SELECT 1{}", "+1".repeat(5000)).into_bytes());
    seeds.push(format!("SELECT * FROM t WHERE a IN ({}1)", "1,".repeat(5000)).into_bytes());
    seeds
}
