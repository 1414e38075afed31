//! The report as one page that needs nothing else: styles, script and plots are inside.

use super::plot::{self, COLOURS, Line, Plot};
use super::view::{self, Table};
use crate::doctor::Finding;
use crate::results::{Cell, Results, TargetInfo};
use crate::stats::Estimate;
use std::fmt::Write;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The page.
pub fn render(results: &Results) -> String {
    let mut page = String::new();
    let title = escape(&format!("{}: {}", results.experiment, results.title));
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n<p class=\"question\">{}</p>\n{}\n\
         <button type=\"button\" id=\"theme\">Dark or light</button>\n</header>\n<main>\n",
        escape(&results.title),
        escape(&results.question),
        status(results)
    );
    charts(results, &mut page);
    tables(results, &mut page);
    circumstances(results, &mut page);
    let _ = write!(page, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    page
}

/// When, by what, and whether it ran to its end.
fn status(results: &Results) -> String {
    let processor = fact(&results.machine, "processor").unwrap_or("unknown processor");
    let count = fact(&results.machine, "processors").unwrap_or("?");
    let cut = if results.complete {
        String::new()
    } else {
        "<p class=\"warning\">This run did not reach its end: cells and rounds are missing.</p>".to_string()
    };
    format!(
        "<p class=\"meta\">{}, {} x {}<br/><code>{}</code></p>{cut}",
        escape(&super::date(results.started)),
        escape(count),
        escape(processor),
        escape(&results.command.join(" "))
    )
}

fn fact<'a>(facts: &'a [(String, String)], name: &str) -> Option<&'a str> {
    facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The legend, and for each block throughput and gain.
fn charts(results: &Results, page: &mut String) {
    let lines = view::lines(results);
    let labels: Vec<String> = lines.iter().map(|(target, series)| label(results, target, series)).collect();
    page.push_str(
        "<section aria-label=\"plots\">\n<div class=\"legend\" role=\"group\" aria-label=\"series shown\">\n",
    );
    for (number, label) in labels.iter().enumerate() {
        let (dash, marker) = plot::style(number);
        let _ = writeln!(
            page,
            "<button type=\"button\" aria-pressed=\"true\" data-line=\"{number}\" class=\"c{}\">\
             <svg viewBox=\"0 0 44 14\" width=\"44\" height=\"14\" aria-hidden=\"true\"><g class=\"line c{}\">\
             <line x1=\"0\" x2=\"44\" y1=\"7\" y2=\"7\" stroke-dasharray=\"{dash}\"/>\
             <path class=\"marker\" d=\"{marker}\" transform=\"translate(22 7)\"/></g></svg>{}</button>",
            number % COLOURS,
            number % COLOURS,
            escape(label)
        );
    }
    page.push_str(
        "</div>\n<p class=\"hint\">A click on a series here, or on its line, hides it; the scales follow. \
         Whiskers are confidence intervals of the median.</p>\n",
    );
    for (block_number, block) in view::blocks(results).into_iter().enumerate() {
        let of = |show: &dyn Fn(&Cell) -> Option<Estimate>| -> Vec<Line> {
            let all = lines.iter().zip(&labels).enumerate();
            all.filter_map(|(number, ((target, series), label))| {
                let cells = results
                    .cells
                    .iter()
                    .filter(|cell| cell.target == *target && cell.series == *series && cell.block == block);
                let points: Vec<(u32, Estimate)> =
                    cells.filter_map(|cell| Some((cell.x, show(cell)?))).collect();
                (!points.is_empty()).then(|| Line { number, label: label.clone(), points })
            })
            .collect()
        };
        let _ = write!(
            page,
            "<h2>{} {}</h2>\n<div class=\"plots\">\n",
            escape(&block),
            escape(&results.block_name)
        );
        let gain_name = format!("gain over {}, %", results.baseline_name);
        let plots = [
            ("throughput", results.unit.clone(), of(&|cell| cell.estimate())),
            ("gain", gain_name, of(&|cell| results.gain(cell))),
        ];
        for (kind, y_name, lines) in plots {
            if lines.is_empty() {
                continue;
            }
            let plot = Plot {
                title: format!("{block} {}", results.block_name),
                y_name: y_name.clone(),
                x_name: results.x_name.clone(),
                xs: view::xs(results),
                log_scale: results.log_scale && kind == "throughput",
                lines,
            };
            let _ = writeln!(
                page,
                "<figure><figcaption>{}</figcaption>{}</figure>",
                escape(&y_name),
                plot.to_svg(&format!("{kind}-{block_number}"))
            );
        }
        page.push_str("</div>\n");
    }
    page.push_str("</section>\n");
}

/// The series alone where there is one target, or where the target has one series.
fn label(results: &Results, target: &str, series: &str) -> String {
    if results.targets.len() < 2 {
        return series.to_string();
    }
    let alone = !results.cells.iter().any(|cell| cell.target == target && cell.series != series);
    if alone { target.to_string() } else { format!("{target} {series}") }
}

fn tables(results: &Results, page: &mut String) {
    page.push_str("<section>\n<h2>Tables</h2>\n");
    let gains = view::gain_tables(results);
    let summaries = view::summary_tables(results);
    let open = summaries
        .iter()
        .chain(&gains)
        .chain(view::comparison_table(results).iter())
        .cloned()
        .collect::<Vec<_>>();
    let closed = std::iter::once(view::absolute_table(results)).chain(view::other_tables(results));
    for (table, attribute) in
        open.into_iter().map(|table| (table, " open=\"open\"")).chain(closed.map(|table| (table, "")))
    {
        if !table.rows.is_empty() {
            let _ = write!(
                page,
                "<details{attribute}><summary>{}</summary>\n{}</details>\n",
                escape(&table.title),
                table_html(&table)
            );
        }
    }
    page.push_str("</section>\n");
}

fn table_html(table: &Table) -> String {
    let mut html = String::new();
    if !table.note.is_empty() {
        let _ = writeln!(html, "<p class=\"hint\">{}</p>", escape(&table.note));
    }
    let _ = write!(
        html,
        "<div class=\"wide\"><table>\n<caption>{}</caption>\n<thead>\n<tr>",
        escape(&table.title)
    );
    let levels = if table.across.is_empty() { 1 } else { 2 };
    for column in &table.columns[..table.names] {
        let _ = write!(html, "<th scope=\"col\" rowspan=\"{levels}\">{}</th>", escape(column));
    }
    if levels == 2 {
        let _ = write!(
            html,
            "<th scope=\"colgroup\" colspan=\"{}\">{}</th></tr>\n<tr>",
            (table.columns.len() - table.names).max(1),
            escape(&table.across)
        );
    }
    for column in &table.columns[table.names..] {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(column));
    }
    html.push_str("</tr>\n</thead>\n<tbody>\n");
    for (position, row) in table.rows.iter().enumerate() {
        html.push_str(if table.block_starts.contains(&position) { "<tr class=\"block\">" } else { "<tr>" });
        for (column, value) in row.iter().enumerate() {
            let element =
                if column < table.names { ("<th scope=\"row\">", "</th>") } else { ("<td>", "</td>") };
            let _ = write!(html, "{}{}{}", element.0, escape(value), element.1);
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
    html
}

/// Machine, settings, preflight and targets.
fn circumstances(results: &Results, page: &mut String) {
    page.push_str("<section>\n<h2>How it was measured</h2>\n");
    let _ = write!(
        page,
        "<details open=\"open\"><summary>Preflight</summary>\n{}</details>\n",
        findings(&results.doctor)
    );
    let _ = write!(page, "<details><summary>Machine</summary>\n{}</details>\n", facts(&results.machine));
    let _ = write!(page, "<details><summary>Settings</summary>\n{}</details>\n", facts(&results.settings));
    for TargetInfo { name, facts: known, .. } in &results.targets {
        let _ =
            write!(page, "<details><summary>Target {}</summary>\n{}</details>\n", escape(name), facts(known));
    }
    page.push_str("</section>\n");
}

fn facts(facts: &[(String, String)]) -> String {
    let mut html = "<dl>\n".to_string();
    for (name, value) in facts {
        let _ = writeln!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    html.push_str("</dl>\n");
    html
}

fn findings(findings: &[Finding]) -> String {
    let mut html = "<ul class=\"findings\">\n".to_string();
    for finding in findings {
        let name = finding.verdict.name();
        let advice = finding.advice.as_ref().map(|advice| format!("<br/><code>{}</code>", escape(advice)));
        let _ = writeln!(
            html,
            "<li class=\"{name}\"><strong>{name}</strong> {}: {}{}</li>",
            escape(&finding.check),
            escape(&finding.found),
            advice.unwrap_or_default()
        );
    }
    html.push_str("</ul>\n");
    html
}

/// Text for elements and attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::published_like;

    /// Checks that every element that opens closes in its turn, that attributes are quoted, and that no stray
    /// `<` or `&` is left; a stand-in for a validator, strict enough for what the lab writes.
    fn assert_well_formed(page: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
        while let Some(at) = rest.find('<') {
            assert_entities(&rest[..at]);
            let end = at + rest[at..].find('>').expect("a tag ends");
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "before {:.80}", rest);
                continue;
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            assert_entities(tag);
            let name = tag.split([' ', '/']).next().unwrap();
            assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric()), "{tag}");
            if tag.ends_with('/') {
                continue;
            }
            if name == "script" || name == "style" {
                let close = format!("</{name}>");
                rest = &rest[rest.find(&close).expect("raw text ends") + close.len()..];
            } else {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    fn assert_entities(text: &str) {
        for (at, _) in text.match_indices('&') {
            let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            assert!(known.iter().any(|entity| text[at..].starts_with(entity)), "{}", &text[at..]);
        }
    }

    #[test]
    fn the_page_is_well_formed_and_needs_nothing_else() {
        let mut results = published_like();
        results.doctor = crate::doctor::examine(&crate::doctor::Plan {
            threads_max: 1,
            memory_bytes: 0,
            disk_bytes: 0,
            scratch: std::env::temp_dir(),
        });
        let page = render(&results);
        assert_well_formed(&page);
        for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("What do &lt;segments&gt; gain &amp; when?"));
        assert_eq!(page.matches("<svg class=\"plot\"").count(), 4);
        assert_eq!(page.matches("aria-pressed=\"true\"").count(), 4);
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn a_run_cut_short_says_so_and_one_without_cells_is_a_page_too() {
        let mut results = published_like();
        results.complete = false;
        results.cells[0].samples.clear();
        let page = render(&results);
        assert_well_formed(&page);
        assert!(page.contains("did not reach its end"));
        results.cells.clear();
        assert_well_formed(&render(&results));
    }
}
