//! A comparison as text and as JSON.

use super::{CONFIDENCE, Compared, Comparison, Verdict};
use crate::json::Json;
use crate::report::text::table_text;
use crate::report::view::{self, Table};
use crate::results::Results;

/// If one side has more cells than this, they are counted and not named.
const NAMES_MAX: usize = 10;

pub(crate) fn text(comparison: &Comparison, new: &Results) -> String {
    let mut text = String::new();
    for warning in &comparison.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&table_text(&table(comparison, new)));
    for (which, names) in [("old", &comparison.only_old), ("new", &comparison.only_new)] {
        if !names.is_empty() {
            let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join("; ");
            let more = names.len().saturating_sub(NAMES_MAX);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            text.push_str(&format!("\nonly in the {which} run: {shown}{more}\n"));
        }
    }
    text.push_str(&format!("\n{}\n", counts(comparison)));
    text
}

fn table(comparison: &Comparison, new: &Results) -> Table {
    let columns = ["target", "series", &new.block_name, &new.x_name, "old", "new", "ratio", "verdict"];
    let mut block_starts = Vec::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut line = None;
    for cell in &comparison.cells {
        let own = (&cell.target, &cell.series);
        if line != Some(own) {
            block_starts.push(rows.len());
        }
        line = Some(own);
        rows.push(row(cell));
    }
    Table {
        title: format!("{}: {}, old and new", new.experiment, new.unit),
        note: format!(
            "medians; ratio of geometric means, its {:.0} % interval by Welch's method on logarithms",
            CONFIDENCE * 100.0
        ),
        columns: columns.map(str::to_string).to_vec(),
        names: 2,
        across: String::new(),
        rows,
        block_starts,
    }
}

fn row(cell: &Compared) -> Vec<String> {
    let (ratio, verdict) = match &cell.ratio {
        Some(ratio) => (format!("{:.3}", ratio.ratio), ratio.in_words()),
        None => (view::MISSING.to_string(), "not to be compared".to_string()),
    };
    let figure =
        |value: f64| if value.is_nan() { view::MISSING.to_string() } else { view::short_number(value) };
    vec![
        cell.target.clone(),
        cell.series.clone(),
        cell.block.clone(),
        cell.x.to_string(),
        figure(cell.old),
        figure(cell.new),
        ratio,
        verdict,
    ]
}

fn counts(comparison: &Comparison) -> String {
    let count = |verdict: Verdict| comparison.count(verdict);
    format!(
        "of {} cells {} faster, {} slower, {} without a difference to be told",
        comparison.cells.len(),
        count(Verdict::Faster),
        count(Verdict::Slower),
        count(Verdict::NoDifference)
    )
}

pub(crate) fn json(comparison: &Comparison, new: &Results) -> Json {
    let names = |names: &[String]| Json::list(names.iter().map(String::as_str));
    let cells = comparison.cells.iter().map(|cell| {
        let interval = cell.ratio.and_then(|ratio| ratio.interval);
        Json::object([
            ("target", cell.target.as_str().into()),
            ("series", cell.series.as_str().into()),
            ("block", cell.block.as_str().into()),
            ("x", cell.x.into()),
            ("old_median", cell.old.into()),
            ("new_median", cell.new.into()),
            ("ratio", cell.ratio.map(|ratio| ratio.ratio).into()),
            ("low", interval.map(|(low, _)| low).into()),
            ("high", interval.map(|(_, high)| high).into()),
            ("verdict", cell.ratio.map(|ratio| ratio.verdict().name()).into()),
            ("in_words", cell.ratio.map(|ratio| ratio.in_words()).into()),
        ])
    });
    Json::object([
        ("experiment", new.experiment.as_str().into()),
        ("unit", new.unit.as_str().into()),
        ("confidence", CONFIDENCE.into()),
        ("warnings", names(&comparison.warnings)),
        ("cells", Json::List(cells.collect())),
        ("only_in_old", names(&comparison.only_old)),
        ("only_in_new", names(&comparison.only_new)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::published_like;

    #[test]
    fn the_table_and_the_json_tell_the_same() {
        let (old, mut new) = (published_like(), published_like());
        for sample in new.cells.iter_mut().filter(|cell| cell.x == 8).flat_map(|cell| &mut cell.samples) {
            sample.value *= 1.5;
        }
        new.cells[0].samples[0].value = 0.0;
        let comparison = Comparison::of(&old, &new);
        let text = text(&comparison, &new);
        assert!(text.contains("faster by 50 % (47 to 53)"), "{text}");
        assert!(text.contains("not to be compared"));
        assert!(
            text.ends_with("of 24 cells 8 faster, 0 slower, 15 without a difference to be told\n"),
            "{text}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&json(&comparison, &new).to_pretty()).expect("it is JSON");
        assert_eq!(json["cells"].as_array().unwrap().len(), 24);
        assert_eq!(json["cells"][1]["in_words"], "faster by 50 % (47 to 53)");
        assert!(json["cells"][0]["ratio"].is_null());
    }
}
