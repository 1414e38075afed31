//! From bound expressions to nodes.

mod codes;
mod collations;
mod constants;
mod unify;

pub(super) use constants::seconds_digits;
pub(super) use unify::{unify, unify_with_times};

use super::coded;
use super::functions::{Body, CollationRule, NodeKind, Syntax, Typing, clock, json};
use super::leaves::variable_type;
use super::node::{self, Call, Conversion, Node, RowTest, SubqueryNode};
use super::result_type::{Class, Derivation, Meaning, Typed};
use super::{
    Arithmetic, ColumnRef, Comparison, Expr, Function, Leaf, Leaves, Quantifier, Subquery, SubqueryTest,
    VariableScope,
};
use crate::names::charsets;
use crate::text::SlotKind;
use crate::variables::{self, Kind};
use crate::{ErrorKind, SqlError, ToldAs};
use types::{Collation, ColumnType, Value};

/// How deep an expression may be nested. Evaluation is recursive, and the stack is limited.
const DEPTH_MAX: u32 = 500;

/// The widest BIGINT, with a sign.
const NEGATED_CHARS_MAX: u32 = 21;

type Compiled = (Node, Typed);

pub(super) fn compile(expr: &Expr, connection: Collation) -> Result<Compiled, SqlError> {
    Compiler { connection, depth: 0, leaves: None }.expr(expr)
}

/// As [`compile`], but a column gives its values as they are stored.
pub(super) fn compile_stored(expr: &Expr, connection: Collation) -> Result<Compiled, SqlError> {
    Compiler { connection, depth: 0, leaves: None }.stored(expr)
}

/// As [`compile`], where a number is wanted.
pub(super) fn compile_number(expr: &Expr, connection: Collation) -> Result<Compiled, SqlError> {
    let mut compiled = compile(expr, connection)?;
    if let Node::Coded { .. } = compiled.0 {
        constants::want_number(&mut compiled);
    }
    Ok(compiled)
}

/// As [`compile`], with what is known of the leaves. The node is of no use but for its constants.
pub(super) fn compile_with(
    expr: &Expr,
    connection: Collation,
    leaves: &dyn Leaves,
    wants_number: bool,
) -> Result<Compiled, SqlError> {
    let mut compiled = Compiler { connection, depth: 0, leaves: Some(leaves) }.expr(expr)?;
    if let (true, Node::Coded { .. }) = (wants_number, &compiled.0) {
        constants::want_number(&mut compiled);
    }
    Ok(compiled)
}

struct Compiler<'l> {
    connection: Collation,
    depth: u32,
    leaves: Option<&'l dyn Leaves>,
}

/// The left and the right side of an operator.
type Sides = Box<(Node, Node)>;

fn cast_to(side: &mut Compiled, to: &ColumnType) {
    let nullable = side.1.nullable() || Class::of(to).is_temporal();
    let operand = Box::new(std::mem::replace(&mut side.0, Node::Constant(Value::Null)));
    *side = (Node::Cast { operand, to: to.clone() }, Typed::new(to.clone(), nullable));
}

impl Compiler<'_> {
    fn expr(&mut self, expr: &Expr) -> Result<Compiled, SqlError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(SqlError::not_supported("expressions nested so deep"));
        }
        let compiled = self.expr_at_depth(expr);
        self.depth -= 1;
        compiled
    }

    /// The values where a number is wanted.
    fn number(&mut self, expr: &Expr) -> Result<Compiled, SqlError> {
        let mut compiled = self.expr(expr)?;
        constants::want_number(&mut compiled);
        Ok(compiled)
    }

    /// The values of a column as they are stored; those of all other expressions.
    fn stored(&mut self, expr: &Expr) -> Result<Compiled, SqlError> {
        Ok(match self.expr(expr)? {
            (Node::Coded { operand, of, .. }, typed) if matches!(expr, Expr::Column(_) | Expr::Outer(_)) => {
                (*operand, Typed::new(of, typed.nullable()).with_derivation(typed.derivation))
            }
            other => other,
        })
    }

    /// The values that are stored of each.
    fn stored_list(&mut self, list: &[Expr]) -> Result<Box<[Node]>, SqlError> {
        list.iter().map(|expr| Ok(self.stored(expr)?.0)).collect()
    }

    fn boxed(&mut self, expr: &Expr) -> Result<(Box<Node>, Typed), SqlError> {
        let (node, typed) = self.expr(expr)?;
        Ok((Box::new(node), typed))
    }

    fn list(&mut self, list: &[Expr]) -> Result<(Box<[Node]>, Vec<Typed>), SqlError> {
        let mut nodes = Vec::with_capacity(list.len());
        let mut types = Vec::with_capacity(list.len());
        for expr in list {
            let (node, typed) = self.expr(expr)?;
            nodes.push(node);
            types.push(typed);
        }
        Ok((nodes.into(), types))
    }

    fn expr_at_depth(&mut self, expr: &Expr) -> Result<Compiled, SqlError> {
        Ok(match expr {
            Expr::Constant(value) => {
                (Node::Constant(value.clone()), constants::constant_type(value, self.connection))
            }
            Expr::Slot { index, kind } => self.slot(*index, *kind),
            Expr::Column(column) => self.column(column),
            Expr::Outer(outer) => {
                let typed = coded::seen(&outer.column_type, outer.nullable);
                (coded_node(Node::Outer(outer.index), &outer.column_type), typed)
            }
            Expr::Subquery(subquery) => self.subquery(subquery)?,
            Expr::Negate(operand) => self.negate(operand)?,
            Expr::BitNot(operand) => {
                let (operand, typed) = self.number(operand)?;
                (Node::BitNot(Box::new(operand)), Typed::bigint(true, typed.nullable()))
            }
            Expr::Arithmetic { op, left, right } => {
                let (left, right) = (self.number(left)?, self.number(right)?);
                codes::refuse_arithmetic(op.sign(), &left, &right)?;
                let typed = arithmetic_type(*op, &left.1, &right.1);
                (Node::Arithmetic { op: *op, sides: Box::new((left.0, right.0)) }, typed)
            }
            Expr::Compare { op, left, right } => self.comparison(*op, left, right)?,
            Expr::And(list) => {
                let (nodes, types) = self.list(list)?;
                (Node::And(nodes), Typed::boolean(types.iter().any(Typed::nullable)))
            }
            Expr::Or(list) => {
                let (nodes, types) = self.list(list)?;
                (Node::Or(nodes), Typed::boolean(types.iter().any(Typed::nullable)))
            }
            Expr::Xor(left, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let nullable = left.1.nullable() || right.1.nullable();
                (Node::Xor(Box::new((left.0, right.0))), Typed::boolean(nullable))
            }
            Expr::Not(operand) => {
                let (node, typed) = self.boxed(operand)?;
                (Node::Not(node), Typed::boolean(typed.nullable()))
            }
            Expr::IsNull { operand, negated } => {
                let (operand, _) = self.boxed(operand)?;
                (Node::IsNull { operand, negated: *negated }, Typed::boolean(false))
            }
            Expr::IsTruth { operand, truth, negated } => {
                let (operand, _) = self.boxed(operand)?;
                (Node::IsTruth { operand, truth: *truth, negated: *negated }, Typed::boolean(false))
            }
            Expr::Between { operand, low, high, negated } => self.between([operand, low, high], *negated)?,
            Expr::InList { operand, list, negated } => self.in_list(operand, list, *negated)?,
            Expr::InSlot { operand, index, kind, negated } => {
                self.in_slot(operand, *index, *kind, *negated)?
            }
            Expr::Quantified { operands, op, quantifier, index, kinds } => {
                let given: Vec<Typed> =
                    kinds.iter().map(|kind| constants::slot_type(*kind, self.connection)).collect();
                let row = self.row_test(operands, &given, *op, *quantifier)?;
                (Node::Quantified { row: Box::new(row), index: *index }, Typed::boolean(true))
            }
            Expr::Like { operand, pattern, escape, negated } => {
                let (sides, collation, typed) = self.pattern(operand, pattern, "like")?;
                (Node::Like { sides, escape: *escape, collation, negated: *negated }, typed)
            }
            Expr::Regexp { operand, pattern, negated } => {
                let (sides, collation, typed) = self.pattern(operand, pattern, "regexp")?;
                (
                    Node::Regexp { sides, ignore_case: !collation.is_case_sensitive(), negated: *negated },
                    typed,
                )
            }
            Expr::Case { operand, whens, otherwise } => {
                self.case(operand.as_deref(), whens, otherwise.as_deref())?
            }
            Expr::Cast { operand, to } => self.cast(operand, to)?,
            Expr::Collate { operand, collation, short } => self.collate(operand, *collation, *short)?,
            Expr::Interval { .. } => {
                return Err(SqlError::not_supported("INTERVAL outside of date arithmetic"));
            }
            Expr::Call { function, arguments } => self.call(function, arguments)?,
            Expr::SystemVariable { scope, cache, name } => {
                let node = Node::SystemVariable { scope: *scope, cache: cache.clone(), name: name.clone() };
                (node, self.system_variable(*scope, cache.as_deref(), name))
            }
            Expr::UserVariable(name) => (Node::UserVariable(name.clone()), self.user_variable(name)),
            Expr::AssignUserVariable { name, value } => {
                let (value, typed) = self.boxed(value)?;
                let typed = assigned_type(&value, typed);
                (Node::AssignUserVariable { name: name.clone(), value }, typed)
            }
        })
    }

    /// True unless the session is known to be in another mode than the default.
    fn is_strict(&self) -> bool {
        self.leaves.and_then(Leaves::environment).is_none_or(|environment| environment.sql_mode().strict)
    }

    fn column(&self, column: &ColumnRef) -> Compiled {
        let known = self.leaves.and_then(|leaves| leaves.column(column));
        match known.filter(|result| !result.column_type.is_coded()) {
            Some(result) => (column_node(column).0, Typed::of_result(result)),
            None => column_node(column),
        }
    }

    fn slot(&self, index: usize, kind: SlotKind) -> Compiled {
        let constant = |value: Value| {
            let typed = constants::constant_type(&value, self.connection);
            (Node::Constant(value), typed)
        };
        match self.leaves.and_then(|leaves| leaves.slot(index)) {
            None => (Node::Slot(index), constants::slot_type(kind, self.connection)),
            Some(Leaf::Result(result)) => (Node::Slot(index), Typed::of_result(result)),
            Some(Leaf::Literal(value, text)) => {
                let (node, typed) = constant(value);
                // Bytes that are written in digits are told as a number.
                let is_digits =
                    ["0x", "x'", "X'", "b'", "B'", "0b"].iter().any(|start| text.starts_with(start));
                let typed = typed.of_literal(&text);
                (node, if is_digits { typed } else { typed.computed().told_as(ToldAs::Itself) })
            }
            Some(Leaf::Parameter(value)) => {
                let (node, mut typed) = constant(value);
                if let ColumnType::Int { unsigned, .. } = typed.result.column_type {
                    typed = Typed::bigint(unsigned, true);
                }
                typed.result.nullable = true;
                (node, typed)
            }
        }
    }

    fn comparison(&mut self, op: Comparison, left: &Expr, right: &Expr) -> Result<Compiled, SqlError> {
        let (left_expr, right_expr) = (left, right);
        let (mut left, mut right) = match (is_extract(left), is_extract(right)) {
            // As in MariaDB, a JSON string compares with other values by its characters.
            (true, false) => (self.expr(&unquoted(left))?, self.expr(right)?),
            (false, true) => (self.expr(left)?, self.expr(&unquoted(right))?),
            (true, true) | (false, false) => (self.expr(left)?, self.expr(right)?),
        };
        // Two moments are compared as they are stored: a clock shows an hour of autumn twice.
        if let (Expr::Column(of_left), Expr::Column(of_right)) = (left_expr, right_expr)
            && of_left.in_utc
            && of_right.in_utc
        {
            (left, right) = (stored_node(of_left), stored_node(of_right));
        }
        if right.1.class.is_numeric() {
            constants::want_number(&mut left);
        }
        if left.1.class.is_numeric() {
            constants::want_number(&mut right);
        }
        codes::align(comparison_name(op), [&mut left, &mut right])?;
        let types = [&left.1, &right.1];
        let collation = collations::for_comparison(&types, comparison_name(op), self.connection)?;
        constants::align(&mut left, &mut right);
        constants::number_beside_bigint(&mut left, &mut right);
        let nullable = op != Comparison::NullSafeEqual && (left.1.nullable() || right.1.nullable());
        let node = Node::Compare { op, collation, sides: Box::new((left.0, right.0)) };
        Ok((node, Typed::boolean(nullable)))
    }

    /// `operands` are the tested value, the lowest and the highest value.
    fn between(&mut self, operands: [&Expr; 3], negated: bool) -> Result<Compiled, SqlError> {
        let [mut operand, mut low, mut high] =
            [self.expr(operands[0])?, self.expr(operands[1])?, self.expr(operands[2])?];
        if [&operand, &low, &high].into_iter().any(|side| side.1.class.is_numeric()) {
            [&mut operand, &mut low, &mut high].into_iter().for_each(constants::want_number);
        }
        codes::align("between", [&mut operand, &mut low, &mut high])?;
        let types = [&operand.1, &low.1, &high.1];
        let nullable = types.iter().any(|typed| typed.nullable());
        let collation = collations::for_comparison(&types, "between", self.connection)?;
        // A text is compared with both bounds as a moment, a time or a number if one of them is one.
        let has = |wanted: fn(Class) -> bool| types.iter().any(|typed| wanted(typed.class));
        let to = match operand.1.class.is_text() {
            true if has(|class| matches!(class, Class::Date | Class::DateTime)) => {
                Some(ColumnType::DateTime { fsp: 6 })
            }
            true if has(|class| class == Class::Time) => Some(ColumnType::Time { fsp: 6 }),
            true if has(Class::is_numeric) => Some(ColumnType::Double { unsigned: false }),
            _ => None,
        };
        if let Some(to) = to {
            for side in [&mut operand, &mut low, &mut high] {
                if side.1.class.is_text() {
                    cast_to(side, &to);
                }
            }
        }
        constants::align(&mut operand, &mut low);
        constants::align(&mut operand, &mut high);
        let operands = Box::new([operand.0, low.0, high.0]);
        Ok((Node::Between { operands, collation, negated }, Typed::boolean(nullable)))
    }

    /// The two sides of LIKE or REGEXP, and the collation that they are compared by.
    fn pattern(
        &mut self,
        operand: &Expr,
        pattern: &Expr,
        operator: &str,
    ) -> Result<(Sides, Collation, Typed), SqlError> {
        let (mut operand, mut pattern) = (self.expr(operand)?, self.expr(pattern)?);
        constants::want_bytes(&mut operand);
        constants::want_bytes(&mut pattern);
        let types = [&operand.1, &pattern.1];
        let collation = collations::for_comparison(&types, operator, self.connection)?;
        let nullable = operand.1.nullable() || pattern.1.nullable();
        Ok((Box::new((operand.0, pattern.0)), collation, Typed::boolean(nullable)))
    }

    fn cast(&mut self, operand: &Expr, to: &ColumnType) -> Result<Compiled, SqlError> {
        let mut operand = self.expr(operand)?;
        if let (ColumnType::Bit { .. }, Node::Constant(_)) = (to, &operand.0) {
            // Bits that are written in the statement are bytes, unless a number is wanted.
            let node = Node::Coded { operand: Box::new(operand.0), of: to.clone(), as_number: false };
            return Ok((node, coded::bytes_type(to, false)));
        }
        match Class::of(to) {
            class if class.is_numeric() => {
                let signed = !matches!(to, ColumnType::Int { unsigned: true, .. });
                codes::refuse(if signed { "cast_as_signed" } else { "cast_as_unsigned" }, &operand)?;
                // The sum of a text and an INTERVAL stays a text here.
                if let Node::Coded { .. } = operand.0 {
                    constants::want_number(&mut operand);
                }
            }
            Class::Binary => constants::want_binary(&mut operand),
            Class::Text => constants::want_bytes(&mut operand),
            _ => {}
        }
        let (operand, typed) = (Box::new(operand.0), operand.1);
        let mut result = cast_type(&operand, &typed, to).with_derivation(Derivation::Implicit);
        result.result.nullable |= result.class.is_text() && self.is_strict();
        Ok((Node::Cast { operand, to: to.clone() }, result))
    }

    /// # Errors
    /// 1253 if the operand has another character set.
    fn collate(&mut self, operand: &Expr, collation: Collation, short: bool) -> Result<Compiled, SqlError> {
        let (node, mut typed) = self.expr(operand)?;
        let is_text = typed.class.is_text();
        let own = if is_text { typed.collation() } else { self.connection };
        let mut collation = collation;
        if own.character_set() != collation.character_set() {
            let name = collation.name();
            let tail = name.split_once('_').map_or(name, |(_, tail)| tail);
            let there = format!("{}_{tail}", own.character_set());
            let found = charsets::collation_named(&there).filter(|_| short).and_then(|found| found.column());
            collation = found.ok_or_else(|| {
                let name = if short { tail } else { name };
                let set = own.character_set();
                SqlError::new(
                    ErrorKind::CollationCharacterSetMismatch,
                    format!("COLLATION '{name}' is not valid for CHARACTER SET '{set}'"),
                )
            })?;
        }
        if !is_text {
            typed = Typed::text(typed.chars(), collation, typed.nullable());
        }
        typed.result.collation = collation;
        match &mut typed.result.column_type {
            ColumnType::Char { collation: own, .. }
            | ColumnType::Varchar { collation: own, .. }
            | ColumnType::Text { collation: own, .. } => *own = collation,
            _ => {}
        }
        Ok((node, typed.computed().with_derivation(Derivation::Explicit)))
    }

    fn user_variable(&self, name: &str) -> Typed {
        match self.leaves.and_then(Leaves::environment) {
            Some(environment) => variable_type(&environment.user_variable(name), self.connection),
            None => Typed::text(16_383, self.connection, true).with_derivation(Derivation::Implicit),
        }
    }

    /// The type of a system variable. An unknown one is an error when it is read.
    fn system_variable(&self, scope: VariableScope, cache: Option<&str>, name: &str) -> Typed {
        match variables::find(name).map(|variable| variable.definition().kind) {
            Some(Kind::Unsigned { .. }) => Typed::bigint(true, true),
            Some(Kind::Signed { .. }) => Typed::bigint(false, true),
            Some(Kind::Boolean { .. }) => Typed::int(8, false, true).with_display(1),
            Some(Kind::Double { .. }) => Typed::double_with(6, true).with_display(21),
            _ => {
                let environment = self.leaves.and_then(Leaves::environment);
                let value = environment.and_then(|known| known.system_variable(scope, cache, name).ok());
                let chars = match &value {
                    Some(Value::Text(text)) => types::collation::char_count(text) as u32,
                    _ => 1024,
                };
                Typed::system(chars, true)
            }
        }
    }

    fn subquery(&mut self, subquery: &Subquery) -> Result<Compiled, SqlError> {
        let parameters = self.stored_list(&subquery.parameters)?;
        let given = subquery.plan.columns().first().map(|meta| coded::seen(&meta.column_type, true));
        let known = self.leaves.and_then(|leaves| leaves.subquery(&*subquery.plan));
        let known = known.filter(|result| !result.column_type.is_coded()).map(Typed::of_result);
        let given = known.or(given).unwrap_or_else(Typed::null);
        let (test, typed) = match &subquery.test {
            SubqueryTest::Value => (node::SubqueryTest::Value, given),
            SubqueryTest::Exists => (node::SubqueryTest::Exists, Typed::boolean(false)),
            SubqueryTest::In { operand, negated } => {
                let (operand, typed) = self.expr(operand)?;
                let collation = collations::for_comparison(&[&typed, &given], "in", self.connection)?;
                (node::SubqueryTest::In { operand, collation, negated: *negated }, Typed::boolean(true))
            }
            SubqueryTest::Quantified { operands, op, quantifier } => {
                let given: Vec<Typed> =
                    subquery.plan.columns().iter().map(|meta| coded::seen(&meta.column_type, true)).collect();
                let row = self.row_test(operands, &given, *op, *quantifier)?;
                (node::SubqueryTest::Quantified(row), Typed::boolean(true))
            }
        };
        let node = SubqueryNode { plan: subquery.plan.clone(), parameters, test };
        Ok((Node::Subquery(Box::new(node)), typed))
    }

    fn row_test(
        &mut self,
        operands: &[Expr],
        given: &[Typed],
        op: Comparison,
        quantifier: Quantifier,
    ) -> Result<RowTest, SqlError> {
        let mut compiled = Vec::with_capacity(operands.len());
        for (operand, given) in operands.iter().zip(given) {
            let (node, typed) = self.expr(operand)?;
            let collation =
                collations::for_comparison(&[&typed, given], comparison_name(op), self.connection)?;
            compiled.push((node, collation));
        }
        Ok(RowTest { operands: compiled.into(), op, quantifier })
    }

    fn negate(&mut self, operand: &Expr) -> Result<Compiled, SqlError> {
        let operand = self.number(operand)?;
        let (node, typed) = (Box::new(operand.0), operand.1);
        // A negative literal is a literal.
        let negated = match &*node {
            Node::Constant(Value::Int(number)) => number.checked_neg().map(Value::Int),
            // The smallest integer: its magnitude does not fit a signed one.
            Node::Constant(Value::UInt(number)) => i64::try_from(-(*number as i128)).ok().map(Value::Int),
            Node::Constant(Value::Double(number)) => Some(Value::Double(-number)),
            Node::Constant(Value::Decimal(number)) => Some(Value::Decimal(number.negate())),
            _ => None,
        };
        if let Some(negated) = negated {
            let typed = match typed.class {
                Class::Double => {
                    let chars = typed.chars() + 1;
                    typed.with_display(chars)
                }
                Class::Decimal => typed,
                _ => constants::constant_type(&negated, self.connection),
            };
            return Ok((Node::Constant(negated), typed));
        }
        let nullable = typed.nullable();
        let typed = match typed.class {
            Class::Null | Class::Text | Class::Binary | Class::Double => {
                let chars = typed.chars() + 1;
                Typed::double_with(typed.digits_as_double(), nullable).with_display(chars)
            }
            Class::Decimal => {
                let chars = typed.chars() + 1;
                typed.with_sign().with_display(chars)
            }
            Class::Time | Class::DateTime if typed.digits().1 > 0 => {
                let (whole, scale) = typed.digits();
                Typed::decimal(whole + scale as u32, scale, nullable)
            }
            _ => Typed::int_as_wide((typed.chars() + 1).min(NEGATED_CHARS_MAX), false, nullable),
        };
        Ok((Node::Negate(node), typed))
    }

    fn in_slot(
        &mut self,
        operand: &Expr,
        index: usize,
        kind: SlotKind,
        negated: bool,
    ) -> Result<Compiled, SqlError> {
        let mut operand = self.expr(operand)?;
        let slot = constants::slot_type(kind, self.connection);
        if let Node::Coded { operand, of: ColumnType::Code(code), .. } = operand.0 {
            let node = Node::InCodes { operand, index, code, negated };
            return Ok((node, Typed::boolean(true)));
        }
        if slot.class.is_numeric() {
            constants::want_number(&mut operand);
        }
        let (operand, typed) = (Box::new(operand.0), operand.1);
        let collation = collations::for_comparison(&[&typed, &slot], "in", self.connection)?;
        let node = Node::InSlot { operand, index, collation, negated };
        let has_null = self.leaves.and_then(|leaves| leaves.list_has_null(index));
        Ok((node, Typed::boolean(typed.nullable() || has_null.unwrap_or(true))))
    }

    fn in_list(&mut self, operand: &Expr, list: &[Expr], negated: bool) -> Result<Compiled, SqlError> {
        let mut operand = self.expr(operand)?;
        let (mut nodes, mut types) = self.list(list)?;
        if operand.1.class.is_numeric() {
            as_numbers(&mut nodes, &mut types);
        }
        let mut sides: Vec<Compiled> = nodes.into_iter().zip(types).collect();
        codes::align("in", std::iter::once(&mut operand).chain(&mut sides))?;
        let (nodes, types): (Vec<Node>, Vec<Typed>) = sides.into_iter().unzip();
        let nodes: Box<[Node]> = nodes.into();
        if types.iter().all(|typed| typed.class.is_numeric()) {
            constants::want_number(&mut operand);
        }
        let all: Vec<&Typed> = std::iter::once(&operand.1).chain(&types).collect();
        let nullable = all.iter().any(|typed| typed.nullable());
        let collation = collations::for_comparison(&all, "in", self.connection)?;
        let typed = Typed::boolean(nullable);
        let ints = || {
            let mut sorted = Vec::new();
            let mut has_null = false;
            for node in &nodes {
                match node {
                    Node::Constant(Value::Int(number)) => sorted.push(*number),
                    Node::Constant(Value::UInt(number)) => sorted.push(i64::try_from(*number).ok()?),
                    Node::Constant(Value::Null) => has_null = true,
                    _ => return None,
                }
            }
            sorted.sort_unstable();
            Some((sorted.into_boxed_slice(), has_null))
        };
        let (node, list) = (Box::new(operand.0), ints());
        if matches!(operand.1.class, Class::Int | Class::UInt)
            && let Some((sorted, has_null)) = list
        {
            return Ok((Node::InInts { operand: node, sorted, has_null, negated }, typed));
        }
        Ok((Node::InList { operand: node, list: nodes, collation, negated }, typed))
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        whens: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<Compiled, SqlError> {
        let mut operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let mut nodes = Vec::new();
        let (mut conditions, mut results) = (Vec::new(), Vec::new());
        for (when, then) in whens {
            let (when, then) = (self.expr(when)?, self.expr(then)?);
            nodes.push((when.0, then.0));
            conditions.push(when.1);
            results.push(then.1);
        }
        let otherwise = match otherwise {
            Some(otherwise) => {
                let (node, typed) = self.boxed(otherwise)?;
                results.push(typed);
                Some(node)
            }
            None => {
                results.push(Typed::null());
                None
            }
        };
        if let Some(operand) = &mut operand
            && conditions.iter().all(|typed| typed.class.is_numeric())
        {
            constants::want_number(operand);
        }
        let collation = match &operand {
            Some((_, typed)) => {
                let all: Vec<&Typed> = std::iter::once(typed).chain(&conditions).collect();
                collations::for_comparison(&all, "case", self.connection)?
            }
            None => self.connection,
        };
        let (mut typed, to) = unify(&results.iter().collect::<Vec<_>>(), "case", self.connection)?;
        // As in MariaDB, the result of a condition that may be unknown may be NULL.
        let mut tested = operand.iter().map(|(_, typed)| typed).chain(&conditions);
        typed.result.nullable |= tested.any(Typed::nullable);
        let operand = operand.map(|(node, _)| Box::new(node));
        Ok((Node::Case { operand, whens: nodes.into(), otherwise, collation, to }, typed))
    }

    fn call(&mut self, function: &'static Function, arguments: &[Expr]) -> Result<Compiled, SqlError> {
        if !function.arity.contains(&arguments.len()) {
            return Err(SqlError::wrong_parameter_count(function.name));
        }
        let (typing, evaluate) = match function.body {
            Body::Call { typing, evaluate } => (typing, evaluate),
            Body::Node(NodeKind::DateAdd) => return self.date_arithmetic(function, false, arguments),
            Body::Node(NodeKind::DateSubtract) => return self.date_arithmetic(function, true, arguments),
            // The binder makes other expressions of these.
            Body::Aggregate(_) | Body::Window(_) | Body::Bound => {
                return Err(SqlError::unknown_function(function.name));
            }
        };
        let takes_unit = matches!(function.syntax, Syntax::UnitFrom | Syntax::UnitDifference);
        let mut unit = None;
        let (mut nodes, mut types) = (Vec::new(), Vec::new());
        for argument in arguments {
            let mut compiled = match argument {
                Expr::Interval { amount, unit: given } if takes_unit => {
                    unit = Some(*given);
                    self.expr(amount)?
                }
                Expr::Column(column) if column.in_utc && *function == clock::UNIX_TIMESTAMP => {
                    stored_node(column)
                }
                argument => self.expr(argument)?,
            };
            if function.is_of_numbers() {
                codes::refuse(function.name, &compiled)?;
                constants::want_number(&mut compiled);
            }
            nodes.push(compiled.0);
            types.push(compiled.1);
        }
        members_as_numbers(function, &mut nodes, &mut types);
        let all: Vec<&Typed> = types.iter().collect();
        let (collation, derivation) = match function.collation {
            // These compare their arguments.
            CollationRule::Merged
                if matches!(
                    function.name,
                    "field" | "find_in_set" | "instr" | "locate" | "nullif" | "replace" | "strcmp"
                ) =>
            {
                let name = if function.name == "instr" { "locate" } else { function.name };
                let collation = collations::for_comparison(&all, name, self.connection)?;
                (collation, collations::aggregate(&all, function.name, self.connection)?.1)
            }
            CollationRule::Merged => collations::aggregate(&all, function.name, self.connection)?,
            CollationRule::MergedAfterFirst => {
                collations::aggregate(&all[1..], function.name, self.connection)?
            }
            CollationRule::First => {
                collations::aggregate(&all[..all.len().min(1)], function.name, self.connection)?
            }
            CollationRule::Connection => (self.connection, Derivation::System),
        };
        let mut call = Typing {
            name: function.name,
            nodes: &nodes,
            types: &types,
            unit,
            connection: self.connection,
            collation,
            derivation,
            is_strict: self.is_strict(),
            to: Conversion::None,
        };
        let typed = typing(&mut call)?;
        let to = call.to;
        let call = Call {
            function,
            evaluate,
            arguments: nodes.into(),
            collation,
            to,
            unit,
            class: typed.class,
            decimals: typed.result.decimals,
            argument_collation: types
                .first()
                .map_or((collation, 0), |typed| (typed.collation(), typed.derivation.number())),
            meanings: match types.iter().all(|typed| typed.meaning == Meaning::Plain) {
                true => Box::default(),
                false => types.iter().map(|typed| typed.meaning).collect(),
            },
        };
        Ok((Node::Call(Box::new(call)), typed))
    }

    /// DATE_ADD and similar functions. ADDDATE(x, n) adds days.
    fn date_arithmetic(
        &mut self,
        function: &Function,
        subtract: bool,
        arguments: &[Expr],
    ) -> Result<Compiled, SqlError> {
        let [operand, interval] = arguments else {
            return Err(SqlError::wrong_parameter_count(function.name));
        };
        let (operand, typed) = self.expr(operand)?;
        let ((amount, amount_type), unit) = match interval {
            Expr::Interval { amount, unit } => (self.number(amount)?, *unit),
            days => (self.number(days)?, super::IntervalUnit::Day),
        };
        let amount_decimals = match amount_type.class {
            Class::Decimal => amount_type.result.decimals,
            Class::Text | Class::Binary | Class::Double => 6,
            _ => 0,
        };
        let own = constants::seconds_digits(&operand, &typed);
        let fsp = match unit {
            _ if unit.has_fraction() => 6,
            super::IntervalUnit::Second => own.max(amount_decimals.min(6)),
            _ => own,
        };
        let result = match typed.class {
            Class::Date if unit.is_of_days() => Typed::new(ColumnType::Date, true),
            Class::Date | Class::DateTime => Typed::new(ColumnType::DateTime { fsp }, true),
            Class::Time if !unit.is_of_months() => Typed::new(ColumnType::Time { fsp }, true),
            Class::Time => Typed::new(ColumnType::DateTime { fsp }, true),
            _ => {
                let chars = if fsp == 0 { 19 } else { 20 + u32::from(fsp) };
                let mut typed = Typed::text(chars, self.connection, true).told_as(ToldAs::Char);
                typed.result.decimals = fsp;
                typed
            }
        };
        let class = result.class;
        let node = Node::DateArithmetic { sides: Box::new((operand, amount)), unit, subtract, class };
        Ok((node, result))
    }
}

/// A length that CAST does not give is that of its operand.
const CAST_CHARS_UNSAID: u32 = 16_777_215;

/// The type of a CAST.
fn cast_type(operand: &Node, from: &Typed, to: &ColumnType) -> Typed {
    // A value that cannot be converted becomes NULL only for dates and times.
    let nullable = from.nullable() || Class::of(to).is_temporal();
    match *to {
        ColumnType::Int { unsigned, .. } => {
            let is_signed = !unsigned || matches!(operand, Node::Constant(Value::Int(0..) | Value::UInt(_)));
            let chars = match from.class {
                Class::Double => 20,
                _ if !is_signed && !matches!(from.class, Class::UInt) => 20,
                _ if unsigned => from.chars(),
                _ => from.chars().max(2),
            };
            Typed::int_as_wide(chars.min(20), unsigned, nullable)
        }
        ColumnType::Double { .. } => Typed::new(to.clone(), true),
        ColumnType::Char { chars, collation } | ColumnType::Varchar { chars, collation } => {
            let chars = if chars >= CAST_CHARS_UNSAID { from.chars() } else { chars };
            Typed::text(chars, collation, nullable).without_decimals()
        }
        ColumnType::Binary { bytes } | ColumnType::Varbinary { bytes } => {
            let bytes = if bytes >= CAST_CHARS_UNSAID { from.bytes() } else { bytes };
            Typed::text(bytes, Collation::Binary, nullable).without_decimals()
        }
        _ => Typed::new(to.clone(), nullable),
    }
}

/// The type of what is assigned to a user variable. As in MariaDB, an integer column becomes a BIGINT of its
/// width.
fn assigned_type(value: &Node, typed: Typed) -> Typed {
    let typed = match (value, &typed.result.column_type) {
        (Node::Column { .. }, ColumnType::Int { unsigned, .. }) => {
            Typed::int(8, *unsigned, typed.nullable()).with_display(typed.chars())
        }
        _ => typed,
    };
    Typed { meaning: Meaning::Plain, ..typed }
}

fn column_node(column: &ColumnRef) -> Compiled {
    let mut typed = coded::seen(&column.column_type, column.nullable);
    typed.result.decimals = column.digits.unwrap_or(typed.result.decimals);
    if column.is_json {
        typed.meaning = Meaning::Json;
    }
    let name = column.name.as_str().into();
    let (part, at) = (column.part, column.column);
    match column.in_utc {
        true => (Node::Stamp { part, column: at, name }, typed),
        false => (coded_node(Node::Column { part, column: at, name }, &column.column_type), typed),
    }
}

/// A TIMESTAMP column as it is stored.
fn stored_node(column: &ColumnRef) -> Compiled {
    let (node, typed) = column_node(&ColumnRef { in_utc: false, ..column.clone() });
    (node, Typed { meaning: Meaning::InUtc, ..typed })
}

/// What expressions see of the values of a column.
fn coded_node(node: Node, of: &ColumnType) -> Node {
    match coded::is_seen_apart(of) {
        true => {
            let as_number = coded::is_number(of);
            Node::Coded { operand: Box::new(node), of: of.clone(), as_number }
        }
        false => node,
    }
}

/// The members of an ENUM or SET are numbers where the function counts with them, and beside numbers.
fn members_as_numbers(function: &Function, nodes: &mut [Node], types: &mut [Typed]) {
    let wants = match function.name {
        "hex" => {
            if let (Some(node), Some(typed)) = (nodes.first_mut(), types.first_mut())
                && matches!(node, Node::Coded { of: ColumnType::Code(_), .. })
            {
                let mut compiled = (std::mem::replace(node, Node::Constant(Value::Null)), typed.clone());
                constants::want_binary(&mut compiled);
                (*node, *typed) = compiled;
            }
            0
        }
        "elt" => 1,
        "interval" => nodes.len(),
        "greatest" | "least" if types.iter().any(|typed| typed.class.is_numeric()) => nodes.len(),
        _ => 0,
    };
    as_numbers(&mut nodes[..wants], &mut types[..wants]);
}

/// The members and bits among these are numbers.
fn as_numbers(nodes: &mut [Node], types: &mut [Typed]) {
    for (node, typed) in nodes.iter_mut().zip(types) {
        if let Node::Coded { .. } = node {
            let mut compiled = (std::mem::replace(node, Node::Constant(Value::Null)), typed.clone());
            constants::want_number(&mut compiled);
            (*node, *typed) = compiled;
        }
    }
}

fn is_extract(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, .. } if **function == json::JSON_EXTRACT)
}

/// JSON_UNQUOTE of an expression.
fn unquoted(expr: &Expr) -> Expr {
    Expr::Call { function: &json::JSON_UNQUOTE, arguments: vec![expr.clone()] }
}

fn comparison_name(op: Comparison) -> &'static str {
    match op {
        Comparison::Equal => "=",
        Comparison::NullSafeEqual => "<=>",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

/// The class that arithmetic works in. As in MariaDB, NULL is a text here.
fn numeric_class(typed: &Typed) -> Class {
    match typed.class {
        Class::Null | Class::Text | Class::Binary | Class::Double => Class::Double,
        Class::Decimal => Class::Decimal,
        Class::UInt => Class::UInt,
        Class::Time | Class::DateTime if typed.digits().1 > 0 => Class::Decimal,
        Class::Int | Class::Date | Class::Time | Class::DateTime => Class::Int,
    }
}

pub(super) fn arithmetic_type(op: Arithmetic, left: &Typed, right: &Typed) -> Typed {
    let typed = signed_arithmetic_type(op, left, right);
    match typed.class {
        Class::Decimal => sign_of_decimal(typed, op, left, right),
        _ => typed,
    }
}

/// The same, where a decimal may have a sign.
fn signed_arithmetic_type(op: Arithmetic, left: &Typed, right: &Typed) -> Typed {
    let (a, b) = (numeric_class(left), numeric_class(right));
    let unsigned = a == Class::UInt || b == Class::UInt;
    let nullable = left.nullable() || right.nullable();
    let double = a == Class::Double || b == Class::Double;
    let decimal = a == Class::Decimal || b == Class::Decimal;
    let ((left_whole, left_scale), (right_whole, right_scale)) = (left.digits(), right.digits());
    let (left_decimals, right_decimals) = (left.digits_as_double(), right.digits_as_double());
    match op {
        Arithmetic::BitAnd
        | Arithmetic::BitOr
        | Arithmetic::BitXor
        | Arithmetic::ShiftLeft
        | Arithmetic::ShiftRight => Typed::bigint(true, nullable),
        Arithmetic::IntegerDivide => whole_quotient_type(left, unsigned),
        Arithmetic::Divide if double => double_quotient_type(left, right),
        Arithmetic::Divide => {
            let scale = left_scale.saturating_add(super::DIVISION_INCREMENT);
            Typed::decimal(left_whole + right_scale as u32 + scale as u32, scale, true)
        }
        Arithmetic::Modulo if double => Typed::double_with(left_decimals.max(right_decimals), true),
        Arithmetic::Modulo if decimal => {
            let scale = left_scale.max(right_scale);
            Typed::decimal(left_whole.max(right_whole) + scale as u32, scale, true)
        }
        Arithmetic::Modulo => Typed::int_of_digits(left_whole.max(right_whole), a == Class::UInt, true),
        Arithmetic::Multiply if double => Typed::double_with(left_decimals + right_decimals, nullable),
        _ if double => Typed::double_with(left_decimals.max(right_decimals), nullable),
        Arithmetic::Multiply if decimal => {
            let scale = left_scale.saturating_add(right_scale);
            Typed::decimal(left_whole + right_whole + scale as u32, scale, nullable)
        }
        _ if decimal => {
            let scale = left_scale.max(right_scale);
            Typed::decimal(left_whole.max(right_whole) + 1 + scale as u32, scale, nullable)
        }
        Arithmetic::Multiply => Typed::int_of_digits(left_whole + right_whole, unsigned, nullable),
        _ => Typed::int_of_digits(left_whole.max(right_whole) + 1, unsigned, nullable),
    }
}

/// The type of a DIV: as many digits as the dividend has before the point. As in MariaDB, without a sign.
fn whole_quotient_type(left: &Typed, unsigned: bool) -> Typed {
    let unsigned = unsigned || left.is_unsigned();
    let chars = match left.class {
        Class::Null | Class::Double | Class::Text | Class::Binary => left.chars(),
        _ => left.digits().0,
    };
    Typed::int_as_wide(chars.clamp(1, WHOLE_QUOTIENT_CHARS_MAX), unsigned, true)
}

const WHOLE_QUOTIENT_CHARS_MAX: u32 = 21;

fn double_quotient_type(left: &Typed, right: &Typed) -> Typed {
    let decimals = left.digits_as_double().max(right.digits_as_double());
    let typed = Typed::double_with(decimals + super::DIVISION_INCREMENT as u32, true);
    let own = left.digits_as_double();
    if u32::from(typed.result.decimals) == decimals + super::DIVISION_INCREMENT as u32 && left.chars() > own {
        let chars = left.chars() - own + u32::from(typed.result.decimals);
        let chars_max = typed.chars();
        return typed.with_display(chars.min(chars_max));
    }
    typed
}

/// The sum, product or quotient of decimals without sign has none.
fn sign_of_decimal(typed: Typed, op: Arithmetic, left: &Typed, right: &Typed) -> Typed {
    let unsigned = match op {
        Arithmetic::Subtract => false,
        Arithmetic::Modulo => left.is_unsigned(),
        _ => left.is_unsigned() && right.is_unsigned(),
    };
    if unsigned { typed.without_sign() } else { typed }
}
