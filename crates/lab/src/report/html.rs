//! The report as one HTML page that needs nothing else: styles, script, plots and the raw samples are inside.
//! Each run has a part with its own plots and controls, because the runs were not measured in turns.
//! Without scripts the page shows everything, but the controls do nothing.

use super::plot::{self, COLOURS, Line, Plot, Scaling};
use super::sentences;
use super::view::{self, Table};
use super::{download, relative};
use crate::doctor::Finding;
use crate::results::{Cell, Results, TargetInfo};
use crate::stats::Estimate;
use std::fmt::Write;

pub(crate) const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The whole page.
pub(crate) fn render(runs: &[Results]) -> String {
    let title = match runs {
        [only] => only.title.clone(),
        _ => format!("{} runs", runs.len()),
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{0}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<p class=\"maker\">Latchwork lab</p>\n<h1>{0}</h1>\n\
         <button type=\"button\" id=\"theme\">Dark or light</button>\n",
        escape(&title),
    );
    if runs.len() > 1 {
        page.push_str("<nav aria-label=\"runs\">\n<ol>\n");
        for (number, run) in runs.iter().enumerate() {
            let _ = writeln!(
                page,
                "<li><a href=\"#run-{number}\">{}</a>, {}</li>",
                escape(&run.title),
                super::date(run.started)
            );
        }
        page.push_str("</ol>\n</nav>\n");
    }
    page.push_str("</header>\n<main>\n");
    for (number, run) in runs.iter().enumerate() {
        part(run, number, runs.len() > 1, &mut page);
    }
    let _ = write!(page, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    page
}

fn part(results: &Results, number: usize, several: bool, page: &mut String) {
    let worst =
        sentences::worst_line(results).map_or(String::new(), |line| format!(" data-worst=\"{line}\""));
    let _ = writeln!(page, "<article class=\"run\" id=\"run-{number}\" data-run=\"{number}\"{worst}>");
    if several {
        let _ = writeln!(page, "<h2 class=\"title\">{}</h2>", escape(&results.title));
    }
    let _ = writeln!(page, "<p class=\"question\">{}</p>\n{}", escape(&results.question), status(results));
    said(results, page);
    charts(results, number, page);
    tables(results, number, page);
    circumstances(results, page);
    samples(results, number, page);
    page.push_str("</article>\n");
}

/// When the run was, by which command, and whether it was complete.
fn status(results: &Results) -> String {
    let processor = fact(&results.machine, "processor").unwrap_or("unknown processor");
    let count = fact(&results.machine, "processors").unwrap_or("?");
    let cut = if results.complete {
        String::new()
    } else {
        "\n<p class=\"warning\">This run did not reach its end: cells and rounds are missing.</p>".to_string()
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

/// The summary of the results, in sentences.
fn said(results: &Results, page: &mut String) {
    let sentences = sentences::summary(results);
    if sentences.is_empty() {
        return;
    }
    page.push_str("<section class=\"summary\" aria-label=\"summary\">\n<ul>\n");
    for sentence in sentences {
        let _ = writeln!(page, "<li>{}</li>", escape(&sentence));
    }
    page.push_str("</ul>\n</section>\n");
}

/// The legend and the switches, and for each block throughput and gain.
fn charts(results: &Results, number: usize, page: &mut String) {
    let labels = view::labels(results);
    page.push_str("<section aria-label=\"plots\">\n<div class=\"controls\">\n");
    legend(&labels, page);
    switches(results, page);
    page.push_str(
        "</div>\n<p class=\"hint\">A click on a series here, or on its line, hides it, and the scales change with it. \
         Whiskers are confidence intervals of the median.</p>\n",
    );
    for (block_number, block) in view::blocks(results).iter().enumerate() {
        let _ = write!(
            page,
            "<h3>{}</h3>\n<div class=\"plots\">\n",
            escape(format!("{} {block}", results.block_name).trim())
        );
        for (kind, plot) in block_plots(results, block) {
            let _ = writeln!(
                page,
                "<figure><figcaption>{}</figcaption>{}</figure>",
                escape(&plot.y_name),
                plot.to_svg(&format!("run-{number}-{kind}-{block_number}"))
            );
        }
        page.push_str("</div>\n");
    }
    page.push_str("</section>\n");
}

fn legend(labels: &[String], page: &mut String) {
    page.push_str("<div class=\"legend\" role=\"group\" aria-label=\"series shown\">\n");
    for (number, label) in labels.iter().enumerate() {
        let (dash, marker) = plot::style(number);
        let _ = writeln!(
            page,
            "<button type=\"button\" aria-pressed=\"true\" data-line=\"{number}\">\
             <svg viewBox=\"0 0 44 14\" width=\"44\" height=\"14\" aria-hidden=\"true\"><g class=\"line c{}\">\
             <line x1=\"0\" x2=\"44\" y1=\"7\" y2=\"7\" stroke-dasharray=\"{dash}\"/>\
             <path class=\"marker\" d=\"{marker}\" transform=\"translate(22 7)\"/></g></svg>{}</button>",
            number % COLOURS,
            escape(label)
        );
    }
    page.push_str("</div>\n");
}

fn switches(results: &Results, page: &mut String) {
    page.push_str("<div class=\"switches\" role=\"group\" aria-label=\"scales and series\">\n");
    let mut switch = |name: &str, pressed: bool, text: &str| {
        let _ = writeln!(
            page,
            "<button type=\"button\" aria-pressed=\"{pressed}\" data-switch=\"{name}\">{text}</button>"
        );
    };
    switch("y", results.log_scale, "Logarithmic figures");
    switch("x", results.log_x, &format!("Logarithmic {}", escape(&results.x_name)));
    if sentences::worst_line(results).is_some() {
        switch("worst", false, "Leave the worst out");
    }
    page.push_str("</div>\n");
}

/// The plots of one block, each with its name.
pub(crate) fn block_plots(results: &Results, block: &str) -> Vec<(String, Plot)> {
    let lines = view::lines(results);
    let labels = view::labels(results);
    let of = |show: &dyn Fn(&Cell) -> Option<Estimate>| -> Vec<Line> {
        let all = lines.iter().zip(&labels).enumerate();
        all.filter_map(|(number, ((target, series), label))| {
            let cells = results
                .cells
                .iter()
                .filter(|cell| cell.target == *target && cell.series == *series && cell.block == block);
            let mut points: Vec<(u32, Estimate)> =
                cells.filter_map(|cell| Some((cell.x, show(cell)?))).collect();
            points.sort_by_key(|(x, _)| *x);
            (!points.is_empty()).then(|| Line { number, label: label.clone(), points })
        })
        .collect()
    };
    let gain_name = format!("gain over {}, %", results.baseline_name);
    let mut plots = vec![
        ("figures".to_string(), results.unit.clone(), of(&|cell| cell.estimate())),
        ("gain".to_string(), gain_name, of(&|cell| results.gain(cell))),
    ];
    plots.extend(results.plotted.iter().enumerate().map(|(number, name)| {
        let lines = of(&|cell| cell.median_extra(name).and_then(|median| Estimate::of(&[median])));
        (format!("extra-{number}"), name.clone(), lines)
    }));
    let plots = plots.into_iter().filter(|(_, _, lines)| !lines.is_empty());
    plots
        .map(|(kind, y_name, lines)| {
            let logarithmic = results.log_scale && kind == "figures";
            let plot = Plot {
                title: format!("{} {block}", results.block_name).trim().to_string(),
                y_name,
                x_name: results.x_name.clone(),
                xs: view::xs(results),
                x_scale: if results.log_x { Scaling::Logarithmic } else { Scaling::Linear },
                y_scale: if logarithmic { Scaling::Logarithmic } else { Scaling::Linear },
                lines,
            };
            (kind, plot)
        })
        .collect()
}

fn tables(results: &Results, number: usize, page: &mut String) {
    page.push_str("<section aria-label=\"tables\">\n<h3>Tables</h3>\n");
    page.push_str(&relative::html(results, number));
    let mut open = view::summary_tables(results);
    open.extend(view::gain_tables(results));
    open.extend(view::comparison_table(results));
    open.extend(view::null_table(results));
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
    page.push_str("<section aria-label=\"circumstances\">\n<h3>How it was measured</h3>\n");
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

/// The raw samples. The page's script reads its figures from the JSON too.
fn samples(results: &Results, number: usize, page: &mut String) {
    let json = download::data_uri("application/json", results.to_json().to_pretty().as_bytes());
    let csv = download::data_uri("text/csv", download::csv(results).as_bytes());
    let name = escape(&results.experiment);
    let _ = write!(
        page,
        "<section aria-label=\"samples\">\n<h3>Raw samples</h3>\n<p class=\"downloads\">\
         <a id=\"run-{number}-json\" download=\"{name}.json\" href=\"{json}\">{name}.json</a> \
         <a id=\"run-{number}-csv\" download=\"{name}.csv\" href=\"{csv}\">{name}.csv</a></p>\n</section>\n"
    );
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
pub(crate) fn escape(text: &str) -> String {
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

    /// Checks that every element is closed in the right order, that attributes are quoted, and that no stray
    /// `<` or `&` is left. This stands in for a validator, and is strict enough for what the lab writes.
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

    /// Base64 text may contain any word.
    fn without_data(page: &str) -> String {
        let mut parts = page.split("\"data:");
        let first = parts.next().unwrap_or_default().to_string();
        parts.fold(first, |page, part| page + part.split_once('"').expect("the address ends").1)
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
        let page = render(&[results.clone(), results]);
        assert_well_formed(&page);
        let page = without_data(&page);
        for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("What do &lt;segments&gt; gain &amp; when?"));
        assert_eq!(page.matches("<svg class=\"plot\"").count(), 2 * 4);
        assert_eq!(page.matches("aria-pressed=\"true\" data-line").count(), 2 * 4);
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn a_run_cut_short_says_so_and_one_without_cells_is_a_page_too() {
        let mut results = published_like();
        results.complete = false;
        results.cells[0].samples.clear();
        let page = render(std::slice::from_ref(&results));
        assert_well_formed(&page);
        assert!(page.contains("did not reach its end"));
        results.cells.clear();
        assert_well_formed(&render(std::slice::from_ref(&results)));
    }
}
