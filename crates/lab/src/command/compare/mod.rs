//! `lab compare`: what changed between two runs, cell by cell.
//!
//! The runs were not measured in turns, so their samples are independent, and a change of the machine between
//! the runs changes the ratio. So differences in machine and settings are listed first.

mod ratio;
mod show;

pub(crate) use ratio::{CONFIDENCE, Ratio, Verdict};

use crate::arguments;
use crate::error::{Error, Result};
use crate::report;
use crate::report::{Format, print};
use crate::results::{Cell, Results};
use std::process::ExitCode;

pub(crate) const HELP: &str = "\
latchwork lab compare OLD NEW [--format table|json]

Compares two results (result.json of `lab run`, or its folder): for each cell that both have, how many times as good the
new figure is, with its 95 % interval, and a verdict in words. Warns where machine, settings or targets differ, and names
the cells that only one of them has.

The ratio is that of the geometric means; its interval is Welch's on logarithms, for two independent sets of samples
whose spreads may differ. With seconds, less is faster. `no difference to be told` means that the interval contains 1, or
that the ratio is within 1 % of it. It does not mean that there is no difference. If there is no difference in any of twenty
cells, one of them is expected to show one all the same.

Exit status
  0  no cell is slower
  1  a file cannot be read or holds no results, or the two have no cell in common
  2  the command line is wrong
  3  at least one cell is slower
";

/// A cell is slower.
const EXIT_SLOWER: u8 = 3;

/// What changed between two runs.
pub(crate) struct Comparison {
    /// Sentences about what differs besides the figures.
    pub warnings: Vec<String>,
    pub cells: Vec<Compared>,
    /// Names of cells that the other run does not have.
    pub only_old: Vec<String>,
    pub only_new: Vec<String>,
}

/// A cell of both runs.
pub(crate) struct Compared {
    pub target: String,
    pub series: String,
    pub block: String,
    pub x: u32,
    pub old: f64,
    pub new: f64,
    /// `None` if a figure is zero, or nothing was measured.
    pub ratio: Option<Ratio>,
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let mut format = Format::Table;
    let files = arguments::read_with_files(args, &["--format"], &[], |_, value| {
        format = arguments::format(value)?;
        Ok(())
    });
    let files = files.map_err(Error::Usage)?;
    let [old, new] = &files[..] else {
        return Err(Error::Usage("`compare` needs two results, the old one and the new one".to_string()));
    };
    let paths = [old, new].map(report::json_path);
    let (old, new) = (Results::load(&paths[0])?, Results::load(&paths[1])?);
    let comparison = Comparison::of(&old, &new);
    if comparison.cells.is_empty() {
        let [path, other] = paths;
        let why = format!("it has no cell in common with {}", other.display());
        return Err(Error::NoResults { path, why });
    }
    print(&match format {
        Format::Table => show::text(&comparison, &new),
        Format::Json => show::json(&comparison, &new).to_pretty(),
    })?;
    Ok(if comparison.count(Verdict::Slower) > 0 { ExitCode::from(EXIT_SLOWER) } else { ExitCode::SUCCESS })
}

impl Comparison {
    pub(crate) fn of(old: &Results, new: &Results) -> Comparison {
        let twin = |results: &'_ Results, cell: &Cell| {
            results.cell(&cell.target, &cell.series, &cell.block, cell.x).is_some()
        };
        // Figures in different units cannot be compared.
        let alike = old.experiment == new.experiment && old.unit == new.unit;
        let only = |cells: &[Cell], other: &Results| {
            cells.iter().filter(|cell| !alike || !twin(other, cell)).map(name).collect()
        };
        let cells = new.cells.iter().filter(|_| alike).filter_map(|cell| {
            let before = old.cell(&cell.target, &cell.series, &cell.block, cell.x)?;
            Some(compared(before, cell, new.lower_is_better))
        });
        Comparison {
            warnings: warnings(old, new),
            cells: cells.collect(),
            only_old: only(&old.cells, new),
            only_new: only(&new.cells, old),
        }
    }

    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        let verdicts = self.cells.iter().filter_map(|cell| cell.ratio).map(|ratio| ratio.verdict());
        verdicts.filter(|found| *found == verdict).count()
    }
}

fn compared(old: &Cell, new: &Cell, lower_is_better: bool) -> Compared {
    let values = |cell: &Cell| cell.samples.iter().map(|sample| sample.value).collect::<Vec<_>>();
    let median = |cell: &Cell| cell.estimate().map_or(f64::NAN, |estimate| estimate.median);
    let ratio = Ratio::of(&values(old), &values(new));
    Compared {
        target: new.target.clone(),
        series: new.series.clone(),
        block: new.block.clone(),
        x: new.x,
        old: median(old),
        new: median(new),
        ratio: if lower_is_better { ratio.map(Ratio::inverse) } else { ratio },
    }
}

fn name(cell: &Cell) -> String {
    format!("{} {}, {}, {}", cell.target, cell.series, cell.block, cell.x)
}

/// Facts that differ between any two runs, so they say nothing.
const PASSING: [&str; 2] = ["load averages", "memory available"];

fn warnings(old: &Results, new: &Results) -> Vec<String> {
    let mut warnings = Vec::new();
    if (&old.experiment, &old.unit) != (&new.experiment, &new.unit) {
        warnings.push(format!(
            "these are different experiments: {} in {}, and {} in {}",
            old.experiment, old.unit, new.experiment, new.unit
        ));
        return warnings;
    }
    for (results, which) in [(old, "old"), (new, "new")] {
        if !results.complete {
            warnings.push(format!("the {which} run did not reach its end"));
        }
    }
    warnings.extend(differences("machine", &old.machine, &new.machine));
    warnings.extend(differences("setting", &old.settings, &new.settings));
    for target in &new.targets {
        if let Some(before) = old.target(&target.name) {
            warnings.extend(differences(&target.name, &before.facts, &target.facts));
        }
    }
    warnings
}

fn differences(kind: &str, old: &[(String, String)], new: &[(String, String)]) -> Vec<String> {
    let value = |facts: &[(String, String)], name: &str| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.map_or("nothing", |(_, value)| value.as_str()).to_string()
    };
    let mut names: Vec<&String> = old.iter().chain(new).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    let told = names.into_iter().filter(|name| !PASSING.contains(&name.as_str())).filter_map(|name| {
        let (before, after) = (value(old, name), value(new, name));
        (before != after).then(|| format!("{kind}: {name} was {before}, is {after}"))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::published_like;

    fn faster(factor: f64) -> Results {
        let mut results = published_like();
        for sample in results.cells.iter_mut().flat_map(|cell| &mut cell.samples) {
            sample.value *= factor;
        }
        results
    }

    #[test]
    fn every_cell_is_compared_and_the_verdicts_are_counted() {
        let comparison = Comparison::of(&published_like(), &faster(1.2));
        assert_eq!(comparison.cells.len(), 24);
        assert_eq!(comparison.count(Verdict::Faster), 24);
        assert!((comparison.cells[0].ratio.unwrap().ratio - 1.2).abs() < 1e-9);
        assert!(comparison.warnings.is_empty() && comparison.only_old.is_empty());
        assert_eq!(Comparison::of(&faster(1.2), &published_like()).count(Verdict::Slower), 24);
        let same = Comparison::of(&published_like(), &published_like());
        assert_eq!(same.count(Verdict::NoDifference), 24);
    }

    #[test]
    fn less_is_faster_with_seconds() {
        let (mut old, mut new) = (published_like(), faster(1.2));
        (old.lower_is_better, new.lower_is_better) = (true, true);
        assert_eq!(Comparison::of(&old, &new).count(Verdict::Slower), 24);
    }

    #[test]
    fn what_differs_is_said_and_what_only_one_has_is_named() {
        let (old, mut new) = (published_like(), published_like());
        new.machine[0].1 = "another".to_string();
        new.settings.push(("seed".to_string(), "7".to_string()));
        new.targets[1].facts[0].1 = "11.4".to_string();
        new.complete = false;
        let gone = new.cells.remove(0);
        new.cells.push(Cell { x: 256, ..gone });
        let comparison = Comparison::of(&old, &new);
        assert_eq!(
            comparison.warnings,
            [
                "the new run did not reach its end",
                "machine: processor was a \"test\" <cpu>, is another",
                "setting: seed was nothing, is 7",
                "mariadb:innodb: version was 10.11, is 11.4",
            ]
        );
        assert_eq!(comparison.only_old, ["embedded off, 10, 1"]);
        assert_eq!(comparison.only_new, ["embedded off, 10, 256"]);
        assert_eq!(comparison.cells.len(), 23);
    }

    #[test]
    fn different_experiments_have_nothing_in_common() {
        let (old, mut new) = (published_like(), published_like());
        new.unit = "rows/s".to_string();
        let comparison = Comparison::of(&old, &new);
        assert!(comparison.cells.is_empty() && comparison.only_old.len() == 24);
        assert!(comparison.warnings[0].contains("different experiments"));
    }
}
