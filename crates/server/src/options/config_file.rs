//! Configuration files in MySQL's ini form.
//!
//! ```ini
//! [mysqld]
//! key_buffer_size = 64M     # a comment
//! skip-name-resolve
//! ```
//!
//! Options of the groups `[mysqld]`, `[server]`, `[mariadb]` and `[latchwork]` are read. Other groups belong
//! to other programs and are skipped.

/// One option of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// Counted from 1.
    pub number: usize,
    pub name: String,
    pub value: Option<String>,
}

static GROUPS: [&str; 4] = ["mysqld", "server", "mariadb", "latchwork"];

/// The options of the groups above, in order. An error has the number of the line and what is wrong with it.
pub(crate) fn parse(text: &str) -> impl Iterator<Item = Result<Line, (usize, String)>> {
    // An option before the first group belongs to no program. That is a mistake, and it is reported.
    let mut group: Option<bool> = None;
    text.lines().enumerate().filter_map(move |(position, line)| {
        let number = position + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        if line.starts_with('!') {
            return Some(Err((number, "files that include others are not supported".to_string())));
        }
        if let Some(rest) = line.strip_prefix('[') {
            return match rest.split_once(']') {
                Some((name, _)) => {
                    group = Some(GROUPS.contains(&name.trim().to_ascii_lowercase().as_str()));
                    None
                }
                None => Some(Err((number, "a group's name must end in ']'".to_string()))),
            };
        }
        match group {
            Some(true) => {}
            Some(false) => return None,
            None => return Some(Err((number, "the option stands before any [group]".to_string()))),
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name, Some(unquote(value))),
            None => (line.split('#').next().unwrap_or_default(), None),
        };
        let name = name.trim().trim_start_matches("--");
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Some(Err((number, format!("'{line}' is not an option"))));
        }
        Some(Ok(Line { number, name: name.to_string(), value }))
    })
}

/// The value without its quotes, or without the comment behind it.
fn unquote(value: &str) -> String {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote)
            && let Some((inside, _)) = rest.split_once(quote)
        {
            return inside.to_string();
        }
    }
    value.split(" #").next().unwrap_or_default().split("\t#").next().unwrap_or_default().trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<(String, Option<String>)> {
        parse(text).map(|line| line.unwrap()).map(|line| (line.name, line.value)).collect()
    }

    #[test]
    fn our_groups_count_and_others_do_not() {
        let text = "# first\n[client]\nport=1\n[mysqld]\nport = 2\n; more\n[mysqldump]\nquick\n\
                    [Latchwork]\n--key_buffer_size=\"4 M\" # quoted\nskip-name-resolve # why\nsocket=/a#b\n";
        let some = |name: &str, value: &str| (name.to_string(), Some(value.to_string()));
        assert_eq!(
            options(text),
            [
                some("port", "2"),
                some("key_buffer_size", "4 M"),
                ("skip-name-resolve".to_string(), None),
                some("socket", "/a#b"),
            ]
        );
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, line) in
            [("port=1\n", 1), ("[mysqld]\n\n[oops\n", 3), ("[mysqld]\na b\n", 2), ("!include x\n", 1)]
        {
            let error = parse(text).find_map(Result::err).unwrap();
            assert_eq!(error.0, line, "{text:?}: {}", error.1);
        }
    }
}
