//! The keywords that a scanner must know to tell literals from syntax.

/// What may follow a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// A value: numbers and strings are literals, `-` is a sign.
    Value,
    /// Syntax of the keyword: a string there is not a value.
    Syntax,
    /// As after a name.
    Name,
}

#[derive(Clone, Copy)]
pub(super) struct Keyword {
    pub(super) after: After,
    /// IN.
    pub(super) starts_list: bool,
    /// BY: numbers that follow are positions.
    pub(super) by: bool,
    /// Ends an ORDER BY or GROUP BY.
    pub(super) ends_by: bool,
    /// Literals in parentheses behind it decide a type.
    pub(super) is_type: bool,
}

const VALUE: Keyword =
    Keyword { after: After::Value, starts_list: false, by: false, ends_by: false, is_type: false };
const SYNTAX: Keyword = Keyword { after: After::Syntax, ..VALUE };
const IN: Keyword = Keyword { starts_list: true, ..VALUE };
const BY: Keyword = Keyword { by: true, ..VALUE };
const ENDS_BY: Keyword = Keyword { ends_by: true, ..VALUE };
const TYPE: Keyword = Keyword { after: After::Name, is_type: true, ..VALUE };
/// DATE and similar words: a type, or, before a string, the beginning of a temporal literal.
const TEMPORAL: Keyword = Keyword { after: After::Syntax, is_type: true, ..VALUE };
const BINARY: Keyword = Keyword { after: After::Value, is_type: true, ..VALUE };

/// What the scanner must know about a word. `None` for a name.
#[inline]
pub(super) fn keyword(word: &[u8]) -> Option<Keyword> {
    let mut lower = [0; 11];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"in" => IN,
        b"by" => BY,
        b"limit" | b"having" | b"union" | b"procedure" | b"for" | b"into" | b"except" | b"intersect" => {
            ENDS_BY
        }
        b"as" | b"collate" | b"separator" | b"escape" | b"charset" | b"using" => SYNTAX,
        b"date" | b"time" | b"timestamp" | b"datetime" => TEMPORAL,
        b"decimal" | b"dec" | b"numeric" | b"char" | b"character" | b"nchar" | b"varchar" | b"varbinary"
        | b"float" | b"double" | b"signed" | b"unsigned" => TYPE,
        // Its result is of the kind that its format names.
        b"str_to_date" => TYPE,
        b"binary" => BINARY,
        b"select" | b"where" | b"and" | b"or" | b"not" | b"xor" | b"between" | b"like" | b"on" | b"when"
        | b"then" | b"else" | b"case" | b"set" | b"values" | b"value" | b"distinct" | b"all" | b"div"
        | b"mod" | b"is" | b"regexp" | b"rlike" | b"offset" | b"interval" | b"any" | b"some" | b"exists"
        | b"return" | b"if" | b"leading" | b"trailing" | b"both" | b"from" => VALUE,
        _ => return None,
    })
}
