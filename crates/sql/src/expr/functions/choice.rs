//! Functions that choose one of their arguments, and functions that compare them.

use super::MANY;
use super::arguments::{Arguments, Result, int};
use super::typing::{Typing, int_of};
use crate::SqlError;
use crate::expr::compile::{unify, unify_with_times};
use crate::expr::evaluate::compare;
use crate::expr::node::Conversion;
use crate::expr::result_type::Typed;
use std::cmp::Ordering;
use types::{ColumnType, DateTime, ValueRef};

functions! {
    "Choice and Comparison Functions";

    IF {
        name: "if",
        arguments: "condition, then, otherwise",
        arity: 3..=3,
        collation: MergedAfterFirst,
        typing: |t| unified(t, 1),
        evaluate: |a| {
            let holds = a.truth(0)? == Some(true);
            Ok(a.converted(a.value(if holds { 1 } else { 2 })?))
        },
        help: "Gives the second argument if the condition is true, and the third if it is false or NULL.",
        example: "IF(1 < 2, 'yes', 'no')" => "yes",
    }
    IFNULL {
        name: "ifnull",
        aliases: ["nvl"],
        arguments: "value, otherwise",
        arity: 2..=2,
        typing: first_known_type,
        evaluate: first_known,
        help: "Gives the first argument if it is not NULL, and the second if it is.",
        example: "IFNULL(NULL, 'none')" => "none",
    }
    NULLIF {
        name: "nullif",
        arguments: "value, other",
        arity: 2..=2,
        typing: |t| {
            let mut typed = t.types[0].clone().computed();
            typed.result.nullable = true;
            Ok(typed)
        },
        evaluate: |a| {
            let left = a.value(0)?;
            if left.is_null() {
                return Ok(left);
            }
            Ok(match compare(&left, &a.value(1)?, a.call.collation, a.context) {
                Some(Ordering::Equal) => ValueRef::Null,
                Some(Ordering::Less | Ordering::Greater) | None => left,
            })
        },
        help: "Gives NULL if both arguments are equal, and the first argument if they are not.",
        example: "NULLIF(5, 6)" => "5",
    }
    COALESCE {
        name: "coalesce",
        arguments: "value, ...",
        arity: 1..=MANY,
        typing: first_known_type,
        evaluate: first_known,
        help: "Gives the first argument that is not NULL, or NULL if all are.",
        example: "COALESCE(NULL, NULL, 3)" => "3",
    }
    ANY_VALUE {
        name: "any_value",
        arguments: "value",
        arity: 1..=1,
        typing: |t| Ok(t.types[0].clone()),
        evaluate: |a| a.value(0),
        help: "Gives the value. In a query with GROUP BY it is that of some row of the group.",
        example: "ANY_VALUE(5)" => "5",
    }
    NVL2 {
        name: "nvl2",
        arguments: "value, then, otherwise",
        arity: 3..=3,
        collation: MergedAfterFirst,
        typing: |t| unified(t, 1),
        evaluate: |a| {
            let is_known = !a.value(0)?.is_null();
            Ok(a.converted(a.value(if is_known { 1 } else { 2 })?))
        },
        help: "Gives the second argument if the first is not NULL, and the third if it is.",
        example: "NVL2(NULL, 1, 2)" => "2",
    }
    IS_NULL {
        name: "isnull",
        arguments: "value",
        arity: 1..=1,
        typing: |_| Ok(Typed::boolean(false)),
        evaluate: |a| int(a.value(0)?.is_null() as i64),
        help: "Gives 1 if the argument is NULL, and 0 if it is not.",
        example: "ISNULL(NULL)" => "1",
    }
    GREATEST {
        name: "greatest",
        arguments: "value, other, ...",
        arity: 2..=MANY,
        typing: extreme_type,
        evaluate: |a| extreme(a, Ordering::Greater),
        help: "Gives the largest argument, or NULL if one of them is NULL.",
        example: "GREATEST(2, 7, 5)" => "7",
    }
    LEAST {
        name: "least",
        arguments: "value, other, ...",
        arity: 2..=MANY,
        typing: extreme_type,
        evaluate: |a| extreme(a, Ordering::Less),
        help: "Gives the smallest argument, or NULL if one of them is NULL.",
        example: "LEAST(2, 7, 5)" => "2",
    }
    INTERVAL {
        name: "interval",
        arguments: "number, bound, ...",
        arity: 2..=MANY,
        typing: |_| Ok(Typed::int(4, false, false).with_display(2)),
        evaluate: |a| {
            let Some(number) = a.double(0)? else { return int(-1) };
            let mut passed = 0;
            for index in 1..a.len() {
                match a.double(index)? {
                    Some(bound) if bound > number => break,
                    Some(_) | None => passed = index as i64,
                }
            }
            int(passed)
        },
        help: "Counts the bounds, which must ascend, that the number has reached. Gives -1 if the number is NULL. The \
               parser does not take it yet: error 1064.",
    }
    ELT {
        name: "elt",
        arguments: "number, text, ...",
        arity: 2..=MANY,
        typing: |t| Ok(t.text(t.types[1..].iter().map(Typed::chars).max().unwrap_or(0), true)),
        evaluate: |a| match a.int(0)? {
            Some(index) if index >= 1 && (index as usize) < a.len() => {
                Ok(a.give_borrowed(or_null!(a.text(index as usize)?)))
            }
            Some(_) | None => Ok(ValueRef::Null),
        },
        help: "Gives the text of that number, counted from 1, or NULL if there is none.",
        example: "ELT(2, 'red', 'green')" => "green",
    }
    FIELD {
        name: "field",
        arguments: "value, candidate, ...",
        arity: 2..=MANY,
        typing: |t| {
            // All are texts, all are numbers of one kind, or all become numbers.
            let has_number = t.types.iter().any(|typed| typed.class.is_numeric());
            let all_numbers = t.types.iter().all(|typed| typed.class.is_numeric());
            t.to = match (has_number, all_numbers) {
                (true, false) => Conversion::Double,
                (true, true) => Conversion::None,
                (false, _) => Conversion::Text,
            };
            Ok(Typed::int(4, false, false).with_display(3))
        },
        evaluate: |a| {
            let wanted = a.converted(a.value(0)?);
            for index in 1..a.len() {
                let value = a.converted(a.value(index)?);
                if compare(&wanted, &value, a.call.collation, a.context) == Some(Ordering::Equal) {
                    return int(index as i64);
                }
            }
            int(0)
        },
        help: "Gives the number of the first candidate that equals the value, counted from 1, or 0.",
        example: "FIELD('b', 'a', 'b')" => "2",
    }
    STRCMP {
        name: "strcmp",
        arguments: "text, other",
        arity: 2..=2,
        typing: int_of::<2>,
        evaluate: |a| match (a.text(0)?, a.text(1)?) {
            (Some(left), Some(right)) => int(a.call.collation.compare(left, right) as i64),
            (None, _) | (_, None) => Ok(ValueRef::Null),
        },
        help: "Gives 0 if the texts are equal, -1 if the first sorts before the second, and 1 if it sorts after it.",
        example: "STRCMP('a', 'b')" => "-1",
    }
}

/// The type that the arguments from `first` on have together.
fn unified(typing: &mut Typing<'_>, first: usize) -> std::result::Result<Typed, SqlError> {
    let (mut typed, to) = unify(&typing.all()[first..], typing.name, typing.connection)?;
    typed.result.nullable |= typing.nullable();
    typing.to = to;
    Ok(typed)
}

/// IFNULL and COALESCE.
fn first_known_type(typing: &mut Typing<'_>) -> std::result::Result<Typed, SqlError> {
    let mut typed = unified(typing, 0)?;
    typed.result.nullable = typing.types.iter().all(Typed::nullable);
    Ok(typed)
}

fn first_known<'a>(arguments: &Arguments<'a, '_>) -> Result<ValueRef<'a>> {
    for index in 0..arguments.len() {
        let value = arguments.value(index)?;
        if !value.is_null() {
            return Ok(arguments.converted(value));
        }
    }
    Ok(ValueRef::Null)
}

/// GREATEST and LEAST.
fn extreme_type(typing: &mut Typing<'_>) -> std::result::Result<Typed, SqlError> {
    if let Some((typed, to)) = unify_with_times(&typing.all()) {
        typing.to = to;
        return Ok(typed);
    }
    let typed = unified(typing, 0)?;
    if let ColumnType::Double { .. } = typed.result.column_type {
        // As in MariaDB, as wide as what is computed.
        return Ok(Typed::double_with(typed.digits_as_double(), typing.nullable()));
    }
    // A number beside texts makes the texts numbers.
    let has_number = typing.types.iter().any(|typed| typed.class.is_numeric());
    if has_number && typing.types.iter().any(|typed| typed.class.is_text()) {
        typing.to = Conversion::Double;
        return Ok(Typed::double(typing.nullable()));
    }
    Ok(typed)
}

fn extreme<'a>(arguments: &Arguments<'a, '_>, wanted: Ordering) -> Result<ValueRef<'a>> {
    let first = arguments.value(0)?;
    if first.is_null() {
        return Ok(first);
    }
    let mut best = arguments.converted(first);
    for index in 1..arguments.len() {
        let value = arguments.converted(arguments.value(index)?);
        if or_null!(compare(&value, &best, arguments.call.collation, arguments.context)) == wanted {
            best = value;
        }
    }
    let moment = match best {
        ValueRef::Date(date) => DateTime::from_date(date),
        ValueRef::DateTime(moment) => moment,
        _ => return Ok(best),
    };
    if arguments.context.environment.sql_mode().forbids(moment) {
        super::time::warn_of(best, "datetime", arguments);
        return Ok(ValueRef::Null);
    }
    Ok(best)
}
