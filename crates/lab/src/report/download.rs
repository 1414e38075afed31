//! The raw samples inside the page: JSON and CSV as `data:` links, which open without a network.

use crate::results::Results;

/// A `data:` address of these bytes.
pub(crate) fn data_uri(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", base64(bytes))
}

/// The CSV: a row for each sample.
pub(crate) fn csv(results: &Results) -> String {
    let extras = super::view::extras(results);
    let mut columns: Vec<String> = [
        "experiment",
        "target",
        "series",
        "block",
        "x",
        "round",
        "unit",
        "value",
        "seconds",
        "queries",
        "rows",
        "latency_p50_us",
        "latency_p99_us",
        "server_cpu_us_per_query",
        "client_cpu_us_per_query",
        "context_switches_per_s",
        "latch_waits_per_s",
    ]
    .map(str::to_string)
    .to_vec();
    columns.extend(extras.iter().cloned());
    let mut text = line(columns.into_iter());
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for cell in &results.cells {
        for sample in &cell.samples {
            let mut fields = vec![
                results.experiment.clone(),
                cell.target.clone(),
                cell.series.clone(),
                cell.block.clone(),
                cell.x.to_string(),
                sample.round.to_string(),
                results.unit.clone(),
                sample.value.to_string(),
                sample.seconds.to_string(),
                sample.queries.to_string(),
                sample.rows.to_string(),
                optional(sample.latency.map(|latency| latency.p50)),
                optional(sample.latency.map(|latency| latency.p99)),
                optional(sample.server_cpu_us_per_query),
                optional(sample.client_cpu_us_per_query),
                optional(sample.context_switches_per_s),
                optional(sample.latch_waits_per_s),
            ];
            let besides =
                |name: &String| sample.extra.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            fields.extend(extras.iter().map(|name| optional(besides(name))));
            text.push_str(&line(fields.into_iter()));
        }
    }
    text
}

/// RFC 4180: a field that contains a comma, a quote or a line break is quoted.
fn line(fields: impl Iterator<Item = String>) -> String {
    let quoted = fields.map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let padded = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for letter in 0..4 {
            let used = letter <= group.len();
            let index = bits >> (18 - 6 * letter) & 63;
            text.push(if used { char::from(LETTERS[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::published_like;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn every_sample_is_a_line_of_as_many_fields() {
        let mut results = published_like();
        results.cells[0].series = "a \"name\", quoted".to_string();
        results.cells[0].samples[0].extra.push(("reads a lookup".to_string(), 0.5));
        let text = csv(&results);
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 1 + results.cells.iter().map(|cell| cell.samples.len()).sum::<usize>());
        assert!(lines[0].ends_with("latch_waits_per_s,reads a lookup"));
        assert!(lines[1].starts_with("segments,embedded,\"a \"\"name\"\", quoted\",10,1,0,queries/s,10000,"));
        assert!(lines[1].ends_with("1234,,0.5"));
        assert!(
            lines[2..]
                .iter()
                .all(|line| line.matches(',').count() == lines[0].matches(',').count() || line.contains('"'))
        );
    }
}
