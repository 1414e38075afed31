//! No value that a client can send makes an expression panic.

use super::environment::TestEnvironment;
use crate::expr::functions::time;
use crate::expr::{Arithmetic, Comparison, Compiled, Context, Expr, Function, IntervalUnit, Row, Slots};
use crate::text::SlotKind;
use crate::variables::time_zones::Zone;
use proptest::prelude::*;
use types::{Collation, ColumnType, Date, DateTime, Decimal, Time, Value};

/// Values at the ends of their kinds, and texts that look like others.
fn values() -> Vec<Value> {
    let date = |year, month, day| Date { year, month, day };
    let decimal = |text: &str| Value::Decimal(Decimal::parse_prefix(text.as_bytes()).0);
    let late =
        DateTime { date: date(9999, 12, 31), hour: 23, minute: 59, second: 59, fsp: 6, micros: 999_999 };
    let mut values = vec![
        Value::Null,
        Value::Int(0),
        Value::Int(1),
        Value::Int(-1),
        Value::Int(7),
        Value::Int(i64::MIN),
        Value::Int(i64::MAX),
        Value::Int(20_261_121),
        Value::UInt(u64::MAX),
        Value::Float(1.5),
        Value::Double(-0.0),
        Value::Double(f64::MAX),
        Value::Double(1e-300),
        Value::Double(-1e19),
        decimal("0.00"),
        decimal("-1.5"),
        decimal("99999999999999999999999999999999999999999999999999999999999999999"),
        decimal("0.00000000000000000000000000000000000001"),
        Value::Date(Date::ZERO),
        Value::Date(date(2026, 0, 10)),
        Value::Date(date(0, 1, 1)),
        Value::Date(date(2024, 2, 29)),
        Value::Date(date(9999, 12, 31)),
        Value::Time(Time { micros: -3_020_399_000_000, fsp: 0 }),
        Value::Time(Time { micros: 1, fsp: 6 }),
        Value::DateTime(DateTime::ZERO),
        Value::DateTime(late),
        Value::Binary(vec![]),
        Value::Binary(vec![0xff, 0, 0xc3]),
    ];
    let texts = [
        "",
        " ",
        "a",
        "-1",
        "1e400",
        "0x10",
        "äöü😀",
        "%",
        "_%\\",
        "2026-11-21 10:11:12.5",
        "0000-00-00",
        "9999-12-31",
        "-838:59:59",
        "%Y-%m-%d %H:%i:%s.%f %p %j %W",
        "%D %M %b %X %V %u",
        "Sunday 1st",
        "a,b,,c",
        "(",
        "1:2:3:4:5:6:7",
        "99999999999999999999999999",
        "-99999999999999999999 1",
        "\u{0}",
    ];
    values.extend(texts.map(Value::text));
    values.push(Value::Text(vec![0xff, 0xfe, b'a']));
    values
}

const UNITS: [IntervalUnit; 6] = [
    IntervalUnit::Microsecond,
    IntervalUnit::Day,
    IntervalUnit::Month,
    IntervalUnit::Year,
    IntervalUnit::DayMicrosecond,
    IntervalUnit::YearMonth,
];

fn targets() -> Vec<ColumnType> {
    let collation = Collation::Utf8mb4GeneralCi;
    vec![
        ColumnType::Int { bytes: 8, unsigned: false },
        ColumnType::Int { bytes: 8, unsigned: true },
        ColumnType::Float { unsigned: false },
        ColumnType::Decimal { precision: 65, scale: 38, unsigned: false },
        ColumnType::Decimal { precision: 1, scale: 0, unsigned: true },
        ColumnType::Char { chars: 1, collation },
        ColumnType::Binary { bytes: 2 },
        ColumnType::Date,
        ColumnType::Time { fsp: 3 },
        ColumnType::DateTime { fsp: 0 },
        ColumnType::Timestamp { fsp: 6 },
        ColumnType::Year,
    ]
}

/// Values as literals, and as parameters of which only the kind is known when they are compiled.
fn run(build: impl Fn(&[Expr]) -> Expr, operands: &[Value]) {
    let environment = TestEnvironment::default();
    let arena = bumpalo::Bump::new();
    let values: Vec<_> = operands.iter().map(Value::as_ref).collect();
    let literals: Vec<Expr> = operands.iter().cloned().map(Expr::Constant).collect();
    let slot = |(index, value)| Expr::Slot { index, kind: SlotKind::of(value) };
    let slots: Vec<Expr> = values.iter().enumerate().map(slot).collect();
    for operands in [literals, slots] {
        let Ok(compiled) = Compiled::new(&build(&operands), Collation::Utf8mb4GeneralCi) else { continue };
        let context = Context {
            slots: Slots::new(&values, &[]),
            arena: &arena,
            environment: &environment,
            subqueries: None,
        };
        let value = compiled.evaluate(&Row::EMPTY, &context);
        if let Ok(value) = value {
            compiled.write_group_key(&value, &mut Vec::new());
            let mut text = String::new();
            crate::expr::evaluate::write_text(&value, &mut text);
            for column_type in targets() {
                let column = types::Column { name: "c".into(), column_type, nullable: false };
                let coerced = crate::expr::coerce(value, &column, Some(&Zone::UTC), &arena);
                let codec = types::RowCodec::new(std::slice::from_ref(&column));
                let mut image = Vec::new();
                codec.encode(&[coerced.value], &mut image);
                assert_eq!(codec.validate(&image), Ok(()), "{value:?} in {column:?}");
            }
        }
        let _ = compiled.is_true(&Row::EMPTY, &context);
    }
}

proptest! {
    #[test]
    fn functions_take_whatever_comes(operands in prop::collection::vec(prop::sample::select(values()), 4)) {
        for function in Function::all() {
            // These functions would take too long.
            if ["sleep", "benchmark"].contains(&function.name) {
                continue;
            }
            for count in function.arity.clone().take_while(|count| *count <= 4) {
                run(|exprs| Expr::Call { function, arguments: exprs[..count].to_vec() }, &operands);
            }
        }
        for unit in UNITS {
            for function in [&time::DATE_ADD, &time::DATE_SUB, &time::EXTRACT] {
                let interval = |amount: &Expr| Expr::Interval { amount: Box::new(amount.clone()), unit };
                let arguments = |exprs: &[Expr]| vec![exprs[0].clone(), interval(&exprs[1])];
                run(|exprs| Expr::Call { function, arguments: arguments(exprs) }, &operands);
            }
            let difference = |exprs: &[Expr]| {
                let interval = Expr::Interval { amount: Box::new(exprs[0].clone()), unit };
                vec![interval, exprs[1].clone(), exprs[2].clone()]
            };
            run(|exprs| Expr::Call { function: &time::TIMESTAMP_DIFF, arguments: difference(exprs) }, &operands);
        }
    }

    #[test]
    fn operators_take_whatever_comes(operands in prop::collection::vec(prop::sample::select(values()), 3)) {
        let boxed = |expr: &Expr| Box::new(expr.clone());
        for op in [
            Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Divide, Arithmetic::IntegerDivide,
            Arithmetic::Modulo, Arithmetic::BitAnd, Arithmetic::ShiftLeft, Arithmetic::ShiftRight,
        ] {
            run(|exprs| Expr::Arithmetic { op, left: boxed(&exprs[0]), right: boxed(&exprs[1]) }, &operands);
            // More arithmetic must accept any result.
            let nested = |exprs: &[Expr]| {
                let inner = Expr::Arithmetic { op, left: boxed(&exprs[0]), right: boxed(&exprs[1]) };
                Expr::Arithmetic { op: Arithmetic::Divide, left: Box::new(inner), right: boxed(&exprs[2]) }
            };
            run(nested, &operands);
        }
        for op in [Comparison::Equal, Comparison::Less, Comparison::NullSafeEqual] {
            run(|exprs| Expr::Compare { op, left: boxed(&exprs[0]), right: boxed(&exprs[1]) }, &operands);
        }
        run(|exprs| Expr::Negate(boxed(&exprs[0])), &operands);
        run(|exprs| Expr::BitNot(boxed(&exprs[0])), &operands);
        run(|exprs| Expr::Like { operand: boxed(&exprs[0]), pattern: boxed(&exprs[1]), escape: Some('\\'), negated: false }, &operands);
        run(|exprs| Expr::Regexp { operand: boxed(&exprs[0]), pattern: boxed(&exprs[1]), negated: false }, &operands);
        run(|exprs| Expr::Case { operand: None, whens: vec![(exprs[0].clone(), exprs[1].clone())], otherwise: Some(boxed(&exprs[2])) }, &operands);
        for to in targets() {
            run(|exprs| Expr::Cast { operand: boxed(&exprs[0]), to: to.clone() }, &operands);
        }
    }
}
