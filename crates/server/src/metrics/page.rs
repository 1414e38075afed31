//! The text format: families of samples, each with what it means and its kind.

use std::fmt::{Display, Write};

/// What kind of number a family has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Grows until the process ends.
    Counter,
    Gauge,
    Histogram,
}

/// A page under way.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

/// Label and value.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// Begins a family. Its samples follow.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        let labels = labels_text(labels);
        self.line(format_args!("{name}{labels} {value}"));
    }

    /// A family of one sample without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Counter, help);
        self.sample(name, &[], value);
    }

    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help);
        self.sample(name, &[], value);
    }

    /// One histogram of a family: how many were at most so many seconds, bound by bound and not summed up; what was above all bounds; and
    /// the sum of all in seconds.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        buckets: impl Iterator<Item = (f64, u64)>,
        above: u64,
        sum: f64,
    ) {
        let mut count = 0;
        let bucket = format!("{name}_bucket");
        for (bound, more) in buckets {
            count += more;
            let bound = bound.to_string();
            self.sample(&bucket, &[labels, &[("le", &bound)]].concat(), count);
        }
        count += above;
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), count);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count);
    }

    pub fn into_text(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

fn labels_text(labels: Labels<'_>) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", labels.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped_and_buckets_are_summed_up() {
        let mut page = Page::default();
        page.family("x", Kind::Gauge, "What x is.");
        page.sample("x", &[("cache", "a\"b\\c\n"), ("segment", "0")], 1.5);
        page.histogram("t", &[("class", "rows")], [(0.1, 2), (1.0, 3)].into_iter(), 4, 12.25);
        assert_eq!(
            page.into_text(),
            "# HELP x What x is.\n# TYPE x gauge\nx{cache=\"a\\\"b\\\\c\\n\",segment=\"0\"} 1.5\n\
             t_bucket{class=\"rows\",le=\"0.1\"} 2\nt_bucket{class=\"rows\",le=\"1\"} 5\n\
             t_bucket{class=\"rows\",le=\"+Inf\"} 9\nt_sum{class=\"rows\"} 12.25\nt_count{class=\"rows\"} 9\n"
        );
    }
}
