//! The tables of a report, as rows of text: what the terminal and the HTML page both show.

use super::sentences::NULL;
use crate::results::{Cell, Results, Sample, Summary};
use crate::stats::Estimate;

/// A table: a block for each value of the block parameter, a row a series, a column an x.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Table {
    pub title: String,
    /// What the figures mean, if the title does not say it.
    pub note: String,
    /// `points`, `series`, `1`, `8`, ...
    pub columns: Vec<String>,
    /// How many columns at the left are names.
    pub names: usize,
    /// What the other columns are, for example `threads`. Empty if each is something else.
    pub across: String,
    pub rows: Vec<Vec<String>>,
    /// Indexes of the first row of each block.
    pub block_starts: Vec<usize>,
}

/// Target and series, in the order in which they were first measured.
pub(crate) fn lines(results: &Results) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for cell in &results.cells {
        let line = (cell.target.clone(), cell.series.clone());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The names of the lines, in the order of [`lines`].
pub(crate) fn labels(results: &Results) -> Vec<String> {
    lines(results).iter().map(|(target, series)| label(results, target, series)).collect()
}

/// If there is one target, the name of the series alone. If a target has one series, its name alone.
pub(crate) fn label(results: &Results, target: &str, series: &str) -> String {
    if results.targets.len() < 2 {
        return series.to_string();
    }
    let alone = !results.cells.iter().any(|cell| cell.target == target && cell.series != series);
    if alone { target.to_string() } else { format!("{target} {series}") }
}

/// In the order in which they were first measured.
pub(crate) fn blocks(results: &Results) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for cell in &results.cells {
        if !blocks.contains(&cell.block) {
            blocks.push(cell.block.clone());
        }
    }
    blocks
}

/// The tables that the experiment made of its cells.
pub(crate) fn summary_tables(results: &Results) -> Vec<Table> {
    let table = |summary: &Summary| Table {
        title: summary.title.clone(),
        note: summary.note.clone(),
        columns: summary.columns.clone(),
        names: summary.names,
        across: String::new(),
        rows: summary.rows.clone(),
        block_starts: vec![0],
    };
    results.summaries.iter().map(table).collect()
}

pub(crate) fn xs(results: &Results) -> Vec<u32> {
    distinct(results.cells.iter().map(|cell| cell.x))
}

fn distinct(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut values: Vec<u32> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// The published table: gains over the baseline, for each target that has one.
pub(crate) fn gain_tables(results: &Results) -> Vec<Table> {
    let with_baseline = results.targets.iter().filter_map(|target| Some((target, target.baseline.as_ref()?)));
    with_baseline
        .filter_map(|(target, baseline)| {
            let title =
                format!("{}: throughput gain over {}, in percent", target.name, results.baseline_name);
            let series: Vec<_> = lines(results)
                .into_iter()
                .filter(|(name, series)| *name == target.name && series != baseline)
                .map(|(target, series)| (vec![format!("{series}/{baseline}")], target, series))
                .collect();
            let note = "median of the rounds' gains; each compares samples taken side by side";
            let table = grid(results, &title, note, &["series"], &series, |cell| {
                results.gain(cell).map(|gain| percent(gain.median))
            });
            (!table.rows.is_empty()).then_some(table)
        })
        .collect()
}

/// Throughput with its spread.
pub(crate) fn absolute_table(results: &Results) -> Table {
    let samples = results.cells.iter().filter_map(Cell::estimate).map(|estimate| estimate.confidence);
    let confidence = samples.fold(f64::INFINITY, f64::min);
    let note = if confidence.is_finite() && confidence > 0.0 {
        format!("median ± half of its {:.0} % confidence interval", confidence * 100.0)
    } else {
        "single samples: no confidence interval".to_string()
    };
    every_line(results, &results.unit, &note, |cell| cell.estimate().map(with_spread))
}

/// The tables of everything else that was measured, except empty ones.
pub(crate) fn other_tables(results: &Results) -> Vec<Table> {
    type Field = fn(&Sample) -> Option<f64>;
    let query = if results.unit == "transactions/s" { "transaction" } else { "query" };
    let (server_cpu, client_cpu) =
        (format!("server CPU, microseconds a {query}"), format!("client CPU, microseconds a {query}"));
    let tables: [(&str, &str, Field); 6] = [
        ("context switches/s", "of the server's threads; embedded: of all threads", |sample| {
            sample.context_switches_per_s
        }),
        ("latch waits/s", "as the target counts them", |sample| sample.latch_waits_per_s),
        (&server_cpu, "embedded: the whole process", |sample| sample.server_cpu_us_per_query),
        (&client_cpu, "", |sample| sample.client_cpu_us_per_query),
        ("latency, 50th percentile, microseconds", "", |sample| sample.latency.map(|latency| latency.p50)),
        ("latency, 99th percentile, microseconds", "", |sample| sample.latency.map(|latency| latency.p99)),
    ];
    tables
        .into_iter()
        .map(|(title, note, field)| {
            every_line(results, title, note, |cell| cell.median_of(field).map(short_number))
        })
        .chain(
            extras(results).into_iter().map(|name| {
                every_line(results, &name, "", |cell| cell.median_extra(&name).map(short_number))
            }),
        )
        .filter(|table| table.rows.iter().any(|row| row[table.names..].iter().any(|value| value != MISSING)))
        .collect()
}

/// The names of the extras that the experiment measured, in the order in which they first came.
pub(crate) fn extras(results: &Results) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in results.cells.iter().flat_map(|cell| &cell.samples).flat_map(|sample| &sample.extra) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Each target's best series relative to the best series of a reference target: MariaDB if it is there.
pub(crate) fn comparison_table(results: &Results) -> Option<Table> {
    let reference = reference_target(results)?;
    let better = if results.lower_is_better { "how many times as fast as" } else { "as a multiple of" };
    let title = match results.lower_is_better {
        true => format!("{better} {reference}'s best series"),
        false => format!("{} {better} {reference}'s best series", results.unit),
    };
    best_against(results, &title, &reference, |ratio| format!("{ratio:.2}x"))
}

/// Each target's best series as a share of the null server's.
pub(crate) fn null_table(results: &Results) -> Option<Table> {
    results.target(NULL)?;
    let title = format!("share of null: {} as a part of the null server's, in percent", results.unit);
    best_against(results, &title, NULL, |ratio| format!("{:.0}", ratio * 100.0))
}

fn best_against(
    results: &Results,
    title: &str,
    reference: &str,
    text: impl Fn(f64) -> String,
) -> Option<Table> {
    let others: Vec<_> = results
        .targets
        .iter()
        .filter(|target| target.name != reference)
        .map(|target| (vec![target.name.clone()], target.name.clone(), String::new()))
        .collect();
    let best = |target: &str, block: &str, x: u32| {
        let cells = results
            .cells
            .iter()
            .filter(|cell| cell.target == target && cell.block == block && cell.x == x)
            .filter_map(|cell| Some(cell.estimate()?.median));
        if results.lower_is_better { cells.min_by(f64::total_cmp) } else { cells.max_by(f64::total_cmp) }
    };
    let note = "medians; the best series of each, cell by cell";
    let table = grid_by(results, title, note, &["target"], &others, |target, _, block, x| {
        let (ours, theirs) = (best(target, block, x)?, best(reference, block, x)?);
        let (ours, theirs) = if results.lower_is_better { (theirs, ours) } else { (ours, theirs) };
        (theirs > 0.0).then(|| text(ours / theirs))
    });
    (!table.rows.is_empty()).then_some(table)
}

/// The first MariaDB, else the first target that is not the null server; `None` if there is no other target.
pub(crate) fn reference_target(results: &Results) -> Option<String> {
    if results.targets.len() < 2 {
        return None;
    }
    let names = || results.targets.iter().map(|target| &target.name);
    names().find(|name| name.starts_with("mariadb:")).or_else(|| names().find(|name| *name != NULL)).cloned()
}

fn every_line(results: &Results, title: &str, note: &str, show: impl Fn(&Cell) -> Option<String>) -> Table {
    let several = results.targets.len() > 1;
    let series: Vec<_> = lines(results)
        .into_iter()
        .map(|(target, series)| {
            let names = if several { vec![target.clone(), series.clone()] } else { vec![series.clone()] };
            (names, target, series)
        })
        .collect();
    let names: &[&str] = if several { &["target", "series"] } else { &["series"] };
    grid(results, title, note, names, &series, show)
}

type Line = (Vec<String>, String, String);

pub(crate) const MISSING: &str = "-";
/// If there are more columns of figures than this, they become rows.
const COLUMNS_MAX: usize = 9;

fn grid(
    results: &Results,
    title: &str,
    note: &str,
    names: &[&str],
    series: &[Line],
    show: impl Fn(&Cell) -> Option<String>,
) -> Table {
    grid_by(results, title, note, names, series, |target, series, block, x| {
        results.cell(target, series, block, x).and_then(&show)
    })
}

fn grid_by(
    results: &Results,
    title: &str,
    note: &str,
    names: &[&str],
    series: &[Line],
    show: impl Fn(&str, &str, &str, u32) -> Option<String>,
) -> Table {
    let xs = xs(results);
    if xs.len() > COLUMNS_MAX {
        return tall_grid(results, title, note, series, &xs, show);
    }
    let mut columns = vec![results.block_name.clone()];
    columns.extend(names.iter().map(|name| name.to_string()));
    columns.extend(xs.iter().map(u32::to_string));
    let mut rows = Vec::new();
    let mut block_starts = Vec::new();
    for block in blocks(results) {
        let start = rows.len();
        for (labels, target, series) in series {
            let values: Vec<Option<String>> = xs.iter().map(|x| show(target, series, &block, *x)).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let first = if rows.len() == start { block.clone() } else { String::new() };
            let mut row = vec![first];
            row.extend(labels.iter().cloned());
            row.extend(values.into_iter().map(|value| value.unwrap_or_else(|| MISSING.to_string())));
            rows.push(row);
        }
        if rows.len() > start {
            block_starts.push(start);
        }
    }
    Table {
        title: title.to_string(),
        note: note.to_string(),
        columns,
        names: 1 + names.len(),
        across: results.x_name.clone(),
        rows,
        block_starts,
    }
}

/// The table for many x: one row an x, one column a series.
fn tall_grid(
    results: &Results,
    title: &str,
    note: &str,
    series: &[Line],
    xs: &[u32],
    show: impl Fn(&str, &str, &str, u32) -> Option<String>,
) -> Table {
    let mut columns = vec![results.block_name.clone(), results.x_name.clone()];
    columns.extend(series.iter().map(|(labels, ..)| labels.join(" ")));
    let mut rows = Vec::new();
    let mut block_starts = Vec::new();
    for block in blocks(results) {
        let start = rows.len();
        for &x in xs {
            let values: Vec<Option<String>> =
                series.iter().map(|(_, target, series)| show(target, series, &block, x)).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let first = if rows.len() == start { block.clone() } else { String::new() };
            let mut row = vec![first, grouped(x.into())];
            row.extend(values.into_iter().map(|value| value.unwrap_or_else(|| MISSING.to_string())));
            rows.push(row);
        }
        if rows.len() > start {
            block_starts.push(start);
        }
    }
    let across = "series".to_string();
    Table { title: title.to_string(), note: note.to_string(), columns, names: 2, across, rows, block_starts }
}

/// As in the published table: whole percents, one decimal below 1.
pub(crate) fn percent(value: f64) -> String {
    let text = if value.abs() < 0.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    if text == "-0.0" { "0.0".to_string() } else { text }
}

fn with_spread(estimate: Estimate) -> String {
    if estimate.samples < 2 {
        return short_number(estimate.median);
    }
    format!("{} ±{:.0}%", short_number(estimate.median), estimate.relative_spread() * 100.0)
}

/// Three significant digits below 100, whole numbers with separators above.
pub(crate) fn short_number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        0.0 => "0".to_string(),
        _ => format!("{value:.2}"),
    }
}

/// `1,234,567`.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::published_like;

    #[test]
    fn the_relative_table_has_the_published_shape() {
        let tables = gain_tables(&published_like());
        assert_eq!(tables.len(), 1);
        let table = &tables[0];
        assert_eq!(table.columns, ["points", "series", "1", "8", "128"]);
        assert_eq!(
            table.rows,
            [
                ["10", "32/off", "-0.3", "17", "71"],
                ["", "64/off", "1", "19", "80"],
                ["100", "32/off", "-0.3", "17", "71"],
                ["", "64/off", "1", "19", "80"],
            ]
        );
        assert_eq!(table.block_starts, [0, 2]);
    }

    #[test]
    fn the_comparison_takes_the_best_series_of_each() {
        let table = comparison_table(&published_like()).unwrap();
        assert!(table.title.contains("mariadb:innodb"));
        assert_eq!(table.rows[0], ["10", "embedded", "2.02x", "2.38x", "3.60x"]);
        let mut alone = published_like();
        alone.targets.truncate(1);
        assert_eq!(comparison_table(&alone), None);
    }

    #[test]
    fn figures_are_told_as_shares_of_the_null_server() {
        let mut results = published_like();
        assert_eq!(null_table(&results), None);
        results.targets[1].name = NULL.to_string();
        for cell in results.cells.iter_mut().filter(|cell| cell.target != "embedded") {
            cell.target = NULL.to_string();
            cell.samples.iter_mut().for_each(|sample| sample.value *= 4.0);
        }
        assert_eq!(null_table(&results).unwrap().rows[0], ["10", "embedded", "50", "60", "90"]);
    }

    #[test]
    fn absolute_figures_carry_their_spread() {
        let table = absolute_table(&published_like());
        assert_eq!(table.columns[..3], ["points", "target", "series"]);
        assert_eq!(table.rows[0][3], "10,100 ±1%");
        assert!(table.note.contains("75 %"));
    }

    #[test]
    fn tables_of_what_nobody_measured_are_left_out() {
        let titles: Vec<String> =
            other_tables(&published_like()).into_iter().map(|table| table.title).collect();
        assert_eq!(titles, ["context switches/s"]);
    }

    #[test]
    fn a_run_that_was_cut_short_shows_what_there_is() {
        let mut results = published_like();
        for cell in &mut results.cells {
            if cell.x == 128 || cell.block == "100" {
                cell.samples.clear();
            }
        }
        let table = &gain_tables(&results)[0];
        assert_eq!(table.rows, [["10", "32/off", "-0.3", "17", "-"], ["", "64/off", "1", "19", "-"]]);
        results.cells.clear();
        assert!(gain_tables(&results).is_empty());
        assert!(absolute_table(&results).rows.is_empty());
    }

    #[test]
    fn many_columns_become_rows() {
        let mut results = published_like();
        let cell = results.cells[0].clone();
        for x in 1_000..1_010 {
            results.cells.push(Cell { x, ..cell.clone() });
        }
        let table = absolute_table(&results);
        assert_eq!(table.columns[..4], ["points", "threads", "embedded off", "embedded 32"]);
        assert_eq!((table.names, table.across.as_str()), (2, "series"));
        assert_eq!(table.rows[0][..3], ["10", "1", "10,100 ±1%"]);
        assert_eq!(table.rows[3][..4], ["", "1,000", "10,100 ±1%", MISSING]);
        assert_eq!(table.block_starts, [0, 13]);
    }

    #[test]
    fn extras_have_a_table_each_and_summaries_come_as_they_are() {
        let mut results = published_like();
        results.cells[0].samples[0].extra.push(("reads a lookup".to_string(), 0.5));
        let summary = Summary {
            title: "held".to_string(),
            note: String::new(),
            columns: vec!["series".to_string(), "keys".to_string()],
            names: 1,
            rows: vec![vec!["off".to_string(), "7".to_string()]],
        };
        results.summaries.push(summary);
        let extra = other_tables(&results).pop().unwrap();
        assert_eq!((extra.title.as_str(), extra.rows[0][3].as_str()), ("reads a lookup", "0.50"));
        assert_eq!(summary_tables(&results)[0].rows, [["off", "7"]]);
    }

    #[test]
    fn numbers_are_grouped_and_percents_rounded_as_published() {
        assert_eq!(grouped(1_234_567.4), "1,234,567");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(percent(-0.26), "-0.3");
        assert_eq!(percent(-0.01), "0.0");
        assert_eq!(percent(236.6), "237");
    }
}
