//! Tables and their rows, drawn.

use super::tree::Literal;
use base::random::Random;

/// What a value is, as far as expressions care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Integer,
    Decimal,
    Double,
    Text,
    Binary,
    Date,
    DateTime,
    Time,
}

/// A type as CREATE TABLE writes it, its kind, and values that it takes.
struct Type {
    sql: &'static str,
    kind: Kind,
    values: &'static [&'static str],
}

const SMALL: &[&str] = &["0", "1", "-1", "2", "3", "5", "7", "100", "127", "-128"];
const POSITIVE: &[&str] = &["0", "1", "2", "3", "5", "7", "100", "255"];
const WORDS: &[&str] =
    &["''", "'a'", "'b'", "'ab'", "'abc'", "'x_y'", "'5%'", "'1'", "'-3'", "'2.5'", "'ü'", "'zz'"];
const DATES: &[&str] =
    &["'2024-02-29'", "'1999-12-31'", "'2000-01-01'", "'2024-03-01'", "'9999-12-31'", "'1970-01-01'"];

const TYPES: &[Type] = &[
    Type { sql: "INT", kind: Kind::Integer, values: SMALL },
    Type {
        sql: "INT",
        kind: Kind::Integer,
        values: &["0", "1", "2", "3", "4", "5", "2147483647", "-2147483648"],
    },
    Type { sql: "TINYINT", kind: Kind::Integer, values: SMALL },
    Type { sql: "SMALLINT UNSIGNED", kind: Kind::Integer, values: POSITIVE },
    Type { sql: "MEDIUMINT", kind: Kind::Integer, values: SMALL },
    Type {
        sql: "BIGINT",
        kind: Kind::Integer,
        values: &["0", "1", "-1", "2", "9", "9223372036854775807", "-9223372036854775808"],
    },
    Type {
        sql: "BIGINT UNSIGNED",
        kind: Kind::Integer,
        values: &["0", "1", "2", "5", "18446744073709551615"],
    },
    Type {
        sql: "DECIMAL(5,2)",
        kind: Kind::Decimal,
        values: &["0", "1", "-1.5", "2.25", "99.99", "-0.01", "100"],
    },
    Type {
        sql: "DECIMAL(20,6)",
        kind: Kind::Decimal,
        values: &["0", "1", "-2.5", "3.141593", "12345678901234.567891"],
    },
    Type { sql: "DECIMAL(10,0) UNSIGNED", kind: Kind::Decimal, values: &["0", "1", "2", "7", "1234567890"] },
    Type {
        sql: "DOUBLE",
        kind: Kind::Double,
        values: &["0", "1", "-1", "2.5", "0.1", "1e10", "-3.75", "100"],
    },
    Type { sql: "FLOAT", kind: Kind::Double, values: &["0", "1", "-1", "2.5", "0.5", "1024", "-3.75"] },
    Type { sql: "VARCHAR(10)", kind: Kind::Text, values: WORDS },
    Type { sql: "VARCHAR(10)", kind: Kind::Text, values: WORDS },
    Type { sql: "VARCHAR(20) COLLATE utf8mb4_bin", kind: Kind::Text, values: WORDS },
    Type { sql: "CHAR(6)", kind: Kind::Text, values: WORDS },
    Type { sql: "TEXT", kind: Kind::Text, values: WORDS },
    Type { sql: "VARBINARY(10)", kind: Kind::Binary, values: WORDS },
    Type { sql: "BINARY(4)", kind: Kind::Binary, values: &["''", "'a'", "'ab'", "'abcd'", "x'00ff'"] },
    Type { sql: "BLOB", kind: Kind::Binary, values: WORDS },
    Type { sql: "DATE", kind: Kind::Date, values: DATES },
    Type {
        sql: "DATETIME",
        kind: Kind::DateTime,
        values: &["'2024-02-29 12:30:00'", "'1999-12-31 23:59:59'", "'2000-01-01'", "'2024-02-29'"],
    },
    Type {
        sql: "DATETIME(3)",
        kind: Kind::DateTime,
        values: &["'2024-02-29 12:30:00.125'", "'1999-12-31 23:59:59.999'", "'2000-01-01'"],
    },
    Type {
        sql: "TIMESTAMP NULL",
        kind: Kind::DateTime,
        values: &["'2024-02-29 12:30:00'", "'1999-12-31 23:59:59'", "'2000-01-01'"],
    },
    Type {
        sql: "TIME",
        kind: Kind::Time,
        values: &["'00:00:00'", "'12:30:00'", "'-01:02:03'", "'100:00:00'", "'23:59:59'"],
    },
    Type { sql: "TIME(2)", kind: Kind::Time, values: &["'00:00:00.25'", "'12:30:00.5'", "'-01:02:03'"] },
    Type { sql: "YEAR", kind: Kind::Integer, values: &["1999", "2000", "2024", "1970"] },
];

/// Texts that the collation holds equal, beside the others.
const VARIANTS: &[&str] = &["'A'", "'a '", "'Ab'", "'B'", "'AB  '", "'Ü'", "'u'"];

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub sql: &'static str,
    pub nullable: bool,
    pub values: &'static [&'static str],
    /// Part of a unique key, so that a change of many rows may fail at any of them.
    pub unique: bool,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub keys: Vec<String>,
    /// The names of indexes that are no primary key.
    pub indexes: Vec<String>,
    /// The columns of the primary key, if there is one.
    pub primary: Vec<String>,
}

/// The tables of a case.
#[derive(Clone, Debug)]
pub struct Schema {
    pub tables: Vec<Table>,
    /// There are texts that differ and are equal by their collation. Then GROUP BY and its like may show one
    /// or the other.
    pub has_variants: bool,
}

const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f"];

pub fn one<'t, T>(random: &mut Random, of: &'t [T]) -> &'t T {
    &of[random.index(of.len())]
}

/// True once in `of` times.
pub fn chance(random: &mut Random, of: u32) -> bool {
    random.below(of) == 0
}

impl Schema {
    pub fn draw(random: &mut Random) -> Schema {
        let tables = 2 + random.index(3);
        let has_variants = chance(random, 5);
        let tables = (1..=tables).map(|number| Table::draw(random, number)).collect();
        Schema { tables, has_variants }
    }
}

impl Table {
    fn draw(random: &mut Random, number: usize) -> Table {
        let column = |random: &mut Random, name: &str, of: &Type| Column {
            name: name.to_owned(),
            kind: of.kind,
            sql: of.sql,
            nullable: !chance(random, 4),
            values: of.values,
            unique: false,
        };
        let mut columns = vec![column(random, "id", &TYPES[0])];
        for name in NAMES.iter().take(2 + random.index(NAMES.len() - 1)) {
            let drawn = one(random, TYPES);
            columns.push(column(random, name, drawn));
        }
        let mut table =
            Table { name: format!("t{number}"), columns, keys: vec![], indexes: vec![], primary: vec![] };
        table.draw_keys(random);
        table
    }

    fn draw_keys(&mut self, random: &mut Random) {
        match random.below(5) {
            0 => {}
            1 => self.primary = vec!["id".into(), self.columns[1].name.clone()],
            _ => self.primary = vec!["id".into()],
        }
        if self.primary.len() == 2 && self.columns[1].is_long() {
            self.primary.truncate(1);
        }
        for name in self.primary.clone() {
            let column = self.column_mut(&name);
            column.nullable = false;
            column.unique = true;
        }
        if !self.primary.is_empty() {
            self.keys.push(format!("PRIMARY KEY ({})", self.primary.join(", ")));
        }
        for number in 0..random.below(4) {
            let first = 1 + random.index(self.columns.len() - 1);
            let second = random.index(self.columns.len());
            let unique = chance(random, 4) && !self.columns[first].is_long();
            let mut parts = vec![self.key_part(random, first, unique)];
            if second != first && !unique && chance(random, 2) {
                parts.push(self.key_part(random, second, false));
            }
            if unique {
                self.columns[first].unique = true;
            }
            let word = if unique { "UNIQUE KEY" } else { "KEY" };
            self.indexes.push(format!("k{number}"));
            self.keys.push(format!("{word} k{number} ({})", parts.join(", ")));
        }
    }

    fn key_part(&self, random: &mut Random, position: usize, whole: bool) -> String {
        let column = &self.columns[position];
        let is_text = matches!(column.kind, Kind::Text | Kind::Binary);
        let length = match column.is_long() || is_text && !whole && chance(random, 3) {
            true => "(2)",
            false => "",
        };
        let direction = if chance(random, 5) { " DESC" } else { "" };
        format!("{}{length}{direction}", column.name)
    }

    fn column_mut(&mut self, name: &str) -> &mut Column {
        self.columns.iter_mut().find(|column| column.name == name).expect("a column of the table")
    }

    /// The statement that makes it.
    pub fn create(&self) -> String {
        let mut parts: Vec<String> = self.columns.iter().map(Column::definition).collect();
        parts.extend(self.keys.iter().cloned());
        format!("CREATE TABLE {} ({})", self.name, parts.join(", "))
    }

    /// The statement that fills it. Rows that break a key are left out.
    pub fn insert(&self, random: &mut Random, has_variants: bool) -> String {
        let rows = match random.below(10) {
            0 => 0,
            1 => 40,
            _ => 1 + random.index(10),
        };
        let row = |number: usize, random: &mut Random| {
            let value = |column: &Column| match column.name.as_str() {
                "id" if !chance(random, 8) || !column.nullable => (number % 30).to_string(),
                _ => column.value(random, has_variants),
            };
            format!("({})", self.columns.iter().map(value).collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = (0..rows).map(|number| row(number, random)).collect();
        match rows.is_empty() {
            true => format!("DELETE FROM {}", self.name),
            false => format!("INSERT IGNORE INTO {} VALUES {}", self.name, rows.join(", ")),
        }
    }
}

impl Column {
    fn is_long(&self) -> bool {
        matches!(self.sql, "TEXT" | "BLOB")
    }

    fn definition(&self) -> String {
        match self.nullable {
            true => format!("{} {}", self.name, self.sql),
            false => format!("{} {} NOT NULL", self.name, self.sql.trim_end_matches(" NULL")),
        }
    }

    /// A value as INSERT writes it.
    pub fn value(&self, random: &mut Random, has_variants: bool) -> String {
        if self.nullable && chance(random, 6) {
            return "NULL".into();
        }
        if has_variants && self.kind == Kind::Text && chance(random, 2) {
            return one(random, VARIANTS).to_string();
        }
        one(random, self.values).to_string()
    }
}

impl Kind {
    /// A literal of the kind.
    pub fn literal(self, random: &mut Random) -> Literal {
        if chance(random, 12) {
            return Literal::Null;
        }
        let text = |text: &&str| Literal::Text(text.trim_matches('\'').to_owned());
        match self {
            Kind::Integer => match random.below(12) {
                0 => Literal::Other(one(random, &["TRUE", "FALSE"]).to_string()),
                1 => Literal::Integer(*one(random, &[255, 1000, 65_536, 2_147_483_648, 4_294_967_296])),
                2 => Literal::Integer(-i64::from(random.below(4))),
                _ => Literal::Integer(random.below(8).into()),
            },
            Kind::Decimal => Literal::Decimal(
                one(
                    random,
                    &["0.5", "1.0", "2.25", "100.00", "0.001", "99.99", "3.141593", "12345678901234567890.5"],
                )
                .to_string(),
            ),
            Kind::Double => Literal::Double(*one(random, &[0.0, 0.5, 1.0, 2.5, 1e10, 1e-3])),
            Kind::Text | Kind::Binary => text(one(random, WORDS)),
            Kind::Date => match random.below(3) {
                0 => Literal::Other(format!("DATE{}", one(random, DATES))),
                _ => text(one(random, DATES)),
            },
            Kind::DateTime => match random.below(3) {
                0 => Literal::Other("TIMESTAMP'2024-02-29 12:30:00'".into()),
                1 => text(one(random, DATES)),
                _ => text(one(
                    random,
                    &["2024-02-29 12:30:00", "1999-12-31 23:59:59.5", "2000-01-01 00:00:00"],
                )),
            },
            Kind::Time => match random.below(3) {
                0 => Literal::Other("TIME'12:30:00'".into()),
                _ => text(one(random, &["12:30:00", "-01:02:03", "00:00:00", "100:00:00", "00:00:00.25"])),
            },
        }
    }
}
