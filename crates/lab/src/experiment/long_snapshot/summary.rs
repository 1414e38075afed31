//! A row for each target and distribution: how it began, how it ended, and what came back.

use super::costs::FILES;
use super::reader::{FULL_READ, GIVEN_UP};
use super::{HELD, SNAPSHOT};
use crate::measure::MEMORY;
use crate::report::view::{self, MISSING, short_number};
use crate::results::{Cell, Results, Summary};

/// The first and the last share of the samples are what a run began and ended with.
const SHARE: usize = 10;
const COLUMNS: [&str; 14] = [
    "target",
    "keys",
    "updates/s at first",
    "at last",
    "lowest",
    "after it",
    "p99 ms at last",
    "MiB at first",
    "most MiB",
    "after it",
    "files MiB at last",
    "after it",
    "first read s",
    "last read s",
];

pub(crate) fn summaries(results: &Results) -> Vec<Summary> {
    let mut rows = Vec::new();
    for (target, series) in view::lines(results) {
        let cells = || results.cells.iter().filter(|cell| cell.target == target && cell.series == series);
        let is_held =
            |cell: &&Cell| cell.parameters.iter().any(|(name, value)| name == SNAPSHOT && value == HELD);
        let held: Vec<&Cell> = cells().filter(is_held).collect();
        let after: Vec<&Cell> = cells().filter(|cell| !is_held(cell)).collect();
        let tenth = held.len().div_ceil(SHARE);
        let (first, last) = (&held[..tenth], &held[held.len() - tenth..]);
        let closed = &after[after.len() - after.len().div_ceil(SHARE)..];
        let p99 = |cell: &Cell| cell.median_of(|sample| sample.latency.map(|latency| latency.p99 / 1_000.0));
        let memory = |cell: &Cell| cell.median_extra(MEMORY);
        let files = |cell: &Cell| cell.median_extra(FILES);
        let reads: Vec<f64> = held.iter().filter_map(|cell| cell.median_extra(FULL_READ)).collect();
        let figures = [
            mean(first, rate),
            mean(last, rate),
            held.iter().filter_map(|cell| rate(cell)).min_by(f64::total_cmp),
            mean(closed, rate),
            mean(last, p99),
            mean(&held[..tenth.min(1)], memory),
            cells().filter_map(memory).max_by(f64::total_cmp),
            mean(&after[after.len().saturating_sub(1)..], memory),
            mean(&held[held.len().saturating_sub(1)..], files),
            mean(&after[after.len().saturating_sub(1)..], files),
        ];
        let mut row = vec![target.clone(), series.clone()];
        row.extend(figures.map(|figure| figure.map_or(MISSING.to_string(), short_number)));
        let seconds = |read: Option<&f64>| read.map_or(MISSING.to_string(), |read| format!("{read:.3}"));
        let is_cut = held.last().is_some_and(|cell| cell.median_extra(GIVEN_UP).is_some());
        let cut = if is_cut { "> " } else { "" };
        row.extend([seconds(reads.first()), format!("{cut}{}", seconds(reads.last()))]);
        rows.push(row);
    }
    let note = "first and last: the mean of a tenth of the time in which the snapshot was held, and of the time after \
                it; MiB: resident memory of the server; reads: of all rows, as the snapshot has them, before the updates \
                and when they had stopped";
    vec![Summary {
        title: "with the snapshot, and after it".to_string(),
        note: note.to_string(),
        columns: COLUMNS.map(str::to_string).to_vec(),
        names: 2,
        rows,
    }]
}

fn rate(cell: &Cell) -> Option<f64> {
    cell.estimate().map(|estimate| estimate.median)
}

fn mean(cells: &[&Cell], figure: impl Fn(&Cell) -> Option<f64>) -> Option<f64> {
    let figures: Vec<f64> = cells.iter().filter_map(|cell| figure(cell)).collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::LongSnapshot;
    use super::*;
    use crate::doctor::Plan;
    use crate::experiment::frame;
    use crate::results::{Latency, Sample};

    #[test]
    fn a_row_tells_how_a_run_began_and_ended_and_what_is_left() {
        let plan = Plan { threads_max: 1, memory_bytes: 0, disk_bytes: 0, scratch: std::env::temp_dir() };
        let mut results = frame::blank(&LongSnapshot, &[], &[], &plan);
        for x in 1..=25u32 {
            let snapshot = if x <= 20 { HELD } else { "closed" };
            let parameters = vec![(SNAPSHOT, snapshot.to_string())];
            let mut sample = Sample {
                value: f64::from(1_000 - x),
                latency: Some(Latency { p99: 2_000.0, ..Latency::default() }),
                extra: vec![(MEMORY.to_string(), f64::from(x)), (FILES.to_string(), f64::from(100 - x))],
                ..Sample::default()
            };
            if x % 10 == 0 {
                sample.extra.push((FULL_READ.to_string(), f64::from(x)));
            }
            results.add(Cell::new("latchwork", "uniform", "8", x, parameters).with(sample));
        }
        let expected = [
            "latchwork",
            "uniform",
            "998",
            "980",
            "980",
            "975",
            "2.00",
            "1.00",
            "25.0",
            "25.0",
            "80.0",
            "75.0",
            "10.000",
            "20.000",
        ];
        // (999 + 998) / 2 and (981 + 980) / 2.
        assert_eq!(summaries(&results)[0].rows, [expected]);
        let last = results.cell_mut("latchwork", "uniform", "8", 20).unwrap();
        last.samples[0].extra.push((GIVEN_UP.to_string(), 1.0));
        assert_eq!(summaries(&results)[0].rows[0][13], "> 20.000");
        results.cells.truncate(1);
        assert_eq!(summaries(&results)[0].rows[0][5], MISSING);
        results.cells.clear();
        assert!(summaries(&results)[0].rows.is_empty());
    }
}
