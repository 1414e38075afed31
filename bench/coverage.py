#!/usr/bin/env python3
"""Writes the tables of docs/coverage.md from cargo llvm-cov's JSON: ./test.sh coverage calls it.

    bench/coverage.py REPORT.json docs/coverage.md

What stands outside of the two marked lines stays as it is.
"""
import json
import sys

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
KINDS = ["regions", "branches", "lines"]
CRATES = ["engine", "wal", "pagecache", "transactions"]


def percent(sums, kind):
    count, covered = sums[kind]
    return f"{100 * covered / count:.1f} % of {count}" if count else "-"


def add(sums, summary):
    for kind in KINDS:
        part = summary.get(kind) or {"count": 0, "covered": 0}
        sums[kind][0] += part["count"]
        sums[kind][1] += part["covered"]


def table(title, rows):
    lines = [f"| {title} | regions | branches | lines |", "|---|---|---|---|"]
    for name, sums in rows:
        lines.append(f"| {name} | " + " | ".join(percent(sums, kind) for kind in KINDS) + " |")
    return lines


def main():
    report, document = sys.argv[1:]
    crates = {crate: {kind: [0, 0] for kind in KINDS} for crate in CRATES}
    files = []
    with open(report) as text:
        measured = json.load(text)["data"][0]["files"]
    for file in measured:
        name = file["filename"].split("/crates/")[-1]
        crate = name.split("/")[0]
        if crate not in crates or "/src/" not in name or "tests" in name:
            continue
        sums = {kind: [0, 0] for kind in KINDS}
        add(sums, file["summary"])
        add(crates[crate], file["summary"])
        files.append((name.replace("/src/", "/"), sums))
    lines = [BEGIN, ""] + table("crate", crates.items()) + [""] + table("file", sorted(files)) + ["", END]
    with open(document) as text:
        before, rest = text.read().split(BEGIN)
    after = rest.split(END)[1]
    with open(document, "w") as text:
        text.write(before + "\n".join(lines) + after)


if __name__ == "__main__":
    main()
