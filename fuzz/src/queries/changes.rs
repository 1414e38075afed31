//! INSERT, REPLACE, UPDATE and DELETE, drawn.

use super::expressions::{Generator, Visible};
use super::schema::{Column, Table, chance, one};
use super::tree::{Tree, fill, text};

/// A change, and the table that it changes.
#[derive(Clone, Debug)]
pub struct Change {
    pub tree: Tree,
    pub table: usize,
}

impl Generator {
    pub fn change(&mut self, depth: u32) -> Change {
        let table = self.random.index(self.schema.tables.len());
        let of = self.schema.tables[table].clone();
        self.changed = Some(of.name.clone());
        let tree = match self.random.below(10) {
            0..=3 => self.insert(&of, depth),
            4..=7 => self.update(&of, depth),
            _ => self.delete(&of, depth),
        };
        self.changed = None;
        Change { tree, table }
    }

    fn columns_of(table: &Table) -> Vec<Visible> {
        let visible = |column: &Column| Visible {
            text: column.name.clone(),
            name: column.name.clone(),
            kind: column.kind,
        };
        table.columns.iter().map(visible).collect()
    }

    /// The columns under an alias, for subqueries that would hide bare names.
    fn qualified(table: &Table) -> Vec<Visible> {
        let visible = |column: Visible| Visible { text: format!("{}.{}", table.name, column.name), ..column };
        Self::columns_of(table).into_iter().map(visible).collect()
    }

    /// The value of a column: often one that the column takes, sometimes any expression.
    fn stored(&mut self, column: &Column, scope: &[Visible], depth: u32) -> Tree {
        match self.random.below(10) {
            0 => text("DEFAULT"),
            1..=4 => self.expression(scope, column.kind, depth),
            _ => text(column.value(&mut self.random, self.schema.has_variants)),
        }
    }

    fn insert(&mut self, table: &Table, depth: u32) -> Tree {
        let verb = *one(
            &mut self.random,
            &["INSERT INTO", "INSERT INTO", "INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO"],
        );
        let mut columns = table.columns.clone();
        while columns.len() > 1 && chance(&mut self.random, 3) {
            columns.remove(self.random.index(columns.len()));
        }
        self.random.shuffle(&mut columns);
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let head = text(format!("{verb} {} ({})", table.name, names.join(", ")));
        // Values may name the columns to the left of them.
        let mut rows = Vec::new();
        for _ in 0..1 + self.random.index(3) {
            let mut parts = vec![text("(")];
            for (position, column) in columns.iter().enumerate() {
                parts.extend((position > 0).then(|| text(", ")));
                parts.push(self.stored(column, &[], depth));
            }
            parts.push(text(")"));
            rows.push(Tree::Sequence(parts));
        }
        let body = match chance(&mut self.random, 5) {
            false => Tree::Sequence(vec![text(" VALUES "), Tree::List(rows, ", ")]),
            true => self.rows_of_query(&columns, depth),
        };
        let mut parts = vec![head, body];
        if verb == "INSERT INTO" && chance(&mut self.random, 3) {
            parts.push(self.on_duplicate(table));
        }
        Tree::Query(parts)
    }

    /// The rows of a query, in an order of their own.
    fn rows_of_query(&mut self, columns: &[Column], depth: u32) -> Tree {
        let from = self.from(0);
        let mut parts = vec![text(" SELECT ")];
        for (position, column) in columns.iter().enumerate() {
            parts.extend((position > 0).then(|| text(", ")));
            parts.push(self.expression(&from.scope, column.kind, depth.min(1)));
        }
        parts.extend([text(" FROM "), from.tree, self.filter(&from.scope, depth.min(1))]);
        let order: Vec<String> = (1..=columns.len()).map(|number| number.to_string()).collect();
        parts.push(text(format!(" ORDER BY {}", order.join(", "))));
        Tree::Sequence(parts)
    }

    fn on_duplicate(&mut self, table: &Table) -> Tree {
        let free: Vec<Column> = table.columns.iter().filter(|column| !column.unique).cloned().collect();
        if free.is_empty() {
            return Tree::Optional(vec![]);
        }
        let scope = Self::columns_of(table);
        let column = one(&mut self.random, &free).clone();
        let value = match chance(&mut self.random, 2) {
            true => text(format!("VALUES({})", column.name)),
            false => self.expression(&scope, column.kind, 1),
        };
        Tree::Optional(fill(&format!(" ON DUPLICATE KEY UPDATE {} = {{}}", column.name), vec![value]))
    }

    /// Columns of unique keys keep their values: which of several rows fails first depends on the server.
    fn update(&mut self, table: &Table, depth: u32) -> Tree {
        let scope = Self::qualified(table);
        let free: Vec<Column> = table.columns.iter().filter(|column| !column.unique).cloned().collect();
        if free.is_empty() {
            return self.delete(table, depth);
        }
        let mut assigned = Vec::new();
        for _ in 0..1 + self.random.index(2) {
            let column = one(&mut self.random, &free).clone();
            let value = self.stored(&column, &scope, depth);
            assigned.push(Tree::Sequence(fill(&format!("{} = {{}}", column.name), vec![value])));
        }
        let ignore = if chance(&mut self.random, 6) { "IGNORE " } else { "" };
        Tree::Query(vec![
            text(format!("UPDATE {ignore}{} SET ", table.name)),
            Tree::List(assigned, ", "),
            self.filter(&scope, depth),
            self.limited(table),
        ])
    }

    fn delete(&mut self, table: &Table, depth: u32) -> Tree {
        let scope = Self::qualified(table);
        Tree::Query(vec![
            text(format!("DELETE FROM {}", table.name)),
            self.filter(&scope, depth),
            self.limited(table),
        ])
    }

    /// ORDER BY the primary key, with a LIMIT.
    fn limited(&mut self, table: &Table) -> Tree {
        if table.primary.is_empty() || !chance(&mut self.random, 4) {
            return Tree::Optional(vec![]);
        }
        let direction = *one(&mut self.random, &["", " DESC"]);
        let limit = self.random.below(5);
        let keys: Vec<String> = table.primary.iter().map(|name| format!("{name}{direction}")).collect();
        Tree::Optional(vec![text(format!(" ORDER BY {} LIMIT {limit}", keys.join(", ")))])
    }
}
