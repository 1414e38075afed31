//! Statements of one shape are planned once, and a shape never stands for statements that mean something
//! else.

mod support;

use support::{Lines, text, world};
use types::ValueRef;

fn table(world: &mut support::World) {
    world.run(
        "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c VARCHAR(30) NOT NULL, KEY k (k))",
    );
    world.run("INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, '3'), (4, 10, '10 per cent')");
}

#[test]
fn a_shape_is_planned_once_however_its_constants_change() {
    let mut world = world();
    table(&mut world);
    let plans = world.session.cached_plans();
    for id in 1..=4 {
        world.rows(&format!("SELECT c FROM t WHERE id = {id}"));
        world.rows(&format!("SELECT c FROM t WHERE k IN ({})", vec!["10"; id].join(",")));
    }
    assert_eq!(world.session.cached_plans() - plans, 2);
}

#[test]
fn a_number_and_the_same_digits_in_quotes_are_not_the_same() {
    let mut world = world();
    table(&mut world);
    // A text column beside a number is compared as a number: '10 per cent' is 10.
    assert_eq!(world.rows("SELECT id FROM t WHERE c = 10")[0], "4");
    assert!(world.rows("SELECT id FROM t WHERE c = '10'").is_empty());
    assert_eq!(world.rows("SELECT id FROM t WHERE c = '3'"), ["3"]);
    assert_eq!(world.rows("SELECT id FROM t WHERE c = 10")[0], "4");
    assert_eq!(world.rows("SELECT 1 = '1'"), ["1"]);
    assert_eq!(world.rows("SELECT '1' = '1 '"), ["1"]);
    assert_eq!(world.rows("SELECT 1 / 2, 1.0 / 2, 1e0 / 2"), ["0.5000 | 0.50000 | 0.5"]);
    assert_eq!(world.rows("SELECT 3 / 4, 3.0 / 4, 3e0 / 4"), ["0.7500 | 0.75000 | 0.75"]);
}

#[test]
fn literals_of_every_form_are_read() {
    let mut world = world();
    assert_eq!(
        world.rows(r"SELECT 'it''s', 'a\'b', 'tab\there', 'back\\slash'"),
        ["it's | a'b | tab\there | back\\slash"]
    );
    assert_eq!(world.rows("SELECT \"x\" /* 'no' */, 'y' -- 'no'\n, 'z' # 'no'\n"), ["x | y | z"]);
    assert_eq!(world.rows("SELECT X'4142', 0x4143, b'1000001'"), ["AB | AC | A"]);
    assert_eq!(world.rows("SELECT 1.5e3, -2E-2, .5, 1."), ["1500 | -0.02 | 0.5 | 1"]);
    assert_eq!(
        world.rows("SELECT -9223372036854775808, 18446744073709551615"),
        ["-9223372036854775808 | 18446744073709551615"]
    );
    assert_eq!(world.rows("SELECT 'a' 'b' \"c\""), ["abc"]);
}

#[test]
fn positions_and_aliases_are_not_constants() {
    let mut world = world();
    table(&mut world);
    assert_eq!(world.rows("SELECT id, k FROM t ORDER BY 1 DESC LIMIT 1"), ["4 | 10"]);
    assert_eq!(world.rows("SELECT id, k FROM t ORDER BY 2 DESC LIMIT 1"), ["3 | 30"]);
    assert_eq!(world.run("SELECT id AS 'a' FROM t WHERE id = 1")[0], "a");
    assert_eq!(world.run("SELECT id AS 'b' FROM t WHERE id = 1")[0], "b");
    assert_eq!(world.run("SELECT id + 1 FROM t WHERE id = 1")[0], "id + 1");
    assert_eq!(world.run("SELECT id + 2 FROM t WHERE id = 1")[0], "id + 2");
}

#[test]
fn a_plan_is_made_anew_when_its_table_changes() {
    let mut world = world();
    table(&mut world);
    let explain = "EXPLAIN SELECT id FROM t WHERE c = 'two'";
    assert!(world.rows(explain)[0].contains("ALL"));
    assert_eq!(world.rows("SELECT * FROM t WHERE c = 'two'"), ["2 | 20 | two"]);
    world.run("CREATE INDEX c ON t (c)");
    assert!(world.rows(explain)[0].contains("ref"));
    assert_eq!(world.rows("SELECT * FROM t WHERE c = 'two'"), ["2 | 20 | two"]);
    world.run("DROP TABLE t");
    assert_eq!(
        world.run("SELECT * FROM t WHERE c = 'two'"),
        ["ERROR 1146 (42S02): Table 'test.t' doesn't exist"]
    );
    world.run("CREATE TABLE t (x INT, c VARCHAR(5))");
    world.run("INSERT INTO t VALUES (7, 'two')");
    assert_eq!(world.rows("SELECT * FROM t WHERE c = 'two'"), ["7 | two"]);
}

#[test]
fn the_same_text_in_another_database_is_another_statement() {
    let mut world = world();
    table(&mut world);
    assert_eq!(world.rows("SELECT COUNT(*) FROM t"), ["4"]);
    world.run("CREATE DATABASE other");
    world.run("USE other");
    assert_eq!(world.run("SELECT COUNT(*) FROM t"), ["ERROR 1146 (42S02): Table 'other.t' doesn't exist"]);
}

fn execute(world: &mut support::World, id: u32, parameters: &[ValueRef<'_>]) -> Vec<String> {
    let mut lines = Lines::default();
    match world.session.execute(id, parameters, &mut lines) {
        Ok(()) => lines.lines[1..].to_vec(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn prepared_statements_take_parameters_of_any_kind() {
    let mut world = world();
    table(&mut world);
    let prepared = world.session.prepare(b"SELECT id, c FROM t WHERE id = ?").unwrap();
    assert_eq!(prepared.params, 1);
    assert_eq!(prepared.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["id", "c"]);
    assert_eq!(execute(&mut world, prepared.id, &[ValueRef::Int(2)]), ["2 | two"]);
    assert_eq!(execute(&mut world, prepared.id, &[ValueRef::Text(b"3")]), ["3 | 3"]);
    assert_eq!(execute(&mut world, prepared.id, &[ValueRef::Double(1.0)]), ["1 | one"]);
    assert!(execute(&mut world, prepared.id, &[ValueRef::Null]).is_empty());
    assert_eq!(execute(&mut world, prepared.id, &[ValueRef::Int(2)]), ["2 | two"]);
    assert!(execute(&mut world, prepared.id, &[])[0].contains("1210"));
    assert!(execute(&mut world, 999, &[])[0].contains("1243"));
    world.session.close_statement(prepared.id);
    assert!(execute(&mut world, prepared.id, &[ValueRef::Int(2)])[0].contains("1243"));
}

#[test]
fn lists_limits_and_text_share_their_plans_with_prepared_statements() {
    let mut world = world();
    table(&mut world);
    world.rows("SELECT id FROM t WHERE k IN (10, 20, 30, 40) ORDER BY id LIMIT 2");
    let plans = world.session.cached_plans();
    let prepared = world.session.prepare(b"SELECT id FROM t WHERE k IN (?, ?) ORDER BY id LIMIT ?").unwrap();
    let parameters = [ValueRef::Int(10), ValueRef::Int(20), ValueRef::Int(2)];
    assert_eq!(execute(&mut world, prepared.id, &parameters), ["1", "2"]);
    assert_eq!(world.session.cached_plans(), plans);
    assert!(world.session.prepare(b"SELECT id FROM").is_err());
    assert!(world.session.prepare(b"SELECT nope FROM t WHERE id = ?").is_err());
}

#[test]
fn parameters_in_the_select_list_come_back_as_they_were_sent() {
    let mut world = world();
    let prepared = world.session.prepare(b"SELECT ?, ? + 1, 'x'").unwrap();
    assert_eq!(prepared.columns[0].name, "?");
    let given = execute(&mut world, prepared.id, &[ValueRef::Text("grün".as_bytes()), ValueRef::Int(41)]);
    assert_eq!(given, ["grün | 42 | x"]);
    assert_eq!(text(&ValueRef::Null), "NULL");
}
