//! The results of a run in sentences: which target is ahead, by what ratio and where; where Latchwork is
//! behind; and what share of the null server's figures each target reaches. All ratios compare samples of the
//! same round.

use super::view;
use crate::results::{Cell, Results};
use crate::stats::Estimate;

/// If there are more rivals than this, only the closest and the last are named.
const RIVALS_MAX: usize = 4;
/// If there are more positions than this, they are counted and not named.
const POSITIONS_MAX: usize = 5;
/// The target that answers with constant rows.
pub(crate) const NULL: &str = "null";

/// A block and an x, where contenders are compared. The sentences call it a place.
#[derive(Clone, PartialEq, Debug)]
struct GridPosition {
    block: String,
    x: u32,
}

/// A target, represented at each position by its best series. If there is only one target, the contenders are
/// its series.
struct Contender {
    name: String,
    lines: Vec<(String, String)>,
}

impl Contender {
    /// True for targets of this project, false for those that it is compared with.
    fn is_ours(&self) -> bool {
        ["latchwork", "embedded"].iter().any(|own| self.name.starts_with(own))
    }

    fn best<'a>(&self, results: &'a Results, position: &GridPosition) -> Option<&'a Cell> {
        best_of(results, &self.lines, position)
    }
}

/// The sentences, the most important first. There are none if nothing can be compared.
pub(crate) fn summary(results: &Results) -> Vec<String> {
    let contenders = contenders(results);
    let mut sentences = leader(results, &contenders);
    sentences.extend(behind(results, &contenders));
    sentences.extend(shares_of_null(results));
    sentences.extend(baselines(results));
    if !sentences.is_empty() {
        sentences.push(confidence(results));
    }
    sentences
}

/// The index in [`view::lines`] of the line that is furthest behind, if there are enough lines to leave one
/// out.
pub(crate) fn worst_line(results: &Results) -> Option<usize> {
    let lines = view::lines(results);
    let alone: Vec<Contender> = lines
        .iter()
        .filter(|(target, _)| target != NULL)
        .map(|line| Contender { name: String::new(), lines: vec![line.clone()] })
        .collect();
    let scores = scores(results, &alone);
    let worst = scores.iter().enumerate().filter_map(|(at, score)| Some((at, (*score)?)));
    let (worst, _) = worst.min_by(|left, right| left.1.total_cmp(&right.1)).filter(|_| alone.len() > 2)?;
    lines.iter().position(|line| *line == alone[worst].lines[0])
}

fn contenders(results: &Results) -> Vec<Contender> {
    let targets = targets(results);
    let [only] = &targets[..] else {
        return targets;
    };
    let series = only.lines.iter();
    series.map(|line| Contender { name: line.1.clone(), lines: vec![line.clone()] }).collect()
}

fn targets(results: &Results) -> Vec<Contender> {
    let lines = view::lines(results);
    let names = results.targets.iter().map(|target| &target.name).filter(|name| *name != NULL);
    let own = |name: &String| lines.iter().filter(|(target, _)| target == name).cloned().collect();
    names.map(|name| Contender { name: name.clone(), lines: own(name) }).collect()
}

fn positions(results: &Results) -> Vec<GridPosition> {
    let mut positions = Vec::new();
    for cell in &results.cells {
        let position = GridPosition { block: cell.block.clone(), x: cell.x };
        if !positions.contains(&position) {
            positions.push(position);
        }
    }
    positions
}

fn best_of<'a>(
    results: &'a Results,
    lines: &[(String, String)],
    position: &GridPosition,
) -> Option<&'a Cell> {
    let cells =
        lines.iter().filter_map(|(target, series)| results.cell(target, series, &position.block, position.x));
    let measured = cells.filter_map(|cell| Some((cell, worth(results, cell)?)));
    measured.max_by(|left, right| left.1.total_cmp(&right.1)).map(|(cell, _)| cell)
}

/// The median as a number of which more is better, whatever the unit. `None` if it has no logarithm.
fn worth(results: &Results, cell: &Cell) -> Option<f64> {
    let median = cell.estimate()?.median;
    let worth = if results.lower_is_better { median.recip() } else { median };
    (worth > 0.0 && worth.is_finite()).then_some(worth)
}

/// How far each contender is above the others (below, if negative): the mean logarithm of its share of the
/// positions' geometric means.
fn scores(results: &Results, contenders: &[Contender]) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0u32); contenders.len()];
    for position in positions(results) {
        let logs: Vec<Option<f64>> = contenders
            .iter()
            .map(|contender| worth(results, contender.best(results, &position)?).map(f64::ln))
            .collect();
        let known: Vec<f64> = logs.iter().flatten().copied().collect();
        if known.len() < 2 {
            continue;
        }
        let middle = known.iter().sum::<f64>() / known.len() as f64;
        for (sum, log) in sums.iter_mut().zip(logs) {
            if let Some(log) = log {
                *sum = (sum.0 + log - middle, sum.1 + 1);
            }
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
}

/// Which contender is first in how many positions, and by how much over the others.
fn leader(results: &Results, contenders: &[Contender]) -> Vec<String> {
    let mut wins = vec![0usize; contenders.len()];
    let mut met = 0;
    for position in positions(results) {
        let worths: Vec<(usize, f64)> = contenders
            .iter()
            .enumerate()
            .filter_map(|(at, contender)| Some((at, worth(results, contender.best(results, &position)?)?)))
            .collect();
        if worths.len() > 1 {
            let first = worths.into_iter().max_by(|left, right| left.1.total_cmp(&right.1));
            first.into_iter().for_each(|(at, _)| wins[at] += 1);
            met += 1;
        }
    }
    let scores = scores(results, contenders);
    let mut order: Vec<usize> = (0..contenders.len()).filter(|at| scores[*at].is_some()).collect();
    order.sort_by(|left, right| {
        wins[*right]
            .cmp(&wins[*left])
            .then(scores[*right].partial_cmp(&scores[*left]).expect("scores are finite"))
    });
    let Some((&first, rivals)) = order.split_first() else {
        return Vec::new();
    };
    let name = &contenders[first].name;
    let mut sentences = vec![format!("{name} is {} in {} of {met} places.", ahead(results), wins[first])];
    let mut rivals = rivals.to_vec();
    rivals.sort_by(|left, right| scores[*right].partial_cmp(&scores[*left]).expect("scores are finite"));
    if rivals.len() > RIVALS_MAX {
        rivals = vec![rivals[0], rivals[rivals.len() - 1]];
    }
    for rival in rivals {
        let rival = &contenders[rival];
        if let Some(over) = over(results, &contenders[first], |position| rival.best(results, position)) {
            let times = match results.lower_is_better {
                true => "times as fast".to_string(),
                false => format!("times the {}", results.unit),
            };
            sentences.push(format!(
                "{name} against {}: {}.",
                rival.name,
                over.in_words(results, ratio_text, &times)
            ));
        }
    }
    sentences
}

fn ahead(results: &Results) -> &'static str {
    if results.lower_is_better || results.unit.ends_with("/s") { "the fastest" } else { "the best" }
}

/// A ratio over all positions that two contenders share.
struct Over {
    /// Of each round's geometric mean over the positions.
    whole: Estimate,
    positions: usize,
    least: (GridPosition, Estimate),
    most: (GridPosition, Estimate),
}

impl Over {
    /// `what` is what the ratio is of: `times the queries/s`.
    fn in_words(&self, results: &Results, number: impl Fn(f64) -> String, what: &str) -> String {
        let whole = format!("{} {what}{}", number(self.whole.median), interval(&self.whole, &number));
        if self.positions == 1 {
            return whole;
        }
        let end = |(position, ratio): &(GridPosition, Estimate)| {
            format!("{} at {}", with_interval(ratio, &number), position_text(results, position))
        };
        let (least, most) = (end(&self.least), end(&self.most));
        format!("{whole}, taken over {} places; the least {least}, the most {most}", self.positions)
    }
}

fn over<'a>(
    results: &'a Results,
    ours: &Contender,
    base: impl Fn(&GridPosition) -> Option<&'a Cell>,
) -> Option<Over> {
    let mut ratios = Vec::new();
    for position in positions(results) {
        let Some((cell, base)) = ours.best(results, &position).zip(base(&position)) else { continue };
        if let Some(ratio) = results.ratio(cell, base).filter(|ratio| ratio.median > 0.0) {
            ratios.push((position, cell, base, ratio));
        }
    }
    let by_median = |left: &&(GridPosition, &Cell, &Cell, Estimate),
                     right: &&(GridPosition, &Cell, &Cell, Estimate)| {
        left.3.median.total_cmp(&right.3.median)
    };
    let least = ratios.iter().min_by(by_median)?;
    let most = ratios.iter().max_by(by_median)?;
    let mut rounds: Vec<u32> =
        ratios.iter().flat_map(|(_, cell, ..)| &cell.samples).map(|s| s.round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let mean_of_round = |round: &u32| {
        let one = |cell: &Cell| Cell {
            samples: cell.samples.iter().filter(|sample| sample.round == *round).cloned().collect(),
            ..cell.clone()
        };
        let logs: Option<Vec<f64>> = ratios
            .iter()
            .map(|(_, cell, base, _)| results.ratio(&one(cell), &one(base)).map(|ratio| ratio.median.ln()))
            .collect();
        // A round that was cut short would have other positions in its mean.
        logs.map(|logs| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    let means: Vec<f64> = rounds.iter().filter_map(mean_of_round).collect();
    Some(Over {
        whole: Estimate::of(&means)?,
        positions: ratios.len(),
        least: (least.0.clone(), least.3),
        most: (most.0.clone(), most.3),
    })
}

/// The positions at which the best of Latchwork is behind the best of the others, and those at which the two
/// cannot be told apart.
fn behind(results: &Results, contenders: &[Contender]) -> Vec<String> {
    let (ours, others): (Vec<&Contender>, Vec<&Contender>) =
        contenders.iter().partition(|contender| contender.is_ours());
    if ours.is_empty() || others.is_empty() {
        return Vec::new();
    }
    let lines =
        |side: &[&Contender]| side.iter().flat_map(|contender| contender.lines.clone()).collect::<Vec<_>>();
    let (ours, others) = (lines(&ours), lines(&others));
    let (mut lost, mut even, mut met) = (Vec::new(), Vec::new(), 0);
    for position in positions(results) {
        let pair = best_of(results, &ours, &position).zip(best_of(results, &others, &position));
        let Some((own, other)) = pair else { continue };
        let Some(ratio) = results.ratio(own, other) else { continue };
        met += 1;
        let text = format!(
            "{} times {} at {}",
            with_interval(&ratio, ratio_text),
            view::label(results, &other.target, &other.series),
            position_text(results, &position)
        );
        if ratio.high < 1.0 {
            lost.push(text);
        } else if ratio.low <= 1.0 {
            even.push(text);
        }
    }
    let mut sentences = Vec::new();
    match (lost.len(), met) {
        (_, 0) => {}
        (0, _) => sentences.push(format!("Latchwork is behind in none of {met} places.")),
        (count, _) => {
            sentences.push(format!("Latchwork is behind in {count} of {met} places: {}.", named(lost)));
        }
    }
    if !even.is_empty() {
        sentences.push(format!("No difference can be told in {}: {}.", even.len(), named(even)));
    }
    sentences
}

fn named(mut positions: Vec<String>) -> String {
    let more = positions.len().saturating_sub(POSITIONS_MAX);
    positions.truncate(POSITIONS_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    positions.join("; ") + &more
}

fn shares_of_null(results: &Results) -> Vec<String> {
    let null: Vec<(String, String)> =
        view::lines(results).into_iter().filter(|(target, _)| target == NULL).collect();
    let share = |contender: &Contender| {
        let over = over(results, contender, |position| best_of(results, &null, position))?;
        let share = |ratio: f64| format!("{:.0} %", ratio * 100.0);
        let what = format!("of the null server's {}", results.unit);
        Some(format!("{} reaches {}.", contender.name, over.in_words(results, share, &what)))
    };
    targets(results).iter().filter_map(share).collect()
}

/// The largest and the smallest gain that each target's series have over its baseline.
fn baselines(results: &Results) -> Vec<String> {
    let mut sentences = Vec::new();
    for target in &results.targets {
        let gains = results.cells.iter().filter(|cell| cell.target == target.name);
        let gains: Vec<(&Cell, Estimate)> =
            gains.filter_map(|cell| Some((cell, results.gain(cell)?))).collect();
        let by_gain =
            |left: &&(&Cell, Estimate), right: &&(&Cell, Estimate)| left.1.median.total_cmp(&right.1.median);
        let (Some(most), Some(least)) = (gains.iter().max_by(by_gain), gains.iter().min_by(by_gain)) else {
            continue;
        };
        let told = |(cell, gain): &(&Cell, Estimate)| {
            let position = GridPosition { block: cell.block.clone(), x: cell.x };
            let gain = with_interval(gain, |gain| format!("{} %", view::percent(gain)));
            format!("{gain} ({}, {})", cell.series, position_text(results, &position))
        };
        sentences.push(format!(
            "{}: over {}, the most gained is {}, the least {}.",
            target.name,
            results.baseline_name,
            told(most),
            told(least)
        ));
    }
    sentences
}

fn confidence(results: &Results) -> String {
    let confidences = results.cells.iter().filter_map(Cell::estimate).map(|estimate| estimate.confidence);
    let confidence = confidences.fold(f64::INFINITY, f64::min);
    if confidence > 0.0 && confidence.is_finite() {
        let percent = (confidence * 100.0).floor();
        format!(
            "In parentheses: intervals that hold the median with a confidence of {percent:.0} %. A place is one \
             column of one block of the tables; ratios compare samples of the same round."
        )
    } else {
        "There is one sample a cell: no interval can be told, and none of these figures should be relied on."
            .to_string()
    }
}

fn with_interval(estimate: &Estimate, number: impl Fn(f64) -> String) -> String {
    number(estimate.median) + &interval(estimate, number)
}

/// ` (2.30 to 2.50)`; nothing for a single sample.
fn interval(estimate: &Estimate, number: impl Fn(f64) -> String) -> String {
    if estimate.samples < 2 {
        return String::new();
    }
    format!(" ({} to {})", number(estimate.low), number(estimate.high))
}

/// Of a ratio in a table or a sentence.
pub(crate) fn ratio_text(ratio: f64) -> String {
    format!("{ratio:.2}")
}

fn position_text(results: &Results, position: &GridPosition) -> String {
    let x = format!("{} {}", results.x_name, view::grouped(position.x.into()));
    if view::blocks(results).len() < 2 {
        x
    } else {
        format!("{x}, {} {}", results.block_name, position.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::TargetInfo;
    use crate::results::tests::published_like;

    #[test]
    fn the_leader_is_told_with_its_ratios_and_where_they_are_least_and_most() {
        let sentences = summary(&published_like());
        assert_eq!(sentences[0], "embedded is the fastest in 6 of 6 places.");
        assert!(
            sentences[1]
                .starts_with("embedded against mariadb:innodb: 2.59 times the queries/s (2.59 to 2.59)"),
            "{}",
            sentences[1]
        );
        for told in
            ["over 6 places", "the least 2.02 (2.02 to 2.02) at threads 1, points 10", "the most 3.60"]
        {
            assert!(sentences[1].contains(told), "{told}: {}", sentences[1]);
        }
        assert_eq!(sentences[2], "Latchwork is behind in none of 6 places.");
        assert!(sentences[3].contains("the most gained is 80 % (80 % to 80 %) (64, threads 128, points 10"));
        assert!(sentences[4].contains("75 %"));
    }

    #[test]
    fn where_we_lose_is_said_and_where_nobody_wins_too() {
        let mut results = published_like();
        for cell in results.cells.iter_mut().filter(|cell| cell.target != "embedded") {
            for sample in &mut cell.samples {
                match (cell.block.as_str(), cell.x) {
                    ("10", 128) => sample.value *= 4.0,
                    // Ahead in one round, behind in another.
                    ("100", 1) => sample.value *= if sample.round == 0 { 1.9 } else { 2.2 },
                    _ => {}
                }
            }
        }
        let sentences = summary(&results);
        let lost =
            "behind in 1 of 6 places: 0.90 (0.90 to 0.90) times mariadb:innodb at threads 128, points 10.";
        assert!(sentences.iter().any(|sentence| sentence.contains(lost)), "{sentences:#?}");
        let even = "No difference can be told in 1: ";
        assert!(sentences.iter().any(|sentence| sentence.starts_with(even)), "{sentences:#?}");
    }

    #[test]
    fn seconds_count_the_other_way_round() {
        let mut results = published_like();
        results.lower_is_better = true;
        results.unit = "seconds".to_string();
        assert!(summary(&results)[0].starts_with("mariadb:innodb is the fastest in 6 of 6"));
        assert!(summary(&results)[2].starts_with("Latchwork is behind in 6 of 6 places"));
        let gain = results.gain(results.cell("embedded", "64", "10", 128).unwrap()).unwrap();
        assert!((gain.median - (1.0 / 1.8 - 1.0) * 100.0).abs() < 1e-9);
    }

    #[test]
    fn shares_of_the_null_server_are_told_and_it_does_not_compete() {
        let mut results = published_like();
        results.targets[1] = TargetInfo { name: NULL.to_string(), ..results.targets[1].clone() };
        for cell in results.cells.iter_mut().filter(|cell| cell.target != "embedded") {
            cell.target = NULL.to_string();
            cell.samples.iter_mut().for_each(|sample| sample.value *= 4.0);
        }
        let sentences = summary(&results);
        assert!(
            sentences[0].starts_with("64 is the fastest in 6 of 6"),
            "the series compete: {sentences:#?}"
        );
        let share = "embedded reaches 65 % of the null server's queries/s (65 % to 65 %), taken over 6 places; the least 50";
        assert!(sentences.iter().any(|told| told.starts_with(share)), "{sentences:#?}");
    }

    #[test]
    fn the_worst_line_is_the_one_furthest_behind() {
        assert_eq!(worst_line(&published_like()), Some(3));
        let mut two = published_like();
        two.cells.retain(|cell| cell.series == "off" || cell.series == "innodb");
        assert_eq!(worst_line(&two), None, "of two lines none is left out");
    }

    #[test]
    fn nothing_measured_nothing_said() {
        let mut results = published_like();
        results.cells.iter_mut().for_each(|cell| cell.samples.clear());
        assert!(summary(&results).is_empty());
        results.cells.clear();
        assert!(summary(&results).is_empty());
        let mut single = published_like();
        single.cells.iter_mut().for_each(|cell| cell.samples.truncate(1));
        assert!(summary(&single).last().unwrap().contains("no interval"));
    }
}
