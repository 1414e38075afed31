//! A predicate gives the same rows by any index as by a full scan.

mod support;

use proptest::prelude::*;

/// A value as SQL writes it, for each kind of column and some that do not fit it.
fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (-3i32..12).prop_map(|number| number.to_string()),
        1 => Just("NULL".to_string()),
        1 => (-30i32..120).prop_map(|tenths| format!("{}.{}", tenths / 10, (tenths % 10).abs())),
        1 => (-3i32..12).prop_map(|number| format!("'{number}'")),
        1 => Just("1e1".to_string()),
        1 => Just("99999999999".to_string()),
        3 => "[abAB]{0,3} ?".prop_map(|text| format!("'{text}'")),
    ]
}

fn column() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("id"), Just("a"), Just("b"), Just("c"), Just("d"), Just("f")]
}

fn leaf() -> impl Strategy<Value = String> {
    let comparison =
        prop_oneof![Just("="), Just("<"), Just("<="), Just(">"), Just(">="), Just("<>"), Just("<=>")];
    prop_oneof![
        5 => (column(), comparison, literal()).prop_map(|(column, op, value)| format!("{column} {op} {value}")),
        1 => (literal(), column()).prop_map(|(value, column)| format!("{value} >= {column}")),
        2 => (column(), literal(), literal(), any::<bool>()).prop_map(|(column, low, high, not)| {
            format!("{column} {}BETWEEN {low} AND {high}", if not { "NOT " } else { "" })
        }),
        2 => (column(), prop::collection::vec(literal(), 1..5), any::<bool>()).prop_map(|(column, list, not)| {
            format!("{column} {}IN ({})", if not { "NOT " } else { "" }, list.join(", "))
        }),
        1 => (column(), any::<bool>()).prop_map(|(column, not)| {
            format!("{column} IS {}NULL", if not { "NOT " } else { "" })
        }),
        1 => "[ab]{0,2}[%_]?[ab]?".prop_map(|pattern| format!("c LIKE '{pattern}'")),
        1 => (column(), column()).prop_map(|(left, right)| format!("{left} = {right}")),
    ]
}

fn predicate() -> impl Strategy<Value = String> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" AND "))),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" OR "))),
            1 => inner.prop_map(|inner| format!("NOT ({inner})")),
        ]
    })
}

type Row = (Option<i32>, Option<i32>, Option<String>, Option<i32>, Option<i32>);

fn row() -> impl Strategy<Value = Row> {
    (
        prop::option::weighted(0.8, -2i32..10),
        prop::option::weighted(0.8, -2i32..10),
        prop::option::weighted(0.8, "[abAB]{0,3}"),
        prop::option::weighted(0.8, -30i32..120),
        prop::option::weighted(0.8, -2i32..10),
    )
}

fn value<T: std::fmt::Display>(value: &Option<T>, quote: &str) -> String {
    value.as_ref().map_or("NULL".to_string(), |value| format!("{quote}{value}{quote}"))
}

const COLUMNS: &str = "id INT NOT NULL PRIMARY KEY, a INT, b TINYINT, c VARCHAR(5), d DECIMAL(4,1), f DOUBLE";

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn predicates_give_the_same_rows_by_index_and_by_full_scan(
        rows in prop::collection::vec(row(), 0..40),
        predicates in prop::collection::vec(predicate(), 12),
        orders in prop::collection::vec((column(), any::<bool>(), 0u8..6), 12),
    ) {
        let mut world = support::world();
        let keys = "KEY a (a), KEY ab (a, b DESC), KEY c (c), KEY cut (c(2)), KEY d (d), KEY f (f), UNIQUE KEY bid (b, id)";
        world.run(&format!("CREATE TABLE plain ({COLUMNS})"));
        world.run(&format!("CREATE TABLE indexed ({COLUMNS}, {keys})"));
        for (id, (a, b, c, d, f)) in rows.iter().enumerate() {
            let d = d.map(|tenths| f64::from(tenths) / 10.0);
            let values = [value(a, ""), value(b, ""), value(c, "'"), value(&d, ""), value(f, "")].join(", ");
            for table in ["plain", "indexed"] {
                world.run(&format!("INSERT INTO {table} VALUES ({id}, {values})"));
            }
        }
        prop_assert_eq!(world.rows("SELECT COUNT(*) FROM indexed"), vec![rows.len().to_string()]);
        for (predicate, (order, descending, limit)) in predicates.iter().zip(&orders) {
            let scanned = world.rows(&format!("SELECT * FROM plain USE INDEX () WHERE {predicate} ORDER BY id"));
            let mut found = world.rows(&format!("SELECT * FROM indexed WHERE {predicate}"));
            found.sort_by_key(|row| row.split(" | ").next().and_then(|id| id.parse::<i64>().ok()));
            prop_assert_eq!(&found, &scanned, "{}", predicate);
            let mut by_cut = world.rows(&format!("SELECT * FROM indexed FORCE INDEX (cut) WHERE {predicate}"));
            by_cut.sort_by_key(|row| row.split(" | ").next().and_then(|id| id.parse::<i64>().ok()));
            prop_assert_eq!(&by_cut, &scanned, "by the cut index: {}", predicate);
            let count = world.rows(&format!("SELECT COUNT(*) FROM indexed WHERE {predicate}"));
            prop_assert_eq!(count, vec![scanned.len().to_string()], "{}", predicate);
            let covered = world.rows(&format!("SELECT a FROM indexed WHERE {predicate}"));
            prop_assert_eq!(covered.len(), scanned.len());
            let direction = if *descending { "DESC" } else { "ASC" };
            let tail = format!("WHERE {predicate} ORDER BY {order} {direction}, id {direction} LIMIT {limit}");
            let ordered = world.rows(&format!("SELECT id, {order} FROM indexed {tail}"));
            let expected = world.rows(&format!("SELECT id, {order} FROM plain {tail}"));
            prop_assert_eq!(ordered, expected, "{}", tail);
        }
    }
}
