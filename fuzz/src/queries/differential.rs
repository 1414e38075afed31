//! The same statements on MariaDB and on Latchwork.

use super::differences::Known;
use super::expressions::Generator;
use super::outcome::{Client, Outcome};
use super::pair::{Data, Difference, Pair, Statement, draw_protocol};
use super::schema::{Schema, chance};
use super::tree::{Protocol, Tree, text};
use base::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// What a run has found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub statements: u64,
    /// Statements that both servers answered with rows or a count.
    pub answered: u64,
    /// Differences, each as a script.
    pub found: Vec<String>,
    /// How many differences are gone when MariaDB plans in another way.
    pub excused: BTreeMap<&'static str, u64>,
    /// The kinds and statements of the differences that were found.
    seen: BTreeSet<String>,
    /// True if the last case ended because a connection did.
    pub lost: bool,
    /// The types of columns are compared, too.
    pub types: bool,
    /// Values of one kind stand where another one is wanted.
    pub mixes_kinds: bool,
}

/// How often a statement may run while it is made smaller.
const TRIES_MAX: usize = 600;

/// Statements of a case.
const STATEMENTS: usize = 60;

/// One case: tables, and statements over them. The same `case` of the same `seed` is the same case.
///
/// # Errors
/// If a server refuses what it should take.
pub fn case(
    clients: (Client, Client),
    seed: u64,
    case: u64,
    known: &mut Known,
    report: &mut Report,
) -> Result<(), String> {
    let mut random = Random::new(seed, case);
    let schema = Schema::draw(&mut random);
    let mut pair = Pair::new(clients.0, clients.1, schema.clone(), &mut random)?;
    pair.types = report.types;
    for (table, of) in schema.tables.iter().enumerate() {
        let insert = of.insert(&mut random, schema.has_variants);
        let statement = Statement { tree: text(insert), protocol: Protocol::Text, changes: Some(table) };
        if !check(&mut pair, &statement, known, report, seed, case)? {
            return Ok(());
        }
    }
    let mixes_kinds = report.mixes_kinds && chance(&mut random, 2);
    let mut generator =
        Generator { random, schema, mixes_kinds, aliases: 0, names_are_distinct: false, changed: None };
    for _ in 0..STATEMENTS {
        generator.aliases = 0;
        let depth = 1 + generator.random.below(3);
        let protocol = draw_protocol(&mut generator.random);
        let statement = match chance(&mut generator.random, 4) {
            true => {
                let change = generator.change(depth.min(2));
                Statement { tree: change.tree, protocol, changes: Some(change.table) }
            }
            false => Statement { tree: generator.select(depth), protocol, changes: None },
        };
        check(&mut pair, &statement, known, report, seed, case)?;
        if report.lost {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs a statement, and makes a difference as small as it can be. False if there was one.
fn check(
    pair: &mut Pair,
    statement: &Statement,
    known: &mut Known,
    report: &mut Report,
    seed: u64,
    case: u64,
) -> Result<bool, String> {
    report.statements += 1;
    let Some(difference) = pair.compare(statement, true)? else {
        return Ok(true);
    };
    if matches!(difference.got, Outcome::Lost(_)) {
        report.lost = true;
        let script = pair.script(&vec![vec![]; pair.schema.tables.len()], statement);
        report.add(format!("{}: {}", difference.kind, pair.pattern(&statement.tree)), |_| {
            format!("-- seed {seed}, case {case}\n{script}-- {}\n", difference.kind)
        });
        return Ok(false);
    }
    let (statement, difference) = shrink(pair, statement, difference)?;
    let pattern = pair.pattern(&statement.tree);
    if known.has(&difference.kind, &pattern) || known.has(&difference.kind, &with_derived_types(&pattern)) {
        return Ok(false);
    }
    let head = format!("{} | {pattern}", difference.kind);
    if report.seen.contains(&head) {
        return Ok(false);
    }
    if let Some(excuse) = pair.excuse(&statement)? {
        *report.excused.entry(excuse).or_default() += 1;
        return Ok(false);
    }
    let data = shrink_rows(pair, &statement, &difference)?;
    let script = pair.script(&data, &statement);
    report.add(head, |head| {
        format!(
            "-- seed {seed}, case {case}: {head}\n{script}-- MariaDB:   {}\n-- Latchwork: {}\n",
            shown(&difference.expected),
            shown(&difference.got)
        )
    });
    Ok(false)
}

impl Report {
    /// A fault, if it is new.
    pub fn add(&mut self, head: String, script: impl FnOnce(&str) -> String) {
        if !self.seen.contains(&head) {
            self.found.push(script(&head));
            self.seen.insert(head);
        }
    }
}

/// The smallest statement with the same kind of difference.
fn shrink(
    pair: &mut Pair,
    statement: &Statement,
    difference: Difference,
) -> Result<(Statement, Difference), String> {
    let mut smallest = (statement.clone(), difference);
    let mut problem = None;
    let protocols: &[Protocol] = match statement.protocol {
        Protocol::Text => &[],
        Protocol::Binary => &[Protocol::Text],
        Protocol::Parameters => &[Protocol::Text, Protocol::Binary],
    };
    for protocol in protocols {
        let other = Statement { protocol: *protocol, ..statement.clone() };
        if let Some(found) = pair.compare(&other, false)?
            && found.kind == smallest.1.kind
        {
            smallest = (other, found);
            break;
        }
    }
    let begin = smallest.0.tree.clone();
    let rows_matter = !smallest.1.kind.starts_with("column");
    begin.shrink(TRIES_MAX, rows_matter, |tree: &Tree| {
        let candidate = Statement { tree: tree.clone(), ..smallest.0.clone() };
        match pair.compare(&candidate, false) {
            Ok(Some(found)) if found.kind == smallest.1.kind => {
                smallest = (candidate, found);
                true
            }
            Ok(_) => false,
            Err(error) => {
                problem = Some(error);
                false
            }
        }
    });
    problem.map_or(Ok(smallest), Err)
}

/// The fewest rows with the same kind of difference.
fn shrink_rows(pair: &mut Pair, statement: &Statement, difference: &Difference) -> Result<Data, String> {
    let mut data = pair.data()?;
    let mut fails = |data: &Data| {
        pair.compare_on(data, statement).map(|found| found.is_some_and(|found| found.kind == difference.kind))
    };
    if !fails(&data)? {
        return Ok(data);
    }
    for table in 0..data.len() {
        let mut piece = data[table].len();
        while piece > 0 {
            let mut from = 0;
            while from < data[table].len() {
                let mut fewer = data.clone();
                let until = (from + piece).min(fewer[table].len());
                fewer[table].drain(from..until);
                match fails(&fewer)? {
                    true => data = fewer,
                    false => from += piece,
                }
            }
            piece /= 2;
        }
    }
    Ok(data)
}

fn shown(outcome: &Outcome) -> String {
    let shown = match outcome {
        Outcome::Error(code, message) => format!("error {code}: {message}"),
        Outcome::Lost(why) => format!("lost: {why}"),
        Outcome::Done(result, warnings) => {
            let columns: Vec<String> = result
                .columns
                .iter()
                .map(|column| {
                    let of = column.wire_type;
                    let sign = if of.unsigned { " unsigned" } else { "" };
                    format!("{} {}{sign} .{} #{}", column.name, of.kind, column.decimals, column.charset)
                })
                .collect();
            let mut rows = result.to_text();
            rows.sort();
            format!(
                "{} affected {rows:?} [{}] warnings {warnings:?}",
                result.affected_rows,
                columns.join(", ")
            )
        }
    };
    shown.chars().take(1500).collect()
}

impl Pair {
    /// The statement with types in place of the columns of tables, for those who compare statements.
    pub fn pattern(&self, statement: &Tree) -> String {
        let written = statement.to_text();
        let mut types: Vec<(String, String)> = Vec::new();
        for table in &self.schema.tables {
            let mut aliases = vec![table.name.clone()];
            for (at, found) in written.match_indices(&format!("{} AS ", table.name)) {
                let alias: String =
                    written[at + found.len()..].chars().take_while(char::is_ascii_alphanumeric).collect();
                aliases.push(alias);
            }
            for alias in aliases {
                for column in &table.columns {
                    types.push((format!("{alias}.{}", column.name), format!("<{}>", column.sql)));
                }
            }
        }
        // The longest first: x1.a is the beginning of x1.abc.
        types.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        types.iter().fold(written, |written, (name, of)| replace_name(&written, name, of))
    }
}

/// The pattern with types in place of the columns of derived tables, too, where they are columns of tables.
fn with_derived_types(pattern: &str) -> String {
    let mut out = pattern.to_owned();
    let mut from = 0;
    // Tables within tables end first, so that the columns of the outer ones have their types by then.
    while let Some(end) = out[from..].find(") AS x").map(|at| from + at) {
        let alias: String =
            out[end + ") AS ".len()..].chars().take_while(char::is_ascii_alphanumeric).collect();
        for (name, of) in typed_items(&out[opening(&out, end)..end]) {
            out = replace_name(&out, &format!("{alias}.{name}"), &of);
        }
        from = out.find(&format!(") AS {alias}")).map_or(end, |at| at + 1).max(from + 1);
    }
    out
}

/// Where the parenthesis opens that closes at `end`.
fn opening(text: &str, end: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate().take(end).rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 0 => return at,
            b'(' => depth -= 1,
            _ => {}
        }
    }
    0
}

/// The items of a select list that are a type as in `<INT> AS c1`: name and type.
fn typed_items(query: &str) -> Vec<(String, String)> {
    let begins = query.match_indices('<').map(|(at, _)| at);
    begins
        .filter(|at| query[..*at].ends_with([' ', ',']))
        .filter_map(|at| {
            let (of, rest) = query[at..].split_once("> AS ")?;
            let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            let is_item = !of[1..].contains(['<', '>', '\'']) && name.starts_with('c');
            is_item.then(|| (name, format!("{of}>")))
        })
        .collect()
}

/// Replaces a name where no other name goes on.
fn replace_name(text: &str, name: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let behind = &rest[at + name.len()..];
        let goes_on = behind.starts_with(|next: char| next.is_ascii_alphanumeric());
        let begins = rest[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
        out += &rest[..at];
        out += if goes_on || begins { name } else { by };
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_derived_tables_have_types() {
        for (columns, tables) in [
            ("x3.c2 - <INT>", "t1 AS x1 JOIN (SELECT <DATE> AS c1, <INT> AS c2 FROM t1 AS x2) AS x3"),
            ("x5.c1, x5.c12", "(SELECT x4.c2 AS c1 FROM (SELECT <INT> AS c2 FROM t1 AS x3) AS x4) AS x5"),
            ("x2.c1", "(SELECT (1 + <INT>) AS c1 FROM t1 AS x1) AS x2"),
            ("x2.c1", "(SELECT (<INT> < <INT>) AS c1 FROM t1 AS x1) AS x2"),
        ] {
            let resolved = with_derived_types(&format!("SELECT {columns} FROM {tables}"));
            let expected = columns.replace("x3.c2", "<INT>").replace("x5.c1,", "<INT>,");
            assert!(resolved.starts_with(&format!("SELECT {expected} FROM ")), "{resolved}");
        }
    }
}
