//! A value that prints as JSON and is read back from it.

mod parse;

use std::fmt::{self, Write};

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// Non-finite numbers print as `null`: JSON has none.
    Number(f64),
    Integer(u64),
    Text(String),
    List(Vec<Json>),
    /// In the order in which the fields were given.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
        Json::Object(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    pub(crate) fn list<T: Into<Json>>(values: impl IntoIterator<Item = T>) -> Json {
        Json::List(values.into_iter().map(Into::into).collect())
    }

    /// Adds a field to an object; anything else is left as it is.
    pub(crate) fn push(&mut self, name: &str, value: impl Into<Json>) {
        if let Json::Object(fields) = self {
            fields.push((name.to_string(), value.into()));
        }
    }

    /// Reads one value with nothing after it. Errors say what was expected and at which byte.
    pub(crate) fn parse(text: &str) -> Result<Json, String> {
        parse::document(text)
    }

    /// A field of an object. `None` if this is no object, or if there is no such field.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Json::Number(value) => Some(*value),
            Json::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    pub(crate) fn as_integer(&self) -> Option<u64> {
        match self {
            Json::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Json]> {
        match self {
            Json::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// Indented by two spaces; lists and objects of plain values stay on one line.
    pub(crate) fn to_pretty(&self) -> String {
        let mut out = String::new();
        self.pretty(0, &mut out);
        out.push('\n');
        out
    }

    fn pretty(&self, depth: usize, out: &mut String) {
        match self {
            Json::List(items) if items.iter().any(Json::is_nested) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    out.push_str(if position == 0 { "\n" } else { ",\n" });
                    indent(depth + 1, out);
                    item.pretty(depth + 1, out);
                }
                out.push('\n');
                indent(depth, out);
                out.push(']');
            }
            Json::Object(fields) if fields.iter().any(|(_, value)| value.is_nested()) => {
                out.push('{');
                for (position, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if position == 0 { "\n" } else { ",\n" });
                    indent(depth + 1, out);
                    write_text(name, out);
                    out.push_str(": ");
                    value.pretty(depth + 1, out);
                }
                out.push('\n');
                indent(depth, out);
                out.push('}');
            }
            plain => {
                let _ = write!(out, "{plain}");
            }
        }
    }

    fn is_nested(&self) -> bool {
        match self {
            Json::List(items) => !items.is_empty(),
            Json::Object(fields) => !fields.is_empty(),
            _ => false,
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Compact, on one line.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(value) if value.is_finite() => write!(f, "{value}"),
            Json::Number(_) => f.write_str("null"),
            Json::Integer(value) => write!(f, "{value}"),
            Json::Text(text) => {
                let mut out = String::with_capacity(text.len() + 2);
                write_text(text, &mut out);
                f.write_str(&out)
            }
            Json::List(items) => {
                f.write_char('[')?;
                for (position, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if position == 0 { "" } else { ", " })?;
                }
                f.write_char(']')
            }
            Json::Object(fields) => {
                f.write_char('{')?;
                for (position, (name, value)) in fields.iter().enumerate() {
                    let mut quoted = String::new();
                    write_text(name, &mut quoted);
                    write!(f, "{}{quoted}: {value}", if position == 0 { "" } else { ", " })?;
                }
                f.write_char('}')
            }
        }
    }
}

/// `<` is escaped too, so that a value can stand inside a `<script>` element.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '<' => out.push_str("\\u003c"),
            '\u{2028}' | '\u{2029}' | '\u{0}'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", character as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

macro_rules! from {
    ($($source:ty => $variant:ident as $target:ty),*) => {
        $(impl From<$source> for Json {
            fn from(value: $source) -> Json {
                Json::$variant(value as $target)
            }
        })*
    };
}
from!(f64 => Number as f64, u64 => Integer as u64, u32 => Integer as u64, usize => Integer as u64);

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Json {
        Json::Text(value.to_string())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Json {
        Json::Text(value)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

impl From<&[(String, String)]> for Json {
    fn from(pairs: &[(String, String)]) -> Json {
        Json::Object(pairs.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let value = Json::object([
            ("text", "a \"quote\", a \\, a\nline, \u{1} and </script> ü".into()),
            ("numbers", Json::list([1.5, -0.25, 1e300, 3.0])),
            ("whole", u64::MAX.into()),
            ("not a number", f64::NAN.into()),
            ("nested", Json::List(vec![Json::object([("on", true.into())]), Json::Null])),
            ("empty", Json::List(Vec::new())),
        ]);
        for printed in [value.to_string(), value.to_pretty()] {
            assert!(!printed.contains("</script>"));
            let read: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(read["text"], "a \"quote\", a \\, a\nline, \u{1} and </script> ü");
            assert_eq!(read["numbers"], serde_json::json!([1.5, -0.25, 1e300, 3]));
            assert_eq!(read["whole"], u64::MAX);
            assert!(read["not a number"].is_null());
            assert_eq!(read["nested"][0]["on"], true);
            let own = Json::parse(&printed).unwrap();
            assert_eq!(own.get("text"), value.get("text"));
            assert_eq!(own.get("whole"), Some(&Json::Integer(u64::MAX)));
            assert_eq!(own.get("numbers").unwrap().as_list().unwrap()[2].as_number(), Some(1e300));
            assert_eq!(own.get("not a number"), Some(&Json::Null));
            assert_eq!((own.get("nested"), own.get("empty")), (value.get("nested"), value.get("empty")));
        }
    }
}
