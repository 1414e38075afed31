//! No line of a comment or of a document's prose is longer than the code may be.

use crate::comments::Line;
use crate::finding::Finding;
use crate::workspace::Workspace;

/// What `rustfmt.toml` allows for code.
const COLUMNS_MAX: usize = 110;

pub fn check(workspace: &Workspace, found: &mut Vec<Finding>) {
    for source in &workspace.sources {
        check_lines(&source.path, &source.comments, found);
    }
    for document in &workspace.documents {
        check_lines(&document.path, &document.prose, found);
    }
}

fn check_lines(path: &str, lines: &[Line], found: &mut Vec<Finding>) {
    for line in lines.iter().filter(|line| line.columns > COLUMNS_MAX && !is_unbreakable(&line.text)) {
        found.push(Finding {
            path: path.to_owned(),
            line: line.number,
            rule: "columns",
            item: line.text.chars().take(40).collect(),
            message: format!("a line of {} columns; wrap it at {COLUMNS_MAX} or before", line.columns),
        });
    }
}

/// One link, one picture or one word, behind the mark of a list.
fn is_unbreakable(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '*', '>', ' ']).trim_end_matches(['.', ',']);
    if !text.contains(char::is_whitespace) {
        return true;
    }
    let link = text.trim_start_matches(['!', '[']);
    text.starts_with(['[', '!']) && text.ends_with(')') && link.matches("](").count() <= 2 && {
        // Blanks only in the link's text, which Markdown cannot break in a picture.
        link.rsplit("](").next().is_some_and(|target| !target.contains(char::is_whitespace))
    } || is_link_target(text)
}

/// `[name]: https://...`
fn is_link_target(text: &str) -> bool {
    text.starts_with('[')
        && text.split_once("]: ").is_some_and(|(_, target)| !target.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::items_found;

    #[test]
    fn a_long_comment_is_found_in_code_and_in_prose() {
        let long = "word ".repeat(30);
        let source = format!("// {long}\nfn a() {{}} // {long}\nconst A: &str = \"// {long}\";\n// short\n");
        let document = format!("{long}\n\n| {long} |\n\n```\n{long}\n```\n");
        let files = [("crates/a/src/lib.rs", source.as_str()), ("README.md", document.as_str())];
        assert_eq!(items_found(check, &files).len(), 3);
    }

    #[test]
    fn a_long_link_cannot_be_wrapped() {
        let address = format!("https://example.org/{}", "a".repeat(120));
        let document = format!("{address}\n- ![a picture of it]({address})\n[name]: {address}\n");
        assert!(items_found(check, &[("README.md", &document)]).is_empty());
        let document = format!("See [this]({address}) and that.\n");
        assert_eq!(items_found(check, &[("README.md", &document)]).len(), 1);
    }
}
