//! Plain sentences: a thread is named and not called `he`, and no sentence begins with `who` unless it asks.
//!
//! Headings and rows of tables may: they are no sentences. So may a sentence that says which one acts on
//! `whom`.

use crate::comments::Line;
use crate::finding::Finding;
use crate::workspace::Workspace;

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    for source in &workspace.sources {
        check_lines(&source.path, &source.comments, found);
    }
    for document in &workspace.documents {
        check_lines(&document.path, &document.prose, found);
    }
}

fn check_lines(path: &str, lines: &[Line], found: &mut Vec<Finding>) {
    let mut report = |line: &Line, rule, message: String| {
        let item = line.text.chars().take(40).collect();
        found.push(Finding { path: path.to_owned(), line: line.number, rule, item, message });
    };
    for paragraph in paragraphs(lines) {
        let words = words(paragraph);
        for (index, word) in words.iter().enumerate() {
            let line = &paragraph[word.line];
            if matches!(word.lower.as_str(), "he" | "him" | "his" | "himself") {
                report(
                    line,
                    "he",
                    format!("`{}`: name the reader, the writer, the session that is meant", word.lower),
                );
            }
            if word.lower != "who" {
                continue;
            }
            if word.begins && !is_question(&words[index..]) {
                report(
                    line,
                    "who",
                    "a clause that begins with `who`: begin with the one who acts".to_owned(),
                );
            }
            let before = index.checked_sub(1).map(|before| words[before].lower.as_str());
            if !word.begins && matches!(before, Some("by" | "for" | "from" | "with")) {
                let before = before.unwrap_or_default();
                report(
                    line,
                    "who",
                    format!("`{before} who`: name the one who acts (\"{before} the thread that\")"),
                );
            }
        }
    }
}

/// Comment lines that follow each other, without an empty one between them.
fn paragraphs(lines: &[Line]) -> impl Iterator<Item = &[Line]> {
    let together = |one: &Line, two: &Line| {
        let sentences =
            [one, two].iter().all(|line| !line.text.is_empty() && !line.text.starts_with(['#', '|']));
        one.number + 1 == two.number && one.doc == two.doc && sentences
    };
    let is_sentence = |lines: &&[Line]| !lines[0].text.starts_with(['#', '|']);
    lines.chunk_by(together).filter(is_sentence)
}

struct Word {
    lower: String,
    /// Of the paragraph, counted from 0.
    line: usize,
    /// At the begin of a sentence, or behind a semicolon.
    begins: bool,
    /// The mark behind it that ends a sentence.
    end: Option<char>,
}

/// The words of a paragraph, without what stands between backticks.
fn words(paragraph: &[Line]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut code = false;
    let mut begins = true;
    for (line, text) in paragraph.iter().enumerate() {
        for part in text.text.split_whitespace() {
            let prose: String = part
                .split('`')
                .enumerate()
                .filter(|(index, _)| (index % 2 == 1) == code)
                .map(|(_, prose)| prose)
                .collect();
            code ^= part.matches('`').count() % 2 == 1;
            let lower = prose.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
            let marks = part.trim_end_matches(['*', '_', ')', '"', '\u{201d}']);
            let end = marks.chars().last().filter(|mark| matches!(mark, '.' | '?' | '!' | ';'));
            let quoted = prose.starts_with(['"', '\'', '\u{201c}']);
            let is_mark = lower.is_empty() && !part.chars().any(|letter| letter.is_alphanumeric());
            words.push(Word { lower, line, begins: begins && !quoted, end });
            begins = end.is_some() || (begins && is_mark);
        }
    }
    words
}

/// The sentence that begins here ends in a question mark, or is one in other words: which one waits for
/// `whom`.
fn is_question(words: &[Word]) -> bool {
    let end = words.iter().position(|word| word.end.is_some()).unwrap_or(words.len().saturating_sub(1));
    words[end].end == Some('?') || words[..=end].iter().any(|word| word.lower == "whom")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    fn count(comment: &str) -> usize {
        items_found(check, &[("crates/a/src/lib.rs", &format!("{comment}fn a() {{}}\n"))]).len()
    }

    #[test]
    fn a_thread_that_is_called_he_is_found() {
        assert_eq!(count("// The reader waits until he has it, and his latch.\n"), 2);
        assert_eq!(count("// The reader waits until it has `his` latch; the shell, this, them.\n"), 0);
        assert_eq!(items_found(check, &[("README.md", "A page of his.\n")]).len(), 1);
        assert_eq!(count("const A: &str = \"// he\";\n"), 0);
    }

    #[test]
    fn a_clause_that_begins_with_who_is_found() {
        assert_eq!(count("/// Who finds none\n/// waits.\n"), 1);
        assert_eq!(count("// It waits. Who\n// finds none leaves.\n"), 1);
        assert_eq!(count("// Held by who has\n// shares.\n"), 1);
        assert_eq!(count("// Readers look; who is late waits.\n"), 1);
        assert_eq!(count("/// Who holds it?\n"), 0);
        assert_eq!(count("/// Who waits for whom.\n"), 0);
        assert_eq!(count("//! # Who gets in\n"), 0);
        assert_eq!(count("/// Those who find none wait, and it shows who holds it.\n"), 0);
    }
}
