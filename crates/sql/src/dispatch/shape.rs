//! Planned statements: from text or parameters to a plan.

use crate::exec::{Scratch, recycle};
use crate::expr::Slots;
use crate::plan::bind::SlotInfo;
use crate::plan::names::select_list;
use crate::plan::select::CONNECTION_COLLATION;
use crate::session::plans::{Plan, SessionPlans};
use crate::session::{PreparedText, StatementCache, WorkingMemory};
use crate::statements::dml;
use crate::statements::query::Query;
use crate::status::Counter;
use crate::text::parse;
use crate::text::{LexicalMode, Scan, ScanEnd, SlotKind, SlotShape};
use crate::{ErrorKind, ResultSink, Session, SqlError};
use base::phases::{self, Phase};
use sqlparser::ast;
use std::sync::Arc;
use types::ValueRef;

impl Session {
    /// True for statements that are planned. The first word decides.
    pub(crate) fn is_planned(sql: &[u8]) -> bool {
        let start = sql.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b'(').unwrap_or(0);
        let rest = &sql[start..];
        let words: [&[u8]; 7] = [b"select", b"update", b"delete", b"insert", b"replace", b"with", b"values"];
        words.iter().any(|word| {
            rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
                && rest.get(word.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        })
    }

    /// Scans a statement of text, and runs the plan of its shape. `None` if it cannot be scanned as it is.
    pub(super) fn scan_and_run(
        &mut self,
        cache: &mut StatementCache,
        sql: &[u8],
        sink: &mut dyn ResultSink,
    ) -> Option<Result<(), SqlError>> {
        let StatementCache { scan, plans, prefix } = cache;
        let mode = self.lexical();
        self.write_key_prefix(mode, prefix);
        let parsing = phases::enter(Phase::Parse);
        let end = scan.scan(prefix, sql, mode);
        drop(parsing);
        if end != ScanEnd::Whole || scan.parameters > 0 {
            return None;
        }
        let WorkingMemory { values, mut scratch } = self.take_working_memory();
        let mut filled = recycle(values);
        filled.extend(scan.literals.iter().map(|literal| literal.value(sql, &scan.unescaped, &[])));
        let slots = Slots::new(&filled, &scan.starts);
        let text = Literals { text: sql, shapes: &scan.slots, slots };
        let planning = phases::enter(Phase::Plan);
        let found = plans.find(&scan.key);
        drop(planning);
        let result = match found {
            // The plan is borrowed and not cloned, because other sessions share its reference counter.
            Some(plan) => self.run_plan(plan, slots, &text, &mut scratch, sink),
            None => match self.plan_scanned(scan, sql, mode, plans) {
                Ok(plan) => self.run_plan(&plan, slots, &text, &mut scratch, sink),
                // Perhaps only the shape is wrong, because a literal stands where syntax is expected. The
                // parser decides.
                Err(error) if error.kind == ErrorKind::Syntax => return None,
                Err(error) => Err(error),
            },
        };
        self.keep_working_memory(WorkingMemory { values: recycle(filled), scratch });
        Some(result)
    }

    /// Fills the slots of a prepared statement that was scanned with parameters, and runs its plan. `None` if
    /// it cannot be scanned anew for other settings.
    pub(super) fn fill_and_run(
        &mut self,
        cache: &mut StatementCache,
        prepared: &mut PreparedText,
        parameters: &[ValueRef<'_>],
        sink: &mut dyn ResultSink,
    ) -> Option<Result<(), SqlError>> {
        let StatementCache { plans, prefix, .. } = cache;
        let mode = prepared.mode;
        self.write_key_prefix(mode, prefix);
        if prepared.scan.key[..prepared.scan.key_start] != **prefix {
            // The plan was made for other settings.
            prepared.plan = None;
            if prepared.scan.scan(prefix, &prepared.text, mode) != ScanEnd::Whole {
                return None;
            }
        }
        let PreparedText { text, scan, kinds, plan, .. } = prepared;
        let WorkingMemory { values, mut scratch } = self.take_working_memory();
        let mut filled = recycle(values);
        filled.extend(scan.literals.iter().map(|literal| literal.value(text, &scan.unescaped, parameters)));
        let slots = Slots::new(&filled, &scan.starts);
        let same = kinds.len() == scan.slots.len()
            && scan
                .slots
                .iter()
                .zip(kinds.iter())
                .enumerate()
                .all(|(at, (slot, kind))| slot.kind.is_some() || kind_of_slot(slot, &slots, at) == *kind);
        let current = plan.as_ref().filter(|plan| same && plan.is_current());
        let literals = Literals { text, shapes: &scan.slots, slots };
        let result = match current {
            Some(plan) => self.run_plan(plan, slots, &literals, &mut scratch, sink),
            None => {
                kinds.clear();
                kinds.extend(
                    scan.slots
                        .iter()
                        .enumerate()
                        .map(|(at, slot)| slot.kind.unwrap_or_else(|| kind_of_slot(slot, &slots, at))),
                );
                let mut with_kinds = scan.clone();
                with_kinds.fill_kinds(kinds);
                match self.plan_scanned(&with_kinds, text, mode, plans) {
                    Ok(made) => {
                        let made = plan.insert(made);
                        self.run_plan(made, slots, &literals, &mut scratch, sink)
                    }
                    Err(error) => Err(error),
                }
            }
        };
        self.keep_working_memory(WorkingMemory { values: recycle(filled), scratch });
        Some(result)
    }

    /// Writes the settings that a plan depends on beside the shape of the text. They precede the key.
    pub(crate) fn write_key_prefix(&self, mode: LexicalMode, prefix: &mut Vec<u8>) {
        prefix.clear();
        if let Some(database) = &self.state.database {
            prefix.extend_from_slice(database.as_bytes());
        }
        prefix.push(0);
        let limit = self.variables.common.sql_select_limit;
        if limit != u64::MAX {
            prefix.extend_from_slice(&limit.to_le_bytes());
        }
        let connection = self.variables.common.connection;
        if connection != CONNECTION_COLLATION {
            prefix.extend_from_slice(&connection.id().to_le_bytes());
        }
        prefix.push(self.variables.common.join_methods.key() << 4 | mode.key());
    }

    /// The plan of a scanned statement: from the shared store, or made now.
    pub(crate) fn plan_scanned(
        &self,
        scan: &Scan,
        sql: &[u8],
        mode: LexicalMode,
        plans: &mut SessionPlans,
    ) -> Result<Arc<Plan>, SqlError> {
        let _planning = phases::enter(Phase::Plan);
        plans.make(&scan.key, &self.instance.plans, || {
            let parsing = phases::enter(Phase::Parse);
            let text = scan.parser_text();
            let text = std::str::from_utf8(&text).map_err(|_| invalid_text(sql))?;
            let statement = parse::parse_ast(text, mode)?;
            drop(parsing);
            let slots: Vec<SlotInfo> = kinds_in_key(scan);
            self.plan_parsed(&statement, &slots, select_list(&scan.key[scan.key_start..], mode))
        })
    }

    /// Plans a parsed statement.
    ///
    /// # Errors
    /// Those of planning.
    pub(crate) fn plan_parsed(
        &self,
        statement: &ast::Statement,
        slots: &[SlotInfo],
        names: Vec<crate::plan::names::Name>,
    ) -> Result<Plan, SqlError> {
        match statement {
            ast::Statement::Query(query) => match parse::take_destination(query) {
                None => Ok(Plan::Query(self.plan_query(query, slots, names)?)),
                Some((query, destination)) => {
                    let plan = self.plan_query(&query, slots, names)?;
                    dml::plan_into(plan, destination).map(Plan::Change)
                }
            },
            change => {
                let mut planner = self.planner(slots);
                planner.names = names;
                dml::plan_change(self, planner, change).map(Plan::Change)
            }
        }
    }

    /// Runs a plan with these values in its slots, up to the end that the client sees.
    fn run_plan(
        &mut self,
        plan: &Plan,
        slots: Slots<'_>,
        literals: &Literals<'_>,
        scratch: &mut Vec<Scratch>,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        self.access.check(plan.needs())?;
        let literal_text = &|slot, alone| literals.text_of(slot, alone);
        match plan {
            Plan::Query(plan) => {
                self.counters.add(Counter::ComSelect, 1);
                self.answer_query(&Query { plan, slots, literal_text }, scratch, sink)?;
                self.state.transaction.did.send_rows |= self.state.transaction.open;
                Ok(())
            }
            Plan::Change(plan) => plan.run(self, slots, literal_text, sink),
        }
    }

    /// Plans a statement that was parsed as it stands, with its literals, and runs it.
    pub(crate) fn plan_and_run(
        &mut self,
        statement: &ast::Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<(), SqlError> {
        let plan = self.plan_parsed(statement, &[], vec![])?;
        let literals = Literals { text: &[], shapes: &[], slots: Slots::EMPTY };
        let mut scratch = Vec::new();
        self.run_plan(&plan, Slots::EMPTY, &literals, &mut scratch, sink)
    }
}

/// The literals of a statement as they were written.
pub(crate) struct Literals<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) shapes: &'a [SlotShape],
    pub(crate) slots: Slots<'a>,
}

impl Literals<'_> {
    pub(crate) fn text_of(&self, slot: usize, alone: bool) -> String {
        let Some(shape) = self.shapes.get(slot) else { return String::new() };
        let text = match self.slots.list(slot) {
            [ValueRef::Text(text)] if alone && shape.kind.is_some() => text.trim_ascii_start(),
            _ => self.text.get(shape.from as usize..shape.end as usize).unwrap_or_default(),
        };
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The kind of the value in a slot.
#[inline]
fn kind_of_slot(slot: &SlotShape, slots: &Slots<'_>, at: usize) -> SlotKind {
    if !slot.list {
        return match slots.value(at) {
            // As for literals: the digits of results depend on it.
            ValueRef::Decimal(number) if slot.keeps_scale => {
                SlotKind::Decimal { scale: Some(number.scale()) }
            }
            value => SlotKind::of(&value),
        };
    }
    let mut kind = None;
    for value in slots.list(at) {
        let this = SlotKind::of(value);
        match kind {
            None => kind = Some(this),
            Some(known) if known != this => return SlotKind::Mixed,
            Some(_) => {}
        }
    }
    kind.unwrap_or(SlotKind::Null)
}

/// The kinds of a scan's slots. The kinds of parameters are those that were filled into its key.
fn kinds_in_key(scan: &Scan) -> Vec<SlotInfo> {
    scan.slots
        .iter()
        .map(|slot| SlotInfo { kind: slot.kind.unwrap_or_else(|| scan.kind_in_key(slot)), list: slot.list })
        .collect()
}

fn invalid_text(sql: &[u8]) -> SqlError {
    match parse::utf8(sql) {
        Err(error) => error,
        Ok(text) => SqlError::syntax(text, 1),
    }
}
