//! The figures between two readings, the share of one query, and advice.

use crate::driver::socket::Client;
use crate::error::Result;
use crate::json::Json;
use crate::measure::Usage;
use crate::report::view::{Table, short_number};
use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

/// The phases of a query, by the ends of their status variables' names, with what they are and what helps.
const PHASES: [(&str, &str, &str); 9] = [
    (
        "network",
        "system calls that receive and send",
        "the system calls of a round trip: ask for more with each, on a unix socket rather than by TCP",
    ),
    ("parse", "from text to its shape or tree", "parsing: prepare the statement"),
    (
        "plan",
        "finding a plan or making one",
        "planning: statements that differ in more than literals have a plan each; prepare, or write them alike",
    ),
    ("index", "in secondary indexes", "the secondary index: ask by primary key, or for fewer keys at once"),
    ("row", "in the tree of the rows", "the rows: ask for fewer, or give the cache room for all of them"),
    (
        "log",
        "appending, and waiting for it to be durable",
        "the log: change more in a transaction, or relax innodb_flush_log_at_trx_commit to 2",
    ),
    (
        "latch_wait",
        "until another thread released a latch",
        "waiting for latches: SHOW ENGINE LATCHWORK MUTEX names the latch and the code that holds it",
    ),
    (
        "lock_wait",
        "until another transaction released a row",
        "waiting for rows: shorter transactions, or sessions that change different rows",
    ),
    (
        "rest",
        "parameters, evaluating, writing the answer",
        "the execution itself, neither storage nor network: ask for fewer columns and rows",
    ),
];

/// Further counters that are shown, by status variable.
const COUNTERS: [(&str, &str); 5] = [
    ("Key_read_requests", "pages looked at"),
    ("Key_reads", "pages read from the device"),
    ("Rows_sent", "rows sent"),
    ("Bytes_sent", "bytes sent"),
    ("Innodb_row_lock_waits", "waits for rows"),
];

/// Readings of the clock that calibrate its cost.
const CALIBRATION: u32 = 100_000;

/// Of the server's counters.
pub(crate) struct Reading {
    at: Instant,
    status: HashMap<String, f64>,
    latch_waits: f64,
    usage: Option<Usage>,
}

impl Reading {
    pub(crate) fn take(client: &mut Client, usage: Option<Usage>) -> Result<Reading> {
        let rows = client.rows("SHOW GLOBAL STATUS")?;
        let numbers = rows.into_iter().filter_map(|row| {
            let [name, value] = <[String; 2]>::try_from(row).ok()?;
            Some((name, value.parse().ok()?))
        });
        let status = numbers.collect();
        let waits = client.rows("SELECT waits FROM information_schema.latches WHERE segment IS NULL")?;
        let latch_waits = waits.iter().filter_map(|row| row.first()?.parse::<f64>().ok()).sum();
        Ok(Reading { at: Instant::now(), status, latch_waits, usage })
    }
}

/// All in microseconds or counts a query.
pub(crate) struct Breakdown {
    queries: f64,
    queries_per_s: f64,
    /// In the order of [`PHASES`].
    phases: Vec<f64>,
    idle: f64,
    /// Processor time as the operating system counts it, of all the server's threads.
    cpu: Option<f64>,
    clock_readings: f64,
    clock: f64,
    counters: Vec<(&'static str, f64)>,
}

impl Breakdown {
    /// `None` without a query.
    pub(crate) fn between(before: &Reading, after: &Reading) -> Option<Breakdown> {
        let grown = |name: &str| {
            let value = |reading: &Reading| reading.status.get(name).copied().unwrap_or_default();
            (value(after) - value(before)).max(0.0)
        };
        let queries = grown("Phase_commands");
        if queries < 1.0 {
            return None;
        }
        let us = |phase: &str| grown(&format!("Phase_{phase}_ns")) / 1_000.0 / queries;
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        let mut counters: Vec<(&'static str, f64)> =
            COUNTERS.iter().map(|(variable, name)| (*name, grown(variable) / queries)).collect();
        counters.push(("waits for latches", (after.latch_waits - before.latch_waits).max(0.0) / queries));
        Some(Breakdown {
            queries,
            queries_per_s: queries / seconds,
            phases: PHASES.iter().map(|(phase, ..)| us(phase)).collect(),
            idle: us("idle"),
            cpu: before
                .usage
                .zip(after.usage)
                .map(|(before, after)| after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6 / queries),
            clock_readings: grown("Phase_clock_readings") / queries,
            clock: clock_us(),
            counters,
        })
    }

    /// The server's time for a query.
    fn total(&self) -> f64 {
        self.phases.iter().sum()
    }

    fn waits(&self) -> f64 {
        let waits = PHASES.iter().zip(&self.phases).filter(|((phase, ..), _)| phase.ends_with("_wait"));
        waits.map(|(_, us)| us).sum()
    }

    /// Time in working phases beyond the processor time: the thread waited for a processor or for a device.
    fn off_processor(&self) -> Option<f64> {
        self.cpu.map(|cpu| self.total() - self.waits() - cpu)
    }

    pub(crate) fn table(&self, title: &str) -> Table {
        let total = self.total();
        let share =
            |us: f64| if total > 0.0 { format!("{:.0}", us / total * 100.0) } else { "-".to_string() };
        let mut rows: Vec<Vec<String>> = PHASES
            .iter()
            .zip(&self.phases)
            .map(|((phase, what, _), us)| {
                vec![phase.replace('_', " "), what.to_string(), short_number(*us), share(*us)]
            })
            .collect();
        let sums = rows.len();
        rows.push(vec![
            "all".to_string(),
            "the server's time for a query".to_string(),
            short_number(total),
            share(total),
        ]);
        rows.push(vec![
            "idle".to_string(),
            "waiting for the client".to_string(),
            short_number(self.idle),
            String::new(),
        ]);
        let columns = ["phase", "what", "us a query", "% of all"].map(str::to_string).to_vec();
        Table {
            title: title.to_string(),
            note: format!(
                "{} queries/s over {} queries",
                short_number(self.queries_per_s),
                short_number(self.queries)
            ),
            columns,
            names: 2,
            across: String::new(),
            rows,
            block_starts: vec![0, sums],
        }
    }

    pub(crate) fn counters(&self) -> Table {
        let mut rows: Vec<Vec<String>> =
            self.counters.iter().map(|(name, value)| vec![name.to_string(), short_number(*value)]).collect();
        rows.push(vec!["readings of the clock".to_string(), short_number(self.clock_readings)]);
        Table {
            title: "counters behind it".to_string(),
            note: String::new(),
            columns: ["what", "a query"].map(str::to_string).to_vec(),
            names: 1,
            across: String::new(),
            rows,
            block_starts: vec![0],
        }
    }

    /// How the phases compare with the operating system's figures, what counting cost, and what to change
    /// first.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let (Some(cpu), Some(off)) = (self.cpu, self.off_processor()) {
            let working = short_number(self.total() - self.waits());
            let cpu = short_number(cpu);
            sentences.push(if off >= 0.0 {
                format!(
                    "Phases without waits: {working} us; processor time by the operating system: {cpu} us. The {} us between are \
                     time off the processor: the threads waited for one, or for the device.",
                    short_number(off)
                )
            } else {
                format!(
                    "Phases without waits: {working} us; processor time by the operating system: {cpu} us. The other {} us are of \
                     threads that serve no client, and of waits that take processor time.",
                    short_number(-off)
                )
            });
        }
        sentences.push(format!(
            "To count this, the server read the clock {:.1} times a query, which took about {} us of the phases.",
            self.clock_readings,
            short_number(self.clock_readings * self.clock)
        ));
        sentences.push(self.advice());
        sentences
    }

    fn advice(&self) -> String {
        let largest = PHASES.iter().zip(&self.phases).max_by(|left, right| left.1.total_cmp(right.1));
        let ((phase, _, advice), us) = largest.expect("there are phases");
        let share = if self.total() > 0.0 { us / self.total() * 100.0 } else { 0.0 };
        // In the phase of the log, time off the processor is the device's time.
        if *phase != "log" && self.off_processor().is_some_and(|off| off > self.total() / 2.0) {
            return format!(
                "First: more than half of the time is spent off the processor; use fewer sessions, or more processors, \
                 before you change anything else. Then {advice} ({share:.0} %)."
            );
        }
        format!("First: {advice} ({share:.0} %).")
    }

    pub(crate) fn to_json(&self, title: &str) -> Json {
        let phases =
            PHASES.iter().zip(&self.phases).map(|((phase, ..), us)| (phase.to_string(), (*us).into()));
        let counters = self.counters.iter().map(|(name, value)| (name.to_string(), (*value).into()));
        Json::object([
            ("title", title.into()),
            ("queries", self.queries.into()),
            ("queries_per_s", self.queries_per_s.into()),
            ("phases_us_per_query", Json::Object(phases.collect())),
            ("all_us_per_query", self.total().into()),
            ("idle_us_per_query", self.idle.into()),
            ("server_cpu_us_per_query", self.cpu.into()),
            ("clock_readings_per_query", self.clock_readings.into()),
            ("clock_us_per_query", (self.clock_readings * self.clock).into()),
            ("counters_per_query", Json::Object(counters.collect())),
            ("advice", self.advice().into()),
        ])
    }
}

/// What a reading of the clock costs here, in microseconds.
fn clock_us() -> f64 {
    let start = Instant::now();
    for _ in 0..CALIBRATION {
        black_box(Instant::now());
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(CALIBRATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn breakdown(phases: &[(&str, f64)], cpu_us: u64) -> Breakdown {
        let at = Instant::now();
        let usage = |us| Usage { at, cpu: Duration::from_micros(us), context_switches: 0 };
        let reading = |at, count: f64, cpu| Reading {
            at,
            status: phases
                .iter()
                .map(|(phase, us)| (format!("Phase_{phase}_ns"), us * 1_000.0 * count))
                .chain([("Phase_commands".to_string(), count), ("Rows_sent".to_string(), 10.0 * count)])
                .collect(),
            latch_waits: count / 2.0,
            usage: Some(usage(cpu)),
        };
        let (before, after) =
            (reading(at, 100.0, 0), reading(at + Duration::from_secs(2), 300.0, cpu_us * 200));
        Breakdown::between(&before, &after).unwrap()
    }

    #[test]
    fn phases_are_shares_of_the_servers_time() {
        let breakdown = breakdown(&[("row", 30.0), ("network", 10.0), ("idle", 500.0)], 38);
        let rows = breakdown.table("t").rows;
        let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap()[2..].to_vec();
        assert_eq!(row("row"), ["30.0", "75"]);
        assert_eq!(row("all"), ["40.0", "100"]);
        assert_eq!(row("idle")[0], "500");
        assert!(breakdown.sentences()[0].contains("The 2.00 us between"), "{:?}", breakdown.sentences());
        assert!(
            breakdown.advice().starts_with("First: the rows: ") && breakdown.advice().ends_with("(75 %).")
        );
        let counters = breakdown.counters().rows;
        assert!(counters.contains(&vec!["rows sent".to_string(), "10.0".to_string()]), "{counters:?}");
        assert!(counters.contains(&vec!["waits for latches".to_string(), "0.50".to_string()]));
        assert!((breakdown.queries_per_s - 100.0).abs() < 1e-9);
    }

    #[test]
    fn waits_come_first_where_they_are_most_and_queueing_before_them() {
        let waiting = breakdown(&[("lock_wait", 90.0), ("row", 10.0)], 9);
        assert!(waiting.advice().contains("shorter transactions"), "{}", waiting.advice());
        let queueing = breakdown(&[("row", 90.0), ("rest", 10.0)], 20);
        assert!(queueing.advice().contains("off the processor"), "{}", queueing.advice());
        let syncing = breakdown(&[("log", 90.0), ("row", 10.0)], 20);
        assert!(syncing.advice().starts_with("First: the log: "), "{}", syncing.advice());
    }

    #[test]
    fn without_queries_there_is_nothing_to_explain() {
        let reading =
            || Reading { at: Instant::now(), status: HashMap::new(), latch_waits: 0.0, usage: None };
        assert!(Breakdown::between(&reading(), &reading()).is_none());
    }
}
