//! Every line relative to one of them, which the reader chooses. The page shows the table for the most likely
//! base; its script fills in the figures for another.

use super::html::escape;
use super::sentences::ratio_text;
use super::view;
use crate::results::Results;
use std::fmt::Write;

/// The table with its choice of base; nothing if there is nothing to compare.
pub(crate) fn html(results: &Results, number: usize) -> String {
    let lines = view::lines(results);
    let Some(base) = default_base(results).filter(|_| lines.len() > 1) else {
        return String::new();
    };
    let labels = view::labels(results);
    let mut html = format!(
        "<details class=\"relative\" open=\"open\"><summary>Every series relative to one of them</summary>\n\
         <p><label>Base <select id=\"run-{number}-base\">\n"
    );
    for (line, label) in labels.iter().enumerate() {
        let selected = if line == base { " selected=\"selected\"" } else { "" };
        let _ = writeln!(html, "<option value=\"{line}\"{selected}>{}</option>", escape(label));
    }
    let of = if results.lower_is_better { "times as fast as the base" } else { "times the base" };
    let xs = view::xs(results);
    let _ = write!(
        html,
        "</select></label></p>\n<p class=\"hint\">{of}: median of the rounds' ratios, and its confidence interval</p>\n\
         <div class=\"wide\"><table>\n<caption>Every series relative to one of them</caption>\n<thead>\n<tr>\
         <th scope=\"col\" rowspan=\"2\">{}</th><th scope=\"col\" rowspan=\"2\">series</th>\
         <th scope=\"colgroup\" colspan=\"{}\">{}</th></tr>\n<tr>",
        escape(&results.block_name),
        xs.len().max(1),
        escape(&results.x_name)
    );
    for x in &xs {
        let _ = write!(html, "<th scope=\"col\">{}</th>", view::grouped((*x).into()));
    }
    html.push_str("</tr>\n</thead>\n<tbody>\n");
    for block in view::blocks(results) {
        let mut first = true;
        for (line, (target, series)) in lines.iter().enumerate() {
            if !xs.iter().any(|&x| results.cell(target, series, &block, x).is_some()) {
                continue;
            }
            let class = if first { " class=\"block\"" } else { "" };
            let shown = if first { escape(&block) } else { String::new() };
            first = false;
            let _ = write!(
                html,
                "<tr{class} data-block=\"{}\" data-line=\"{line}\"><th scope=\"row\">{shown}</th><th scope=\"row\">{}</th>",
                escape(&block),
                escape(&labels[line])
            );
            for &x in &xs {
                let _ = write!(html, "<td data-x=\"{x}\">{}</td>", text(results, line, base, &block, x));
            }
            html.push_str("</tr>\n");
        }
    }
    html.push_str("</tbody>\n</table></div>\n</details>\n");
    html
}

/// The best series of the target that others are compared with, or the baseline of the only one.
fn default_base(results: &Results) -> Option<usize> {
    let lines = view::lines(results);
    let reference = view::reference_target(results);
    let baseline = || results.targets.iter().find_map(|target| target.baseline.clone());
    lines
        .iter()
        .position(|(target, _)| Some(target) == reference.as_ref())
        .or_else(|| lines.iter().position(|(_, series)| Some(series) == baseline().as_ref()))
        .or(if lines.is_empty() { None } else { Some(0) })
}

fn text(results: &Results, line: usize, base: usize, block: &str, x: u32) -> String {
    let lines = view::lines(results);
    let cell = |line: usize| results.cell(&lines[line].0, &lines[line].1, block, x);
    let ratio = cell(line).zip(cell(base)).and_then(|(cell, base)| results.ratio(cell, base));
    match ratio {
        None => view::MISSING.to_string(),
        Some(ratio) if ratio.samples < 2 || line == base => ratio_text(ratio.median),
        Some(ratio) => format!(
            "{} <small>{} to {}</small>",
            ratio_text(ratio.median),
            ratio_text(ratio.low),
            ratio_text(ratio.high)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::published_like;

    #[test]
    fn the_table_is_relative_to_the_reference_and_offers_every_line_as_base() {
        let html = html(&published_like(), 0);
        assert_eq!(html.matches("<option").count(), 4);
        assert!(html.contains("<option value=\"3\" selected=\"selected\">mariadb:innodb</option>"));
        assert!(html.contains("<td data-x=\"128\">3.60 <small>3.60 to 3.60</small></td>"), "{html}");
        assert!(html.contains("<td data-x=\"128\">1.00</td>"), "the base itself");
    }

    #[test]
    fn one_line_has_nothing_to_be_relative_to() {
        let mut results = published_like();
        results.cells.retain(|cell| cell.series == "innodb");
        assert_eq!(html(&results, 0), "");
    }
}
