//! Statements as trees that can be written as text, and cut down.

use wire::WireValue;

/// What a part of a statement means to those who compare its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A key of ORDER BY: the name of the column that it sorts by, and whether it descends.
    OrderKey(String),
    /// A LIMIT.
    Limit,
}

/// A literal, and the type that it has as the parameter of a prepared statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    Null,
    Integer(i64),
    /// Digits with a point.
    Decimal(String),
    Double(f64),
    Text(String),
    /// What is no parameter: `DATE'2024-02-29'`, `TRUE`, `x'61'`.
    Other(String),
}

impl Literal {
    fn write(&self, out: &mut String) {
        match self {
            Literal::Null => out.push_str("NULL"),
            Literal::Integer(value) => out.push_str(&value.to_string()),
            Literal::Decimal(digits) => out.push_str(digits),
            Literal::Double(value) => out.push_str(&format!("{value:e}")),
            Literal::Text(text) => {
                out.push('\'');
                out.push_str(&text.replace('\'', "''"));
                out.push('\'');
            }
            Literal::Other(text) => out.push_str(text),
        }
    }

    fn parameter(&self) -> Option<WireValue<'_>> {
        match self {
            Literal::Null => Some(WireValue::Null),
            Literal::Integer(value) => Some(WireValue::Int(*value)),
            Literal::Double(value) => Some(WireValue::Double(*value)),
            Literal::Text(text) => Some(WireValue::Text(text.as_bytes())),
            // A sign is an operator in front of a literal, and part of a parameter.
            Literal::Decimal(digits) => Some(WireValue::Decimal(digits.as_bytes())),
            Literal::Other(_) => None,
        }
    }
}

/// A part of a statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree {
    Text(String),
    Literal(Literal),
    Sequence(Vec<Tree>),
    /// May become any expression inside it, or a literal.
    Expression(Vec<Tree>),
    /// An expression whose inner ones have other rows: an aggregate's arguments. It may become a literal.
    Closed(Vec<Tree>),
    /// May become any query inside it.
    Query(Vec<Tree>),
    /// May be left out.
    Optional(Vec<Tree>),
    /// Tables of FROM. May become any of those inside it.
    Joined(Vec<Tree>),
    /// What decides which rows there are, as GROUP BY does: left out only where the rows do not matter.
    Deciding(Vec<Tree>),
    /// Items may be left out, but not all.
    List(Vec<Tree>, &'static str),
    Marked(Mark, Box<Tree>),
}

/// A text, or a number that has a place in one.
pub fn text(text: impl ToString) -> Tree {
    Tree::Text(text.to_string())
}

/// Fills the places `{}` of a template in their order.
pub fn fill(template: &str, parts: Vec<Tree>) -> Vec<Tree> {
    let mut parts = parts.into_iter();
    let mut trees = Vec::new();
    for (position, between) in template.split("{}").enumerate() {
        if position > 0 {
            trees.extend(parts.next());
        }
        if !between.is_empty() {
            trees.push(text(between));
        }
    }
    trees
}

/// A statement as it is sent: its text, and the values of its parameters if it is prepared.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub text: String,
    /// The positions of literals, in the order of the text, that are parameters.
    parameters: Vec<Literal>,
}

impl Written {
    pub fn values(&self) -> Vec<WireValue<'_>> {
        self.parameters.iter().filter_map(Literal::parameter).collect()
    }
}

/// Which literals are written as parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Text,
    /// Prepared, with every literal in the text.
    Binary,
    /// Prepared, with parameters.
    Parameters,
}

impl Tree {
    pub fn to_text(&self) -> String {
        self.write(Protocol::Text).text
    }

    /// The same statement with `IS TRUE` behind each condition, so that a planner can make nothing of them.
    pub fn with_opaque_conditions(&self) -> Tree {
        let of = |parts: &[Tree]| {
            let mut opaque: Vec<Tree> = Vec::new();
            for part in parts {
                let is_condition = matches!(opaque.last(), Some(Tree::Text(before))
                    if [" WHERE ", " ON ", " HAVING "].iter().any(|word| before.ends_with(word)));
                let part = part.with_opaque_conditions();
                opaque.push(match is_condition {
                    true => Tree::Sequence(fill("(({}) IS TRUE)", vec![part])),
                    false => part,
                });
            }
            opaque
        };
        match self {
            Tree::Text(_) | Tree::Literal(_) => self.clone(),
            Tree::Sequence(parts) => Tree::Sequence(of(parts)),
            Tree::Expression(parts) => Tree::Expression(of(parts)),
            Tree::Closed(parts) => Tree::Closed(of(parts)),
            Tree::Query(parts) => Tree::Query(of(parts)),
            Tree::Optional(parts) => Tree::Optional(of(parts)),
            Tree::Joined(parts) => Tree::Joined(of(parts)),
            Tree::Deciding(parts) => Tree::Deciding(of(parts)),
            Tree::List(parts, between) => Tree::List(of(parts), between),
            Tree::Marked(mark, inner) => Tree::Marked(mark.clone(), Box::new(inner.with_opaque_conditions())),
        }
    }

    pub fn write(&self, protocol: Protocol) -> Written {
        let mut out = Written::default();
        self.append(protocol, &mut out);
        out
    }

    fn append(&self, protocol: Protocol, out: &mut Written) {
        match self {
            Tree::Text(text) => out.text.push_str(text),
            Tree::Literal(literal) => match literal.parameter() {
                Some(_) if protocol == Protocol::Parameters => {
                    out.text.push('?');
                    out.parameters.push(literal.clone());
                }
                _ => literal.write(&mut out.text),
            },
            Tree::List(items, separator) => {
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.text.push_str(separator);
                    }
                    item.append(protocol, out);
                }
            }
            Tree::Marked(_, inner) => inner.append(protocol, out),
            Tree::Sequence(parts)
            | Tree::Expression(parts)
            | Tree::Closed(parts)
            | Tree::Query(parts)
            | Tree::Joined(parts)
            | Tree::Deciding(parts)
            | Tree::Optional(parts) => parts.iter().for_each(|part| part.append(protocol, out)),
        }
    }

    /// The marks of the outermost query.
    pub fn marks(&self) -> Vec<&Mark> {
        let mut marks = Vec::new();
        match self {
            Tree::Query(parts) => parts.iter().for_each(|part| part.gather_marks(&mut marks)),
            other => other.gather_marks(&mut marks),
        }
        marks
    }

    fn gather_marks<'t>(&'t self, marks: &mut Vec<&'t Mark>) {
        match self {
            Tree::Marked(mark, inner) => {
                marks.push(mark);
                inner.gather_marks(marks);
            }
            Tree::Sequence(parts) | Tree::Optional(parts) | Tree::List(parts, _) => {
                parts.iter().for_each(|part| part.gather_marks(marks));
            }
            _ => {}
        }
    }

    fn parts(&self) -> &[Tree] {
        match self {
            Tree::Text(_) | Tree::Literal(_) => &[],
            Tree::Sequence(parts)
            | Tree::Expression(parts)
            | Tree::Closed(parts)
            | Tree::Query(parts)
            | Tree::Optional(parts)
            | Tree::Joined(parts)
            | Tree::Deciding(parts)
            | Tree::List(parts, _) => parts,
            Tree::Marked(_, inner) => std::slice::from_ref(inner.as_ref()),
        }
    }

    fn parts_mut(&mut self) -> &mut [Tree] {
        match self {
            Tree::Text(_) | Tree::Literal(_) => &mut [],
            Tree::Sequence(parts)
            | Tree::Expression(parts)
            | Tree::Closed(parts)
            | Tree::Query(parts)
            | Tree::Optional(parts)
            | Tree::Joined(parts)
            | Tree::Deciding(parts)
            | Tree::List(parts, _) => parts,
            Tree::Marked(_, inner) => std::slice::from_mut(inner.as_mut()),
        }
    }

    fn size(&self) -> usize {
        1 + self.parts().iter().map(Tree::size).sum::<usize>()
    }

    /// The statement with one part made smaller, in each way that there is, those that cut most first.
    fn reductions(&self, rows_matter: bool) -> Vec<Tree> {
        let mut all: Vec<(usize, Tree)> = Vec::new();
        let mut path = Vec::new();
        self.reduce_at(self, rows_matter, &mut path, &mut all);
        all.sort_by_key(|(size, _)| *size);
        all.into_iter().map(|(_, tree)| tree).collect()
    }

    fn reduce_at(&self, node: &Tree, rows_matter: bool, path: &mut Vec<usize>, all: &mut Vec<(usize, Tree)>) {
        for smaller in node.smaller(rows_matter) {
            let tree = self.with(path, smaller);
            all.push((tree.size(), tree));
        }
        for (position, part) in node.parts().iter().enumerate() {
            path.push(position);
            self.reduce_at(part, rows_matter, path, all);
            path.pop();
        }
    }

    fn with(&self, path: &[usize], replacement: Tree) -> Tree {
        let mut tree = self.clone();
        let mut node = &mut tree;
        for position in path {
            node = &mut node.parts_mut()[*position];
        }
        *node = replacement;
        tree
    }

    fn smaller(&self, rows_matter: bool) -> Vec<Tree> {
        let mut smaller = Vec::new();
        match self {
            Tree::Optional(parts) if !parts.is_empty() => smaller.push(Tree::Optional(Vec::new())),
            Tree::List(items, separator) if items.len() > 1 => {
                for left_out in 0..items.len() {
                    let mut items = items.clone();
                    items.remove(left_out);
                    smaller.push(Tree::List(items, separator));
                }
                if items.len() > 3 {
                    for half in [&items[..items.len() / 2], &items[items.len() / 2..]] {
                        smaller.push(Tree::List(half.to_vec(), separator));
                    }
                }
            }
            Tree::Expression(parts) => {
                parts.iter().for_each(|part| part.inner_expressions(&mut smaller));
                if self.size() > 2 {
                    smaller.extend([Literal::Null, Literal::Integer(1)].map(Tree::Literal));
                }
            }
            Tree::Deciding(parts) if !parts.is_empty() && !rows_matter => {
                smaller.push(Tree::Deciding(Vec::new()));
            }
            Tree::Joined(parts) => parts.iter().for_each(|part| part.inner_tables(&mut smaller)),
            Tree::Closed(_) => smaller.push(Tree::Literal(Literal::Integer(1))),
            Tree::Query(parts) => parts.iter().for_each(|part| part.inner_queries(&mut smaller)),
            // A date that is cut is no date, which would be another difference.
            Tree::Literal(Literal::Text(text)) if text.len() > 1 && !text.contains(['-', ':']) => {
                let mut characters = text.chars();
                characters.next_back();
                smaller.push(Tree::Literal(Literal::Text(characters.as_str().to_owned())));
            }
            Tree::Literal(Literal::Integer(value)) if !(0..=1).contains(value) => {
                smaller.push(Tree::Literal(Literal::Integer(1)));
            }
            _ => {}
        }
        smaller
    }

    fn inner_expressions(&self, found: &mut Vec<Tree>) {
        match self {
            Tree::Expression(_) | Tree::Closed(_) | Tree::Literal(_) => found.push(self.clone()),
            Tree::Query(_) => {}
            other => other.parts().iter().for_each(|part| part.inner_expressions(found)),
        }
    }

    fn inner_tables(&self, found: &mut Vec<Tree>) {
        match self {
            Tree::Joined(_) => found.push(self.clone()),
            Tree::Query(_) => {}
            other => other.parts().iter().for_each(|part| part.inner_tables(found)),
        }
    }

    fn inner_queries(&self, found: &mut Vec<Tree>) {
        match self {
            Tree::Query(_) => found.push(self.clone()),
            other => other.parts().iter().for_each(|part| part.inner_queries(found)),
        }
    }

    /// Makes the statement as small as it can be while it still fails in the same way. `tries_max` bounds how
    /// often that is asked.
    pub fn shrink(
        &self,
        tries_max: usize,
        rows_matter: bool,
        mut still_fails: impl FnMut(&Tree) -> bool,
    ) -> Tree {
        let mut smallest = self.clone();
        let mut tries = 0;
        'again: loop {
            for candidate in smallest.reductions(rows_matter) {
                if tries == tries_max {
                    return smallest;
                }
                tries += 1;
                if still_fails(&candidate) {
                    smallest = candidate;
                    continue 'again;
                }
            }
            return smallest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(left: Tree, right: Tree) -> Tree {
        Tree::Expression(fill("({} + {})", vec![left, right]))
    }

    #[test]
    fn a_statement_shrinks_to_what_makes_it_fail() {
        let number = |value| Tree::Literal(Literal::Integer(value));
        let culprit = Tree::Expression(fill("ABS({})", vec![number(7)]));
        let items = Tree::List(vec![sum(number(2), number(3)), sum(culprit, number(5))], ", ");
        let wheres = Tree::Optional(fill(" WHERE {}", vec![sum(number(8), number(9))]));
        let statement = Tree::Query(fill("SELECT {}{}", vec![items, wheres]));
        assert_eq!(statement.to_text(), "SELECT (2 + 3), (ABS(7) + 5) WHERE (8 + 9)");
        let smallest = statement.shrink(1000, true, |tree| tree.to_text().contains("ABS"));
        assert_eq!(smallest.to_text(), "SELECT ABS(1)");
    }

    #[test]
    fn literals_become_parameters_in_the_order_of_the_text() {
        let literals = [Literal::Integer(3), Literal::Other("TRUE".into()), Literal::Text("it's".into())];
        let statement = Tree::List(literals.into_iter().map(Tree::Literal).collect(), " ");
        assert_eq!(statement.to_text(), "3 TRUE 'it''s'");
        let written = statement.write(Protocol::Parameters);
        assert_eq!(written.text, "? TRUE ?");
        assert_eq!(written.values(), [WireValue::Int(3), WireValue::Text(b"it's")]);
    }
}
