"""Reads /metrics with Prometheus's own parser, around statements whose effect the figures must show."""

import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def scrape(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", answer.headers
        text = answer.read().decode("utf-8")
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "a family appears twice"
    for family in families:
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        if family.type == "histogram":
            check_histograms(family)
    return {family.name: family for family in families}


def check_histograms(family):
    """Buckets grow, the last is +Inf and equals the count."""
    series = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        parts = series.setdefault(tuple(sorted(labels.items())), {"buckets": []})
        if sample.name.endswith("_bucket"):
            parts["buckets"].append((float(sample.labels["le"]), sample.value))
        else:
            parts[sample.name.rsplit("_", 1)[1]] = sample.value
    for labels, parts in series.items():
        buckets = parts["buckets"]
        assert buckets == sorted(buckets) and buckets[-1][0] == float("inf"), (family.name, labels)
        counts = [count for _, count in buckets]
        assert counts == sorted(counts) and counts[-1] == parts["count"], (family.name, labels)
        assert parts["sum"] >= 0


def value(families, name, **labels):
    family = families[name[: -len("_total")] if name.endswith("_total") else name]
    found = [sample.value for sample in family.samples if sample.name == name and sample.labels == labels]
    assert len(found) == 1, (name, labels, family.samples)
    return found[0]


def count(families, name):
    (sample,) = [sample for sample in families[name].samples if sample.name == name + "_count"]
    return sample.value


before = scrape(sys.argv[1])
print("scraped", flush=True)
assert sys.stdin.readline() == "ran\n"
after = scrape(sys.argv[1])


def grew(name, **labels):
    return value(after, name, **labels) - value(before, name, **labels)


# What the test ran in between: ten selects and three inserts.
assert grew("latchwork_queries_total", command="select") == 10
assert grew("latchwork_queries_total", command="insert") == 3
assert grew("latchwork_rows_sent_total") == 10
assert count(after, "latchwork_query_duration_seconds") - count(before, "latchwork_query_duration_seconds") >= 13
assert grew("latchwork_log_fsyncs_total") >= 1
assert grew("latchwork_log_written_bytes_total") > 0
assert grew("latchwork_network_receive_bytes_total") > 0
assert grew("latchwork_network_transmit_bytes_total") > 0
assert grew("latchwork_connection_attempts_total") >= 1
requests = [s for s in after["latchwork_key_cache_read_requests"].samples if s.labels["cache"] == "default"]
assert len(requests) == int(sys.argv[2]) and all("segment" in sample.labels for sample in requests)
assert sum(sample.value for sample in requests) > 0
assert value(after, "latchwork_key_cache_size_bytes", cache="default") > 0
assert value(after, "process_resident_memory_bytes") > 1 << 20
assert value(after, "process_start_time_seconds") > 1e9
assert any(sample.value > 0 for sample in after["latchwork_latch_acquisitions"].samples)
assert value(after, "latchwork_threads_queued") == 0
print("right")
