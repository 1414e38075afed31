//! Events at latches while `latch_statistics` was on: LATCHES, and SHOW ENGINE LATCHWORK MUTEX.

use super::Definition;
use base::sync::{ClassFigures, Implementation, Site, WaitFigures, metering};
use types::Value;

pub(super) static DEFINITIONS: &[Definition] = &[(
    // Our own: a row for each class of latches, and a row for each segment of those classes that caches have
    // by segment.
    "LATCHES",
    "NAME varchar(64) NOT NULL, SEGMENT int(3) unsigned, ACQUISITIONS bigint(21) unsigned NOT NULL, \
     SPINS bigint(21) unsigned NOT NULL, WAITS bigint(21) unsigned NOT NULL, \
     WAIT_TIME_US bigint(21) unsigned NOT NULL, MAX_WAIT_US bigint(21) unsigned NOT NULL, \
     WAIT_P50_US bigint(21) unsigned NOT NULL, WAIT_P99_US bigint(21) unsigned NOT NULL, \
     TOP_HOLDER varchar(192), TOP_WAITER varchar(192)",
    |_| Ok(latches().iter().map(Latch::row).collect()),
)];

/// The figures of a class or of one segment of it, with the places in the code that caused most of the
/// waiting.
struct Latch {
    figures: ClassFigures,
    holder: Option<String>,
    waiter: Option<String>,
}

fn latches() -> Vec<Latch> {
    let meetings = WaitFigures::all();
    let latch = |figures: ClassFigures| {
        let is_own = |wait: &&WaitFigures| {
            wait.class == figures.name && (figures.segment.is_none() || wait.segment == figures.segment)
        };
        let own: Vec<&WaitFigures> = meetings.iter().filter(is_own).collect();
        let holder = top(own.iter().filter_map(|wait| Some((wait.holder?, wait.waited_ns))));
        let waiter = top(own.iter().map(|wait| (wait.waiter, wait.waited_ns)));
        Latch { figures, holder, waiter }
    };
    ClassFigures::all().into_iter().map(latch).collect()
}

/// The site with the longest time.
fn top(times: impl Iterator<Item = (Site, u64)>) -> Option<String> {
    let mut sums: Vec<(Site, u64)> = Vec::new();
    for (site, time) in times {
        match sums.iter_mut().find(|(known, _)| *known == site) {
            Some((_, sum)) => *sum += time,
            None => sums.push((site, time)),
        }
    }
    let (site, _) = sums.into_iter().max_by_key(|(_, time)| *time)?;
    let file = site.file().strip_prefix("crates/").unwrap_or(site.file());
    Some(format!("{file}:{}", site.line()))
}

impl Latch {
    /// Maximum, median and 99th percentile of the waits, in microseconds.
    fn longest_us(&self) -> [u64; 3] {
        let ClassFigures { waited_ns_max, .. } = self.figures;
        [waited_ns_max, self.figures.waited_ns_within(0.5), self.figures.waited_ns_within(0.99)]
            .map(|nanoseconds| nanoseconds / 1_000)
    }

    fn row(&self) -> Vec<Value> {
        let ClassFigures { name, segment, acquisitions, spins, waits, waited_ns, .. } = self.figures;
        let text = |site: &Option<String>| site.as_deref().map_or(Value::Null, Value::text);
        let mut row =
            vec![Value::text(name), segment.map_or(Value::Null, |number| Value::UInt(number as u64))];
        row.extend([acquisitions, spins, waits, waited_ns / 1_000].map(Value::UInt));
        row.extend(self.longest_us().map(Value::UInt));
        row.extend([text(&self.holder), text(&self.waiter)]);
        row
    }

    fn status(&self) -> String {
        let ClassFigures { acquisitions, spins, waits, waited_ns, .. } = self.figures;
        let [max, p50, p99] = self.longest_us();
        let mut status = format!(
            "acquisitions={acquisitions}, spins={spins}, waits={waits}, wait_time_us={}, max_wait_us={max}, \
             wait_p50_us={p50}, wait_p99_us={p99}",
            waited_ns / 1_000
        );
        for (name, site) in [("top_holder", &self.holder), ("top_waiter", &self.waiter)] {
            if let Some(site) = site {
                status += &format!(", {name}={site}");
            }
        }
        status
    }
}

/// The rows of SHOW ENGINE LATCHWORK MUTEX: first the latch implementation, then each class.
pub(crate) fn latch_rows() -> Vec<Vec<Value>> {
    let implementation = match Implementation::chosen() {
        Implementation::Direct => "direct",
        Implementation::WaitArray => "wait_array",
    };
    let statistics = if metering() { "ON" } else { "OFF" };
    let general = format!("implementation={implementation}, statistics={statistics}");
    let classes = latches().into_iter().filter(|latch| latch.figures.segment.is_none());
    std::iter::once(("latches", general))
        .chain(classes.map(|latch| (latch.figures.name, latch.status())))
        .map(|(name, status)| vec![Value::text("Latchwork"), Value::text(name), Value::text(status)])
        .collect()
}
