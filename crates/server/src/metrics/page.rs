//! The text format: families of samples. Each family has a description and a kind.

use std::fmt::{Display, Write};

/// The kind of a family's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Only grows, until the process ends.
    Counter,
    Gauge,
    Histogram,
}

/// A page that is being written.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

/// Labels, each with its value.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// Begins a family. The calls that follow write its samples.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        let labels = labels_text(labels);
        self.line(format_args!("{name}{labels} {value}"));
    }

    /// A family of one sample without labels.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Counter, help);
        self.sample(name, &[], value);
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help);
        self.sample(name, &[], value);
    }

    /// One histogram of a family. `buckets` has each upper bound, in seconds, with the number of values
    /// between the bound before and this one. `above` is the number of values above all bounds, and `sum` the
    /// sum of all, in seconds.
    pub(super) fn histogram(
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

    pub(super) fn into_text(self) -> String {
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
