//! Outer joins as a tree of nests. Each condition belongs to a nest or to WHERE.

use super::from::{From, Nest};
use super::walk::{Parts, is_fixed, parts_of};
use crate::expr::{Comparison, Expr};

/// The owner of a condition: the number of a nest, or `None` for WHERE.
pub(super) type Owner = Option<usize>;

/// The nests of a FROM. A nest whose rows of NULLs cannot survive is left out: its join is an inner join.
pub(super) struct Tree {
    pub(super) nests: Vec<Nest>,
    /// By part: the innermost nest that it is in.
    pub(super) nest_of: Vec<Owner>,
    pub(super) conditions: Vec<(Owner, Expr)>,
}

/// The conditions, by where they are tested.
pub(super) struct AssignedConditions {
    /// Conditions that read no table.
    pub(super) constant: Vec<Expr>,
    /// By part: conditions that are tested when its row is found.
    pub(super) at: Vec<Vec<Expr>>,
    /// By nest: conditions that are tested after NULLs may have replaced its rows.
    pub(super) after: Vec<Vec<Expr>>,
}

impl Tree {
    pub(super) fn new(from: &From, conditions: &[Expr]) -> Tree {
        let mut tree = Tree {
            nests: from.nests.clone(),
            nest_of: from.nest_of.clone(),
            conditions: conditions
                .iter()
                .chain(&from.on)
                .map(|condition| (None, condition.clone()))
                .collect(),
        };
        for (nest, Nest { on, .. }) in from.nests.iter().enumerate() {
            tree.conditions.extend(on.iter().map(|condition| (Some(nest), condition.clone())));
        }
        while let Some(nest) = tree.needless() {
            tree.dissolve(nest);
        }
        tree
    }

    /// A nest whose rows of NULLs are refused by a condition around it. An inner join gives the same result.
    fn needless(&self) -> Option<usize> {
        self.conditions.iter().find_map(|(owner, condition)| {
            let refused = parts_of(condition)
                .iter()
                .find(|part| self.child_of(*owner, *part).is_some() && rejects_nulls(condition, *part))?;
            self.child_of(*owner, refused)
        })
    }

    fn dissolve(&mut self, nest: usize) {
        let parent = self.nests[nest].parent;
        let into_parent = |owner: &mut Owner| {
            if *owner == Some(nest) {
                *owner = parent;
            }
        };
        self.nest_of.iter_mut().for_each(into_parent);
        self.nests.iter_mut().map(|nest| &mut nest.parent).for_each(into_parent);
        self.conditions.iter_mut().map(|(owner, _)| owner).for_each(into_parent);
        self.nests[nest].parts = Parts::default();
    }

    /// The nests that a part is in, from the innermost outwards.
    fn nests_of(&self, part: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.nest_of[part], |nest| self.nests[*nest].parent)
    }

    /// The outermost nest inside `owner` that a part is in.
    fn child_of(&self, owner: Owner, part: usize) -> Option<usize> {
        self.nests_of(part).find(|nest| self.nests[*nest].parent == owner)
    }

    /// The tables that must be read before a nest.
    fn needs(&self, nest: usize) -> Parts {
        let Nest { parts, outer, .. } = &self.nests[nest];
        let conditions = self.conditions.iter().filter(|(owner, _)| *owner == Some(nest));
        let asked =
            conditions.fold(Parts::default(), |all, (_, condition)| Parts(all.0 | parts_of(condition).0));
        let asked = Parts(asked.0 & !parts.0);
        if asked.is_empty() { *outer } else { asked }
    }

    /// True if a table can be read next. A nest must come behind the tables it is joined to, and its own
    /// tables must follow each other.
    pub(super) fn may_follow(&self, part: usize, before: Parts) -> bool {
        let is_open = |nest: &Nest| !before.is_disjoint(nest.parts) && !nest.parts.is_within(before);
        let begins = |nest: &usize| before.is_disjoint(self.nests[*nest].parts);
        !before.has(part)
            && self.nests.iter().filter(|nest| is_open(nest)).all(|nest| nest.parts.has(part))
            && self.nests_of(part).filter(begins).all(|nest| self.needs(nest).is_within(before))
    }

    /// The nest that begins with a part.
    pub(super) fn begins(&self, part: usize, before: Parts) -> Option<usize> {
        self.nests_of(part).find(|nest| before.is_disjoint(self.nests[*nest].parts))
    }

    /// The nests that end with a part, the innermost first. `here` includes that part.
    pub(super) fn ends(&self, part: usize, here: Parts) -> Vec<usize> {
        self.nests_of(part).filter(|nest| self.nests[*nest].parts.is_within(here)).collect()
    }

    pub(super) fn assign_conditions(&self, order: &[usize]) -> AssignedConditions {
        let mut assigned = AssignedConditions {
            constant: vec![],
            at: vec![vec![]; order.len()],
            after: vec![vec![]; self.nests.len()],
        };
        for (owner, condition) in &self.conditions {
            let parts = parts_of(condition);
            let is_inside = |part: &&usize| owner.is_none_or(|nest| self.nests[nest].parts.has(**part));
            let last = order.iter().rev().filter(is_inside).find(|part| parts.has(**part));
            // A nest's condition that reads none of its tables is tested with its first row. A condition of
            // WHERE that reads no table but is not fixed is tested with each row.
            let part = last.or_else(|| match owner {
                Some(_) => order.iter().find(is_inside),
                None if is_fixed(condition) => None,
                None => order.last(),
            });
            let Some(&part) = part else {
                assigned.constant.push(condition.clone());
                continue;
            };
            match self.child_of(*owner, part) {
                Some(nest) => assigned.after[nest].push(condition.clone()),
                None => assigned.at[part].push(condition.clone()),
            }
        }
        assigned
    }
}

/// True if a condition cannot hold where all columns of `part` are NULL.
fn rejects_nulls(condition: &Expr, part: usize) -> bool {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(column) if column.part == part);
    match condition {
        Expr::Compare { op, left, right } => {
            *op != Comparison::NullSafeEqual && (is_column(left) || is_column(right))
        }
        Expr::Between { operand, negated: false, .. }
        | Expr::InSlot { operand, negated: false, .. }
        | Expr::InList { operand, negated: false, .. }
        | Expr::Like { operand, .. }
        | Expr::IsNull { operand, negated: true } => is_column(operand),
        Expr::And(conditions) => conditions.iter().any(|condition| rejects_nulls(condition, part)),
        Expr::Or(conditions) => conditions.iter().all(|condition| rejects_nulls(condition, part)),
        _ => false,
    }
}
