//! Latchwork alone: a query gives what others give together, however they are planned.
//!
//! A condition is true, false or unknown for each row, so the rows of a query are those of three queries
//! (Rigger and Su, "Finding bugs in database systems via query partitioning", 2020). Where a condition is a
//! value of the select list no index helps to evaluate it, so its count checks that of WHERE (the same,
//! "Detecting optimization bugs in database engines via non-optimizing reference engine construction", 2020).

use super::differential::Report;
use super::expressions::Generator;
use super::outcome::{Client, Outcome, is_of_values, run, texts};
use super::schema::{Schema, Table, chance, one};
use super::tree::{Protocol, Tree, fill, text};
use base::random::Random;
use std::collections::BTreeMap;

type Rows = Vec<Vec<String>>;

/// Queries of a case.
const QUERIES: usize = 25;

const TRIES_MAX: usize = 400;

/// Ways to plan a query and to run it.
const SETTINGS: &[&str] = &[
    "SET optimizer_switch = 'merge_join=off,hash_join=off'",
    "SET optimizer_switch = 'nested_loop_join=off,hash_join=off'",
    "SET optimizer_switch = 'nested_loop_join=off,merge_join=off'",
    "SET sort_buffer_size = 1024, join_buffer_size = 128, tmp_memory_table_size = 0",
    "SET GLOBAL key_cache_hit_path = 'locked'",
];

/// What undoes them all.
const USUAL: &[&str] = &[
    "SET optimizer_switch = '', sort_buffer_size = DEFAULT, join_buffer_size = DEFAULT",
    "SET tmp_memory_table_size = DEFAULT",
    "SET GLOBAL key_cache_hit_path = 'optimistic'",
];

/// One case. The same `case` of the same `seed` is the same case.
///
/// # Errors
/// If the server refuses what it should take.
pub fn case(mut client: Client, seed: u64, case: u64, report: &mut Report) -> Result<(), String> {
    let mut random = Random::new(seed, case);
    let schema = Schema::draw(&mut random);
    let mut script =
        vec!["DROP DATABASE IF EXISTS parts".into(), "CREATE DATABASE parts".into(), "USE parts".into()];
    script.extend(schema.tables.iter().map(Table::create));
    script.extend(schema.tables.iter().map(|table| table.insert(&mut random, schema.has_variants)));
    // A join of joins in a subquery can go on for hours.
    script.push("SET max_statement_time = 20".into());
    for statement in &script {
        client.query(statement).map_err(|error| format!("{statement}: {error}"))?;
    }
    let mixes_kinds = chance(&mut random, 4);
    let mut generator =
        Generator { random, schema, mixes_kinds, aliases: 0, names_are_distinct: false, changed: None };
    let mut answered: Vec<(Tree, Rows)> = Vec::new();
    for _ in 0..QUERIES {
        generator.aliases = 0;
        let depth = 1 + generator.random.below(3);
        let from = generator.from(depth);
        let listed = one(&mut generator.random, &from.scope).text.clone();
        let grouped = one(&mut generator.random, &from.scope).text.clone();
        let condition = generator.condition(&from.scope, depth);
        let subject = Tree::Sequence(vec![text(listed), text(grouped), from.tree, condition]);
        report.statements += 1;
        let Some(kind) = fault(&mut client, &subject, generator.schema.has_variants, report)? else {
            let query = selected(&subject, "true");
            if let Outcome::Done(result, _) = run(&mut client, &query, Protocol::Text) {
                answered.push((query, sorted(texts(&result))));
            }
            continue;
        };
        if report.lost {
            report.add(kind.clone(), |kind| {
                format!("-- seed {seed}, case {case}: {kind}\n{}", subject.to_text())
            });
            return Ok(());
        }
        let variants = generator.schema.has_variants;
        let mut quiet = Report::default();
        let smallest = subject.shrink(TRIES_MAX, true, |tree| {
            fault(&mut client, tree, variants, &mut quiet).is_ok_and(|found| found.as_ref() == Some(&kind))
        });
        let head = format!("{kind} | {}", selected(&smallest, "true").to_text());
        report
            .add(head, |head| format!("-- seed {seed}, case {case}: {head}\n{};\n", script[3..].join(";\n")));
    }
    let of = format!("-- seed {seed}, case {case}");
    without_indexes(&mut client, &generator.schema, &answered, report, |head| {
        format!("{of}: {head}\n{};\n", script[3..].join(";\n"))
    })
}

/// The same rows when no index is left but the primary keys.
fn without_indexes(
    client: &mut Client,
    schema: &Schema,
    answered: &[(Tree, Rows)],
    report: &mut Report,
    script: impl Fn(&str) -> String,
) -> Result<(), String> {
    for table in &schema.tables {
        for index in &table.indexes {
            let drop = format!("DROP INDEX {index} ON {}", table.name);
            client.query(&drop).map_err(|error| format!("{drop}: {error}"))?;
        }
    }
    for (query, rows) in answered {
        let written = query.to_text();
        // LIMIT may keep any of the rows that compare as equal.
        if schema.has_variants && written.contains("LIMIT") {
            continue;
        }
        // A hint names an index that is gone.
        if let Outcome::Done(result, _) = run(client, query, Protocol::Text)
            && sorted(texts(&result)) != *rows
        {
            report.add(format!("without indexes | {written}"), &script);
        }
    }
    Ok(())
}

/// The query of the rows for which the condition is what `part` says.
fn selected(subject: &Tree, part: &str) -> Tree {
    let Tree::Sequence(parts) = subject else { return subject.clone() };
    let [listed, grouped, from, condition] = parts.as_slice() else { return subject.clone() };
    let mut query = fill("SELECT {}, {} FROM {}", vec![listed.clone(), grouped.clone(), from.clone()]);
    let template = match part {
        "all" => return Tree::Sequence(query),
        "true" => " WHERE {}",
        "false" => " WHERE NOT ({})",
        _ => " WHERE ({}) IS NULL",
    };
    query.extend(fill(template, vec![condition.clone()]));
    Tree::Sequence(query)
}

fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

/// Runs queries of a subject. Stops at the first that gives no rows.
struct Asked<'c> {
    client: &'c mut Client,
    /// Why it stopped, if that is a fault.
    fault: Option<String>,
    lost: bool,
}

impl Asked<'_> {
    fn rows(&mut self, query: &str) -> Option<Rows> {
        match run(self.client, &text(query), Protocol::Text) {
            Outcome::Done(result, _) => Some(sorted(texts(&result))),
            outcome if outcome.is_timeout() => None,
            Outcome::Error(code, _) if is_of_values(code) => None,
            Outcome::Error(code, _) => {
                self.fault = Some(format!("error {code}"));
                None
            }
            Outcome::Lost(why) => {
                self.fault = Some(format!("lost: {why}"));
                self.lost = true;
                None
            }
        }
    }
}

/// How the queries of a subject contradict each other.
fn fault(
    client: &mut Client,
    subject: &Tree,
    has_variants: bool,
    report: &mut Report,
) -> Result<Option<String>, String> {
    let mut asked = Asked { client, fault: None, lost: false };
    let found = contradiction(&mut asked, subject, has_variants);
    report.answered += u64::from(found.is_some());
    report.lost |= asked.lost;
    Ok(match found {
        Some(found) => found,
        None => asked.fault,
    })
}

/// `None` if a query gave no rows, and `Some(None)` if all agree.
fn contradiction(asked: &mut Asked<'_>, subject: &Tree, has_variants: bool) -> Option<Option<String>> {
    let Tree::Sequence(parts) = subject else { return None };
    let [listed, grouped, from, condition] = parts.as_slice() else { return None };
    let [listed, grouped, from, condition] = [listed, grouped, from, condition].map(Tree::to_text);
    let wheres = ["", " WHERE {}", " WHERE NOT ({})", " WHERE ({}) IS NULL"]
        .map(|part| part.replace("{}", &condition));
    let mut pieces = Vec::new();
    for part in &wheres {
        pieces.push(asked.rows(&format!("SELECT {listed}, {grouped} FROM {from}{part}"))?);
    }
    let together = |pieces: &[Rows]| sorted(pieces[1..].concat());
    if pieces[0] != together(&pieces) {
        return Some(Some("partition of rows".into()));
    }
    let counted = asked.rows(&format!("SELECT COUNT(*), SUM(({condition}) IS TRUE) FROM {from}"))?;
    let sum = if pieces[1].is_empty() && pieces[0].is_empty() {
        "NULL".into()
    } else {
        pieces[1].len().to_string()
    };
    if counted != [vec![pieces[0].len().to_string(), sum]] {
        return Some(Some("count of a condition".into()));
    }
    for setting in SETTINGS {
        asked.rows(setting)?;
        let rows = asked.rows(&format!("SELECT {listed}, {grouped} FROM {from}{}", wheres[1]));
        for usual in USUAL {
            asked.rows(usual)?;
        }
        if rows? != pieces[1] {
            return Some(Some(format!("other rows after {setting}")));
        }
    }
    if has_variants {
        return Some(None);
    }
    let mut groups = [BTreeMap::new(), BTreeMap::new()];
    let mut distinct = Vec::new();
    for (number, part) in wheres.iter().enumerate() {
        distinct.push(asked.rows(&format!("SELECT DISTINCT {listed}, {grouped} FROM {from}{part}"))?);
        let rows = asked.rows(&format!("SELECT {grouped}, COUNT(*) FROM {from}{part} GROUP BY {grouped}"))?;
        for row in rows {
            let count: u64 = row[1].parse().unwrap_or_default();
            *groups[number.min(1)].entry(row[0].clone()).or_insert(0) += count;
        }
    }
    if groups[0] != groups[1] {
        return Some(Some("partition of groups".into()));
    }
    // Numbers that are rounded here, NULL and 'NULL' are told apart by the server alone.
    let unique = |mut rows: Rows| {
        rows.dedup();
        rows
    };
    if unique(distinct[0].clone()) != unique(together(&distinct)) {
        return Some(Some("partition of distinct rows".into()));
    }
    having(asked, &grouped, &from)
}

/// Groups by what HAVING says of them.
fn having(asked: &mut Asked<'_>, grouped: &str, from: &str) -> Option<Option<String>> {
    let mut pieces = Vec::new();
    for part in ["", " HAVING n > 1", " HAVING NOT (n > 1)", " HAVING (n > 1) IS NULL"] {
        let query = format!("SELECT {grouped} AS g, COUNT(*) AS n FROM {from} GROUP BY {grouped}{part}");
        pieces.push(asked.rows(&query)?);
    }
    Some((pieces[0] != sorted(pieces[1..].concat())).then(|| "partition by HAVING".into()))
}
