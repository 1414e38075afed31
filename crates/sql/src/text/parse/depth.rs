//! How deep the tree of a statement will be, from its tokens.
//!
//! The parser builds a chain of operators (`1 + 1 + ...`) in a loop, so its limit of recursion does not see
//! it. The tree is as deep as the chain is long, and whoever walks, prints or drops it needs stack for each
//! level. A statement that is too deep is refused here, before there is a tree.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What a level of AND or OR weighs: the binder walks these chains in a loop.
const LOGICAL: usize = 1;
/// What a level of any other operator weighs. The binder needs about a kilobyte of stack for it in a release
/// build.
const OPERATOR: usize = 8;
/// The deepest tree: 2,000 operators in a chain, or 16,000 ANDs. Threads that run statements have 8 MiB of
/// stack.
pub(super) const WEIGHT_MAX: usize = 16_000;

/// Between two parentheses, or between CASE and END.
#[derive(Default)]
struct Level {
    /// Of UNION, EXCEPT and INTERSECT.
    sets: usize,
    /// The heaviest expression that has ended.
    heaviest: usize,
    /// ANDs and ORs of the present expression, and its heaviest operand.
    logical: usize,
    operand_max: usize,
    /// Operators of the present operand, and the heaviest of what it has in parentheses.
    operators: usize,
    inner_max: usize,
    /// BETWEENs whose AND is still to come.
    betweens: usize,
}

impl Level {
    fn end_operand(&mut self) {
        self.operand_max = self.operand_max.max(self.operators + self.inner_max);
        (self.operators, self.inner_max) = (0, 0);
    }

    fn end_expression(&mut self) {
        self.end_operand();
        self.heaviest = self.heaviest.max(self.logical + self.operand_max);
        (self.logical, self.operand_max, self.betweens) = (0, 0, 0);
    }

    fn weight(&mut self) -> usize {
        self.end_expression();
        self.sets + self.heaviest
    }
}

/// True if the tree of these tokens is at most [`WEIGHT_MAX`] deep. The tokens are translated for the parser.
pub(super) fn is_bounded(tokens: &[TokenWithSpan]) -> bool {
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    let end = |level: &mut Level, outer: &mut Vec<Level>| {
        if let Some(mut around) = outer.pop() {
            around.inner_max = around.inner_max.max(level.weight() + OPERATOR);
            *level = around;
        }
    };
    for token in tokens {
        match &token.token {
            Token::Whitespace(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Period => {}
            Token::LParen => outer.push(std::mem::take(&mut level)),
            Token::RParen => end(&mut level, &mut outer),
            Token::Comma | Token::SemiColon => level.end_expression(),
            Token::Word(word) => match word.keyword {
                _ if word.quote_style.is_some() => {}
                Keyword::CASE => outer.push(std::mem::take(&mut level)),
                Keyword::END => end(&mut level, &mut outer),
                Keyword::BETWEEN => {
                    level.operators += OPERATOR;
                    level.betweens += 1;
                }
                Keyword::AND if level.betweens > 0 => level.betweens -= 1,
                Keyword::AND | Keyword::OR => {
                    level.end_operand();
                    level.logical += LOGICAL;
                }
                Keyword::XOR => {
                    level.end_operand();
                    level.logical += OPERATOR;
                }
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                    level.end_expression();
                    level.sets += OPERATOR;
                }
                Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::HAVING | Keyword::ON => {
                    level.end_expression();
                }
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::LIMIT | Keyword::BY => {
                    level.end_expression();
                }
                Keyword::IS
                | Keyword::NOT
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::RLIKE
                | Keyword::REGEXP
                | Keyword::DIV
                | Keyword::MOD
                | Keyword::COLLATE
                | Keyword::BINARY
                | Keyword::ESCAPE => level.operators += OPERATOR,
                _ => {}
            },
            // Every symbol that is left is an operator, or stands where few of them can.
            _ => level.operators += OPERATOR,
        }
        let within: usize = level.sets
            + level.heaviest.max(level.logical + level.operand_max.max(level.operators + level.inner_max));
        if within > WEIGHT_MAX {
            return false;
        }
    }
    while !outer.is_empty() {
        end(&mut level, &mut outer);
    }
    level.weight() <= WEIGHT_MAX
}

#[cfg(test)]
mod tests {
    use crate::ErrorKind;
    use crate::text::parse::{LexicalMode, parse};

    /// With the stack of a server's thread.
    fn kind(text: &str) -> Option<ErrorKind> {
        let parse = || parse(text, LexicalMode::NONE).err().map(|error| error.kind);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, parse);
            thread.unwrap().join().unwrap()
        })
    }

    /// Each of these is a chain whose tree is as deep as it is long.
    fn chains(length: usize) -> Vec<String> {
        let after = |first: &str, each: &str| format!("SELECT {first}{}", each.repeat(length));
        vec![
            after("1", "+1"),
            after("1", " - 1"),
            after("1", "*1"),
            after("1", " DIV 1"),
            after("1", "|1"),
            after("1", " XOR 1"),
            after("1", " = 1"),
            after("1", " IS NULL"),
            after("1", " COLLATE utf8mb4_bin"),
            after("1", " LIKE 1"),
            after("1", " BETWEEN 1 AND 1"),
            after("NOW()", " + INTERVAL 1 DAY"),
            after("1", " IN (1)"),
            after("(1)", "+(1)"),
            after("1", "+CASE WHEN 1 THEN 1 END"),
            after("1", " UNION ALL SELECT 1"),
            after("1", " AND 1+1 = 2 XOR 1"),
            format!("DELETE FROM t WHERE a = 1{}", " + 1".repeat(length)),
            format!("INSERT INTO t VALUES (1), (1{})", " + 1".repeat(length)),
        ]
    }

    #[test]
    fn chains_that_no_stack_holds_are_refused() {
        for text in chains(20_000) {
            assert_eq!(kind(&text), Some(ErrorKind::StackOverrun), "{}", &text[..40]);
        }
        let logical = format!("DELETE FROM t WHERE a = 1{}", " OR a = 1".repeat(40_000));
        assert_eq!(kind(&logical), Some(ErrorKind::StackOverrun));
    }

    #[test]
    fn wide_statements_are_not_deep() {
        let rows = format!("INSERT INTO t VALUES (1+1, 2*3){}", ", (1+1, 2*3)".repeat(20_000));
        let columns = format!("SELECT a+1{} FROM t", ", a+1".repeat(20_000));
        let list = format!("SELECT * FROM t WHERE a IN (1{})", ", -1".repeat(20_000));
        let alternatives = format!("SELECT * FROM t WHERE a = 1{}", " OR a = -1 AND b + 1 > 2".repeat(6_000));
        let branches = format!("SELECT CASE a {} END", "WHEN a + 1 THEN b * 2 ".repeat(5_000));
        let unions = format!("SELECT 1{}", " UNION ALL SELECT a + 1 FROM t".repeat(1_000));
        for text in chains(1_000).into_iter().chain([rows, columns, list, alternatives, branches, unions]) {
            assert_ne!(kind(&text), Some(ErrorKind::StackOverrun), "{}", &text[..40]);
        }
    }
}
