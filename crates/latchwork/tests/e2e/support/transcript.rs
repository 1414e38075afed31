//! Runs a script through the `mariadb` client, and gives the outcome of each statement.

use super::{client, feed, text};
use std::path::Path;

/// A statement and its outcome: rows with their header, counts, warnings, or the error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The text with white space collapsed, so that a difference can be listed on one line.
    pub statement: String,
    pub outcome: String,
}

/// Which warnings of SELECTs are compared. Those of other statements are always compared, one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelectWarnings {
    /// Each warning once, because the executor decides how often a condition is evaluated, and so how often
    /// it warns.
    Distinct,
    Ignored,
}

impl Step {
    fn went_well(&self) -> bool {
        let ends = |line: &str| {
            let counted = line
                .split_once(" in set")
                .is_some_and(|(count, _)| count.ends_with(" row") || count.ends_with(" rows"));
            counted || line.starts_with("Query OK") || line.starts_with("Empty set")
        };
        self.outcome.lines().any(ends)
    }

    /// The outcome as it is compared.
    pub fn comparable(&self, warnings: SelectWarnings) -> String {
        if !self.statement.starts_with("SELECT") {
            return self.outcome.clone();
        }
        let mut lines: Vec<String> = Vec::new();
        for line in self.outcome.lines() {
            let is_warning = ["Warning (Code", "Note (Code"].iter().any(|start| line.starts_with(start));
            // MariaDB decides case by case in which arithmetic it tries to take a text for a number.
            let line = &["DECIMAL", "INTEGER"].iter().fold(line.to_string(), |line, name| {
                line.replace(&format!("Truncated incorrect {name} value"), "Truncated incorrect DOUBLE value")
            });
            if is_warning && (warnings == SelectWarnings::Ignored || lines.contains(line)) {
                continue;
            }
            let counts = line.contains(" in set, ") || line.starts_with("Empty set, ");
            lines.push(if counts { line.split(", ").next().unwrap_or(line) } else { line }.to_string());
        }
        lines.join("\n").trim_end().to_string()
    }
}

const RULE: &str = "--------------\n";

/// Runs a script to its end, errors or not.
pub fn run(socket: &Path, database: &str, script: &str) -> Vec<Step> {
    let mut command = client(socket);
    command.args(["--force", "--unbuffered", "-v", "-v", "--show-warnings", "--local-infile=1", database]);
    let output = feed(&mut command, script);
    let mut errors = errors(&text(&output.stderr)).into_iter();
    let mut steps = steps(&text(&output.stdout));
    // After a failed statement the client prints warnings, or nothing.
    for step in steps.iter_mut().filter(|step| !step.went_well()) {
        step.outcome = errors.next().unwrap_or_default();
    }
    if let Some(error) = errors.next() {
        steps.push(Step { statement: "(more errors than failed statements)".into(), outcome: error });
    }
    steps
}

fn steps(output: &str) -> Vec<Step> {
    let mut blocks = output.split(RULE).skip(1);
    let mut steps = Vec::new();
    while let (Some(statement), Some(body)) = (blocks.next(), blocks.next()) {
        let statement = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let body = body.trim_start_matches('\n').trim_end_matches('\n');
        let body = body.strip_suffix("Bye").unwrap_or(body).trim_end_matches('\n');
        steps.push(Step { statement, outcome: body.to_string() });
    }
    steps
}

/// `ERROR 1146 (42S02) at line 5: ...` becomes `ERROR 1146 (42S02): ...`, each with its further lines.
fn errors(output: &str) -> Vec<String> {
    let mut errors: Vec<String> = Vec::new();
    for line in output.lines() {
        match (line.strip_prefix("ERROR "), errors.last_mut()) {
            (Some(rest), _) => {
                let (code, message) = rest.split_once(": ").unwrap_or((rest, ""));
                let code = code.split(" at line").next().unwrap_or(code);
                errors.push(format!("ERROR {code}: {}", without_position(code, message)));
            }
            (None, Some(last)) if !last.contains("1064") => *last += &format!("\n{line}"),
            _ => {}
        }
    }
    errors
}

/// The part of a message that both servers have in common. The words of a syntax error depend on the parser,
/// and the names of clauses (`field list`, `SELECT`) on the server's version. Some messages put database and
/// table before a column.
fn without_position(code: &str, message: &str) -> String {
    match &code[..4.min(code.len())] {
        "1064" => String::new(),
        "1054" => message.split(" in '").next().unwrap_or(message).to_string(),
        _ => {
            let mut words = message.split("`corpus`.`");
            let mut short = words.next().unwrap_or_default().to_string();
            for word in words {
                short += word.split_once("`.").map_or(word, |(_, column)| column);
            }
            short
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_split_by_statement() {
        let output = format!("{RULE}select\n 1\n{RULE}\n1\n1\n1 row in set\n\n{RULE}bad\n{RULE}\nBye\n");
        let steps = steps(&output);
        assert_eq!(steps[0], Step { statement: "select 1".into(), outcome: "1\n1\n1 row in set".into() });
        assert_eq!(steps[1], Step { statement: "bad".into(), outcome: String::new() });
    }

    #[test]
    fn an_error_loses_its_line_number() {
        assert_eq!(
            errors("ERROR 1146 (42S02) at line 5: Table 'c.t' doesn't exist\n"),
            ["ERROR 1146 (42S02): Table 'c.t' doesn't exist"]
        );
        assert_eq!(errors("ERROR 1064 (42000) at line 1: near ''\n"), ["ERROR 1064 (42000): "]);
        assert_eq!(
            errors("ERROR 1366 (22007) at line 1: Incorrect value for column `corpus`.`t`.`i` at row 1\n"),
            ["ERROR 1366 (22007): Incorrect value for column `i` at row 1"]
        );
    }
}
