//! INSERT and REPLACE of literals: makes row images directly from the statement's bytes.

use super::insert::BATCH_BYTES;
use super::inserter::{Given, Inserter, OnDuplicate};
use crate::accounts::Rights;
use crate::session::DEFINITION_RETRIES;
use crate::session::Target;
use crate::session::bulk::Inserted;
use crate::session::bulk::{BulkParam, ParameterRows};
use crate::session::transaction::Writes;
use crate::status::Counter;
use crate::text::LexicalMode;
use crate::text::insert_scanner::{Head, Literal, Scanner};
use crate::{Completion, ResultSink, Session, SqlError};
use bumpalo::Bump;
use types::{Decimal, ValueRef};

impl Session {
    /// Runs `sql` if it is a plain INSERT or REPLACE. `None` if it is something else, or wrong. Then nothing
    /// was changed.
    pub(crate) fn try_plain_insert(
        &mut self,
        sql: &[u8],
        mode: LexicalMode,
        parameters: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Option<Result<(), SqlError>> {
        let first = sql.iter().find(|byte| !byte.is_ascii_whitespace())?;
        if !matches!(first, b'I' | b'i' | b'R' | b'r') {
            return None;
        }
        let mut scanner = Scanner::new(sql, mode);
        let head = scanner.head()?;
        let rows = scanner.clone();
        self.state.warnings.forget_old();
        let Some(mut result) = self.plain_insert(&mut scanner, &head, sql.len(), parameters) else {
            // The planned way warns again of the rows that were read.
            self.state.warnings.clear();
            return None;
        };
        for _ in 0..DEFINITION_RETRIES {
            if !matches!(&result, Err(error) if error.is_definition_changed()) {
                break;
            }
            self.state.warnings.clear();
            scanner = rows.clone();
            result = self.plain_insert(&mut scanner, &head, sql.len(), parameters)?;
        }
        let counter = if head.replace { Counter::ComReplace } else { Counter::ComInsert };
        self.counters.add(counter, 1);
        Some(result.and_then(|inserted| self.end_insert(&inserted, sink)))
    }

    fn plain_insert<'a>(
        &mut self,
        scanner: &mut Scanner<'a>,
        head: &Head<'a>,
        bytes: usize,
        parameters: &[ValueRef<'a>],
    ) -> Option<Result<Inserted, SqlError>> {
        // The parser reports wrong names, because the text may not even be a statement.
        let target = self.target(head.database.as_deref(), &head.table).ok()?;
        if !self.may_insert(&target, head) {
            return None;
        }
        let on_duplicate = OnDuplicate::of(head.replace, head.ignore);
        let mut inserter = Inserter::new(self, target, head.columns.as_deref(), on_duplicate).ok()?;
        let arena = Bump::new();
        let mut literals = Vec::new();
        let mut given: Vec<Given<'_>> = Vec::new();
        let mut many = false;
        loop {
            scanner.row(&mut literals)?;
            let another = scanner.another_row()?;
            if another && !many {
                many = true;
                inserter.many_rows();
                inserter.reserve(bytes);
            }
            given.clear();
            for literal in &literals {
                let parameter = |number: usize| parameters.get(number).copied().map(Given::Value);
                given.push(value_of(scanner, *literal, parameter, &arena)?);
            }
            if let Err(error) = inserter.add(self, &given, &arena) {
                // The rest may be no valid statement, and a syntax error comes before all other errors.
                let mut more = another;
                while more {
                    scanner.row(&mut literals)?;
                    more = scanner.another_row()?;
                }
                return Some(Err(error));
            }
            if !another {
                break;
            }
        }
        Some(inserter.finish(self))
    }

    /// False for a session that may not do this: the planned way says what is missing.
    fn may_insert(&self, target: &Target, head: &Head<'_>) -> bool {
        let whole = if head.replace { Rights::DELETE } else { Rights::NONE };
        if self.access.global.contains(whole | Rights::INSERT) {
            return true;
        }
        let def = &target.def;
        let grant = self.access.on_table(&def.database, &def.name);
        let may = |column: &str| grant.on_column(column).contains(Rights::INSERT);
        grant.rights.contains(whole)
            && (grant.rights.contains(Rights::INSERT)
                || match &head.columns {
                    // Even an empty list needs a right on some column.
                    Some(columns) => !columns.is_empty() && columns.iter().all(|column| may(column)),
                    None => def.columns.iter().all(|column| may(&column.name)),
                })
    }

    /// Runs `sql` once for each row of parameters, as one statement, if it is a plain INSERT or REPLACE.
    /// `None` if it is something else. Then nothing was changed.
    pub(crate) fn try_plain_insert_of_rows<'p>(
        &mut self,
        sql: &[u8],
        mode: LexicalMode,
        rows: &mut dyn ParameterRows<'p>,
        sink: &mut dyn ResultSink,
    ) -> Option<Result<(), SqlError>> {
        let mut scanner = Scanner::new(sql, mode);
        let head = scanner.head()?;
        let mut literals = Vec::new();
        loop {
            let mut row = Vec::new();
            scanner.row(&mut row)?;
            literals.push(row);
            if !scanner.another_row()? {
                break;
            }
        }
        let plain = PlainRows { scanner, head, literals };
        let mut result = Err(SqlError::definition_changed());
        for _ in 0..=DEFINITION_RETRIES {
            if !matches!(&result, Err(error) if error.is_definition_changed()) {
                break;
            }
            self.state.warnings.clear();
            rows.rewind();
            result = plain.insert(self, rows)?;
        }
        let counter = if plain.head.replace { Counter::ComReplace } else { Counter::ComInsert };
        self.counters.add(counter, 1);
        Some(result.and_then(|inserted| self.end_insert(&inserted, sink)))
    }

    /// Sends the end of an INSERT or REPLACE to the client.
    pub(crate) fn end_insert(
        &mut self,
        inserted: &Inserted,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.end_insert_with_info(inserted, inserted.records > 1, sink)
    }

    /// As [`Session::end_insert`], but with the line about records even for one row.
    pub(crate) fn end_insert_with_info(
        &mut self,
        inserted: &Inserted,
        tells: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        if let Some(bulk) = &mut self.bulk {
            bulk.add(inserted);
            return Ok(());
        }
        let warnings = self.state.warnings.count_u16();
        let info = if tells {
            format!(
                "Records: {}  Duplicates: {}  Warnings: {warnings}",
                inserted.records, inserted.duplicates
            )
        } else {
            String::new()
        };
        self.state.row_count = inserted.affected as i64;
        sink.end(&Completion {
            affected_rows: inserted.affected,
            last_insert_id: match (inserted.is_generated, self.state.given_insert_id) {
                (false, Some(given)) => given,
                _ => inserted.insert_id,
            },
            warnings,
            info,
        })
    }
}

/// A plain INSERT or REPLACE that runs with several rows of parameters.
struct PlainRows<'t> {
    scanner: Scanner<'t>,
    head: Head<'t>,
    /// Its own rows, which each row of parameters fills.
    literals: Vec<Vec<Literal<'t>>>,
}

impl PlainRows<'_> {
    fn insert(
        &self,
        session: &mut Session,
        rows: &mut dyn ParameterRows<'_>,
    ) -> Option<Result<Inserted, SqlError>> {
        let head = &self.head;
        let target = session.target(head.database.as_deref(), &head.table).ok()?;
        if !session.may_insert(&target, head) {
            return None;
        }
        let on_duplicate = OnDuplicate::of(head.replace, head.ignore);
        let mut inserter =
            Inserter::new(session, target.clone(), head.columns.as_deref(), on_duplicate).ok()?;
        if self.literals.len() > 1 {
            inserter.many_rows();
        }
        let tables = [target.used()];
        let family = target.family(session).cloned();
        Some(session.write_tables(
            Writes::Rows,
            &tables,
            family.as_deref().as_slice(),
            &|| target.is_current(),
            |session, readers, mut writer| {
                let mut inserted = Inserted::default();
                let mut arena = Bump::new();
                let mut row = Vec::new();
                while rows.next_row(&mut row) {
                    for literals in &self.literals {
                        arena.reset();
                        let added = self
                            .given(literals, &row, &arena)
                            .and_then(|given| inserter.add(session, &given, &arena));
                        if added.is_err() || inserter.batch().bytes.len() >= BATCH_BYTES {
                            // If a row before this one collides, that error comes first.
                            session.interrupt.check()?;
                            inserter.write_and_warn(session, readers.current, &mut writer, &mut inserted)?;
                        }
                        added?;
                    }
                }
                inserter.write_and_warn(session, readers.current, &mut writer, &mut inserted)?;
                Ok(inserted)
            },
        ))
    }

    /// The values of one row.
    fn given<'v>(
        &'v self,
        literals: &[Literal<'v>],
        row: &[BulkParam<'v>],
        arena: &'v Bump,
    ) -> Result<Vec<Given<'v>>, SqlError> {
        let parameter = |number: usize| {
            row.get(number).map(|param| match param {
                BulkParam::Value(value) => Given::Value(*value),
                BulkParam::Default | BulkParam::Ignore => Given::Default,
            })
        };
        literals
            .iter()
            .map(|literal| {
                value_of(&self.scanner, *literal, parameter, arena)
                    .ok_or_else(|| SqlError::internal("a literal that is none"))
            })
            .collect()
    }
}

#[inline]
fn value_of<'v>(
    scanner: &Scanner<'v>,
    literal: Literal<'v>,
    parameter: impl Fn(usize) -> Option<Given<'v>>,
    arena: &'v Bump,
) -> Option<Given<'v>> {
    Some(Given::Value(match literal {
        Literal::Int(value) => ValueRef::Int(value),
        Literal::Text(text) => ValueRef::Text(text),
        Literal::UInt(value) => ValueRef::UInt(value),
        Literal::Null => ValueRef::Null,
        Literal::Default => return Some(Given::Default),
        Literal::Decimal(text) => ValueRef::Decimal(Decimal::parse_prefix(text).0),
        Literal::Float(text) => ValueRef::Double(types::number::parse_f64_prefix(text).0),
        Literal::Escaped(inner, quote) => {
            let mut out = Vec::with_capacity(inner.len());
            scanner.unescape(inner, quote, &mut out);
            ValueRef::Text(arena.alloc_slice_copy(&out))
        }
        Literal::Hex(digits) => ValueRef::Binary(arena.alloc_slice_copy(&hex_bytes(digits)?)),
        Literal::Bits(digits) => return Some(Given::Bits(arena.alloc_slice_copy(&hex_bytes(digits)?))),
        Literal::Parameter(number) => return parameter(number),
    }))
}

/// The bytes of hexadecimal digits. If their number is odd, the first digit is a byte by itself.
fn hex_bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::with_capacity(digits.len().div_ceil(2));
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    if let [alone] = odd {
        bytes.push(digit(*alone)?);
    }
    for pair in pairs.chunks_exact(2) {
        bytes.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(bytes)
}
