//! Turns the parser's expressions into bound ones: names become columns, literals become slots.

use super::bind_function;
use super::plan::QueryPlan;
use super::scope::{Scope, written};
use super::walk::conjunction;
use super::window::WindowUse;
use crate::definition::column_types::of_column;
use crate::expr::functions::{json, text, time};
use crate::expr::{
    Aggregate, Arithmetic, ColumnRef, Comparison, CompiledAggregate, Expr, IntervalUnit, Quantifier,
    Subquery, SubqueryTest, VariableScope,
};
use crate::names::charsets;
use crate::text::SlotKind;
use crate::variables::assign::unknown_collation;
use crate::{ErrorKind, SqlError};
use base::sync::Arc;
use sqlparser::ast;
use sqlparser::ast::BinaryOperator as Operator;
use types::{Collation, ColumnType, Value};

/// What a binder knows about a slot of the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotInfo {
    pub kind: SlotKind,
    pub list: bool,
}

/// What a subquery's result is used as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SubqueryUse {
    /// One value, NULL if there is no row.
    Scalar,
    /// The list of an IN.
    List,
    /// Rows of so many values.
    Rows { columns: usize },
    /// 1 if there is a row.
    Exists,
}

impl SubqueryUse {
    /// How many columns it must have.
    pub(crate) fn columns(self) -> usize {
        match self {
            SubqueryUse::Rows { columns } => columns,
            _ => 1,
        }
    }
}

/// Plans the subqueries that a binder meets.
pub(crate) trait Subqueries {
    /// Plans a subquery. A name in it that it does not define means a column of `scope` or, if there is no
    /// such column, one of `aliases`.
    ///
    /// # Errors
    /// Those of planning. 1241 if it has several columns where one is wanted.
    fn plan(
        &self,
        query: &ast::Query,
        use_as: SubqueryUse,
        scope: &Scope,
        aliases: &[(String, Expr)],
    ) -> Result<Planned, SqlError>;

    /// Looks a name up in the queries around this one. If it is found, it becomes a parameter of this query.
    ///
    /// # Errors
    /// 1052 if the name is ambiguous.
    fn outer(&self, name: &[ast::Ident], clause: &str) -> Result<Option<Expr>, SqlError>;

    /// The collation of literals.
    fn connection(&self) -> Collation;
}

/// A planned subquery.
#[derive(Debug)]
pub(crate) enum Planned {
    /// It reads nothing of the query around it and runs once. `slot` holds its result.
    Once { slot: usize, kind: SlotKind },
    /// As `Once`, but its result is rows of several values.
    Rows { slot: usize, kinds: Vec<SlotKind> },
    /// It reads columns of the row around it and runs for each of them.
    EachRow { plan: Arc<QueryPlan>, parameters: Vec<Expr> },
}

/// Binds expressions of one clause.
pub(crate) struct Binder<'a> {
    pub scope: &'a Scope,
    pub slots: &'a [SlotInfo],
    /// The name of the clause in messages: `field list`, `where clause` and so on.
    pub clause: &'static str,
    /// The select list by its aliases, and whether aliases or columns win.
    pub aliases: &'a [(String, Expr)],
    pub alias_use: AliasUse,
    /// What rows are grouped by, for HAVING: a column of these hides an alias.
    pub group_keys: &'a [Expr],
    /// Collects the aggregate functions. `None` if the clause must not have any.
    pub aggregates: Option<&'a mut Vec<Aggregate>>,
    /// The part of a row that holds the aggregates' results.
    pub aggregate_part: usize,
    pub windows: WindowUse<'a>,
    /// The part that VALUES(column) reads, in INSERT ... ON DUPLICATE KEY UPDATE.
    pub values_part: Option<usize>,
    pub subqueries: Option<&'a dyn Subqueries>,
    /// Where DEFAULT(column) looks for the column, if not in `scope`.
    pub defaults: Option<&'a Scope>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AliasUse {
    None,
    /// HAVING, and a name in ORDER BY: an alias hides a column.
    First,
    /// GROUP BY, expressions in ORDER BY, and what aggregates are made of: a column hides an alias.
    Last,
}

impl<'a> Binder<'a> {
    /// A binder for a clause that sees only columns.
    pub(crate) fn new(scope: &'a Scope, slots: &'a [SlotInfo], clause: &'static str) -> Binder<'a> {
        Binder {
            scope,
            slots,
            clause,
            aliases: &[],
            alias_use: AliasUse::None,
            group_keys: &[],
            aggregates: None,
            aggregate_part: 0,
            windows: WindowUse::Nowhere,
            values_part: None,
            subqueries: None,
            defaults: None,
        }
    }

    /// # Errors
    /// 1054, 1052, 1305, 1235 and others.
    pub(crate) fn bind(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        use ast::Expr as Ast;
        Ok(match expr {
            Ast::Identifier(name) => self.identifier(std::slice::from_ref(name))?,
            Ast::CompoundIdentifier(name) => self.identifier(name)?,
            Ast::Nested(inner) => self.bind(inner)?,
            Ast::Value(value) => self.value(&value.value)?,
            Ast::TypedString(typed) => {
                let text = typed.value.value.clone().into_string().unwrap_or_default();
                Expr::Constant(bind_function::temporal_literal(&typed.data_type, &text)?)
            }
            Ast::UnaryOp { op, expr } => self.unary(*op, expr)?,
            Ast::BinaryOp { left, op, right } => self.binary(left, op, right)?,
            Ast::IsNull(operand) | Ast::IsUnknown(operand) => {
                Expr::IsNull { operand: self.boxed(operand)?, negated: false }
            }
            Ast::IsNotNull(operand) | Ast::IsNotUnknown(operand) => {
                Expr::IsNull { operand: self.boxed(operand)?, negated: true }
            }
            Ast::IsTrue(operand) => self.truth(operand, true, false)?,
            Ast::IsNotTrue(operand) => self.truth(operand, true, true)?,
            Ast::IsFalse(operand) => self.truth(operand, false, false)?,
            Ast::IsNotFalse(operand) => self.truth(operand, false, true)?,
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated)?,
            Ast::InSubquery { expr, subquery, negated } => self.in_subquery(expr, subquery, *negated)?,
            Ast::Subquery(query) => {
                let planned = self.subquery(query, SubqueryUse::Scalar)?;
                planned.tested(SubqueryTest::Value, |index, kind| Expr::Slot { index, kind })?
            }
            Ast::Exists { subquery, negated } => {
                let planned = self.subquery(subquery, SubqueryUse::Exists)?;
                let exists =
                    planned.tested(SubqueryTest::Exists, |index, kind| Expr::Slot { index, kind })?;
                if *negated { Expr::Not(Box::new(exists)) } else { exists }
            }
            Ast::Between { expr, negated, low, high } => Expr::Between {
                operand: self.boxed(expr)?,
                low: self.boxed(low)?,
                high: self.boxed(high)?,
                negated: *negated,
            },
            Ast::Like { negated, any: false, expr, pattern, escape_char } => Expr::Like {
                operand: self.boxed(expr)?,
                pattern: self.boxed(pattern)?,
                escape: escape_of(escape_char.as_deref())?,
                negated: *negated,
            },
            Ast::RLike { negated, expr, pattern, .. } => {
                Expr::Regexp { operand: self.boxed(expr)?, pattern: self.boxed(pattern)?, negated: *negated }
            }
            Ast::Case { operand, conditions, else_result, .. } => Expr::Case {
                operand: operand.as_ref().map(|operand| self.boxed(operand)).transpose()?,
                whens: conditions
                    .iter()
                    .map(|when| Ok((self.bind(&when.condition)?, self.bind(&when.result)?)))
                    .collect::<Result<_, SqlError>>()?,
                otherwise: else_result.as_ref().map(|otherwise| self.boxed(otherwise)).transpose()?,
            },
            Ast::Collate { expr, collation } => {
                let name = super::object_name(collation).pop().unwrap_or_default();
                let short = charsets::is_short(&name);
                let found =
                    charsets::collation_in(&name, "utf8mb4").ok_or_else(|| unknown_collation(&name))?;
                Expr::Collate { operand: self.boxed(expr)?, collation: of_column(found)?, short }
            }
            Ast::Interval(interval) => Expr::Interval {
                amount: self.boxed(&interval.value)?,
                unit: match &interval.leading_field {
                    Some(field) => interval_unit(field)?,
                    None => return Err(SqlError::syntax(&interval.to_string(), 1)),
                },
            },
            Ast::Tuple(_) => return Err(SqlError::columns(1)),
            Ast::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, Quantifier::Any)?
            }
            Ast::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, Quantifier::All)?
            }
            Ast::MatchAgainst { .. } => return Err(SqlError::not_supported("MATCH ... AGAINST")),
            other => self.function_like(other)?,
        })
    }

    pub(super) fn boxed(&mut self, expr: &ast::Expr) -> Result<Box<Expr>, SqlError> {
        Ok(Box::new(self.bind(expr)?))
    }

    fn truth(&mut self, operand: &ast::Expr, truth: bool, negated: bool) -> Result<Expr, SqlError> {
        Ok(Expr::IsTruth { operand: self.boxed(operand)?, truth, negated })
    }

    fn identifier(&mut self, name: &[ast::Ident]) -> Result<Expr, SqlError> {
        if name[0].value.starts_with('@') && name[0].quote_style.is_none() {
            return variable(name);
        }
        if let [single] = name {
            if self.alias_use == AliasUse::First
                && let Some(found) = self.alias(&single.value)?
            {
                return Ok(self.group_column(name)?.unwrap_or(found));
            }
            if self.alias_use == AliasUse::Last {
                if let Some(found) = self.scope.resolve_if_any(name, self.clause)? {
                    return Ok(found);
                }
                if let Some(found) = self.alias(&single.value)? {
                    return Ok(found);
                }
            }
        }
        if let Some(found) = self.scope.resolve_if_any(name, self.clause)? {
            return Ok(found);
        }
        let outer =
            self.subqueries.map(|subqueries| subqueries.outer(name, self.clause)).transpose()?.flatten();
        outer.ok_or_else(|| SqlError::unknown_column(&written(name), self.clause))
    }

    /// The column with this name, if rows are grouped by it.
    fn group_column(&self, name: &[ast::Ident]) -> Result<Option<Expr>, SqlError> {
        if self.group_keys.is_empty() {
            return Ok(None);
        }
        let column = self.scope.resolve_if_any(name, self.clause)?;
        Ok(column.filter(|column| self.group_keys.contains(column)))
    }

    fn alias(&self, name: &str) -> Result<Option<Expr>, SqlError> {
        let mut found: Option<&Expr> = None;
        for (alias, expr) in self.aliases.iter().filter(|(alias, _)| alias.eq_ignore_ascii_case(name)) {
            match found {
                Some(before) if before != expr => return Err(SqlError::ambiguous_column(alias, self.clause)),
                _ => found = Some(expr),
            }
        }
        Ok(found.cloned())
    }

    /// The slot that a placeholder of the normalised text stands for.
    fn slot(&self, placeholder: &str) -> Result<(usize, SlotInfo), SqlError> {
        let index = placeholder.strip_prefix('?').and_then(|number| number.parse::<usize>().ok());
        match index.and_then(|index| Some((index, *self.slots.get(index)?))) {
            Some(found) => Ok(found),
            None => Err(SqlError::syntax(placeholder, 1)),
        }
    }

    fn value(&mut self, value: &ast::Value) -> Result<Expr, SqlError> {
        Ok(match value {
            ast::Value::Placeholder(name) => {
                let (index, info) = self.slot(name)?;
                Expr::Slot { index, kind: info.kind }
            }
            other => match (bits_of(other), constant(other)?) {
                (true, Value::Binary(bytes)) => bits(bytes),
                (_, value) => Expr::Constant(value),
            },
        })
    }

    fn unary(&mut self, op: ast::UnaryOperator, operand: &ast::Expr) -> Result<Expr, SqlError> {
        let operand = self.bind(operand)?;
        Ok(match op {
            ast::UnaryOperator::Plus => operand,
            ast::UnaryOperator::Minus => Expr::Negate(Box::new(operand)),
            ast::UnaryOperator::Not | ast::UnaryOperator::BangNot => Expr::Not(Box::new(operand)),
            ast::UnaryOperator::BitwiseNot => Expr::BitNot(Box::new(operand)),
            other => return Err(SqlError::syntax(&other.to_string(), 1)),
        })
    }

    fn binary(&mut self, left: &ast::Expr, op: &Operator, right: &ast::Expr) -> Result<Expr, SqlError> {
        let is_and = |op: &Operator| matches!(op, Operator::And);
        let is_or = |op: &Operator| matches!(op, Operator::Or);
        if is_and(op) {
            return Ok(Expr::And(self.chain(left, right, &is_and)?));
        }
        if is_or(op) {
            return Ok(Expr::Or(self.chain(left, right, &is_or)?));
        }
        if *op == Operator::Assignment {
            return self.assignment(left, right);
        }
        if let Some(op) = comparison_of(op)
            && let Some(compared) = self.compare_rows(left, op, right)?
        {
            return Ok(compared);
        }
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        if *op == Operator::StringConcat {
            return Ok(Expr::Call { function: &text::CONCAT, arguments: vec![*left, *right] });
        }
        // As in MySQL: `column -> path`, `column ->> path`.
        if let Operator::Arrow | Operator::LongArrow = op {
            let part = Expr::Call { function: &json::JSON_EXTRACT, arguments: vec![*left, *right] };
            return Ok(match op {
                Operator::Arrow => part,
                _ => Expr::Call { function: &json::JSON_UNQUOTE, arguments: vec![part] },
            });
        }
        // `date + INTERVAL 1 DAY`, `INTERVAL 1 DAY + date`, `date - INTERVAL 1 DAY`.
        let moved = |function, arguments| Expr::Call { function, arguments };
        match (op, &*left, &*right) {
            (Operator::Plus, _, Expr::Interval { .. }) => {
                return Ok(moved(&time::DATE_ADD, vec![*left, *right]));
            }
            (Operator::Plus, Expr::Interval { .. }, _) => {
                return Ok(moved(&time::DATE_ADD, vec![*right, *left]));
            }
            (Operator::Minus, _, Expr::Interval { .. }) => {
                return Ok(moved(&time::DATE_SUB, vec![*left, *right]));
            }
            _ => {}
        }
        if let Some(op) = comparison_of(op) {
            return Ok(Expr::Compare { op, left, right });
        }
        if let Some(op) = arithmetic_of(op) {
            return Ok(Expr::Arithmetic { op, left, right });
        }
        Ok(match op {
            Operator::Xor => Expr::Xor(left, right),
            Operator::Regexp => Expr::Regexp { operand: left, pattern: right, negated: false },
            other => return Err(SqlError::not_supported(&format!("the operator {other}"))),
        })
    }

    /// The operands of a chain of ANDs or ORs. The parser nests the chain to the left, so it is walked in a
    /// loop: recursion would be as deep as the chain is long.
    fn chain(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        same: &dyn Fn(&Operator) -> bool,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut operands = vec![right];
        let mut left = left;
        loop {
            match left {
                ast::Expr::BinaryOp { left: further, op, right } if same(op) => {
                    operands.push(right);
                    left = further;
                }
                last => {
                    operands.push(last);
                    break;
                }
            }
        }
        let mut bound = Vec::with_capacity(operands.len());
        for operand in operands.into_iter().rev() {
            match (self.bind(operand)?, same(&Operator::And)) {
                (Expr::And(inner), true) | (Expr::Or(inner), false) => bound.extend(inner),
                (other, _) => bound.push(other),
            }
        }
        Ok(bound)
    }

    fn assignment(&mut self, left: &ast::Expr, right: &ast::Expr) -> Result<Expr, SqlError> {
        match left {
            ast::Expr::Identifier(name) if name.value.starts_with('@') && !name.value.starts_with("@@") => {
                let name = name.value[1..].to_lowercase();
                Ok(Expr::AssignUserVariable { name, value: self.boxed(right)? })
            }
            other => Err(SqlError::syntax(&other.to_string(), 1)),
        }
    }

    fn in_list(&mut self, expr: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr, SqlError> {
        if let Some(operands) = row_of(expr) {
            let any = list.iter().map(|item| match row_of(item) {
                Some(items) => self.compare_each(&operands, Comparison::Equal, &items),
                None => Err(SqlError::columns(operands.len())),
            });
            let mut any = any.collect::<Result<Vec<Expr>, SqlError>>()?;
            let is_in = if any.len() == 1 { any.remove(0) } else { Expr::Or(any) };
            return Ok(if negated { Expr::Not(Box::new(is_in)) } else { is_in });
        }
        let operand = self.boxed(expr)?;
        if let [ast::Expr::Value(value)] = list
            && let ast::Value::Placeholder(name) = &value.value
        {
            let (index, info) = self.slot(name)?;
            if info.list {
                return Ok(Expr::InSlot { operand, index, kind: info.kind, negated });
            }
        }
        let list = list.iter().map(|item| self.bind(item)).collect::<Result<_, SqlError>>()?;
        Ok(Expr::InList { operand, list, negated })
    }

    fn in_subquery(&mut self, expr: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr, SqlError> {
        if let Some(row) = row_of(expr) {
            let (op, quantifier) = match negated {
                false => (Comparison::Equal, Quantifier::Any),
                true => (Comparison::NotEqual, Quantifier::All),
            };
            return self.with_rows(&row, op, query, quantifier);
        }
        let operand = self.boxed(expr)?;
        let planned = self.subquery(query, SubqueryUse::List)?;
        let test = SubqueryTest::In { operand: operand.clone(), negated };
        planned.tested(test, |index, kind| Expr::InSlot { operand, index, kind, negated })
    }

    /// ANY, SOME and ALL.
    fn quantified(
        &mut self,
        left: &ast::Expr,
        op: &Operator,
        right: &ast::Expr,
        quantifier: Quantifier,
    ) -> Result<Expr, SqlError> {
        let (Some(op), ast::Expr::Subquery(query)) = (comparison_of(op), right) else {
            return Err(SqlError::syntax(&right.to_string(), 1));
        };
        match (op, quantifier) {
            (Comparison::Equal, Quantifier::Any) => self.in_subquery(left, query, false),
            (Comparison::NotEqual, Quantifier::All) => self.in_subquery(left, query, true),
            _ => match row_of(left) {
                Some(_) => Err(SqlError::columns(1)),
                None => self.with_rows(&[left], op, query, quantifier),
            },
        }
    }

    /// A row compared with those of a subquery.
    fn with_rows(
        &mut self,
        row: &[&ast::Expr],
        op: Comparison,
        query: &ast::Query,
        quantifier: Quantifier,
    ) -> Result<Expr, SqlError> {
        let operands = row.iter().map(|operand| self.bind(operand)).collect::<Result<Vec<_>, _>>()?;
        Ok(match self.subquery(query, SubqueryUse::Rows { columns: row.len() })? {
            Planned::Rows { slot, kinds } => {
                Expr::Quantified { operands, op, quantifier, index: slot, kinds }
            }
            planned => {
                let test = SubqueryTest::Quantified { operands, op, quantifier };
                planned.tested(test, |index, kind| Expr::Slot { index, kind })?
            }
        })
    }

    /// A comparison with a row on at least one side. `None` if neither side is a row.
    fn compare_rows(
        &mut self,
        left: &ast::Expr,
        op: Comparison,
        right: &ast::Expr,
    ) -> Result<Option<Expr>, SqlError> {
        Ok(match (row_of(left), row_of(right), left, right) {
            (Some(left), Some(right), ..) => Some(self.compare_each(&left, op, &right)?),
            (Some(row), None, _, ast::Expr::Subquery(query)) => {
                Some(self.with_rows(&row, op, query, Quantifier::Only)?)
            }
            (None, Some(row), ast::Expr::Subquery(query), _) => {
                Some(self.with_rows(&row, op.mirrored(), query, Quantifier::Only)?)
            }
            (Some(row), ..) => return Err(SqlError::columns(row.len())),
            (None, Some(_), ..) => return Err(SqlError::columns(1)),
            (None, None, ..) => None,
        })
    }

    /// Compares rows value by value. They are equal if all values are. Otherwise the first pair that differs
    /// decides the order.
    fn compare_each(
        &mut self,
        left: &[&ast::Expr],
        op: Comparison,
        right: &[&ast::Expr],
    ) -> Result<Expr, SqlError> {
        if left.len() != right.len() {
            return Err(SqlError::columns(left.len()));
        }
        let mut pair = |at: usize, op: Comparison| -> Result<Expr, SqlError> {
            if let Some(rows) = self.compare_rows(left[at], op, right[at])? {
                return Ok(rows);
            }
            Ok(Expr::Compare { op, left: self.boxed(left[at])?, right: self.boxed(right[at])? })
        };
        let last = left.len() - 1;
        let all = (0..=last).map(|at| match op {
            Comparison::Equal | Comparison::NullSafeEqual | Comparison::NotEqual => Ok(vec![pair(at, op)?]),
            _ => {
                // The values before this one are equal, so this one decides.
                let strict = match op {
                    Comparison::LessOrEqual => Comparison::Less,
                    Comparison::GreaterOrEqual => Comparison::Greater,
                    strict => strict,
                };
                let mut all = (0..at).map(|at| pair(at, Comparison::Equal)).collect::<Result<Vec<_>, _>>()?;
                all.push(pair(at, if at == last { op } else { strict })?);
                Ok(all)
            }
        });
        let all = all.collect::<Result<Vec<Vec<Expr>>, SqlError>>()?;
        let mut all: Vec<Expr> = all.into_iter().filter_map(conjunction).collect();
        Ok(match op {
            _ if all.len() == 1 => all.remove(0),
            Comparison::Equal | Comparison::NullSafeEqual => Expr::And(all),
            _ => Expr::Or(all),
        })
    }

    fn subquery(&mut self, query: &ast::Query, use_as: SubqueryUse) -> Result<Planned, SqlError> {
        let aliases = if self.alias_use == AliasUse::First { self.aliases } else { &[] };
        match self.subqueries {
            Some(subqueries) => subqueries.plan(query, use_as, self.scope, aliases),
            None => Err(SqlError::not_supported("a subquery here")),
        }
    }

    /// The collation of literals.
    pub(super) fn connection(&self) -> Collation {
        self.subqueries.map_or(super::select::CONNECTION_COLLATION, |subqueries| subqueries.connection())
    }

    /// Registers an aggregate and returns the column that holds its result.
    pub(super) fn aggregate(&mut self, aggregate: Aggregate, name: String) -> Result<Expr, SqlError> {
        let part = self.aggregate_part;
        let connection = self.connection();
        let Some(aggregates) = self.aggregates.as_deref_mut() else {
            return Err(SqlError::new(ErrorKind::InvalidGroupFunction, "Invalid use of group function"));
        };
        let compiled = CompiledAggregate::new(&aggregate, connection)?;
        let column = match aggregates.iter().position(|known| *known == aggregate) {
            Some(column) => column,
            None => {
                aggregates.push(aggregate);
                aggregates.len() - 1
            }
        };
        let result = compiled.result_type();
        let (column_type, nullable) = (result.column_type.clone(), result.nullable);
        let digits = matches!(column_type, ColumnType::Double { .. }).then_some(result.decimals);
        Ok(Expr::Column(ColumnRef {
            part,
            column,
            column_type,
            nullable,
            digits,
            is_json: false,
            in_utc: false,
            name,
        }))
    }
}

impl Planned {
    /// Tests the subquery for each row. If it runs only once, the result is what `once` makes of its slot.
    fn tested(
        self,
        test: SubqueryTest,
        once: impl FnOnce(usize, SlotKind) -> Expr,
    ) -> Result<Expr, SqlError> {
        match self {
            Planned::Once { slot, kind } => Ok(once(slot, kind)),
            Planned::EachRow { plan, parameters } => Ok(Expr::Subquery(Subquery { plan, parameters, test })),
            Planned::Rows { .. } => Err(SqlError::internal("rows where a value should be")),
        }
    }
}

fn arithmetic_of(op: &Operator) -> Option<Arithmetic> {
    Some(match op {
        Operator::Plus => Arithmetic::Add,
        Operator::Minus => Arithmetic::Subtract,
        Operator::Multiply => Arithmetic::Multiply,
        Operator::Divide => Arithmetic::Divide,
        Operator::MyIntegerDivide => Arithmetic::IntegerDivide,
        Operator::Modulo => Arithmetic::Modulo,
        Operator::BitwiseAnd => Arithmetic::BitAnd,
        Operator::BitwiseOr => Arithmetic::BitOr,
        Operator::BitwiseXor | Operator::PGBitwiseXor => Arithmetic::BitXor,
        Operator::PGBitwiseShiftLeft => Arithmetic::ShiftLeft,
        Operator::PGBitwiseShiftRight => Arithmetic::ShiftRight,
        _ => return None,
    })
}

/// The comparison that an operator stands for.
fn comparison_of(op: &Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Equal,
        Operator::Spaceship => Comparison::NullSafeEqual,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The values of `(a, b)` and `ROW(a, b)`.
fn row_of(expr: &ast::Expr) -> Option<Vec<&ast::Expr>> {
    match expr {
        ast::Expr::Nested(inner) => row_of(inner),
        ast::Expr::Tuple(items) if items.len() > 1 => Some(items.iter().collect()),
        ast::Expr::Function(function) => {
            let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
            let ast::FunctionArguments::List(list) = &function.args else { return None };
            if !name.value.eq_ignore_ascii_case("row") {
                return None;
            }
            let item = |argument| match argument {
                &ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ref item)) => Some(item),
                _ => None,
            };
            list.args.iter().map(item).collect()
        }
        _ => None,
    }
}

/// The kind of slot that holds a value of this type.
pub(crate) fn kind_of_type(column_type: &ColumnType) -> SlotKind {
    match column_type {
        ColumnType::Int { unsigned: true, .. } | ColumnType::Year => SlotKind::UInt,
        ColumnType::Int { .. } => SlotKind::Int,
        ColumnType::Float { .. } => SlotKind::FloatOf,
        ColumnType::Double { .. } => SlotKind::Double,
        ColumnType::Decimal { scale, .. } => SlotKind::Decimal { scale: Some(*scale) },
        ColumnType::Date => SlotKind::Date,
        ColumnType::Time { fsp } => SlotKind::TimeOf(*fsp),
        ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => SlotKind::DateTimeOf(*fsp),
        text if text.has_characters() => SlotKind::TextOf(text.collation()),
        ColumnType::Bit { .. } => SlotKind::UInt,
        ColumnType::Code(_) => SlotKind::TextOf(Collation::Utf8mb4GeneralCi),
        _ => SlotKind::Binary,
    }
}

/// True for `0x41`, `0b1` and `b'1'`, which are numbers where a number is wanted.
fn bits_of(value: &ast::Value) -> bool {
    match value {
        ast::Value::Number(text, _) => text.starts_with("0x") || text.starts_with("0b"),
        ast::Value::SingleQuotedByteStringLiteral(_) | ast::Value::DoubleQuotedByteStringLiteral(_) => true,
        _ => false,
    }
}

/// Bits as they are written: a number that is shown as its bytes. More bytes than a number has are no number.
fn bits(bytes: Vec<u8>) -> Expr {
    let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match u8::try_from(8 * bytes.len()) {
        Ok(bits @ 8..=64) => {
            let operand = Box::new(Expr::Constant(Value::UInt(number)));
            Expr::Cast { operand, to: ColumnType::Bit { bits } }
        }
        _ => Expr::Constant(Value::Binary(bytes)),
    }
}

/// A literal that is still in the text.
///
/// # Errors
/// 1064.
pub(crate) fn constant(value: &ast::Value) -> Result<Value, SqlError> {
    Ok(match value {
        ast::Value::Number(text, _) => number(text)?,
        ast::Value::SingleQuotedString(text)
        | ast::Value::DoubleQuotedString(text)
        | ast::Value::NationalStringLiteral(text) => Value::text(text.clone()),
        ast::Value::HexStringLiteral(digits) => Value::Binary(hex(digits)?),
        ast::Value::SingleQuotedByteStringLiteral(bits) | ast::Value::DoubleQuotedByteStringLiteral(bits) => {
            Value::Binary(bit_string(bits)?)
        }
        ast::Value::Boolean(truth) => Value::Int(i64::from(*truth)),
        ast::Value::Null => Value::Null,
        other => return Err(SqlError::syntax(&other.to_string(), 1)),
    })
}

fn number(text: &str) -> Result<Value, SqlError> {
    if let Ok(value) = text.parse::<i64>() {
        return Ok(Value::Int(value));
    }
    if let Ok(value) = text.parse::<u64>() {
        return Ok(Value::UInt(value));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return Ok(Value::Binary(hex(digits)?));
    }
    if let Some(digits) = text.strip_prefix("0b") {
        return Ok(Value::Binary(bit_string(digits)?));
    }
    match text.parse::<f64>() {
        Ok(value) if text.contains(['e', 'E']) => Ok(Value::Double(value)),
        Ok(value) => Ok(crate::text::literal::decimal(text).map_or(Value::Double(value), Value::Decimal)),
        Err(_) => Err(SqlError::syntax(text, 1)),
    }
}

fn hex(digits: &str) -> Result<Vec<u8>, SqlError> {
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_string() };
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes: Option<Vec<u8>> = padded.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or_else(|| SqlError::syntax(digits, 1))
}

fn bit_string(bits: &str) -> Result<Vec<u8>, SqlError> {
    let mut bytes = vec![0; bits.len().div_ceil(8)];
    for (position, bit) in bits.bytes().rev().enumerate() {
        let last = bytes.len() - 1;
        match bit {
            b'0' => {}
            b'1' => bytes[last - position / 8] |= 1 << (position % 8),
            _ => return Err(SqlError::syntax(bits, 1)),
        }
    }
    Ok(bytes)
}

/// `@x`, `@@x`, `@@global.x`, `@@hot.key_buffer_size`, `@@global.hot.key_buffer_size`.
fn variable(name: &[ast::Ident]) -> Result<Expr, SqlError> {
    let Some(first) = name[0].value.strip_prefix("@@") else {
        let parts: Vec<&str> = name.iter().map(|part| part.value.as_str()).collect();
        return Ok(Expr::UserVariable(parts.join(".")[1..].to_lowercase()));
    };
    let mut rest: Vec<String> = name[1..].iter().map(|part| part.value.clone()).collect();
    let scope = match first.to_ascii_lowercase().as_str() {
        "global" if !rest.is_empty() => VariableScope::Global,
        "session" | "local" if !rest.is_empty() => VariableScope::Session,
        _ => {
            rest.insert(0, first.to_string());
            VariableScope::Default
        }
    };
    // DEFAULT without quotes is the default key cache's name only behind `@@global.`. The word for a scope is
    // never the name of a key cache.
    let cache = &name[name.len().saturating_sub(2)];
    let reserved = if scope == VariableScope::Default { "@@default" } else { "" };
    if rest.len() == 2
        && cache.quote_style.is_none()
        && [reserved, "global", "session", "local"].iter().any(|word| cache.value.eq_ignore_ascii_case(word))
    {
        return Err(SqlError::syntax(&rest.join("."), 1));
    }
    match rest.as_slice() {
        [name] if crate::variables::find(name).is_none() => Err(crate::variables::unknown(name)),
        [name] => Ok(Expr::SystemVariable { scope, cache: None, name: name.to_ascii_lowercase() }),
        [cache, name] => {
            let (cache, name) = (Some(cache.clone()), name.to_ascii_lowercase());
            Ok(Expr::SystemVariable { scope, cache, name })
        }
        _ => Err(SqlError::syntax(&rest.join("."), 1)),
    }
}

fn escape_of(escape: Option<&ast::Expr>) -> Result<Option<char>, SqlError> {
    let Some(escape) = escape else { return Ok(Some('\\')) };
    let text = match escape {
        ast::Expr::Value(value) => value.value.clone().into_string().unwrap_or_default(),
        _ => return Err(SqlError::wrong_arguments("ESCAPE")),
    };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (None, _) => Ok(None),
        (Some(escape), None) => Ok(Some(escape)),
        _ => Err(SqlError::wrong_arguments("ESCAPE")),
    }
}

/// # Errors
/// 1064 for a unit that MySQL does not have.
pub(crate) fn interval_unit(field: &ast::DateTimeField) -> Result<IntervalUnit, SqlError> {
    let name = crate::text::parse::tokens::unit_name(field);
    Ok(match name.as_str() {
        "MICROSECOND" => IntervalUnit::Microsecond,
        "SECOND" => IntervalUnit::Second,
        "MINUTE" => IntervalUnit::Minute,
        "HOUR" => IntervalUnit::Hour,
        "DAY" => IntervalUnit::Day,
        "WEEK" => IntervalUnit::Week,
        "MONTH" => IntervalUnit::Month,
        "QUARTER" => IntervalUnit::Quarter,
        "YEAR" => IntervalUnit::Year,
        "SECOND_MICROSECOND" => IntervalUnit::SecondMicrosecond,
        "MINUTE_MICROSECOND" => IntervalUnit::MinuteMicrosecond,
        "MINUTE_SECOND" => IntervalUnit::MinuteSecond,
        "HOUR_MICROSECOND" => IntervalUnit::HourMicrosecond,
        "HOUR_SECOND" => IntervalUnit::HourSecond,
        "HOUR_MINUTE" => IntervalUnit::HourMinute,
        "DAY_MICROSECOND" => IntervalUnit::DayMicrosecond,
        "DAY_SECOND" => IntervalUnit::DaySecond,
        "DAY_MINUTE" => IntervalUnit::DayMinute,
        "DAY_HOUR" => IntervalUnit::DayHour,
        "YEAR_MONTH" => IntervalUnit::YearMonth,
        _ => return Err(SqlError::syntax(&name, 1)),
    })
}
