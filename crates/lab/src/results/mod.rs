//! The results of a run: settings, machine, and one [`Cell`] for each combination that was measured. Reports
//! are made only from these. A cell has a position: a target, a series of it (say, `32` segments), a block
//! (say, 10 points) and an `x` (say, 8 threads). Each experiment chooses which of its parameters play these
//! parts.

mod read;

use crate::doctor::Finding;
use crate::json::Json;
use crate::stats::{self, Estimate};

/// The version of the JSON's layout. Grows when a field changes its meaning or goes away.
pub(crate) const FORMAT: u32 = 1;

#[derive(Clone, Debug)]
pub(crate) struct Results {
    pub experiment: String,
    /// One line for people.
    pub title: String,
    pub question: String,
    /// Seconds since 1970, UTC.
    pub started: u64,
    pub finished: Option<u64>,
    /// False while the run measures. It stays false if the run failed or was interrupted before it had
    /// measured everything.
    pub complete: bool,
    pub command: Vec<String>,
    pub machine: Vec<(String, String)>,
    pub settings: Vec<(String, String)>,
    pub doctor: Vec<Finding>,
    pub targets: Vec<TargetInfo>,
    /// The unit of every sample's value: `queries/s`.
    pub unit: String,
    /// True for seconds, for example: then a gain is a smaller value.
    pub lower_is_better: bool,
    pub block_name: String,
    pub x_name: String,
    /// What the gains are relative to, in words.
    pub baseline_name: String,
    /// The plots' vertical axis is logarithmic.
    pub log_scale: bool,
    /// The horizontal axis is logarithmic: false for time.
    pub log_x: bool,
    /// The names of extras that have plots of their own. The terminal then shows the summaries alone.
    pub plotted: Vec<String>,
    /// Tables that the experiment made of its cells. They are shown before the cells.
    pub summaries: Vec<Summary>,
    pub cells: Vec<Cell>,
}

/// A table that an experiment makes of its cells.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Summary {
    pub title: String,
    pub note: String,
    pub columns: Vec<String>,
    /// How many columns at the left are names.
    pub names: usize,
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct TargetInfo {
    pub name: String,
    /// The series that this target's gains are relative to, if it has one.
    pub baseline: Option<String>,
    /// Version, options, sizes: whatever describes what was measured.
    pub facts: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub target: String,
    pub series: String,
    /// `10` points, the name of a trace: what the cells of one plot have in common.
    pub block: String,
    pub x: u32,
    pub parameters: Vec<(String, String)>,
    pub samples: Vec<Sample>,
}

/// One measurement of a cell.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sample {
    /// The round that this sample belongs to. Gains compare samples of the same round.
    pub round: u32,
    /// The measured value, in the results' unit.
    pub value: f64,
    /// The length of the measured window.
    pub seconds: f64,
    pub queries: u64,
    pub rows: u64,
    pub latency: Option<Latency>,
    pub server_cpu_us_per_query: Option<f64>,
    pub client_cpu_us_per_query: Option<f64>,
    /// Processors kept busy, averaged over the window.
    pub server_cpus: Option<f64>,
    pub client_cpus: Option<f64>,
    /// Context switches of the server's threads (embedded: of all threads), voluntary and involuntary.
    pub context_switches_per_s: Option<f64>,
    /// Times that a thread had to wait for a latch of the cache, as the target counts them.
    pub latch_waits_per_s: Option<f64>,
    /// Other figures of this experiment, by name.
    pub extra: Vec<(String, f64)>,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Cell {
    /// A cell without samples.
    pub(crate) fn new(
        target: &str,
        series: &str,
        block: &str,
        x: u32,
        parameters: Vec<(&str, String)>,
    ) -> Cell {
        Cell {
            target: target.to_string(),
            series: series.to_string(),
            block: block.to_string(),
            x,
            parameters: parameters.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            samples: Vec::new(),
        }
    }

    /// The cell with one more sample.
    pub(crate) fn with(mut self, sample: Sample) -> Cell {
        self.samples.push(sample);
        self
    }

    /// The median over the samples of an extra.
    pub(crate) fn median_extra(&self, name: &str) -> Option<f64> {
        self.median_of(|sample| sample.extra.iter().find(|(known, _)| known == name).map(|(_, value)| *value))
    }

    pub(crate) fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.samples.iter().map(|sample| sample.value).collect::<Vec<_>>())
    }

    /// The median over the samples of a field that some targets do not report.
    pub(crate) fn median_of(&self, field: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        stats::median(&self.samples.iter().filter_map(field).collect::<Vec<_>>())
    }

    /// The values of the rounds that both cells were measured in.
    fn pairs(&self, other: &Cell) -> Vec<(f64, f64)> {
        let pairs = self.samples.iter().filter_map(|sample| {
            let other = other.samples.iter().find(|other| other.round == sample.round)?;
            Some((sample.value, other.value))
        });
        pairs.collect()
    }
}

impl Results {
    pub(crate) fn cell(&self, target: &str, series: &str, block: &str, x: u32) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.target == target && cell.series == series && cell.block == block && cell.x == x)
    }

    pub(crate) fn cell_mut(&mut self, target: &str, series: &str, block: &str, x: u32) -> Option<&mut Cell> {
        self.cells
            .iter_mut()
            .find(|cell| cell.target == target && cell.series == series && cell.block == block && cell.x == x)
    }

    /// Adds the samples of `cell` to the cell with the same position, or appends `cell` if there is none.
    pub(crate) fn add(&mut self, cell: Cell) {
        match self.cell_mut(&cell.target, &cell.series, &cell.block, cell.x) {
            Some(known) => known.samples.extend(cell.samples),
            None => self.cells.push(cell),
        }
    }

    pub(crate) fn target(&self, name: &str) -> Option<&TargetInfo> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// How many times as good as `base` a cell is. 2 means twice the throughput, or half the time.
    pub(crate) fn ratio(&self, cell: &Cell, base: &Cell) -> Option<Estimate> {
        let pairs = if self.lower_is_better { base.pairs(cell) } else { cell.pairs(base) };
        stats::paired_ratio(&pairs)
    }

    /// The gain of a cell over its target's baseline, in percent; `None` for the baseline itself.
    pub(crate) fn gain(&self, cell: &Cell) -> Option<Estimate> {
        let baseline = self.target(&cell.target)?.baseline.as_deref()?;
        if baseline == cell.series {
            return None;
        }
        let ratio = self.ratio(cell, self.cell(&cell.target, baseline, &cell.block, cell.x)?)?;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        Some(Estimate {
            median: percent(ratio.median),
            low: percent(ratio.low),
            high: percent(ratio.high),
            ..ratio
        })
    }

    /// Everything, as one JSON object.
    pub(crate) fn to_json(&self) -> Json {
        Json::object([
            ("latchwork_lab", FORMAT.into()),
            ("experiment", self.experiment.as_str().into()),
            ("title", self.title.as_str().into()),
            ("question", self.question.as_str().into()),
            ("started_unix_s", self.started.into()),
            ("finished_unix_s", self.finished.into()),
            ("complete", self.complete.into()),
            ("command", Json::list(self.command.iter().map(String::as_str))),
            ("machine", self.machine.as_slice().into()),
            ("settings", self.settings.as_slice().into()),
            ("doctor", Json::List(self.doctor.iter().map(Finding::to_json).collect())),
            ("targets", Json::List(self.targets.iter().map(target_json).collect())),
            ("unit", self.unit.as_str().into()),
            ("lower_is_better", self.lower_is_better.into()),
            ("block_name", self.block_name.as_str().into()),
            ("x_name", self.x_name.as_str().into()),
            ("baseline_name", self.baseline_name.as_str().into()),
            ("log_scale", self.log_scale.into()),
            ("log_x", self.log_x.into()),
            ("plotted", Json::list(self.plotted.iter().map(String::as_str))),
            ("summaries", Json::List(self.summaries.iter().map(summary_json).collect())),
            ("cells", Json::List(self.cells.iter().map(|cell| self.cell_json(cell)).collect())),
        ])
    }

    fn cell_json(&self, cell: &Cell) -> Json {
        let estimate = cell.estimate();
        let gain = self.gain(cell);
        Json::object([
            ("experiment", self.experiment.as_str().into()),
            ("target", cell.target.as_str().into()),
            ("series", cell.series.as_str().into()),
            ("block", cell.block.as_str().into()),
            ("x", cell.x.into()),
            ("parameters", cell.parameters.as_slice().into()),
            ("unit", self.unit.as_str().into()),
            ("median", estimate.map(|estimate| estimate.median).into()),
            ("confidence_interval", interval_json(estimate)),
            ("gain_percent", gain.map(|gain| gain.median).into()),
            ("gain_confidence_interval", interval_json(gain)),
            ("samples", Json::List(cell.samples.iter().map(sample_json).collect())),
        ])
    }
}

fn target_json(target: &TargetInfo) -> Json {
    Json::object([
        ("name", target.name.as_str().into()),
        ("baseline", target.baseline.as_deref().into()),
        ("facts", target.facts.as_slice().into()),
    ])
}

fn summary_json(summary: &Summary) -> Json {
    let row = |row: &Vec<String>| Json::list(row.iter().map(String::as_str));
    Json::object([
        ("title", summary.title.as_str().into()),
        ("note", summary.note.as_str().into()),
        ("columns", row(&summary.columns)),
        ("names", summary.names.into()),
        ("rows", Json::List(summary.rows.iter().map(row).collect())),
    ])
}

fn interval_json(estimate: Option<Estimate>) -> Json {
    estimate.map_or(Json::Null, |estimate| {
        Json::object([
            ("low", estimate.low.into()),
            ("high", estimate.high.into()),
            ("confidence", estimate.confidence.into()),
        ])
    })
}

fn sample_json(sample: &Sample) -> Json {
    let mut json = Json::object([
        ("round", sample.round.into()),
        ("value", sample.value.into()),
        ("seconds", sample.seconds.into()),
        ("queries", sample.queries.into()),
        ("rows", sample.rows.into()),
        ("server_cpu_us_per_query", sample.server_cpu_us_per_query.into()),
        ("client_cpu_us_per_query", sample.client_cpu_us_per_query.into()),
        ("server_cpus", sample.server_cpus.into()),
        ("client_cpus", sample.client_cpus.into()),
        ("context_switches_per_s", sample.context_switches_per_s.into()),
        ("latch_waits_per_s", sample.latch_waits_per_s.into()),
    ]);
    let latency = sample.latency.map_or(Json::Null, |latency| {
        Json::object([
            ("mean", latency.mean.into()),
            ("p50", latency.p50.into()),
            ("p95", latency.p95.into()),
            ("p99", latency.p99.into()),
            ("p999", latency.p999.into()),
            ("max", latency.max.into()),
        ])
    });
    json.push("latency_us", latency);
    for (name, value) in &sample.extra {
        json.push(name, *value);
    }
    json
}

/// Results as the reports' tests see them.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The published figures of the four-core machine, as if measured here, on two targets.
    pub(crate) fn published_like() -> Results {
        let mut results = Results {
            experiment: "segments".to_string(),
            title: "The segmented key cache".to_string(),
            question: "What do <segments> gain & when?".to_string(),
            started: 1_795_254_000,
            finished: Some(1_795_254_100),
            complete: true,
            command: vec!["latchwork".to_string(), "lab".to_string(), "run".to_string()],
            machine: vec![("processor".to_string(), "a \"test\" <cpu>".to_string())],
            settings: vec![("rows".to_string(), "1000".to_string())],
            doctor: Vec::new(),
            targets: vec![
                TargetInfo {
                    name: "embedded".to_string(),
                    baseline: Some("off".to_string()),
                    facts: Vec::new(),
                },
                TargetInfo {
                    name: "mariadb:innodb".to_string(),
                    baseline: None,
                    facts: vec![("version".to_string(), "10.11".to_string())],
                },
            ],
            unit: "queries/s".to_string(),
            lower_is_better: false,
            block_name: "points".to_string(),
            x_name: "threads".to_string(),
            baseline_name: "segments off".to_string(),
            log_scale: false,
            log_x: true,
            plotted: Vec::new(),
            summaries: Vec::new(),
            cells: Vec::new(),
        };
        let gains = [("off", [0.0, 0.0, 0.0]), ("32", [-0.3, 17.0, 71.0]), ("64", [1.0, 19.0, 80.0])];
        for block in ["10", "100"] {
            for (series, gains) in gains {
                for (x, gain) in [1, 8, 128].into_iter().zip(gains) {
                    results.cells.push(cell("embedded", series, block, x, 10_000.0 * (1.0 + gain / 100.0)));
                }
            }
            for x in [1, 8, 128] {
                results.cells.push(cell("mariadb:innodb", "innodb", block, x, 5_000.0));
            }
        }
        results
    }

    fn cell(target: &str, series: &str, block: &str, x: u32, value: f64) -> Cell {
        let sample = |round| Sample {
            round,
            value: value * (1.0 + f64::from(round) / 100.0),
            seconds: 1.0,
            queries: 10,
            rows: 100,
            context_switches_per_s: Some(1_234.0),
            ..Sample::default()
        };
        Cell {
            target: target.to_string(),
            series: series.to_string(),
            block: block.to_string(),
            x,
            parameters: vec![("threads".to_string(), x.to_string())],
            samples: (0..3).map(sample).collect(),
        }
    }

    #[test]
    fn a_record_a_cell_carries_every_sample_and_the_interval() {
        let json: serde_json::Value = serde_json::from_str(&published_like().to_json().to_pretty()).unwrap();
        assert_eq!(json["latchwork_lab"], 1);
        assert_eq!(json["complete"], true);
        assert_eq!(json["cells"].as_array().unwrap().len(), 2 * (3 + 1) * 3);
        let cell = &json["cells"][5];
        assert_eq!(cell["experiment"], "segments");
        assert_eq!(cell["target"], "embedded");
        assert_eq!(cell["series"], "32");
        assert_eq!(cell["unit"], "queries/s");
        assert_eq!(cell["parameters"]["threads"], "128");
        assert_eq!(cell["samples"].as_array().unwrap().len(), 3);
        assert_eq!(cell["median"].as_f64().unwrap(), 17_100.0 * 1.01);
        assert_eq!(cell["confidence_interval"]["confidence"], 0.75);
        assert!((cell["gain_percent"].as_f64().unwrap() - 71.0).abs() < 1e-6);
        assert!(json["cells"][0]["gain_percent"].is_null());
        assert!(cell["samples"][0]["latency_us"].is_null());
    }

    #[test]
    fn a_gain_needs_a_round_that_both_were_measured_in() {
        let mut results = published_like();
        results.cell_mut("embedded", "off", "10", 8).unwrap().samples.truncate(1);
        let gain = results.gain(results.cell("embedded", "32", "10", 8).unwrap()).unwrap();
        assert_eq!(gain.samples, 1);
        results.cell_mut("embedded", "off", "10", 8).unwrap().samples.clear();
        assert_eq!(results.gain(results.cell("embedded", "32", "10", 8).unwrap()), None);
    }
}
