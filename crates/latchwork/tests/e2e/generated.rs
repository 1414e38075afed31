//! Thousands of generated statements: every operator between every kind of column and every kind of literal,
//! and every operator beside every other without parentheses. Changes with subqueries are drawn.

use base::random::Random;

const COLUMNS: &[&str] = &["ti", "bu", "de", "fl", "ch", "vc", "vb", "da", "dt", "tm"];

const LITERALS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2.5",
    "1e2",
    "18446744073709551615",
    "''",
    "'1'",
    "'1abc'",
    "'abc'",
    "'ABC '",
    "'2.50'",
    "'2024-02-29'",
    "'2024-02-29 12:30:00'",
    "'12:30:00'",
    "20240229",
    "NULL",
    "TRUE",
    "x'61'",
];

const OPERATORS: &[&str] = &["=", "<>", "<", ">=", "<=>"];

const TABLE: &str = "\
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, ti TINYINT, bu BIGINT UNSIGNED, de DECIMAL(10,2), fl DOUBLE,
  ch CHAR(20), vc VARCHAR(20) COLLATE utf8mb4_bin, vb VARBINARY(20), da DATE, dt DATETIME, tm TIME);
INSERT INTO t VALUES
  (1, 0, 0, 0, 0, '', '', '', '2024-02-29', '2024-02-29 00:00:00', '00:00:00'),
  (2, 1, 1, 1, 1, '1', '1', '1', '2024-03-01', '2024-02-29 12:30:00', '12:30:00'),
  (3, -1, 18446744073709551615, -1, -1, 'abc', 'abc', 'abc', '1999-12-31', '1999-12-31 23:59:59', '-12:30:00'),
  (4, 100, 100, 2.5, 2.5, 'ABC', 'ABC', 'ABC', '2024-02-28', '2024-02-28 12:30:00', '23:59:59'),
  (5, 2, 2, 100, 1e2, '2.5', '2.50', '2.5', '9999-12-31', '9999-12-31 23:59:59', '100:00:00'),
  (6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
";

/// The scripts and their names.
pub fn scripts() -> Vec<(String, String)> {
    vec![
        ("generated-comparisons".into(), comparisons("")),
        ("generated-indexed-comparisons".into(), comparisons(&indexes())),
        ("generated-expressions".into(), expressions()),
        ("generated-precedence".into(), precedence()),
        ("generated-changes".into(), changes()),
    ]
}

fn indexes() -> String {
    COLUMNS.iter().map(|column| format!("CREATE INDEX by_{column} ON t ({column});\n")).collect()
}

/// The rows are the same without indexes, by a scan, and with indexes, by the access that the planner
/// chooses.
fn comparisons(indexes: &str) -> String {
    let mut script = format!("{TABLE}{indexes}");
    for column in COLUMNS {
        for literal in LITERALS {
            for operator in OPERATORS {
                script += &format!("SELECT id FROM t WHERE {column} {operator} {literal} ORDER BY id;\n");
            }
            script += &format!("SELECT id FROM t WHERE {column} IN ({literal}, {column} + 1) ORDER BY id;\n");
            script += &format!("SELECT id FROM t WHERE {column} IN ({literal}, NULL) ORDER BY id;\n");
            script += &format!("SELECT id FROM t WHERE {column} BETWEEN {literal} AND '9999' ORDER BY id;\n");
        }
        for pair in LITERALS.windows(2) {
            script += &format!("SELECT id FROM t WHERE {column} IN ({}) ORDER BY id;\n", pair.join(", "));
        }
        script += &format!("SELECT id FROM t WHERE {column} LIKE '%1%' ORDER BY id;\n");
        script += &format!("SELECT id FROM t WHERE {column} IS NULL OR {column} > 1 ORDER BY id;\n");
        script += &format!("SELECT {column}, COUNT(*) FROM t GROUP BY {column} ORDER BY {column};\n");
        script += &format!("SELECT id FROM t ORDER BY {column} DESC, id LIMIT 4;\n");
        script += &format!("SELECT MIN({column}), MAX({column}), COUNT(DISTINCT {column}) FROM t;\n");
    }
    script
}

fn expressions() -> String {
    let mut script = TABLE.to_string();
    for column in COLUMNS {
        for operator in ["+", "-", "*", "/", "DIV", "%"] {
            for literal in ["1", "2.50", "3e0", "'4'", "NULL", "0"] {
                script += &format!("SELECT id, {column} {operator} {literal} FROM t ORDER BY id;\n");
            }
        }
        for other in COLUMNS {
            script += &format!("SELECT id FROM t WHERE {column} = {other} ORDER BY id;\n");
            script += &format!("SELECT id FROM t WHERE {column} < {other} ORDER BY id;\n");
        }
        script += &format!("SELECT SUM({column}), AVG({column}) FROM t;\n");
        script +=
            &format!("SELECT {column}, -{column}, NOT {column}, {column} IS NULL FROM t ORDER BY id;\n");
        script += &format!("SELECT IFNULL({column}, 'none'), COALESCE({column}, 0) FROM t ORDER BY id;\n");
        script += &format!("SELECT CONCAT({column}, '-', id), LENGTH({column}) FROM t ORDER BY id;\n");
    }
    script
}

/// What can follow an operand; `?` is the next operand.
const FOLLOWING: &[&str] = &[
    "OR ?",
    "AND ?",
    "XOR ?",
    "|| ?",
    "&& ?",
    "= ?",
    "<> ?",
    "< ?",
    ">= ?",
    "<=> ?",
    "| ?",
    "& ?",
    "<< ?",
    ">> ?",
    "+ ?",
    "- ?",
    "* ?",
    "/ ?",
    "DIV ?",
    "MOD ?",
    "% ?",
    "^ ?",
    "LIKE ?",
    "NOT LIKE ?",
    "REGEXP ?",
    "NOT REGEXP ?",
    "IN (0, 1)",
    "NOT IN (2)",
    "BETWEEN 1 AND 2",
    "NOT BETWEEN ? AND 3",
    "BETWEEN ? AND ?",
    "IS NULL",
    "IS NOT NULL",
    "IS TRUE",
    "IS NOT FALSE",
    "IS UNKNOWN",
];

/// What can precede any operand.
const PRECEDING: &[&str] = &["-", "!", "- !", "!!", "!-"];

/// Operands in sets: a wrong grouping shows with one of them at least.
const OPERANDS: &[[&str; 4]] =
    &[["1", "2", "3", "0"], ["3", "0", "2", "1"], ["NULL", "1", "0", "2"], ["5", "1", "1", "3"]];

/// Chains of operators without parentheses, with each set of operands. NOT stands where it may: at the
/// beginning, and behind what binds less.
fn precedence() -> String {
    let mut script = String::new();
    let mut select = |shape: &str| {
        let fill = |operands: &[&str; 4]| {
            let mut next = operands.iter().cycle();
            let parts = shape.split('?').map(str::to_string);
            parts.reduce(|all, part| all + next.next().unwrap() + &part).unwrap_or_default()
        };
        script += &format!("SELECT {};\n", OPERANDS.iter().map(fill).collect::<Vec<_>>().join(", "));
    };
    for first in FOLLOWING {
        select(&format!("NOT ? {first}"));
        for sign in PRECEDING {
            select(&format!("{sign}? {first}"));
            select(&format!("? {}", first.replace('?', &format!("{sign}?"))));
        }
        for second in FOLLOWING {
            select(&format!("? {first} {second}"));
        }
    }
    for sign in PRECEDING {
        select(&format!("{sign} NOT ?"));
    }
    // Without negative numbers. Behind bit operators they overflow, and the two servers name and reach such
    // an error in ways of their own.
    let following: Vec<&str> = FOLLOWING.iter().copied().filter(|following| *following != "- ?").collect();
    let mut drawn = Random::new(29, 0);
    for _ in 0..1500 {
        let mut shape = if drawn.below(5) == 0 { "NOT ?".to_string() } else { "?".to_string() };
        for _ in 0..3 + drawn.below(3) {
            let mut following = following[drawn.index(following.len())].to_string();
            match drawn.below(5) {
                0 => {
                    following = following.replace('?', if drawn.below(2) == 0 { "!?" } else { "!!?" });
                }
                1 if ["OR ?", "AND ?", "XOR ?"].contains(&following.as_str()) => {
                    following = following.replace('?', "NOT ?");
                }
                _ => {}
            }
            shape += &format!(" {following}");
        }
        select(&shape);
    }
    script
}

/// Draws subqueries. `row` is the name of the row around them, whose columns they may read. Then they do not
/// read the changed table: which of the statement's own changes they would see is not the same everywhere.
struct Subqueries(Random);

impl Subqueries {
    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.0.index(texts.len())]
    }

    fn table(&mut self, row: Option<&str>) -> &'static str {
        if row.is_some() { "u" } else { self.one_of(&["t", "u"]) }
    }

    /// A condition on the row `inner`.
    fn condition(&mut self, inner: &str, row: Option<&str>, depth: usize) -> String {
        let column = self.one_of(&["id", "a", "b"]);
        let operator = self.one_of(&["=", "<", ">=", "<>"]);
        let right = match (self.0.below(3), row) {
            (0, Some(row)) => format!("{row}.{}", self.one_of(&["id", "a"])),
            (1, _) if depth > 0 => self.scalar(row, depth - 1),
            _ => self.one_of(&["1", "2", "3", "5"]).to_string(),
        };
        match self.0.below(4) {
            0 if depth > 0 => self.test(Some(inner), depth - 1),
            _ => format!("{inner}.{column} {operator} {right}"),
        }
    }

    /// A subquery of one value. It has one row: too many are an error at other times than MariaDB's.
    fn scalar(&mut self, row: Option<&str>, depth: usize) -> String {
        let (table, inner) = (self.table(row), format!("s{depth}"));
        let value = self.one_of(&["MAX(x.a)", "MIN(x.b)", "COUNT(*)", "SUM(x.id)", "MAX(x.a) - 1"]);
        let value = value.replace("x.", &format!("{inner}."));
        let condition = self.condition(&inner, row, depth);
        format!("(SELECT {value} FROM {table} AS {inner} WHERE {condition})")
    }

    fn test(&mut self, row: Option<&str>, depth: usize) -> String {
        let (table, inner) = (self.table(row), format!("e{depth}"));
        let condition = self.condition(&inner, row, depth);
        let not = self.one_of(&["", "NOT "]);
        match (self.0.below(2), row) {
            (0, Some(row)) => {
                format!("{row}.a {not}IN (SELECT {inner}.a FROM {table} AS {inner} WHERE {condition})")
            }
            _ => format!("{not}EXISTS (SELECT 1 FROM {table} AS {inner} WHERE {condition})"),
        }
    }

    /// The value of a column.
    fn value(&mut self, row: Option<&str>) -> String {
        match self.0.below(4) {
            0 => self.test(row, 1),
            1 => format!("{} + 1", self.scalar(row, 0)),
            2 => format!("IF({}, {}, 7)", self.test(row, 0), self.scalar(row, 1)),
            _ => self.scalar(row, 2),
        }
    }
}

/// INSERT, REPLACE, UPDATE and ON DUPLICATE KEY UPDATE whose values are drawn subqueries: of the changed
/// table too, of the row that is changed, and up to three deep.
fn changes() -> String {
    let mut script = "\
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY (a));
CREATE TABLE u (id INT PRIMARY KEY, a INT, b INT);
INSERT INTO u VALUES (1, 1, 3), (2, 3, 3), (3, NULL, 1), (4, 2, NULL);
"
    .to_string();
    let mut draw = Subqueries(Random::new(7, 0));
    for _ in 0..400 {
        let id = 1 + draw.0.below(6);
        let change = match draw.0.below(7) {
            0 => format!("INSERT IGNORE INTO t VALUES ({id}, {}, {})", draw.value(None), draw.value(None)),
            1 => format!("REPLACE INTO t VALUES ({id}, {}, 2), ({}, 1, 1)", draw.value(None), 1 + id % 6),
            2 => format!(
                "INSERT INTO t VALUES ({id}, 1, 2) ON DUPLICATE KEY UPDATE a = {}, b = a + {}",
                draw.value(Some("t")),
                draw.scalar(None, 1)
            ),
            3 => format!("UPDATE t SET a = {}", draw.value(None)),
            4 => format!("UPDATE t SET b = {}, a = {id}", draw.value(Some("t"))),
            5 => {
                let condition = draw.test(Some("t"), 1);
                format!("UPDATE t SET a = {} WHERE t.id < 0 OR {condition}", draw.value(None))
            }
            _ => format!("DELETE FROM t WHERE id = {id} AND {}", draw.test(None, 1)),
        };
        script += &format!("{change};\nSELECT * FROM t ORDER BY id;\n");
    }
    script
}
