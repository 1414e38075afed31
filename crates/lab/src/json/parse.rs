//! Reads JSON (RFC 8259), by recursive descent.

use super::Json;

/// How deep lists and objects may be nested. The lab writes no file that nests deeper, and reading one could
/// overflow the stack.
const DEPTH_MAX: u32 = 64;

pub(crate) fn document(text: &str) -> Result<Json, String> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.space();
    if parser.at < text.len() { Err(parser.expected("the end")) } else { Ok(value) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn value(&mut self, depth: u32) -> Result<Json, String> {
        self.space();
        match self.peek() {
            Some(b'{' | b'[') if depth == DEPTH_MAX => Err(format!("nested too deep at byte {}", self.at)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: u32) -> Result<Json, String> {
        let mut fields = Vec::new();
        self.at += 1;
        while !self.closes(b'}', fields.is_empty())? {
            let name = self.text()?;
            self.space();
            self.take(b':', "a colon")?;
            fields.push((name, self.value(depth + 1)?));
        }
        Ok(Json::Object(fields))
    }

    fn list(&mut self, depth: u32) -> Result<Json, String> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.closes(b']', items.is_empty())? {
            items.push(self.value(depth + 1)?);
        }
        Ok(Json::List(items))
    }

    /// Takes the closing bracket, or the comma before another element. After a comma the position is at that
    /// element.
    fn closes(&mut self, bracket: u8, first: bool) -> Result<bool, String> {
        self.space();
        if self.peek() == Some(bracket) {
            self.at += 1;
            return Ok(true);
        }
        if !first {
            self.take(b',', "a comma or a closing bracket")?;
            self.space();
        }
        Ok(false)
    }

    fn text(&mut self) -> Result<String, String> {
        self.take(b'"', "a string")?;
        let mut value = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|letter: char| letter == '"' || letter == '\\' || letter < ' ');
            let plain = plain.ok_or_else(|| self.expected("the end of a string"))?;
            value.push_str(&rest[..plain]);
            self.at += plain;
            match rest.as_bytes()[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(value);
                }
                b'\\' => value.push(self.escaped()?),
                _ => return Err(self.expected("an escape instead of a control character")),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, String> {
        self.at += 1;
        let letter = self.peek().ok_or_else(|| self.expected("an escape"))?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let first = self.hexadecimal()?;
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first).ok_or_else(|| self.expected("a character"));
                }
                self.take(b'\\', "the second half of a pair")?;
                self.take(b'u', "the second half of a pair")?;
                let second = self.hexadecimal()?;
                let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
                let whole = low.and_then(|low| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low));
                whole.ok_or_else(|| self.expected("the second half of a pair"))?
            }
            _ => return Err(self.expected("an escape")),
        })
    }

    fn hexadecimal(&mut self) -> Result<u32, String> {
        let digits =
            self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.ok_or_else(|| self.expected("four hexadecimal digits"))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|error| error.to_string())
    }

    /// Whole numbers that fit stay whole. What `f64` reads beyond JSON (`1.`, `01`) is read here too.
    fn number(&mut self) -> Result<Json, String> {
        let rest = &self.text[self.at..];
        let end = rest.find(|letter: char| !matches!(letter, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let digits = &rest[..end.unwrap_or(rest.len())];
        let value = match digits.parse::<u64>() {
            Ok(whole) => Json::Integer(whole),
            Err(_) => Json::Number(digits.parse().map_err(|_| self.expected("a number"))?),
        };
        self.at += digits.len();
        Ok(value)
    }

    fn word(&mut self) -> Result<Json, String> {
        let words = [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
        let known = words.into_iter().find(|(word, _)| self.text[self.at..].starts_with(word));
        let (word, value) = known.ok_or_else(|| self.expected("a value"))?;
        self.at += word.len();
        Ok(value)
    }

    fn take(&mut self, byte: u8, what: &str) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, what: &str) -> String {
        format!("expected {what} at byte {}", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_write_is_read() {
        let text = r#" {"a": [1, -2.5e3, "\ud83d\ude00 \u00fc\/\b", {}, []], "b": {"c": null}} "#;
        let expected = Json::object([
            (
                "a",
                Json::List(vec![
                    Json::Integer(1),
                    Json::Number(-2_500.0),
                    "\u{1f600} \u{fc}/\u{8}".into(),
                    Json::Object(Vec::new()),
                    Json::List(Vec::new()),
                ]),
            ),
            ("b", Json::object([("c", Json::Null)])),
        ]);
        assert_eq!(document(text), Ok(expected));
    }

    #[test]
    fn what_is_broken_is_refused_with_its_place() {
        for (text, told) in [
            ("", "a value at byte 0"),
            ("[1 2]", "a comma or a closing bracket at byte 3"),
            ("[1,]", "a value at byte 3"),
            ("{\"a\" 1}", "a colon at byte 5"),
            ("{a: 1}", "a string at byte 1"),
            ("\"open", "the end of a string"),
            ("\"\\ud83d\"", "the second half of a pair"),
            ("\"\\ud83d\\u0041\"", "the second half of a pair"),
            ("\"\\ü\"", "an escape"),
            ("\"\\uü000\"", "four hexadecimal digits"),
            ("1-2", "a number"),
            ("true false", "the end at byte 5"),
        ] {
            assert!(document(text).unwrap_err().contains(told), "{text}: {:?}", document(text));
        }
        assert!(document(&"[".repeat(1_000_000)).unwrap_err().contains("nested too deep"));
    }
}
