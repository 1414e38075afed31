//! Binds function calls, and the functions that the parser has its own syntax nodes for.

use super::bind::{AliasUse, Binder, interval_unit};
use super::walk::for_each_column;
use super::window::WindowUse;
use crate::expr::functions::{Syntax, json, number, text, time};
use crate::expr::{Aggregate, AggregateKind, Expr, Function, IntervalUnit};
use crate::{ErrorKind, SqlError};
use sqlparser::ast;
use types::{Code, Collation, ColumnType, Value};

/// True for TRUE and FALSE.
fn is_truth(argument: &ast::FunctionArg) -> bool {
    let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value))) = argument else {
        return false;
    };
    matches!(value.value, ast::Value::Boolean(_))
}

/// Makes the test of it that it already is.
fn make_test(bound: &mut Expr) {
    let operand = Box::new(std::mem::replace(bound, Expr::Constant(Value::Null)));
    *bound = Expr::IsTruth { operand, truth: true, negated: false };
}

impl Binder<'_> {
    /// Functions, casts and everything else that looks like a call.
    pub(super) fn function_like(&mut self, expr: &ast::Expr) -> Result<Expr, SqlError> {
        use ast::Expr as Ast;
        match expr {
            Ast::Function(function) => self.function(function),
            Ast::Cast { kind: ast::CastKind::Cast, expr, data_type, .. } => {
                Ok(Expr::Cast { operand: self.boxed(expr)?, to: cast_type(data_type, self.connection())? })
            }
            Ast::Convert { expr, data_type: Some(data_type), .. } => {
                Ok(Expr::Cast { operand: self.boxed(expr)?, to: cast_type(data_type, self.connection())? })
            }
            // CONVERT(x USING charset) changes nothing: texts are UTF-8 in every character set here.
            Ast::Convert { expr, charset: Some(charset), .. } => {
                let name = super::object_name(charset).pop().unwrap_or_default();
                let to = if name.eq_ignore_ascii_case("binary") {
                    ColumnType::Varbinary { bytes: u32::MAX }
                } else {
                    ColumnType::Varchar { chars: 16_383, collation: charset_collation(&name)? }
                };
                Ok(Expr::Cast { operand: self.boxed(expr)?, to })
            }
            Ast::Prefixed { prefix, value } => match prefix.value.to_ascii_lowercase().as_str() {
                "binary" | "_binary" => Ok(Expr::Cast {
                    operand: self.boxed(value)?,
                    to: ColumnType::Varbinary { bytes: u32::MAX },
                }),
                name => {
                    let name = name.trim_start_matches('_');
                    let collation = charset_collation(name)?;
                    let bound = match self.bind(value)? {
                        Expr::Constant(Value::Binary(bytes)) => Expr::Constant(introduced(name, bytes)),
                        other => other,
                    };
                    if collation.character_set() == self.connection().character_set() {
                        return Ok(bound);
                    }
                    let chars = match (&bound, value.as_ref()) {
                        (Expr::Constant(Value::Text(text)), _) => types::collation::char_count(text) as u32,
                        (_, ast::Expr::Value(literal)) => literal.to_string().chars().count() as u32,
                        _ => 255,
                    };
                    let to = ColumnType::Varchar { chars, collation };
                    Ok(Expr::Cast { operand: Box::new(bound), to })
                }
            },
            Ast::Extract { field, expr, .. } => {
                let unit = interval(interval_unit(field)?, Expr::Constant(Value::Int(0)));
                Ok(call(&time::EXTRACT, vec![self.bind(expr)?, unit]))
            }
            Ast::Ceil { expr, .. } => Ok(call(&number::CEILING, vec![self.bind(expr)?])),
            Ast::Floor { expr, .. } => Ok(call(&number::FLOOR, vec![self.bind(expr)?])),
            Ast::Position { expr, r#in } => Ok(call(&text::LOCATE, vec![self.bind(expr)?, self.bind(r#in)?])),
            Ast::Substring { expr, substring_from, substring_for, .. } => {
                let mut arguments = vec![self.bind(expr)?];
                match substring_from {
                    Some(from) => arguments.push(self.bind(from)?),
                    None => arguments.push(Expr::Constant(Value::Int(1))),
                }
                if let Some(count) = substring_for {
                    arguments.push(self.bind(count)?);
                }
                Ok(call(&text::SUBSTRING, arguments))
            }
            Ast::Trim { trim_where, trim_what, expr, .. } => {
                let mut arguments = vec![self.bind(expr)?];
                if let Some(what) = trim_what {
                    arguments.push(self.bind(what)?);
                }
                let function = match trim_where {
                    Some(ast::TrimWhereField::Leading) => &text::LEFT_TRIM,
                    Some(ast::TrimWhereField::Trailing) => &text::RIGHT_TRIM,
                    _ => &text::TRIM,
                };
                Ok(call(function, arguments))
            }
            other => Err(SqlError::not_supported(&other.to_string())),
        }
    }

    fn function(&mut self, function: &ast::Function) -> Result<Expr, SqlError> {
        let mut path = super::object_name(&function.name);
        let name = path.pop().unwrap_or_default();
        if !path.is_empty() {
            return Err(SqlError::unknown_function(&format!("{}.{name}", path.join("."))));
        }
        let no_list;
        let list = match &function.args {
            ast::FunctionArguments::List(list) => list,
            ast::FunctionArguments::None => {
                no_list =
                    ast::FunctionArgumentList { duplicate_treatment: None, args: vec![], clauses: vec![] };
                &no_list
            }
            ast::FunctionArguments::Subquery(_) => return Err(SqlError::not_supported("a subquery here")),
        };
        if name.eq_ignore_ascii_case("DEFAULT") {
            return self.default_of(list);
        }
        let unknown = || SqlError::unknown_function(&name);
        let found = match Function::lookup(&name) {
            Some(found) => found,
            // As in MariaDB, only window functions and aggregates can stand before OVER.
            None if function.over.is_some() => return Err(SqlError::syntax(&function.to_string(), 1)),
            None => return Err(unknown()),
        };
        if function.over.is_some() || found.window().is_some() || !function.within_group.is_empty() {
            return self.window_call(function, list, found);
        }
        if let Some(kind) = found.aggregate() {
            return self.aggregate_call(kind, list, &name);
        }
        match found.syntax {
            Syntax::Plain | Syntax::UnitFrom => {}
            Syntax::UnitSum | Syntax::UnitDifference => return self.timestamp_arithmetic(found, list),
            Syntax::MonthSum => return self.month_sum(list),
            Syntax::FormatOf => return self.format_of(found, list),
            Syntax::InsertedValue => return self.values_of(list, self.values_part.ok_or_else(unknown)?),
            Syntax::Keyword => return Err(unknown()),
        }
        let mut arguments =
            list.args.iter().map(|argument| self.argument(argument)).collect::<Result<Vec<_>, _>>()?;
        if json::CATEGORY.functions.contains(&found) {
            // TRUE and FALSE are 1 and 0 elsewhere. Here they are the results of tests.
            let given = arguments.iter_mut().zip(&list.args);
            given.filter(|(_, given)| is_truth(given)).for_each(|(bound, _)| make_test(bound));
        }
        if !found.arity.contains(&arguments.len()) {
            return Err(SqlError::wrong_parameter_count(&name));
        }
        Ok(call(found, arguments))
    }

    pub(super) fn argument(&mut self, argument: &ast::FunctionArg) -> Result<Expr, SqlError> {
        match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => self.bind(expr),
            other => Err(SqlError::syntax(&other.to_string(), 1)),
        }
    }

    /// VALUES(column): the value that INSERT would have stored.
    fn values_of(&mut self, list: &ast::FunctionArgumentList, part: usize) -> Result<Expr, SqlError> {
        let [argument] = list.args.as_slice() else { return Err(SqlError::wrong_parameter_count("VALUES")) };
        match self.argument(argument)? {
            Expr::Column(mut column) => {
                column.part = part;
                Ok(Expr::Column(column))
            }
            _ => Err(SqlError::wrong_arguments("VALUES")),
        }
    }

    fn aggregate_call(
        &mut self,
        kind: AggregateKind,
        list: &ast::FunctionArgumentList,
        name: &str,
    ) -> Result<Expr, SqlError> {
        let is_star =
            matches!(list.args.as_slice(), [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)]);
        if is_star {
            if kind != AggregateKind::Count {
                return Err(SqlError::syntax("*)", 1));
            }
            let aggregate = Aggregate {
                kind: AggregateKind::CountRows,
                distinct: false,
                arguments: vec![],
                separator: None,
                order: vec![],
            };
            return self.aggregate(aggregate, "count(*)".to_string());
        }
        // An aggregate is of rows, before they are grouped: its arguments name columns first, whatever an
        // alias calls a result, and must not contain aggregates.
        let outer = self.aggregates.take();
        let windows = match outer.is_some() {
            true => std::mem::replace(&mut self.windows, WindowUse::InAggregate),
            false => std::mem::replace(&mut self.windows, WindowUse::Nowhere),
        };
        let alias_use = self.alias_use;
        if alias_use == AliasUse::First {
            self.alias_use = AliasUse::Last;
        }
        let bound = self.aggregate_parts(kind, list);
        self.aggregates = outer;
        self.windows = windows;
        self.alias_use = alias_use;
        let aggregate = bound?;
        self.refuse_results(&aggregate)?;
        let takes_more = matches!(kind, AggregateKind::GroupConcat | AggregateKind::JsonObject)
            || (kind == AggregateKind::Count && aggregate.distinct);
        if aggregate.arguments.is_empty() || (!takes_more && aggregate.arguments.len() != 1) {
            return Err(SqlError::wrong_parameter_count(name));
        }
        self.aggregate(aggregate, name.to_string())
    }

    /// An alias in an aggregate must not stand for the result of an aggregate.
    ///
    /// # Errors
    /// 1247.
    fn refuse_results(&self, aggregate: &Aggregate) -> Result<(), SqlError> {
        let parts = aggregate.arguments.iter().chain(aggregate.order.iter().map(|(expr, _)| expr));
        let mut is_result = false;
        for part in parts {
            for_each_column(part, &mut |column| {
                is_result |= self.aggregates.is_some() && column.part == self.aggregate_part;
            });
        }
        let named = self.aliases.iter().find(|(_, expr)| {
            let mut contains = false;
            for_each_column(expr, &mut |column| contains |= column.part == self.aggregate_part);
            contains
        });
        match named {
            Some((alias, _)) if is_result => Err(SqlError::new(
                ErrorKind::IllegalReference,
                format!("Reference '{alias}' not supported (reference to group function)"),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn aggregate_parts(
        &mut self,
        kind: AggregateKind,
        list: &ast::FunctionArgumentList,
    ) -> Result<Aggregate, SqlError> {
        let mut aggregate = Aggregate {
            kind,
            distinct: list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct),
            arguments: list.args.iter().map(|argument| self.argument(argument)).collect::<Result<_, _>>()?,
            separator: None,
            order: vec![],
        };
        if matches!(kind, AggregateKind::JsonArray | AggregateKind::JsonObject) {
            let given = aggregate.arguments.iter_mut().zip(&list.args);
            given.filter(|(_, given)| is_truth(given)).for_each(|(bound, _)| make_test(bound));
        }
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::Separator(text) => {
                    aggregate.separator = text.value.clone().into_string();
                }
                ast::FunctionArgumentClause::OrderBy(order) => {
                    for item in order {
                        let descending = item.options.sort == Some(ast::OrderBySort::Desc);
                        aggregate.order.push((self.bind(&item.expr)?, descending));
                    }
                }
                other => return Err(SqlError::not_supported(&other.to_string())),
            }
        }
        Ok(aggregate)
    }

    /// ADD_MONTHS(x, n).
    fn month_sum(&mut self, list: &ast::FunctionArgumentList) -> Result<Expr, SqlError> {
        let [moment, months] = list.args.as_slice() else {
            return Err(SqlError::wrong_parameter_count("add_months"));
        };
        let (moment, months) = (self.argument(moment)?, self.argument(months)?);
        Ok(call(&time::DATE_ADD, vec![moment, interval(IntervalUnit::Month, months)]))
    }

    /// GET_FORMAT(kind, place), where the kind is the name of a type.
    fn format_of(
        &mut self,
        function: &'static Function,
        list: &ast::FunctionArgumentList,
    ) -> Result<Expr, SqlError> {
        let [kind, place] = list.args.as_slice() else {
            return Err(SqlError::syntax(function.name, 1));
        };
        let kind = match kind {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(kind))) => {
                kind.value.to_ascii_uppercase()
            }
            other => return Err(SqlError::syntax(&other.to_string(), 1)),
        };
        if !["DATE", "TIME", "DATETIME", "TIMESTAMP"].contains(&kind.as_str()) {
            return Err(SqlError::syntax(&kind, 1));
        }
        let kind = Expr::Constant(Value::Text(kind.into_bytes()));
        Ok(call(function, vec![kind, self.argument(place)?]))
    }

    /// TIMESTAMPADD(unit, n, x) and TIMESTAMPDIFF(unit, a, b).
    fn timestamp_arithmetic(
        &mut self,
        function: &'static Function,
        list: &ast::FunctionArgumentList,
    ) -> Result<Expr, SqlError> {
        let [unit, first, second] = list.args.as_slice() else {
            return Err(SqlError::wrong_parameter_count(function.name));
        };
        let unit = match unit {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(unit))) => {
                let word = unit.value.to_ascii_uppercase();
                let word = word.strip_prefix("SQL_TSI_").unwrap_or(&word).to_string();
                interval_unit(&ast::DateTimeField::Custom(ast::Ident::new(word)))?
            }
            other => return Err(SqlError::syntax(&other.to_string(), 1)),
        };
        let (first, second) = (self.argument(first)?, self.argument(second)?);
        if function.syntax == Syntax::UnitSum {
            return Ok(call(function, vec![second, interval(unit, first)]));
        }
        let unit = interval(unit, Expr::Constant(Value::Int(0)));
        Ok(call(function, vec![unit, first, second]))
    }
}

fn call(function: &'static Function, arguments: Vec<Expr>) -> Expr {
    Expr::Call { function, arguments }
}

fn interval(unit: IntervalUnit, amount: Expr) -> Expr {
    Expr::Interval { amount: Box::new(amount), unit }
}

/// The type of `DATE '...'` and its like.
pub(super) fn temporal_type(data_type: &ast::DataType) -> Result<ColumnType, SqlError> {
    Ok(match data_type {
        ast::DataType::Date => ColumnType::Date,
        ast::DataType::Time(..) => ColumnType::Time { fsp: 6 },
        ast::DataType::Timestamp(..) | ast::DataType::Datetime(_) => ColumnType::DateTime { fsp: 6 },
        other => return Err(SqlError::syntax(&other.to_string(), 1)),
    })
}

/// The type that CAST names.
fn cast_type(data_type: &ast::DataType, connection: Collation) -> Result<ColumnType, SqlError> {
    use ast::DataType as Type;
    let fsp = |digits: &Option<u64>| u8::try_from(digits.unwrap_or(0)).unwrap_or(6).min(6);
    Ok(match data_type {
        Type::Signed | Type::SignedInteger | Type::Int(_) | Type::Integer(_) | Type::BigInt(_) => {
            ColumnType::Int { bytes: 8, unsigned: false }
        }
        Type::Unsigned | Type::UnsignedInteger => ColumnType::Int { bytes: 8, unsigned: true },
        Type::Char(length)
        | Type::Character(length)
        | Type::Nvarchar(length)
        | Type::Varchar(length)
        | Type::CharVarying(length)
        | Type::CharacterVarying(length) => {
            let chars = match length {
                Some(ast::CharacterLength::IntegerLength { length, .. }) => {
                    u32::try_from(*length).unwrap_or(u32::MAX)
                }
                _ => u32::MAX,
            };
            ColumnType::Varchar { chars, collation: connection }
        }
        Type::Binary(length) => match length {
            Some(bytes) => ColumnType::Binary { bytes: u32::try_from(*bytes).unwrap_or(u32::MAX) },
            None => ColumnType::Varbinary { bytes: u32::MAX },
        },
        Type::Uuid => ColumnType::Code(Code::Uuid),
        Type::Custom(name, words) if words.is_empty() && name.to_string().eq_ignore_ascii_case("inet6") => {
            ColumnType::Code(Code::Inet6)
        }
        Type::Custom(name, words) if words.is_empty() && name.to_string().eq_ignore_ascii_case("inet4") => {
            ColumnType::Code(Code::Inet4)
        }
        Type::Date => ColumnType::Date,
        Type::Time(digits, _) => ColumnType::Time { fsp: fsp(digits) },
        Type::Datetime(digits) | Type::Timestamp(digits, _) => ColumnType::DateTime { fsp: fsp(digits) },
        Type::Double(_) | Type::DoublePrecision | Type::Real => ColumnType::Double { unsigned: false },
        Type::Float(_) => ColumnType::Float { unsigned: false },
        Type::Decimal(info) | Type::Numeric(info) | Type::Dec(info) => {
            let (precision, scale) = match info {
                ast::ExactNumberInfo::None => (10, 0),
                ast::ExactNumberInfo::Precision(precision) => (*precision, 0),
                ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
            };
            match (u8::try_from(precision), u8::try_from(scale)) {
                (Ok(precision), Ok(scale)) if precision <= 65 && scale <= 30 && scale <= precision => {
                    ColumnType::Decimal { precision: precision.max(1), scale, unsigned: false }
                }
                _ => {
                    let text =
                        format!("Too big precision specified for CAST. Maximum is 65: {precision},{scale}");
                    return Err(SqlError::new(ErrorKind::PrecisionTooBig, text));
                }
            }
        }
        other => return Err(SqlError::not_supported(&format!("CAST AS {other}"))),
    })
}

/// Bytes behind the name of a character set, as a text. Bytes that are no text of it stay bytes.
fn introduced(charset: &str, bytes: Vec<u8>) -> Value {
    match types::collation::CharacterMap::named(charset) {
        Some(map) => Value::text(map.decode(&bytes)),
        None if std::str::from_utf8(&bytes).is_ok() => Value::Text(bytes),
        None => Value::Binary(bytes),
    }
}

/// # Errors
/// 1115 for an unknown character set.
fn charset_collation(name: &str) -> Result<Collation, SqlError> {
    crate::definition::column_types::collation_of_charset(name)
}

/// The value of `DATE '2026-11-21'` and its like.
///
/// # Errors
/// 1525 for a text that is not such a value.
pub(super) fn temporal_literal(data_type: &ast::DataType, text: &str) -> Result<Value, SqlError> {
    use types::temporal::{read_date_time, read_time};
    let column_type = temporal_type(data_type)?;
    let moment = || read_date_time(text.as_bytes()).filter(|reading| !reading.truncated);
    let (kind, value) = match column_type {
        ColumnType::Date => (
            "DATE",
            moment().filter(|reading| !reading.has_time).map(|reading| Value::Date(reading.value.date)),
        ),
        ColumnType::Time { .. } => (
            "TIME",
            read_time(text.as_bytes())
                .filter(|reading| !reading.truncated)
                .map(|reading| Value::Time(reading.value)),
        ),
        _ => ("DATETIME", moment().map(|reading| Value::DateTime(reading.value))),
    };
    value.ok_or_else(|| {
        SqlError::new(ErrorKind::WrongTemporalLiteral, format!("Incorrect {kind} value: '{text}'"))
    })
}
