//! The comments of a Rust source, and the prose of a Markdown file, line by line.

/// One line of prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    /// The words, without the marks of a comment.
    pub text: String,
    /// Characters of the whole source line that the comment stands on, up to the comment's end.
    pub columns: usize,
    /// A `///` or `//!` comment.
    pub doc: bool,
}

/// The lines of the comments of a Rust source. Strings that look like comments are none.
pub fn of_rust(source: &str) -> Vec<Line> {
    let chars: Vec<char> = source.chars().collect();
    let mut reader = Reader { chars: &chars, at: 0, line: 1, column: 0, lines: Vec::new() };
    reader.read();
    reader.lines
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    line: usize,
    column: usize,
    lines: Vec<Line>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn step(&mut self) -> char {
        let next = self.peek(0);
        self.at += 1;
        if next == '\n' {
            self.line += 1;
            self.column = 0;
        } else {
            self.column += 1;
        }
        next
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    fn read(&mut self) {
        let mut before = ' ';
        while self.at < self.chars.len() {
            let next = self.peek(0);
            match next {
                '/' if self.peek(1) == '/' => self.line_comment(),
                '/' if self.peek(1) == '*' => self.block_comment(),
                '"' => self.string(),
                '\'' => self.quote(),
                'r' | 'b' | 'c' if !is_word(before) && self.raw_string() => {}
                _ => {
                    self.step();
                }
            }
            before = next;
        }
    }

    fn line_comment(&mut self) {
        let mut text = String::new();
        while self.at < self.chars.len() && self.peek(0) != '\n' {
            text.push(self.step());
        }
        let doc = text.starts_with("//!") || (text.starts_with("///") && !text.starts_with("////"));
        let words = text.trim_start_matches('/').trim_start_matches('!').trim().to_owned();
        let columns = self.column - (text.chars().count() - text.trim_end().chars().count());
        self.lines.push(Line { number: self.line, text: words, columns, doc });
    }

    fn block_comment(&mut self) {
        let doc = self.peek(2) == '!' || (self.peek(2) == '*' && self.peek(3) != '/');
        let mut depth = 0;
        let mut text = String::new();
        while self.at < self.chars.len() {
            let (here, next) = (self.peek(0), self.peek(1));
            if here == '\n' {
                self.push_block_line(&mut text, doc);
                self.step();
                continue;
            }
            let opens = here == '/' && next == '*';
            let closes = here == '*' && next == '/';
            if opens || closes {
                self.skip(2);
                depth += if opens { 1 } else { -1 };
                if depth == 0 {
                    break;
                }
                continue;
            }
            text.push(self.step());
        }
        self.push_block_line(&mut text, doc);
    }

    fn push_block_line(&mut self, text: &mut String, doc: bool) {
        let words = text.trim().trim_start_matches(['*', '!']).trim().to_owned();
        self.lines.push(Line { number: self.line, text: words, columns: self.column, doc });
        text.clear();
    }

    fn string(&mut self) {
        self.step();
        while self.at < self.chars.len() {
            match self.step() {
                '\\' => {
                    self.step();
                }
                '"' => return,
                _ => {}
            }
        }
    }

    /// A character literal, or the mark of a lifetime.
    fn quote(&mut self) {
        if self.peek(1) == '\\' {
            self.skip(3);
            while self.at < self.chars.len() && self.step() != '\'' {}
        } else if self.peek(2) == '\'' {
            self.skip(3);
        } else {
            self.step();
        }
    }

    /// Skips `r"..."`, `br#"..."#` and the like; false, and nothing skipped, if there is none here.
    fn raw_string(&mut self) -> bool {
        let mut ahead = usize::from(self.peek(0) != 'r');
        if self.peek(ahead) != 'r' {
            return false;
        }
        ahead += 1;
        let mut marks = 0;
        while self.peek(ahead + marks) == '#' {
            marks += 1;
        }
        if self.peek(ahead + marks) != '"' {
            return false;
        }
        self.skip(ahead + marks + 1);
        while self.at < self.chars.len() {
            if self.step() == '"' && (0..marks).all(|mark| self.peek(mark) == '#') {
                self.skip(marks);
                break;
            }
        }
        true
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The prose of a Markdown file: without code fences and tables.
pub fn of_markdown(source: &str) -> Vec<Line> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced || trimmed.starts_with('|') {
            continue;
        }
        let columns = line.trim_end().chars().count();
        lines.push(Line { number: index + 1, text: trimmed.to_owned(), columns, doc: false });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<(usize, String)> {
        of_rust(source).into_iter().map(|line| (line.number, line.text)).collect()
    }

    #[test]
    fn comments_are_found_and_strings_are_not() {
        let source = "//! Doc.\nlet a = \"// no\"; // yes\nlet b = r#\"// \" no\"#;\nlet c = '\"'; /* one\n two */\n\
                      let d: &'static str = \"\\\" // no\"; // last";
        let expected = [(1, "Doc."), (2, "yes"), (4, "one"), (5, "two"), (6, "last")];
        assert_eq!(texts(source), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn fences_and_tables_are_no_prose() {
        let source = "Prose.\n```\ncode\n```\n| a | b |\nMore.";
        let lines: Vec<usize> = of_markdown(source).iter().map(|line| line.number).collect();
        assert_eq!(lines, [1, 6]);
    }
}
