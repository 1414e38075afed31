//! Queries, drawn: joins, derived tables, subqueries, groups, unions.

use super::expressions::{Generator, Visible};
use super::schema::{Kind, chance, one};
use super::tree::{Mark, Tree, fill, text};

/// Tables joined, as FROM writes them, and the columns that can be named.
#[derive(Clone, Debug)]
pub struct From {
    pub tree: Tree,
    pub scope: Vec<Visible>,
}

/// A column of a select list.
struct Item {
    tree: Tree,
    name: Option<String>,
    kind: Kind,
}

const AGGREGATES: &[(&str, Kind, Kind)] = &[
    ("COUNT(*)", Kind::Integer, Kind::Integer),
    ("COUNT({})", Kind::Text, Kind::Integer),
    ("COUNT(DISTINCT {})", Kind::Integer, Kind::Integer),
    ("COUNT(DISTINCT {})", Kind::Text, Kind::Integer),
    ("SUM({})", Kind::Integer, Kind::Decimal),
    ("SUM({})", Kind::Decimal, Kind::Decimal),
    ("SUM(DISTINCT {})", Kind::Integer, Kind::Decimal),
    ("AVG({})", Kind::Integer, Kind::Decimal),
    ("AVG({})", Kind::Decimal, Kind::Decimal),
    ("MIN({})", Kind::Integer, Kind::Integer),
    ("MAX({})", Kind::Decimal, Kind::Decimal),
    ("MIN({})", Kind::Date, Kind::Date),
    ("MAX({})", Kind::DateTime, Kind::DateTime),
    ("MAX({})", Kind::Time, Kind::Time),
    ("MIN({})", Kind::Text, Kind::Text),
    ("MAX({})", Kind::Text, Kind::Text),
    ("BIT_OR({})", Kind::Integer, Kind::Integer),
    ("BIT_XOR({})", Kind::Integer, Kind::Integer),
    ("VARIANCE({})", Kind::Integer, Kind::Double),
    ("STDDEV_SAMP({})", Kind::Integer, Kind::Double),
];

/// Window functions: the argument is of the first kind, the result of the second. Rows that are equal in the
/// window's order have equal results, whatever order they come in.
const WINDOWS: &[(&str, Kind, Kind)] = &[
    ("RANK() OVER (<p>ORDER BY <o>)", Kind::Integer, Kind::Integer),
    ("DENSE_RANK() OVER (<p>ORDER BY <o>)", Kind::Integer, Kind::Integer),
    ("CUME_DIST() OVER (<p>ORDER BY <o>)", Kind::Integer, Kind::Double),
    ("PERCENT_RANK() OVER (<p>ORDER BY <o>)", Kind::Integer, Kind::Double),
    ("COUNT(*) OVER (<p>)", Kind::Integer, Kind::Integer),
    ("COUNT({}) OVER (<p>ORDER BY <o>)", Kind::Text, Kind::Integer),
    ("SUM({}) OVER (<p>)", Kind::Integer, Kind::Decimal),
    ("SUM({}) OVER (<p>ORDER BY <o>)", Kind::Decimal, Kind::Decimal),
    ("AVG({}) OVER (<p>ORDER BY <o>)", Kind::Integer, Kind::Decimal),
    (
        "SUM({}) OVER (<p>ORDER BY <o> RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        Kind::Integer,
        Kind::Decimal,
    ),
    ("MIN({}) OVER (<p>)", Kind::Integer, Kind::Integer),
    ("MAX({}) OVER (<p>ORDER BY <o>)", Kind::Decimal, Kind::Decimal),
    ("MIN({}) OVER (<p>ORDER BY <o> RANGE BETWEEN CURRENT ROW AND CURRENT ROW)", Kind::Date, Kind::Date),
    ("MAX({}) OVER (<p>ORDER BY <o> RANGE UNBOUNDED PRECEDING)", Kind::DateTime, Kind::DateTime),
];

impl Generator {
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("x{}", self.aliases)
    }

    /// A table of the schema under a new alias.
    fn table(&mut self) -> From {
        let alias = self.alias();
        let changed = self.changed.clone();
        let readable = |table: &&super::schema::Table| Some(&table.name) != changed.as_ref();
        let tables: Vec<&super::schema::Table> = self.schema.tables.iter().filter(readable).collect();
        let table = (*one(&mut self.random, &tables)).clone();
        let visible = |column: &super::schema::Column| Visible {
            text: format!("{alias}.{}", column.name),
            name: column.name.clone(),
            kind: column.kind,
        };
        let scope = table.columns.iter().map(visible).collect();
        let hint = match table.indexes.first() {
            Some(index) if chance(&mut self.random, 8) => {
                let word = *one(&mut self.random, &["USE", "FORCE", "IGNORE"]);
                fill(" {}", vec![text(format!("{word} INDEX ({index})"))])
            }
            _ => vec![],
        };
        let name = text(format!("{} AS {alias}", table.name));
        From { tree: Tree::Joined(vec![name, Tree::Optional(hint)]), scope }
    }

    fn derived(&mut self, depth: u32) -> From {
        let (query, columns) = self.query_of_names(depth);
        let alias = self.alias();
        let scope = columns
            .into_iter()
            .map(|(name, kind)| Visible { text: format!("{alias}.{name}"), name, kind })
            .collect();
        let tree = Tree::Joined(vec![text("("), query, text(format!(") AS {alias}"))]);
        From { tree, scope }
    }

    fn relation(&mut self, depth: u32) -> From {
        match depth > 0 && chance(&mut self.random, 6) {
            true => self.derived(depth - 1),
            false => self.table(),
        }
    }

    /// One to four tables.
    pub fn from(&mut self, depth: u32) -> From {
        let mut from = self.relation(depth);
        let more = *one(&mut self.random, &[0, 0, 0, 1, 1, 1, 2, 3]);
        for _ in 0..more {
            let right = self.relation(depth);
            from = self.join(from, right, depth);
        }
        // A comma binds less than a join, whose condition does not see the tables before the comma.
        if chance(&mut self.random, 6) {
            let right = self.relation(depth);
            from.scope.extend(right.scope);
            from.tree = Tree::Joined(vec![from.tree, text(", "), right.tree]);
        }
        from
    }

    fn join(&mut self, left: From, right: From, depth: u32) -> From {
        let on = self.join_condition(&left, &right, depth);
        let scope: Vec<Visible> = left.scope.into_iter().chain(right.scope).collect();
        let word = *one(
            &mut self.random,
            &[" JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " CROSS JOIN ", " STRAIGHT_JOIN "],
        );
        let mut parts = vec![left.tree, text(word), right.tree];
        match word {
            " LEFT JOIN " | " RIGHT JOIN " => parts.extend(fill(" ON {}", vec![on])),
            _ => parts.push(Tree::Optional(fill(" ON {}", vec![on]))),
        }
        From { tree: Tree::Joined(parts), scope }
    }

    fn join_condition(&mut self, left: &From, right: &From, depth: u32) -> Tree {
        let mut pairs = Vec::new();
        for left in &left.scope {
            pairs.extend(
                right.scope.iter().filter(|right| right.kind == left.kind).map(|right| (left, right)),
            );
        }
        let both: Vec<Visible> = left.scope.iter().chain(&right.scope).cloned().collect();
        if pairs.is_empty() || chance(&mut self.random, 6) {
            return self.condition(&both, depth.min(1));
        }
        let (left, right) = *one(&mut self.random, &pairs);
        let side = |column: &Visible| Tree::Expression(vec![text(&column.text)]);
        let operator = *one(&mut self.random, &["=", "=", "=", "=", "<=>", "<"]);
        let equal = Tree::Expression(fill(&format!("({{}} {operator} {{}})"), vec![side(left), side(right)]));
        match chance(&mut self.random, 3) {
            true => Tree::Expression(fill("({} AND {})", vec![equal, self.condition(&both, depth.min(1))])),
            false => equal,
        }
    }

    /// ` WHERE ...`, mostly.
    pub fn filter(&mut self, scope: &[Visible], depth: u32) -> Tree {
        match chance(&mut self.random, 5) {
            true => Tree::Optional(vec![]),
            false => Tree::Optional(fill(" WHERE {}", vec![self.condition(scope, depth)])),
        }
    }

    fn item(&mut self, tree: Tree, kind: Kind, number: usize, scope: &[Visible]) -> Item {
        let name = match self.random.below(8) {
            // The expression is the name.
            0 if !self.names_are_distinct => None,
            // A name that a column has, too.
            1 if !scope.is_empty() && !self.names_are_distinct => {
                Some(one(&mut self.random, scope).name.clone())
            }
            _ => Some(format!("c{number}")),
        };
        Item { tree, name, kind }
    }

    /// The select list, and the names that are unique in it.
    fn list(items: &[Item]) -> Tree {
        let item = |item: &Item| match &item.name {
            Some(name) => Tree::Sequence(vec![item.tree.clone(), text(format!(" AS {name}"))]),
            None => item.tree.clone(),
        };
        Tree::List(items.iter().map(item).collect(), ", ")
    }

    /// ORDER BY columns of the select list, and a LIMIT only behind all of them.
    fn order(&mut self, items: &[Item], limits: bool) -> Tree {
        let named: Vec<(usize, String)> = items
            .iter()
            .enumerate()
            .filter_map(|(position, item)| Some((position + 1, item.name.clone()?)))
            .filter(|(_, name)| items.iter().filter(|item| item.name.as_ref() == Some(name)).count() == 1)
            // A name that is a column's as well may mean the column.
            .filter(|(_, name)| name.starts_with('c') && name.len() > 1)
            .collect();
        let every = named.len() == items.len();
        if named.is_empty() || !(chance(&mut self.random, 3) || limits) {
            return Tree::Optional(vec![]);
        }
        let mut keys = Vec::new();
        for (position, name) in &named {
            if !limits && keys.len() == 2 {
                break;
            }
            let direction = *one(&mut self.random, &["", "", " DESC", " ASC"]);
            let key = match self.random.below(3) {
                // Positions change when an item is left out.
                0 if every && !limits && keys.is_empty() && *position == 1 => format!("1{direction}"),
                _ => format!("{name}{direction}"),
            };
            keys.push(Tree::Marked(Mark::OrderKey(name.clone()), Box::new(text(key))));
        }
        let limits = limits && every;
        if !limits {
            return Tree::Optional(vec![text(" ORDER BY "), Tree::List(keys, ", ")]);
        }
        let mut parts = vec![text(" ORDER BY ")];
        for (position, key) in keys.into_iter().enumerate() {
            parts.extend((position > 0).then(|| text(", ")));
            parts.push(key);
        }
        let count = self.random.below(6);
        let limit = match self.random.below(3) {
            0 => format!(" LIMIT {}, {count}", self.random.below(3)),
            1 => format!(" LIMIT {count} OFFSET {}", self.random.below(3)),
            _ => format!(" LIMIT {count}"),
        };
        parts.push(Tree::Marked(Mark::Limit, Box::new(text(limit))));
        Tree::Optional(parts)
    }

    /// A query, and the statement's last one at that.
    pub fn select(&mut self, depth: u32) -> Tree {
        match self.random.below(10) {
            0..=2 => self.grouped(&[], depth).0,
            3 if depth > 0 => self.union(depth).0,
            _ => self.plain(&[], depth).0,
        }
    }

    /// Columns of rows, one by one.
    fn plain(&mut self, outer: &[Visible], depth: u32) -> (Tree, Vec<Item>) {
        let from = self.from(depth);
        let mut scope = from.scope.clone();
        scope.extend(outer.iter().cloned());
        let mut items = Vec::new();
        for number in 1..=1 + self.random.index(3) {
            // One a query: MariaDB gives other results to some that stand beside each other.
            let (tree, kind) = match number == 1 && !from.scope.is_empty() && chance(&mut self.random, 6) {
                true => self.window(&from.scope, depth.min(1)),
                false => {
                    let kind = self.kind_of(&scope);
                    (self.expression(&scope, kind, depth), kind)
                }
            };
            items.push(self.item(tree, kind, number, &from.scope));
        }
        let distinct = match !self.schema.has_variants && chance(&mut self.random, 5) {
            true => vec![text("DISTINCT ")],
            false => vec![],
        };
        let filter = self.filter(&scope, depth);
        let limits = chance(&mut self.random, 6);
        let order = self.order(&items, limits);
        let parts = vec![
            text("SELECT "),
            Tree::Optional(distinct),
            Self::list(&items),
            Tree::Optional(vec![text(" FROM "), from.tree]),
            filter,
            order,
        ];
        (Tree::Query(parts), items)
    }

    /// A window function over the rows of a query.
    fn window(&mut self, scope: &[Visible], depth: u32) -> (Tree, Kind) {
        let (template, argument, kind) = *one(&mut self.random, WINDOWS);
        let column = |random: &mut base::random::Random| one(random, scope).text.clone();
        let mut partition = String::new();
        if chance(&mut self.random, 2) {
            partition = format!("PARTITION BY {} ", column(&mut self.random));
        }
        let mut order = column(&mut self.random);
        let direction = *one(&mut self.random, &["", " DESC"]);
        order.push_str(direction);
        if chance(&mut self.random, 3) {
            order.push_str(&format!(", {}", column(&mut self.random)));
        }
        let template = template.replace("<p>", &partition).replace("<o>", &order);
        let arguments = match template.contains("{}") {
            true => vec![self.expression(scope, argument, depth)],
            false => vec![],
        };
        (Tree::Closed(fill(&template, arguments)), kind)
    }

    fn aggregate(&mut self, scope: &[Visible], depth: u32) -> (Tree, Kind) {
        loop {
            let (template, argument, kind) = *one(&mut self.random, AGGREGATES);
            // Of texts that are equal, MIN gives one or another.
            if self.schema.has_variants && matches!(argument, Kind::Text) {
                continue;
            }
            let argument = self.expression(scope, argument, depth);
            return (Tree::Closed(fill(template, vec![argument])), kind);
        }
    }

    /// Groups: their columns, aggregates, and expressions of both.
    fn grouped(&mut self, outer: &[Visible], depth: u32) -> (Tree, Vec<Item>) {
        let from = self.from(depth);
        let mut scope = from.scope.clone();
        scope.extend(outer.iter().cloned());
        let groupable: Vec<Visible> = from
            .scope
            .iter()
            .filter(|column| !(self.schema.has_variants && column.kind == Kind::Text))
            .cloned()
            .collect();
        let mut keys: Vec<Visible> = Vec::new();
        for _ in 0..*one(&mut self.random, &[0, 1, 1, 1, 2]) {
            // MariaDB does not find a key in HAVING if two have the same name.
            if !groupable.is_empty() {
                let key = one(&mut self.random, &groupable).clone();
                keys.retain(|other: &Visible| other.name != key.name);
                keys.push(key);
            }
        }
        let mut items = Vec::new();
        for number in 1..=1 + self.random.index(3) {
            let (tree, kind) = match keys.is_empty() || chance(&mut self.random, 2) {
                true => self.aggregate(&scope, depth.min(1)),
                false => {
                    let kind = self.kind_of(&keys);
                    (self.expression_of(&keys, kind, depth.min(1)), kind)
                }
            };
            // An alias that hides a column would change what is grouped.
            items.push(self.item(tree, kind, number, &[]));
        }
        let group = match keys.is_empty() {
            true => vec![],
            false => {
                let keys: Vec<&str> = keys.iter().map(|key| key.text.as_str()).collect();
                vec![text(format!(" GROUP BY {}", keys.join(", ")))]
            }
        };
        let having = match keys.is_empty() || chance(&mut self.random, 2) {
            true => vec![],
            false => fill(" HAVING {}", vec![self.having(&keys, &scope, depth.min(1))]),
        };
        let filter = self.filter(&scope, depth);
        let limits = chance(&mut self.random, 8);
        let order = self.order(&items, limits);
        let mut parts = vec![text("SELECT "), Self::list(&items), text(" FROM "), from.tree, filter];
        parts.push(Tree::Deciding(group));
        parts.push(Tree::Optional(having));
        parts.push(order);
        (Tree::Query(parts), items)
    }

    /// An expression of exactly these columns; at least one value that is no literal.
    fn expression_of(&mut self, keys: &[Visible], kind: Kind, depth: u32) -> Tree {
        self.expression(keys, kind, depth)
    }

    fn having(&mut self, keys: &[Visible], scope: &[Visible], depth: u32) -> Tree {
        if chance(&mut self.random, 2) {
            return self.condition(keys, depth);
        }
        let (aggregate, kind) = self.aggregate(scope, depth);
        let operator = *one(&mut self.random, &["=", "<", ">", ">=", "<>"]);
        let other = self.expression(keys, kind, 0);
        Tree::Expression(fill(&format!("({{}} {operator} {{}})"), vec![aggregate, other]))
    }

    fn union(&mut self, depth: u32) -> (Tree, Vec<Item>) {
        let kinds: Vec<Kind> = (0..1 + self.random.index(2)).map(|_| self.kind_of(&[])).collect();
        let mut branches = Vec::new();
        let mut first: Vec<Item> = Vec::new();
        for branch in 0..2 + self.random.index(2) {
            let from = self.from(depth - 1);
            let mut items = Vec::new();
            for (position, kind) in kinds.iter().enumerate() {
                let tree = self.expression(&from.scope, *kind, depth - 1);
                items.push(Item { tree, name: Some(format!("c{}", position + 1)), kind: *kind });
            }
            let filter = self.filter(&from.scope, depth - 1);
            let parts = vec![text("SELECT "), Self::fixed(&items), text(" FROM "), from.tree, filter];
            let query = Tree::Query(parts);
            let word = match self.schema.has_variants {
                true => " UNION ALL ",
                false => *one(&mut self.random, &[" UNION ", " UNION ALL ", " UNION DISTINCT "]),
            };
            if branch > 0 {
                branches.push(text(word));
            } else {
                first = items;
            }
            branches.push(query);
        }
        let order = self.order(&first, false);
        branches.push(order);
        (Tree::Query(branches), first)
    }

    /// A select list of which no item may be left out: others have as many columns.
    fn fixed(items: &[Item]) -> Tree {
        let mut parts = Vec::new();
        for (position, item) in items.iter().enumerate() {
            parts.extend((position > 0).then(|| text(", ")));
            parts.push(item.tree.clone());
            parts.extend(item.name.as_ref().map(|name| text(format!(" AS {name}"))));
        }
        Tree::Sequence(parts)
    }

    /// A query whose columns have names of their own, which it returns.
    fn query_of_names(&mut self, depth: u32) -> (Tree, Vec<(String, Kind)>) {
        let before = std::mem::replace(&mut self.names_are_distinct, true);
        let (query, items) = match self.random.below(4) {
            0 => self.grouped(&[], depth),
            1 if depth > 0 => self.union(depth),
            _ => self.plain(&[], depth),
        };
        self.names_are_distinct = before;
        let names: Vec<(String, Kind)> =
            items.iter().filter_map(|item| Some((item.name.clone()?, item.kind))).collect();
        let distinct = |name: &String| names.iter().filter(|(other, _)| other == name).count() == 1;
        let columns = names.iter().filter(|(name, _)| distinct(name)).cloned().collect();
        (query, columns)
    }

    /// A subquery of one value, which may be NULL.
    pub fn scalar_subquery(&mut self, outer: &[Visible], kind: Kind, depth: u32) -> Tree {
        let from = self.from(0);
        let mut scope = from.scope.clone();
        scope.extend(outer.iter().cloned());
        let of_texts = matches!(kind, Kind::Text | Kind::Binary) && self.schema.has_variants;
        let function = match kind {
            Kind::Integer => {
                *one(&mut self.random, &["MAX({})", "MIN({})", "COUNT({})", "COUNT(DISTINCT {})"])
            }
            Kind::Decimal => *one(&mut self.random, &["MAX({})", "SUM({})", "AVG({})"]),
            _ if of_texts => "COUNT({})",
            _ => *one(&mut self.random, &["MAX({})", "MIN({})"]),
        };
        let argument = self.expression(&from.scope, kind, depth.min(1));
        let value = Tree::Closed(fill(function, vec![argument]));
        let filter = self.filter(&scope, depth);
        Tree::Expression(vec![Tree::Query(vec![
            text("(SELECT "),
            value,
            text(" FROM "),
            from.tree,
            filter,
            text(")"),
        ])])
    }

    /// IN, EXISTS, ANY and ALL of a subquery.
    pub fn subquery_test(&mut self, outer: &[Visible], depth: u32) -> Tree {
        let from = self.from(0);
        let mut scope = from.scope.clone();
        scope.extend(outer.iter().cloned());
        let kind = self.kind_of(outer);
        let filter = self.filter(&scope, depth);
        let value = self.expression(&from.scope, kind, depth.min(1));
        let query = Tree::Query(vec![text("SELECT "), value, text(" FROM "), from.tree, filter]);
        let template = *one(
            &mut self.random,
            &[
                "EXISTS ({})",
                "(NOT EXISTS ({}))",
                "({} IN ({}))",
                "({} NOT IN ({}))",
                "({} = ANY ({}))",
                "({} >= ALL ({}))",
                "({} < ANY ({}))",
            ],
        );
        match template.matches("{}").count() {
            1 => Tree::Expression(fill(template, vec![query])),
            _ => {
                let left = self.expression(outer, kind, depth.min(1));
                Tree::Expression(fill(template, vec![left, query]))
            }
        }
    }
}
