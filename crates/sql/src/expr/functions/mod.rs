//! The built-in functions. One entry holds everything about one function: its names, how many arguments it
//! takes, the type of its result, how it is evaluated, and its help text.
//!
//! To add a function, add an entry to the file of its category. There is no second list: the binder finds it
//! by name, the compiler asks the entry for the type, a call holds the entry's evaluation, and HELP and
//! `docs/functions.md` read the help text.
//!
//! ```text
//! LEFT {                                              the handle: `text::LEFT`
//!     name: "left",                                   the name in messages, in small letters
//!     aliases: ["..."],                               other names; may be left out
//!     arguments: "text, count",                       for people; [, x] may be left out, ... may be repeated
//!     arity: 2..=2,
//!     syntax: Plain,                                  see `Syntax`; may be left out
//!     constancy: Fixed,                               see `Constancy`; may be left out
//!     collation: Merged,                              see `CollationRule`; may be left out
//!     typing: |t| Ok(t.text(t.chars(0))),             the type of the result
//!     evaluate: left,                                 the value of one call
//!     help: "Gives the first `count` characters.",    one or two plain sentences
//!     example: "LEFT('Latchwork', 5)" => "Latch",     a test evaluates it; may be left out
//! }
//! ```
//!
//! Instead of `typing` and `evaluate` an entry may have `node`, if the compiler makes another node of the
//! call, `aggregate`, `window`, or `bound`, if the binder makes another expression of it.

/// The value of an option; for `None` the function gives NULL.
macro_rules! or_null {
    ($option:expr) => {
        match $option {
            Some(value) => value,
            None => return Ok(ValueRef::Null),
        }
    };
}

/// What an entry says, or what holds if it does not say anything.
macro_rules! given_or {
    ([], $default:expr) => {
        $default
    };
    ([$given:expr], $default:expr) => {
        $given
    };
}

/// Declares the functions of a category: a static of each, and `CATEGORY` with all of them.
macro_rules! functions {
    (
        $title:literal;
        $(
            $handle:ident {
                name: $name:literal,
                $(aliases: [$($alias:literal),+],)?
                arguments: $arguments:literal,
                arity: $arity:expr,
                $(syntax: $syntax:ident,)?
                $(constancy: $constancy:ident,)?
                $(collation: $collation:ident,)?
                $(typing: $typing:expr, evaluate: $evaluate:expr,)?
                $(node: $node:ident,)?
                $(aggregate: $aggregate:ident,)?
                $(window: $window:ident,)?
                $(bound: $bound:ident,)?
                help: $help:literal,
                $(example: $example:literal => $result:literal,)?
            }
        )+
    ) => {
        $(
            pub(crate) static $handle: $crate::expr::functions::Function = $crate::expr::functions::Function {
                name: $name,
                aliases: &[$($($alias),+)?],
                arguments: $arguments,
                arity: $arity,
                syntax: given_or!([$($crate::expr::functions::Syntax::$syntax)?],
                    $crate::expr::functions::Syntax::Plain),
                constancy: given_or!([$($crate::expr::functions::Constancy::$constancy)?],
                    $crate::expr::functions::Constancy::Fixed),
                collation: given_or!([$($crate::expr::functions::CollationRule::$collation)?],
                    $crate::expr::functions::CollationRule::Merged),
                body: {
                    $($crate::expr::functions::Body::Call { typing: $typing, evaluate: $evaluate })?
                    $($crate::expr::functions::Body::Node($crate::expr::functions::NodeKind::$node))?
                    $($crate::expr::functions::Body::Aggregate($crate::expr::AggregateKind::$aggregate))?
                    $($crate::expr::functions::Body::Window($crate::expr::WindowKind::$window))?
                    $($crate::expr::functions::Body::$bound)?
                },
                help: $help,
                example: given_or!([$(Some(($example, $result)))?], None),
            };
        )+

        pub(crate) static CATEGORY: $crate::expr::functions::Category =
            $crate::expr::functions::Category { title: $title, functions: &[$(&$handle),+] };
    };
}

mod addresses;
mod aggregates;
mod arguments;
pub(crate) mod choice;
pub(crate) mod clock;
mod encoding;
pub(crate) mod json;
#[cfg(test)]
mod listing;
mod lists;
pub(crate) mod locks;
mod moment_text;
pub(crate) mod number;
mod packing;
pub(crate) mod periods;
mod regexp;
mod secrets;
pub(crate) mod session;
pub(crate) mod syntax;
pub(crate) mod text;
pub(crate) mod time;
mod typing;
mod widths;
mod windows;

pub(super) use arguments::{Arguments, Evaluate};
pub(super) use typing::Typing;

use super::result_type::Typed;
use super::{AggregateKind, WindowKind};
use crate::SqlError;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// Functions that belong together.
#[derive(Debug)]
pub(crate) struct Category {
    pub title: &'static str,
    pub functions: &'static [&'static Function],
}

/// All functions. Documents and HELP list them in this order.
pub(crate) static CATEGORIES: [&Category; 18] = [
    &choice::CATEGORY,
    &text::CATEGORY,
    &regexp::CATEGORY,
    &lists::CATEGORY,
    &encoding::CATEGORY,
    &secrets::CATEGORY,
    &packing::CATEGORY,
    &addresses::CATEGORY,
    &number::CATEGORY,
    &json::CATEGORY,
    &clock::CATEGORY,
    &time::CATEGORY,
    &periods::CATEGORY,
    &aggregates::CATEGORY,
    &windows::CATEGORY,
    &session::CATEGORY,
    &locks::CATEGORY,
    &syntax::CATEGORY,
];

/// Any number of arguments.
pub(super) const MANY: usize = usize::MAX;

/// A built-in function. Entries are statics, and two are the same function if they lie at the same address.
pub(crate) struct Function {
    /// The name that messages use, in small letters.
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The arguments as people write them.
    pub(crate) arguments: &'static str,
    /// How many arguments it takes.
    pub(crate) arity: RangeInclusive<usize>,
    pub(crate) syntax: Syntax,
    pub(crate) constancy: Constancy,
    pub(super) collation: CollationRule,
    pub(super) body: Body,
    /// One or two sentences.
    pub(crate) help: &'static str,
    /// An expression, and its value as text.
    pub(crate) example: Option<(&'static str, &'static str)>,
}

/// How a function is written where it is not `name(argument, ...)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Syntax {
    /// `name(argument, ...)`.
    Plain,
    /// EXTRACT(unit FROM x). The arguments are x and an INTERVAL of the unit, whose amount is not looked at.
    UnitFrom,
    /// TIMESTAMPADD(unit, n, x). The arguments are x and `INTERVAL n unit`.
    UnitSum,
    /// TIMESTAMPDIFF(unit, a, b). The arguments are `INTERVAL 0 unit`, a and b.
    UnitDifference,
    /// ADD_MONTHS(x, n). The binder makes it DATE_ADD(x, INTERVAL n MONTH).
    MonthSum,
    /// GET_FORMAT(DATE, place). The arguments are two texts.
    FormatOf,
    /// VALUES(column), in ON DUPLICATE KEY UPDATE only.
    InsertedValue,
    /// The parser has a rule of its own, and the name alone is not a function.
    Keyword,
}

/// Whether calls with the same arguments give the same value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Constancy {
    /// The same value for all rows of one execution.
    Fixed,
    /// As `Fixed` without arguments. With arguments a call changes the session, so that one call more or less
    /// can be seen.
    ChangesSession,
    /// Another value from row to row, but one call more or less cannot be seen.
    Varies,
    /// One call more or less can be seen.
    Visible,
}

/// Whose collations decide by which collation a call compares and what its text has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CollationRule {
    /// All arguments: those that do not mix are error 1267.
    Merged,
    /// All arguments but the first, which is a condition.
    MergedAfterFirst,
    /// The first argument only: others are paths and values of it.
    First,
    /// The arguments need not mix: the collation is the connection's.
    Connection,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// A node that calls `evaluate` for each row.
    Call {
        typing: fn(&mut Typing<'_>) -> std::result::Result<Typed, SqlError>,
        evaluate: Evaluate,
    },
    /// A node of its own.
    Node(NodeKind),
    Aggregate(AggregateKind),
    /// It is computed over a window of rows, with OVER.
    Window(WindowKind),
    /// The binder makes another expression of it.
    Bound,
}

/// The nodes that calls become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeKind {
    /// A moment and an INTERVAL, or a number of days.
    DateAdd,
    DateSubtract,
}

impl Function {
    /// The function of a name, whatever its case. `None` is error 1305.
    pub(crate) fn lookup(name: &str) -> Option<&'static Function> {
        BY_NAME.get(name.to_ascii_lowercase().as_str()).copied()
    }

    /// All functions, by category.
    pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
        CATEGORIES.iter().flat_map(|category| category.functions).copied()
    }

    /// The name and the aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The aggregate that a call is; `None` if it has one value for each row.
    pub(crate) fn aggregate(&self) -> Option<AggregateKind> {
        match self.body {
            Body::Aggregate(kind) => Some(kind),
            Body::Call { .. } | Body::Node(_) | Body::Window(_) | Body::Bound => None,
        }
    }

    /// The window function that a call is; `None` if it is none, or an aggregate.
    pub(crate) fn window(&self) -> Option<WindowKind> {
        match self.body {
            Body::Window(kind) => Some(kind),
            Body::Call { .. } | Body::Node(_) | Body::Aggregate(_) | Body::Bound => None,
        }
    }

    /// True if its arguments are numbers.
    pub(super) fn is_of_numbers(&'static self) -> bool {
        number::CATEGORY.functions.contains(&self)
    }

    /// True if all rows of one execution get the same value for the same arguments.
    pub(crate) fn is_fixed(&self) -> bool {
        match self.constancy {
            Constancy::Fixed | Constancy::ChangesSession => true,
            Constancy::Varies | Constancy::Visible => false,
        }
    }

    /// True if one call more or less with so many arguments can be seen.
    pub(crate) fn has_side_effects(&self, arguments: usize) -> bool {
        match self.constancy {
            Constancy::Fixed | Constancy::Varies => false,
            Constancy::ChangesSession => arguments > 0,
            Constancy::Visible => true,
        }
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Function {}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The functions by name and alias. The table is made at the first look-up. A statement whose plan is cached
/// does not look here.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    Function::all().flat_map(|function| function.names().map(move |name| (name, function))).collect()
});
