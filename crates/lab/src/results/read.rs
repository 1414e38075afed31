//! Results from the JSON that an earlier run left.

use super::{Cell, FORMAT, Latency, Results, Sample, Summary, TargetInfo};
use crate::doctor::{Finding, Verdict};
use crate::error::{Error, Result};
use crate::json::Json;
use std::fs;
use std::path::Path;

impl Results {
    /// Reads a `result.json`.
    pub(crate) fn load(path: &Path) -> Result<Results> {
        let text = fs::read_to_string(path).map_err(Error::path("read", path))?;
        let json = Json::parse(&text).map_err(|why| format!("this is not a result of the lab: {why}"));
        let read = json.and_then(|json| Results::from_json(&json));
        read.map_err(|why| Error::NoResults { path: path.to_path_buf(), why })
    }

    /// The inverse of [`Results::to_json`]. Errors name the field that is missing or wrong.
    pub(crate) fn from_json(json: &Json) -> Result<Results, String> {
        let format =
            integer(json, "latchwork_lab").map_err(|_| "this is not a result of the lab".to_string())?;
        if format != u64::from(FORMAT) {
            return Err(format!("its format is {format}, and this lab reads format {FORMAT}"));
        }
        Ok(Results {
            experiment: text(json, "experiment")?,
            title: text(json, "title")?,
            question: text(json, "question")?,
            started: integer(json, "started_unix_s")?,
            finished: json.get("finished_unix_s").and_then(Json::as_integer),
            complete: flag(json, "complete")?,
            command: texts(json, "command")?,
            machine: pairs(json, "machine")?,
            settings: pairs(json, "settings")?,
            doctor: each(json, "doctor", finding)?,
            targets: each(json, "targets", target)?,
            unit: text(json, "unit")?,
            lower_is_better: flag(json, "lower_is_better")?,
            block_name: text(json, "block_name")?,
            x_name: text(json, "x_name")?,
            baseline_name: text(json, "baseline_name")?,
            log_scale: flag(json, "log_scale")?,
            // Results from before these two fields have plots by number of threads and the like.
            log_x: flag(json, "log_x").unwrap_or(true),
            plotted: texts(json, "plotted").unwrap_or_default(),
            summaries: each(json, "summaries", summary)?,
            cells: each(json, "cells", cell)?,
        })
    }
}

fn finding(json: &Json) -> Result<Finding, String> {
    let verdict = text(json, "verdict")?;
    Ok(Finding {
        check: text(json, "check")?.into(),
        verdict: Verdict::named(&verdict).ok_or_else(|| format!("there is no verdict `{verdict}`"))?,
        found: text(json, "found")?,
        advice: json.get("advice").and_then(Json::as_text).map(str::to_string),
    })
}

fn target(json: &Json) -> Result<TargetInfo, String> {
    Ok(TargetInfo {
        name: text(json, "name")?,
        baseline: json.get("baseline").and_then(Json::as_text).map(str::to_string),
        facts: pairs(json, "facts")?,
    })
}

fn summary(json: &Json) -> Result<Summary, String> {
    let rows = list(json, "rows")?.iter().map(|row| all_text(row, "rows"));
    let summary = Summary {
        title: text(json, "title")?,
        note: text(json, "note")?,
        columns: texts(json, "columns")?,
        names: integer(json, "names")? as usize,
        rows: rows.collect::<Result<_, String>>()?,
    };
    let columns = summary.columns.len();
    if summary.names > columns || summary.rows.iter().any(|row| row.len() != columns) {
        return Err(format!("the rows of `{}` do not have its {columns} columns", summary.title));
    }
    Ok(summary)
}

fn cell(json: &Json) -> Result<Cell, String> {
    Ok(Cell {
        target: text(json, "target")?,
        series: text(json, "series")?,
        block: text(json, "block")?,
        x: integer(json, "x").and_then(whole)?,
        parameters: pairs(json, "parameters")?,
        samples: each(json, "samples", sample)?,
    })
}

/// Numbers that are no field of [`Sample`] are extras of the experiment.
fn sample(json: &Json) -> Result<Sample, String> {
    let optional = |name: &str| json.get(name).and_then(Json::as_number);
    let mut sample = Sample {
        round: integer(json, "round").and_then(whole)?,
        value: number(json, "value")?,
        seconds: number(json, "seconds")?,
        queries: integer(json, "queries")?,
        rows: integer(json, "rows")?,
        latency: json.get("latency_us").filter(|json| json.as_object().is_some()).map(latency).transpose()?,
        server_cpu_us_per_query: optional("server_cpu_us_per_query"),
        client_cpu_us_per_query: optional("client_cpu_us_per_query"),
        server_cpus: optional("server_cpus"),
        client_cpus: optional("client_cpus"),
        context_switches_per_s: optional("context_switches_per_s"),
        latch_waits_per_s: optional("latch_waits_per_s"),
        extra: Vec::new(),
    };
    let own = super::sample_json(&sample);
    let fields = json.as_object().unwrap_or_default();
    let besides = fields.iter().filter(|(name, _)| own.get(name).is_none());
    sample.extra = besides.filter_map(|(name, value)| Some((name.clone(), value.as_number()?))).collect();
    Ok(sample)
}

fn latency(json: &Json) -> Result<Latency, String> {
    Ok(Latency {
        mean: number(json, "mean")?,
        p50: number(json, "p50")?,
        p95: number(json, "p95")?,
        p99: number(json, "p99")?,
        p999: number(json, "p999")?,
        max: number(json, "max")?,
    })
}

fn field<'a, T: ?Sized>(
    json: &'a Json,
    name: &str,
    what: &str,
    read: impl FnOnce(&'a Json) -> Option<&'a T>,
) -> Result<&'a T, String> {
    json.get(name).and_then(read).ok_or_else(|| missing(name, what))
}

fn missing(name: &str, what: &str) -> String {
    format!("`{name}` is missing or not {what}; an older lab may have written this")
}

fn text(json: &Json, name: &str) -> Result<String, String> {
    field(json, name, "a text", Json::as_text).map(str::to_string)
}

fn number(json: &Json, name: &str) -> Result<f64, String> {
    json.get(name).and_then(Json::as_number).ok_or_else(|| missing(name, "a number"))
}

fn integer(json: &Json, name: &str) -> Result<u64, String> {
    json.get(name).and_then(Json::as_integer).ok_or_else(|| missing(name, "a whole number"))
}

fn whole(value: u64) -> Result<u32, String> {
    u32::try_from(value).map_err(|_| format!("{value} is too large"))
}

fn flag(json: &Json, name: &str) -> Result<bool, String> {
    json.get(name).and_then(Json::as_bool).ok_or_else(|| missing(name, "true or false"))
}

fn list<'a>(json: &'a Json, name: &str) -> Result<&'a [Json], String> {
    field(json, name, "a list", Json::as_list)
}

fn each<T>(json: &Json, name: &str, read: impl Fn(&Json) -> Result<T, String>) -> Result<Vec<T>, String> {
    list(json, name)?.iter().map(read).collect()
}

fn texts(json: &Json, name: &str) -> Result<Vec<String>, String> {
    json.get(name).ok_or_else(|| missing(name, "a list of texts")).and_then(|json| all_text(json, name))
}

fn all_text(json: &Json, name: &str) -> Result<Vec<String>, String> {
    let texts = json
        .as_list()
        .and_then(|items| items.iter().map(|item| item.as_text().map(str::to_string)).collect());
    texts.ok_or_else(|| missing(name, "a list of texts"))
}

fn pairs(json: &Json, name: &str) -> Result<Vec<(String, String)>, String> {
    let fields = field(json, name, "an object", Json::as_object)?;
    let pair = |(name, value): &(String, Json)| Some((name.clone(), value.as_text()?.to_string()));
    fields.iter().map(pair).collect::<Option<_>>().ok_or_else(|| missing(name, "an object of texts"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::published_like;
    use super::*;

    #[test]
    fn what_a_run_writes_reads_back_whole() {
        let mut results = published_like();
        results.doctor.push(Finding {
            check: "memory".into(),
            verdict: Verdict::Warning,
            found: "little".to_string(),
            advice: Some("buy".to_string()),
        });
        results.summaries.push(Summary {
            title: "held".to_string(),
            note: String::new(),
            columns: vec!["series".to_string(), "keys".to_string()],
            names: 1,
            rows: vec![vec!["off".to_string(), "7".to_string()]],
        });
        let sample = &mut results.cells[0].samples[0];
        sample.latency = Some(Latency { mean: 1.5, p50: 1.0, p95: 2.0, p99: 3.0, p999: 4.0, max: 5.0 });
        sample.extra.push(("reads a lookup".to_string(), 0.5));
        let written = results.to_json();
        let read = Results::from_json(&Json::parse(&written.to_pretty()).unwrap()).unwrap();
        assert_eq!(read.cells[0].samples, results.cells[0].samples);
        assert_eq!(read.to_json().to_pretty(), written.to_pretty());
    }

    #[test]
    fn what_is_no_result_is_refused_by_name() {
        let refused = |text: &str| Results::from_json(&Json::parse(text).unwrap()).unwrap_err();
        assert_eq!(refused("[]"), "this is not a result of the lab");
        assert!(refused("{\"latchwork_lab\": 2}").contains("format 1"));
        assert!(refused("{\"latchwork_lab\": 1}").contains("`experiment` is missing"));
        let cut = published_like().to_json().to_pretty().replace("\"block\":", "\"lock\":");
        assert!(refused(&cut).contains("`block` is missing"));
    }
}
