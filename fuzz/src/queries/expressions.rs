//! Expressions and conditions, drawn.

use super::schema::{Kind, Schema, chance, one};
use super::tree::{Tree, fill, text};
use base::random::Random;

/// A column as an expression can name it.
#[derive(Clone, Debug)]
pub struct Visible {
    /// With its table's alias in front.
    pub text: String,
    /// Without it.
    pub name: String,
    pub kind: Kind,
}

/// Draws statements over the tables of a schema.
#[derive(Clone, Debug)]
pub struct Generator {
    pub random: Random,
    pub schema: Schema,
    /// Values of one kind stand where another one is wanted.
    pub mixes_kinds: bool,
    /// How many aliases of tables were given.
    pub aliases: usize,
    /// Each item of a select list has a name of its own, as a derived table wants it.
    pub names_are_distinct: bool,
    /// The table that a statement changes: its subqueries leave it alone.
    pub changed: Option<String>,
}

use Kind::{Binary, Date, DateTime, Decimal, Double, Integer, Text, Time};

/// A function or an operator: its template, its arguments' kinds, the kind of its result.
type Function = (&'static str, &'static [Kind], Kind);

const FUNCTIONS: &[Function] = &[
    ("({} + {})", &[Integer, Integer], Integer),
    ("({} - {})", &[Integer, Integer], Integer),
    ("({} * {})", &[Integer, Integer], Integer),
    ("({} DIV {})", &[Integer, Integer], Integer),
    ("({} % {})", &[Integer, Integer], Integer),
    ("({} & {})", &[Integer, Integer], Integer),
    ("({} | {})", &[Integer, Integer], Integer),
    ("({} ^ {})", &[Integer, Integer], Integer),
    ("({} << 2)", &[Integer], Integer),
    ("({} >> {})", &[Integer, Integer], Integer),
    ("(- {})", &[Integer], Integer),
    ("ABS({})", &[Integer], Integer),
    ("SIGN({})", &[Decimal], Integer),
    ("FLOOR({})", &[Decimal], Integer),
    ("CEILING({})", &[Decimal], Integer),
    ("ROUND({})", &[Decimal], Decimal),
    ("BIT_COUNT({})", &[Integer], Integer),
    ("LENGTH({})", &[Text], Integer),
    ("CHAR_LENGTH({})", &[Text], Integer),
    ("ASCII({})", &[Text], Integer),
    ("ORD({})", &[Text], Integer),
    ("CRC32({})", &[Text], Integer),
    ("LOCATE({}, {})", &[Text, Text], Integer),
    ("INSTR({}, {})", &[Text, Text], Integer),
    ("STRCMP({}, {})", &[Text, Text], Integer),
    ("FIND_IN_SET({}, {})", &[Text, Text], Integer),
    ("FIELD({}, {}, {})", &[Text, Text, Text], Integer),
    ("FIELD({}, {}, {})", &[Integer, Integer, Integer], Integer),
    ("CAST({} AS SIGNED)", &[Decimal], Integer),
    ("CAST({} AS UNSIGNED)", &[Integer], Integer),
    ("YEAR({})", &[Date], Integer),
    ("QUARTER({})", &[Date], Integer),
    ("MONTH({})", &[DateTime], Integer),
    ("DAYOFMONTH({})", &[Date], Integer),
    ("DAYOFWEEK({})", &[Date], Integer),
    ("DAYOFYEAR({})", &[DateTime], Integer),
    ("WEEKDAY({})", &[Date], Integer),
    ("WEEK({}, 3)", &[Date], Integer),
    ("YEARWEEK({})", &[Date], Integer),
    ("TO_DAYS({})", &[Date], Integer),
    ("DATEDIFF({}, {})", &[Date, DateTime], Integer),
    ("TIMESTAMPDIFF(HOUR, {}, {})", &[DateTime, DateTime], Integer),
    ("TIMESTAMPDIFF(MONTH, {}, {})", &[Date, Date], Integer),
    ("EXTRACT(YEAR_MONTH FROM {})", &[Date], Integer),
    ("EXTRACT(DAY_MINUTE FROM {})", &[DateTime], Integer),
    ("HOUR({})", &[Time], Integer),
    ("MINUTE({})", &[Time], Integer),
    ("SECOND({})", &[DateTime], Integer),
    ("MICROSECOND({})", &[DateTime], Integer),
    ("TIME_TO_SEC({})", &[Time], Integer),
    ("({} + {})", &[Decimal, Integer], Decimal),
    ("({} - {})", &[Decimal, Decimal], Decimal),
    ("({} * {})", &[Decimal, Decimal], Decimal),
    ("({} / {})", &[Integer, Integer], Decimal),
    ("({} / {})", &[Decimal, Integer], Decimal),
    ("({} % {})", &[Decimal, Decimal], Decimal),
    ("(- {})", &[Decimal], Decimal),
    ("ABS({})", &[Decimal], Decimal),
    ("ROUND({}, 1)", &[Decimal], Decimal),
    ("ROUND({}, {})", &[Decimal, Integer], Decimal),
    ("TRUNCATE({}, 1)", &[Decimal], Decimal),
    ("MOD({}, {})", &[Decimal, Integer], Decimal),
    ("CAST({} AS DECIMAL(10,3))", &[Decimal], Decimal),
    ("CAST({} AS DECIMAL(8,2))", &[Text], Decimal),
    ("({} + {})", &[Double, Integer], Double),
    ("({} - {})", &[Double, Decimal], Double),
    ("({} * {})", &[Double, Double], Double),
    ("({} / {})", &[Double, Integer], Double),
    ("ABS({})", &[Double], Double),
    ("ROUND({}, 2)", &[Double], Double),
    ("FLOOR({})", &[Double], Double),
    ("SQRT({})", &[Integer], Double),
    ("POW({}, 2)", &[Integer], Double),
    ("DEGREES({})", &[Double], Double),
    ("CAST({} AS DOUBLE)", &[Text], Double),
    ("CONCAT({}, {})", &[Text, Text], Text),
    ("CONCAT({}, {})", &[Text, Integer], Text),
    ("CONCAT({}, '-', {})", &[Date, Decimal], Text),
    ("CONCAT_WS('/', {}, {})", &[Text, Time], Text),
    ("UPPER({})", &[Text], Text),
    ("LOWER({})", &[Text], Text),
    ("TRIM({})", &[Text], Text),
    ("LTRIM({})", &[Text], Text),
    ("TRIM(LEADING {} FROM {})", &[Text, Text], Text),
    ("REVERSE({})", &[Text], Text),
    ("REPEAT({}, 2)", &[Text], Text),
    ("LEFT({}, 2)", &[Text], Text),
    ("RIGHT({}, {})", &[Text, Integer], Text),
    ("SUBSTRING({}, 2)", &[Text], Text),
    ("SUBSTRING({}, {}, 2)", &[Text, Integer], Text),
    ("SUBSTRING_INDEX({}, '_', 1)", &[Text], Text),
    ("REPLACE({}, {}, {})", &[Text, Text, Text], Text),
    ("INSERT({}, 1, {}, {})", &[Text, Integer, Text], Text),
    ("LPAD({}, 4, '*')", &[Text], Text),
    ("RPAD({}, 4, {})", &[Text, Text], Text),
    ("HEX({})", &[Text], Text),
    ("HEX({})", &[Integer], Text),
    ("BIN({})", &[Integer], Text),
    ("OCT({})", &[Integer], Text),
    ("CONV({}, 10, 16)", &[Integer], Text),
    ("QUOTE({})", &[Text], Text),
    ("ELT({}, {}, {})", &[Integer, Text, Text], Text),
    ("MD5({})", &[Text], Text),
    ("TO_BASE64({})", &[Text], Text),
    ("FORMAT({}, 2)", &[Decimal], Text),
    ("CAST({} AS CHAR)", &[Integer], Text),
    ("CAST({} AS CHAR(3))", &[Text], Text),
    ("CAST({} AS CHAR)", &[DateTime], Text),
    ("CAST({} AS CHAR)", &[Decimal], Text),
    ("DATE_FORMAT({}, '%Y-%b-%d %H')", &[DateTime], Text),
    ("TIME_FORMAT({}, '%H:%i')", &[Time], Text),
    ("MONTHNAME({})", &[Date], Text),
    ("DAYNAME({})", &[Date], Text),
    ("CAST({} AS BINARY)", &[Text], Binary),
    ("CAST({} AS BINARY(3))", &[Text], Binary),
    ("UNHEX(HEX({}))", &[Text], Binary),
    ("CAST({} AS DATE)", &[DateTime], Date),
    ("DATE({})", &[DateTime], Date),
    ("LAST_DAY({})", &[Date], Date),
    ("({} + INTERVAL 1 DAY)", &[Date], Date),
    ("({} - INTERVAL {} MONTH)", &[Date, Integer], Date),
    ("DATE_ADD({}, INTERVAL 1 YEAR)", &[Date], Date),
    ("FROM_DAYS(TO_DAYS({}))", &[Date], Date),
    ("STR_TO_DATE({}, '%Y-%m-%d')", &[Text], Date),
    ("CAST({} AS DATETIME)", &[Date], DateTime),
    ("CAST({} AS DATETIME(2))", &[DateTime], DateTime),
    ("TIMESTAMP({})", &[Date], DateTime),
    ("({} + INTERVAL {} HOUR)", &[DateTime, Integer], DateTime),
    ("DATE_SUB({}, INTERVAL 90 MINUTE)", &[DateTime], DateTime),
    ("TIMESTAMP({}, {})", &[Date, Time], DateTime),
    ("ADDTIME({}, {})", &[DateTime, Time], DateTime),
    ("TIMEDIFF({}, {})", &[DateTime, DateTime], Time),
    ("TIME({})", &[DateTime], Time),
    ("CAST({} AS TIME)", &[DateTime], Time),
    ("SEC_TO_TIME({})", &[Integer], Time),
    ("MAKETIME({}, {}, 5)", &[Integer, Integer], Time),
    ("SUBTIME({}, {})", &[Time, Time], Time),
];

/// Templates whose result has the kind of some of their arguments. `C` is a condition.
const CHOICES: &[&str] = &[
    "IF({C}, {}, {})",
    "IFNULL({}, {})",
    "COALESCE({}, {}, {})",
    "NULLIF({}, {})",
    "CASE WHEN {C} THEN {} ELSE {} END",
    "CASE WHEN {C} THEN {} WHEN {C} THEN {} END",
    "CASE {} WHEN {} THEN {} ELSE {} END",
    "GREATEST({}, {})",
    "LEAST({}, {}, {})",
];

const COMPARISONS: &[&str] = &["=", "=", "=", "<>", "<", ">", "<=", ">=", "<=>"];

impl Generator {
    fn any_kind(&mut self) -> Kind {
        *one(
            &mut self.random,
            &[Integer, Integer, Integer, Decimal, Double, Text, Text, Binary, Date, DateTime, Time],
        )
    }

    /// The kind of one of the columns, or any.
    pub fn kind_of(&mut self, scope: &[Visible]) -> Kind {
        match scope.is_empty() || chance(&mut self.random, 5) {
            true => self.any_kind(),
            false => one(&mut self.random, scope).kind,
        }
    }

    /// An operand that needs no parentheses.
    fn leaf(&mut self, scope: &[Visible], kind: Kind) -> Tree {
        let fits = |column: &&Visible| column.kind == kind;
        let fitting: Vec<&Visible> = scope.iter().filter(fits).collect();
        if !fitting.is_empty() && !chance(&mut self.random, 3) {
            return Tree::Expression(vec![text(&one(&mut self.random, &fitting).text)]);
        }
        Tree::Literal(kind.literal(&mut self.random))
    }

    /// An expression of a kind, or of another one where kinds are mixed.
    pub fn expression(&mut self, scope: &[Visible], kind: Kind, depth: u32) -> Tree {
        let kind = match self.mixes_kinds && chance(&mut self.random, 6) {
            true => self.kind_of(scope),
            false => kind,
        };
        if depth == 0 || chance(&mut self.random, 3) {
            return self.leaf(scope, kind);
        }
        match self.random.below(10) {
            0 | 1 => self.choice(scope, kind, depth - 1),
            2 if depth > 1 => self.scalar_subquery(scope, kind, depth - 1),
            3 if kind == Integer => Tree::Expression(fill("({})", vec![self.condition(scope, depth - 1)])),
            _ => self.function(scope, kind, depth - 1),
        }
    }

    fn function(&mut self, scope: &[Visible], kind: Kind, depth: u32) -> Tree {
        let fitting: Vec<&Function> = FUNCTIONS.iter().filter(|(_, _, result)| *result == kind).collect();
        let (template, kinds, _) = *one(&mut self.random, &fitting);
        let arguments = kinds.iter().map(|kind| self.expression(scope, *kind, depth)).collect();
        Tree::Expression(fill(template, arguments))
    }

    fn choice(&mut self, scope: &[Visible], kind: Kind, depth: u32) -> Tree {
        let template = *one(&mut self.random, CHOICES);
        let mut arguments = Vec::new();
        for place in template.split('{').skip(1) {
            arguments.push(match place.starts_with('C') {
                true => self.condition(scope, depth),
                false => self.expression(scope, kind, depth),
            });
        }
        Tree::Expression(fill(&template.replace("{C}", "{}"), arguments))
    }

    /// What is true, false or unknown.
    pub fn condition(&mut self, scope: &[Visible], depth: u32) -> Tree {
        if depth > 0 && chance(&mut self.random, 3) {
            let template = *one(
                &mut self.random,
                &[
                    "({} AND {})",
                    "({} AND {})",
                    "({} OR {})",
                    "({} OR {})",
                    "({} XOR {})",
                    "(NOT {})",
                    "({} IS TRUE)",
                    "({} IS NOT FALSE)",
                    "({} IS UNKNOWN)",
                ],
            );
            let parts = template.matches("{}").map(|_| self.condition(scope, depth - 1)).collect();
            return Tree::Expression(fill(template, parts));
        }
        if depth > 1 && chance(&mut self.random, 5) {
            return self.subquery_test(scope, depth - 1);
        }
        let kind = self.kind_of(scope);
        let inner = depth.saturating_sub(1);
        let mut of = |kind: Kind| self.expression(scope, kind, inner);
        let (template, operands): (String, Vec<Tree>) = match kind {
            Text | Binary => {
                let operands = vec![of(kind), of(kind), of(kind)];
                let template = *one(
                    &mut self.random,
                    &[
                        "({} LIKE '%a%')",
                        "({} LIKE '_b%')",
                        "({} NOT LIKE {})",
                        "({} LIKE {})",
                        "({} REGEXP '^a')",
                        "",
                        "",
                        "",
                        "",
                    ],
                );
                (template.to_owned(), operands)
            }
            _ => (String::new(), vec![of(kind), of(kind), of(kind)]),
        };
        if !template.is_empty() {
            return Tree::Expression(fill(&template, operands));
        }
        self.comparison(operands)
    }

    /// A comparison of some of three operands.
    fn comparison(&mut self, operands: Vec<Tree>) -> Tree {
        let not = *one(&mut self.random, &["", "", "NOT "]);
        let template = match self.random.below(12) {
            0 => "({} IS NULL)".to_owned(),
            1 => "({} IS NOT NULL)".to_owned(),
            2 => format!("({{}} {not}BETWEEN {{}} AND {{}})"),
            3 | 4 => {
                let mut operands = operands.into_iter();
                let first = operands.next().expect("three operands");
                let list = Tree::List(operands.collect(), ", ");
                return Tree::Expression(fill(&format!("({{}} {not}IN ({{}}))"), vec![first, list]));
            }
            5 => "{}".to_owned(),
            _ => format!("({{}} {} {{}})", one(&mut self.random, COMPARISONS)),
        };
        Tree::Expression(fill(&template, operands))
    }
}
