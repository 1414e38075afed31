//! Functions of JSON texts. As in MariaDB, JSON is a text: a part that is taken out of one keeps its
//! spelling. Texts are read event by event, and values in them are parts of the text.

mod change;
mod combine;
mod common;
mod path;
mod read;
mod scanner;
mod writing;

pub(in crate::expr) use common::push_as_json;
pub(in crate::expr) use writing::push_string;

use super::MANY;
use super::typing::Typing;
use crate::SqlError;
use crate::expr::result_type::{Derivation, Meaning, Typed};
use change::Mode;
use types::Collation;
use writing::Layout;

functions! {
    "JSON Functions";

    JSON_VALID {
        name: "json_valid",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: truth,
        evaluate: read::valid,
        help: "Gives 1 if a text is JSON, and 0 if it is not.",
        example: "JSON_VALID('[1, 2]')" => "1",
    }
    JSON_EXTRACT {
        name: "json_extract",
        arguments: "text, path, ...",
        arity: 2..=MANY,
        collation: First,
        typing: |t| {
            let (chars, paths) = (t.chars(0).saturating_mul(2), t.types.len() as u32 - 1);
            Ok(json(t, if paths == 1 { chars } else { chars.saturating_add(2).saturating_mul(paths) }))
        },
        evaluate: read::extract,
        help: "Gives the value at a path of a JSON text. The values of several paths, or of one with wildcards, come \
               as an array. `column -> path` is the same.",
        example: "JSON_EXTRACT('{\"a\": [1, 2]}', '$.a[1]')" => "2",
    }
    JSON_UNQUOTE {
        name: "json_unquote",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: |t| Ok(string(t, t.chars(0))),
        evaluate: read::unquote,
        help: "Gives the characters of a JSON string. Another text comes as it is.",
        example: "JSON_UNQUOTE('\"a\\\\u0062\"')" => "ab",
    }
    JSON_QUOTE {
        name: "json_quote",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: |t| Ok(string(t, t.chars(0).saturating_mul(12).saturating_add(2))),
        evaluate: read::quote,
        help: "Gives a text as a JSON string. Gives NULL for a number.",
        example: "JSON_QUOTE('a\"b')" => "\"a\\\"b\"",
    }
    JSON_VALUE {
        name: "json_value",
        arguments: "text, path",
        arity: 2..=2,
        collation: First,
        typing: |t| Ok(t.text(t.chars(0), true)),
        evaluate: read::scalar,
        help: "Gives the scalar at a path of a JSON text, a string without its quotes.",
        example: "JSON_VALUE('{\"a\": \"b\"}', '$.a')" => "b",
    }
    JSON_QUERY {
        name: "json_query",
        arguments: "text, path",
        arity: 2..=2,
        collation: First,
        typing: |t| Ok(json(t, t.chars(0))),
        evaluate: read::container,
        help: "Gives the array or object at a path of a JSON text.",
        example: "JSON_QUERY('{\"a\": [1]}', '$.a')" => "[1]",
    }
    JSON_EXISTS {
        name: "json_exists",
        arguments: "text, path",
        arity: 2..=2,
        collation: First,
        typing: truth,
        evaluate: read::exists,
        help: "Gives 1 if a JSON text has a value at a path.",
        example: "JSON_EXISTS('{\"a\": 1}', '$.b')" => "0",
    }
    JSON_OBJECT {
        name: "json_object",
        arguments: "[key, value], ...",
        arity: 0..=MANY,
        typing: |t| match t.types.len() % 2 {
            0 => Ok(json(t, values_chars(t))),
            _ => Err(SqlError::wrong_parameter_count(t.name)),
        },
        evaluate: read::object,
        help: "Makes a JSON object of keys and values.",
        example: "JSON_OBJECT('a', 1, 'b', NULL)" => "{\"a\": 1, \"b\": null}",
    }
    JSON_ARRAY {
        name: "json_array",
        arguments: "[value], ...",
        arity: 0..=MANY,
        typing: |t| Ok(json(t, values_chars(t))),
        evaluate: read::array,
        help: "Makes a JSON array of values.",
        example: "JSON_ARRAY(1, 'a', TRUE)" => "[1, \"a\", true]",
    }
    JSON_CONTAINS {
        name: "json_contains",
        arguments: "text, candidate[, path]",
        arity: 2..=3,
        collation: First,
        typing: truth,
        evaluate: combine::contains,
        help: "Gives 1 if a JSON text, or its value at a path, has all that the candidate has.",
        example: "JSON_CONTAINS('[1, 2, 3]', '[3, 1]')" => "1",
    }
    JSON_CONTAINS_PATH {
        name: "json_contains_path",
        arguments: "text, one_or_all, path, ...",
        arity: 3..=MANY,
        collation: First,
        typing: truth,
        evaluate: read::contains_path,
        help: "Gives 1 if a JSON text has a value at one of the paths, or with 'all' at all of them.",
        example: "JSON_CONTAINS_PATH('{\"a\": 1}', 'one', '$.a', '$.b')" => "1",
    }
    JSON_LENGTH {
        name: "json_length",
        arguments: "text[, path]",
        arity: 1..=2,
        collation: First,
        typing: count,
        evaluate: read::length,
        help: "Counts the items of an array or the members of an object. A scalar counts as 1.",
        example: "JSON_LENGTH('[1, [2, 3]]')" => "2",
    }
    JSON_DEPTH {
        name: "json_depth",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: count,
        evaluate: read::depth,
        help: "Gives how deep the values of a JSON text are nested: 1 for a scalar.",
        example: "JSON_DEPTH('[[1]]')" => "3",
    }
    JSON_TYPE {
        name: "json_type",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: |t| Ok(t.system(12, true).with_derivation(Derivation::Coercible)),
        evaluate: read::kind,
        help: "Names the type of a JSON text: OBJECT, ARRAY, STRING, INTEGER, DOUBLE, BOOLEAN or NULL.",
        example: "JSON_TYPE('[1]')" => "ARRAY",
    }
    JSON_KEYS {
        name: "json_keys",
        arguments: "text[, path]",
        arity: 1..=2,
        collation: First,
        typing: |t| Ok(t.text(t.chars(0), true)),
        evaluate: read::keys,
        help: "Gives the keys of a JSON object as an array.",
        example: "JSON_KEYS('{\"a\": 1, \"b\": 2}')" => "[\"a\", \"b\"]",
    }
    JSON_SEARCH {
        name: "json_search",
        arguments: "text, one_or_all, pattern[, escape][, path], ...",
        arity: 3..=MANY,
        collation: First,
        typing: |t| Ok(json(t, t.chars(0).saturating_mul(t.chars(0)))),
        evaluate: read::search,
        help: "Gives the path to the first scalar that is LIKE a pattern, or with 'all' the paths to all of them.",
        example: "JSON_SEARCH('[\"a\", \"b\"]', 'one', 'b')" => "\"$[1]\"",
    }
    JSON_SET {
        name: "json_set",
        arguments: "text, path, value, ...",
        arity: 3..=MANY,
        collation: First,
        typing: |t| changed(t, |_| 11),
        evaluate: |a| change::set(a, Mode { replaces: true, inserts: true }),
        help: "Puts values at paths of a JSON text, whether there is a value before or not.",
        example: "JSON_SET('{\"a\": 1}', '$.a', 2, '$.b', 3)" => "{\"a\": 2, \"b\": 3}",
    }
    JSON_INSERT {
        name: "json_insert",
        arguments: "text, path, value, ...",
        arity: 3..=MANY,
        collation: First,
        typing: |t| changed(t, |_| 11),
        evaluate: |a| change::set(a, Mode { replaces: false, inserts: true }),
        help: "Puts values at those paths of a JSON text where there is none.",
        example: "JSON_INSERT('{\"a\": 1}', '$.a', 2, '$.b', 3)" => "{\"a\": 1, \"b\": 3}",
    }
    JSON_REPLACE {
        name: "json_replace",
        arguments: "text, path, value, ...",
        arity: 3..=MANY,
        collation: First,
        typing: |t| changed(t, |_| 11),
        evaluate: |a| change::set(a, Mode { replaces: true, inserts: false }),
        help: "Puts values at those paths of a JSON text where there is one.",
        example: "JSON_REPLACE('{\"a\": 1}', '$.a', 2, '$.b', 3)" => "{\"a\": 2}",
    }
    JSON_REMOVE {
        name: "json_remove",
        arguments: "text, path, ...",
        arity: 2..=MANY,
        collation: First,
        typing: |t| Ok(json(t, t.chars(0))),
        evaluate: change::remove,
        help: "Removes the values at paths of a JSON text.",
        example: "JSON_REMOVE('[1, 2, 3]', '$[1]')" => "[1, 3]",
    }
    JSON_ARRAY_APPEND {
        name: "json_array_append",
        arguments: "text, path, value, ...",
        arity: 3..=MANY,
        collation: First,
        typing: |t| changed(t, |value| value.chars().saturating_add(4)),
        evaluate: change::array_append,
        help: "Appends values to the arrays at paths of a JSON text. Another value there becomes an array.",
        example: "JSON_ARRAY_APPEND('[1, [2]]', '$[1]', 3)" => "[1, [2, 3]]",
    }
    JSON_ARRAY_INSERT {
        name: "json_array_insert",
        arguments: "text, path, value, ...",
        arity: 3..=MANY,
        collation: First,
        typing: |t| changed(t, |value| value.chars().saturating_add(4)),
        evaluate: change::array_insert,
        help: "Inserts values into arrays before the items at paths.",
        example: "JSON_ARRAY_INSERT('[1, 2]', '$[1]', 3)" => "[1, 3, 2]",
    }
    JSON_MERGE_PRESERVE {
        name: "json_merge_preserve",
        aliases: ["json_merge"],
        arguments: "text, text, ...",
        arity: 2..=MANY,
        typing: |t| Ok(json(t, values_chars(t))),
        evaluate: combine::merge_preserve,
        help: "Joins JSON texts: members of objects come together, and all other values make an array.",
        example: "JSON_MERGE_PRESERVE('{\"a\": 1}', '{\"a\": 2}')" => "{\"a\": [1, 2]}",
    }
    JSON_MERGE_PATCH {
        name: "json_merge_patch",
        arguments: "text, text, ...",
        arity: 2..=MANY,
        typing: |t| Ok(json(t, values_chars(t))),
        evaluate: combine::merge_patch,
        help: "Patches a JSON text with others as RFC 7396 says: a member that is null in the patch is removed.",
        example: "JSON_MERGE_PATCH('{\"a\": 1, \"b\": 2}', '{\"a\": null}')" => "{\"b\": 2}",
    }
    JSON_COMPACT {
        name: "json_compact",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: |t| Ok(without_decimals(json(t, t.chars(0)))),
        evaluate: |a| read::formatted(a, Layout::Compact),
        help: "Gives a JSON text without blanks.",
        example: "JSON_COMPACT('[1, {\"a\": 2}]')" => "[1,{\"a\":2}]",
    }
    JSON_LOOSE {
        name: "json_loose",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: |t| Ok(without_decimals(json(t, t.chars(0).saturating_mul(2)))),
        evaluate: |a| read::formatted(a, Layout::Loose),
        help: "Gives a JSON text with a blank behind each comma and colon.",
        example: "JSON_LOOSE('[1,{\"a\":2}]')" => "[1, {\"a\": 2}]",
    }
    JSON_DETAILED {
        name: "json_detailed",
        aliases: ["json_pretty"],
        arguments: "text[, indent]",
        arity: 1..=2,
        collation: First,
        typing: |t| Ok(without_decimals(json(t, super::typing::CHARS_MAX + 1))),
        evaluate: read::detailed,
        help: "Gives a JSON text with a line for each value.",
        example: "JSON_DETAILED('{\"a\":1}', 1)" => "{\n \"a\": 1\n}",
    }
    JSON_NORMALIZE {
        name: "json_normalize",
        arguments: "text",
        arity: 1..=1,
        collation: First,
        typing: |t| Ok(json(t, t.chars(0).saturating_mul(5))),
        evaluate: combine::normalize,
        help: "Gives a JSON text in a form that is the same for all equal values: without blanks, with its keys sorted.",
        example: "JSON_NORMALIZE('{\"b\": \"x\", \"a\": 10}')" => "{\"a\":1.0E1,\"b\":\"x\"}",
    }
    JSON_EQUALS {
        name: "json_equals",
        arguments: "text, text",
        arity: 2..=2,
        collation: First,
        typing: truth,
        evaluate: combine::equals,
        help: "Gives 1 if two JSON texts are the same value, whatever the order of keys.",
        example: "JSON_EQUALS('{\"a\": 1, \"b\": 2}', '{\"b\": 2.0, \"a\": 1}')" => "1",
    }
    JSON_OVERLAPS {
        name: "json_overlaps",
        arguments: "text, text",
        arity: 2..=2,
        collation: First,
        typing: truth,
        evaluate: combine::overlaps,
        help: "Gives 1 if two JSON texts have an item or a member in common.",
        example: "JSON_OVERLAPS('[1, 2]', '[2, 3]')" => "1",
    }
}

/// 1, 0 or NULL.
fn truth(_: &mut Typing<'_>) -> Result<Typed, SqlError> {
    Ok(Typed::boolean(true))
}

/// A number of values.
fn count(_: &mut Typing<'_>) -> Result<Typed, SqlError> {
    Ok(Typed::int(4, false, true).with_display(10))
}

/// A JSON text.
fn json(t: &Typing<'_>, chars: u32) -> Typed {
    let typed = t.text(chars.min(super::typing::CHARS_MAX), true);
    Typed { meaning: Meaning::Json, ..typed }
}

/// A text of characters. Bytes are taken for such.
fn string(t: &Typing<'_>, chars: u32) -> Typed {
    match t.collation {
        Collation::Binary => Typed::text(chars, Collation::Utf8mb4Bin, true),
        _ => t.text(chars, true),
    }
}

/// As MariaDB describes texts in another layout.
fn without_decimals(mut typed: Typed) -> Typed {
    typed.result.decimals = 0;
    typed
}

/// The length of values in a new text. As in MariaDB, a text has room for escapes.
fn values_chars(t: &Typing<'_>) -> u32 {
    if t.types.is_empty() {
        return 0;
    }
    t.types.iter().fold(2u32, |sum, typed| {
        let chars = match typed.meaning {
            Meaning::Boolean => 5,
            Meaning::Json => typed.chars(),
            Meaning::Plain | Meaning::InUtc if typed.class.is_numeric() => typed.chars(),
            Meaning::Plain | Meaning::InUtc => typed.chars().saturating_mul(2),
        };
        sum.saturating_add(chars.max(4)).saturating_add(4)
    })
}

/// A text in which values at paths were changed: with so many characters more for each.
fn changed(t: &Typing<'_>, more: fn(&Typed) -> u32) -> Result<Typed, SqlError> {
    if t.types.len().is_multiple_of(2) {
        return Err(SqlError::wrong_parameter_count(t.name));
    }
    let values = t.types.iter().skip(2).step_by(2);
    Ok(json(t, values.fold(t.chars(0), |sum, value| sum.saturating_add(more(value)))))
}
