//! The report in a terminal.

use super::view::{self, Table};
use crate::results::Results;

/// All tables, the relative one first, and the summary in sentences. If extras are plotted, the experiment's
/// own tables alone.
pub(crate) fn render(results: &Results) -> String {
    let mut text = String::new();
    let mut tables = view::summary_tables(results);
    // Curves of many points are in the report.
    if results.plotted.is_empty() {
        tables.extend(view::gain_tables(results));
        tables.extend(view::comparison_table(results));
        tables.extend(view::null_table(results));
        tables.push(view::absolute_table(results));
        tables.extend(view::other_tables(results));
    }
    for table in tables.iter().filter(|table| !table.rows.is_empty()) {
        text.push_str(&table_text(table));
        text.push('\n');
    }
    for sentence in super::sentences::summary(results) {
        text.push_str(&sentence);
        text.push('\n');
    }
    if text.is_empty() {
        text.push_str("nothing was measured\n");
    }
    text
}

/// Names to the left, figures to the right, an empty line before each block but the first.
pub(crate) fn table_text(table: &Table) -> String {
    let mut widths: Vec<usize> = table.columns.iter().map(|column| column.chars().count()).collect();
    for row in &table.rows {
        for (width, value) in widths.iter_mut().zip(row) {
            *width = (*width).max(value.chars().count());
        }
    }
    let mut text = format!("{}\n", table.title);
    if !table.note.is_empty() {
        text.push_str(&format!("({})\n", table.note));
    }
    let names_width: usize = widths[..table.names].iter().map(|width| width + 2).sum();
    if !table.across.is_empty() {
        text.push_str(&format!("{:names_width$}{}\n", "", table.across));
    }
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(position, (cell, width))| {
            if position < table.names { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    text.push_str(&line(&table.columns));
    for (position, row) in table.rows.iter().enumerate() {
        if position > 0 && table.block_starts.contains(&position) {
            text.push('\n');
        }
        text.push_str(&line(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::published_like;

    #[test]
    fn the_terminal_shows_the_published_table_first() {
        let text = render(&published_like());
        let expected = "\
embedded: throughput gain over segments off, in percent
(median of the rounds' gains; each compares samples taken side by side)
                threads
points  series     1   8  128
10      32/off  -0.3  17   71
        64/off     1  19   80

100     32/off  -0.3  17   71
        64/off     1  19   80
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("queries/s\n"));
        assert!(text.contains("1,234"));
    }

    #[test]
    fn nothing_measured_is_said() {
        let mut results = published_like();
        results.cells.clear();
        assert_eq!(render(&results), "nothing was measured\n");
    }
}
