//! Measures an experiment's cells: rounds, turns in an order drawn anew, results after every turn.
//!
//! A *line* is what takes turns: a target under one setting. A *step* is what all lines share while they take
//! turns: a number of threads, a trace and a size. Each round visits every step; at each step every line has
//! one turn, so that a change of the machine meets all lines alike.

use super::frame::Run;
use crate::driver::Window;
use crate::error::Result;
use crate::progress::Progress;
use crate::results::Cell;
use base::random::Random;
use std::time::Duration;

/// Steps of the progress bar for each turn.
const STEPS: u64 = 1_000;

/// How often each cell is measured, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// The order of turns is drawn from this seed.
    pub seed: u64,
    pub rounds: u32,
    /// The warm-up before each sample; zero if a sample has no window of its own.
    pub warmup: Duration,
    /// The measured window of each sample.
    pub time: Duration,
}

/// What an experiment measures. Each experiment decides what its lines, steps and cells are; the runner only
/// goes through them in turn.
pub(crate) trait Grid {
    type Line: Clone + PartialEq;
    type Step: Copy;

    fn schedule(&self) -> Schedule;
    /// The heading of the progress bar during all turns.
    fn stage(&self) -> String;
    /// All cells, without samples, in the order of the tables. A cell that is not among them is appended when
    /// it is measured.
    fn cells(&self) -> Vec<Cell>;
    /// The steps of a round, in order.
    fn steps(&self) -> Vec<Self::Step>;
    /// The lines that take turns at `step`.
    fn lines(&self, step: Self::Step) -> Vec<Self::Line>;
    /// The stream of random numbers that the order of turns is drawn from.
    fn stream(&self, round: u32, step: Self::Step) -> u64;
    /// The text of the progress bar during a turn.
    fn detail(&self, line: &Self::Line, step: Self::Step) -> String;
    /// True if the line is not measured any more.
    fn is_finished(&self, _line: &Self::Line) -> bool {
        false
    }
    /// Measures one line at one step.
    ///
    /// # Errors
    /// What ends the whole run: a wrong answer, a server that went away, an interrupt.
    fn measure(&mut self, turn: &Turn<Self::Line, Self::Step>, run: &mut Run<'_>) -> Result<Outcome>;
}

/// A line's turn at a step.
#[derive(Clone, Debug)]
pub(crate) struct Turn<L, S> {
    pub line: L,
    pub step: S,
    pub window: Window,
    /// Turns of the whole run before this one.
    number: u64,
    detail: String,
}

/// The result of a turn.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Samples of one cell or several.
    Measured(Vec<Cell>),
    /// The target does not take this setting: the line has no further turns.
    Refused { target: String, series: String, why: String },
}

impl<L, S> Turn<L, S> {
    pub(crate) fn round(&self) -> u32 {
        self.window.round
    }

    /// Tells the progress bar that this share of the turn is done, from 0 to 1. `more` follows the turn's
    /// detail.
    pub(crate) fn tell(&self, progress: &mut Progress, share: f64, more: &str) {
        let steps = (share.clamp(0.0, 1.0) * STEPS as f64) as u64;
        progress.at(self.number * STEPS + steps, &format!("{}{more}", self.detail));
    }
}

/// Measures the whole grid. The results are saved after every turn.
///
/// # Errors
/// Those of [`Grid::measure`], an interrupt, and results that cannot be saved. Samples from before stay in
/// the results.
pub(crate) fn run<G: Grid>(grid: &mut G, run: &mut Run<'_>) -> Result<()> {
    let Schedule { seed, rounds, warmup, time } = grid.schedule();
    let steps = grid.steps();
    let turns_a_round: usize = steps.iter().map(|&step| grid.lines(step).len()).sum();
    run.results.cells = grid.cells();
    run.progress.stage(grid.stage(), turns_a_round as u64 * u64::from(rounds) * STEPS);
    let mut refused: Vec<G::Line> = Vec::new();
    let mut number = 0;
    for round in 0..rounds {
        for &step in &steps {
            let mut lines = grid.lines(step);
            Random::new(seed, grid.stream(round, step)).shuffle(&mut lines);
            for line in lines {
                run.interrupt.check()?;
                number += 1;
                if refused.contains(&line) || grid.is_finished(&line) {
                    continue;
                }
                let window = Window { warmup, measure: time, round };
                let detail = format!("round {}, {}", round + 1, grid.detail(&line, step));
                let turn = Turn { line, step, window, number: number - 1, detail };
                turn.tell(run.progress, 0.0, "");
                match grid.measure(&turn, run)? {
                    Outcome::Measured(cells) => cells.into_iter().for_each(|cell| run.results.add(cell)),
                    Outcome::Refused { target, series, why } => {
                        run.progress.note(&format!("{target} refuses {series}: {why}"));
                        run.results.settings.push((format!("refused by {target}: {series}"), why));
                        refused.push(turn.line);
                    }
                }
                run.save()?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::super::segments::Segments;
    use super::*;
    use crate::doctor::Plan;
    use crate::interrupt::Interrupt;
    use crate::results::{Results, Sample};
    use crate::scratch::Scratch;

    /// Four lines at two steps. The line `refused` is refused at its first turn. The line `ends` is finished
    /// after its first.
    #[derive(Default)]
    struct Letters {
        turns: Vec<(u32, u32, char)>,
        refused: Option<char>,
        ends: Option<char>,
    }

    impl Letters {
        fn cell(line: char, step: u32) -> Cell {
            Cell::new("letters", &line.to_string(), "block", step, Vec::new())
        }

        fn run(&mut self) -> Results {
            let folder = tempfile::tempdir().unwrap();
            let scratch = Scratch::create(folder.path()).unwrap();
            let plan = Plan { threads_max: 1, memory_bytes: 0, disk_bytes: 0, scratch: folder.path().into() };
            let mut results = frame::blank(&Segments, &[], &[], &plan);
            let (mut progress, interrupt) = (Progress::quiet(), Interrupt::default());
            let part = &mut Run {
                interrupt: &interrupt,
                progress: &mut progress,
                scratch: &scratch,
                results: &mut results,
                folder: folder.path(),
            };
            run(self, part).unwrap();
            // What was saved after the last turn.
            Results::load(&folder.path().join("result.json")).unwrap()
        }
    }

    impl Grid for Letters {
        type Line = char;
        type Step = u32;

        fn schedule(&self) -> Schedule {
            Schedule { seed: 303, rounds: 3, warmup: Duration::ZERO, time: Duration::ZERO }
        }

        fn stage(&self) -> String {
            "measuring".to_string()
        }

        fn cells(&self) -> Vec<Cell> {
            // The cells of `d` are not known in advance.
            "abc".chars().flat_map(|line| [1, 2].map(|step| Letters::cell(line, step))).collect()
        }

        fn steps(&self) -> Vec<u32> {
            vec![1, 2]
        }

        fn lines(&self, _step: u32) -> Vec<char> {
            "abcd".chars().collect()
        }

        fn stream(&self, round: u32, step: u32) -> u64 {
            u64::from(round) << 32 | u64::from(step)
        }

        fn detail(&self, line: &char, step: u32) -> String {
            format!("{line} at {step}")
        }

        fn is_finished(&self, line: &char) -> bool {
            self.ends == Some(*line) && self.turns.iter().any(|(.., known)| known == line)
        }

        fn measure(&mut self, turn: &Turn<char, u32>, _run: &mut Run<'_>) -> Result<Outcome> {
            self.turns.push((turn.round(), turn.step, turn.line));
            if self.refused == Some(turn.line) {
                let [target, why] = ["letters", "no such letter"].map(str::to_string);
                return Ok(Outcome::Refused { target, series: turn.line.to_string(), why });
            }
            let sample = Sample { round: turn.round(), value: 1.0, ..Sample::default() };
            Ok(Outcome::Measured(vec![Letters::cell(turn.line, turn.step).with(sample)]))
        }
    }

    #[test]
    fn every_line_has_one_turn_a_step_in_an_order_drawn_anew_and_the_same_for_the_same_seed() {
        let mut letters = Letters::default();
        let results = letters.run();
        let orders: Vec<String> =
            letters.turns.chunks(4).map(|turns| turns.iter().map(|(.., line)| line).collect()).collect();
        assert_eq!(orders.len(), 3 * 2);
        for (number, order) in orders.iter().enumerate() {
            let (round, step) = (number as u32 / 2, number as u32 % 2 + 1);
            assert!(letters.turns[number * 4..][..4].iter().all(|turn| (turn.0, turn.1) == (round, step)));
            let mut expected = vec!['a', 'b', 'c', 'd'];
            Random::new(303, u64::from(round) << 32 | u64::from(step)).shuffle(&mut expected);
            assert_eq!(order.chars().collect::<Vec<_>>(), expected);
        }
        assert!(orders.iter().any(|order| *order != orders[0]));
        // The cells known in advance come first, in their order, and each has a sample a round.
        let places: Vec<String> =
            results.cells.iter().map(|cell| format!("{}{}", cell.series, cell.x)).collect();
        assert_eq!(places[..6], ["a1", "a2", "b1", "b2", "c1", "c2"]);
        assert_eq!(places.len(), 8);
        assert!(results.cells.iter().all(|cell| cell.samples.len() == 3));
    }

    #[test]
    fn a_refused_line_and_a_finished_one_have_no_further_turns() {
        let mut letters = Letters { refused: Some('b'), ends: Some('d'), ..Letters::default() };
        let results = letters.run();
        for (line, turns) in [('a', 6), ('b', 1), ('c', 6), ('d', 1)] {
            let found = letters.turns.iter().filter(|(.., known)| *known == line).count();
            assert_eq!(found, turns, "{line}");
        }
        let refused = ("refused by letters: b".to_string(), "no such letter".to_string());
        assert!(results.settings.contains(&refused));
        assert!(results.cell("letters", "b", "block", 1).unwrap().samples.is_empty());
    }
}
