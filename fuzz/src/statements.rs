//! Text as a client might send it, given to everything that reads the text of statements.

use sql::parse::{Statement, Word, count_placeholders, parse, split, to_text};

pub fn statements(bytes: &[u8]) {
    let Ok(text) = to_text(bytes) else { return };
    let pieces = split(&text);
    assert!(pieces.iter().map(|piece| piece.len()).sum::<usize>() <= text.len());
    for piece in pieces {
        let _ = count_placeholders(piece);
        match parse(piece) {
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
