//! The file `.env`, read as Meltano reads it.
//!
//! Meltano uses python-dotenv, whose syntax differs from that of the Rust libraries where it matters here: a `$` in a
//! password stays (only `${NAME}` is replaced), an unquoted value may hold spaces and quotes, and a line that cannot be
//! read is skipped instead of refusing the file. So this follows python-dotenv's grammar.

use std::collections::HashMap;

/// The variables that a `.env` file sets. `environment` answers `${NAME}` for names that the file does not set above.
pub(super) fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> HashMap<String, String> {
    let mut variables = HashMap::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    while !rest.is_empty() {
        let (line, after) = line(rest).unwrap_or_else(|unreadable| (Line::Comment, after_line(unreadable)));
        match line {
            Line::Assignment(name, value) => {
                let lookup = |name: &str| variables.get(name).cloned().or_else(|| environment(name));
                let value = interpolate(&value, lookup);
                variables.insert(name.to_owned(), value);
            }
            Line::Name(name) => drop(variables.remove(name)),
            Line::Comment => {}
        }
        rest = after.trim_start();
    }
    variables
}

enum Line<'a> {
    Assignment(&'a str, String),
    /// A name without `=`, which takes back what was assigned above.
    Name(&'a str),
    Comment,
}

/// What a line says and what comes after it, or from where on it cannot be read.
fn line(text: &str) -> Result<(Line<'_>, &str), &str> {
    let text = match text.strip_prefix("export") {
        Some(after) if after.starts_with(is_blank) => after.trim_start_matches(is_blank),
        _ => text,
    };
    if text.starts_with('#') {
        return Ok((Line::Comment, end_of_line(text)?));
    }
    let (name, rest) = match text.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'').ok_or(text)?,
        None => {
            let end = text.find(|c: char| c == '=' || c == '#' || c.is_whitespace()).unwrap_or(text.len());
            text.split_at(end)
        }
    };
    if name.is_empty() {
        return Err(text);
    }
    let rest = rest.trim_start_matches(is_blank);
    match rest.strip_prefix('=') {
        None => Ok((Line::Name(name), end_of_line(rest)?)),
        Some(rest) => {
            let (value, rest) = value(rest)?;
            Ok((Line::Assignment(name, value), end_of_line(rest)?))
        }
    }
}

/// The value after the `=`, and what comes after it.
fn value(text: &str) -> Result<(String, &str), &str> {
    let trimmed = text.trim_start_matches(is_blank);
    let (quote, escapes) = match trimmed.chars().next() {
        Some('\'') => ('\'', "\\'"),
        Some('"') => ('"', "\\'\"abfnrtv"),
        _ => {
            let rest = after_line(text);
            let line = &text[..text.len() - rest.len()];
            return Ok((without_comment(line).trim().to_owned(), rest));
        }
    };
    let (raw, rest) = quoted(&trimmed[1..], quote).ok_or(trimmed)?;
    Ok((unescape(raw, escapes), rest))
}

/// The text up to the closing quote. A backslash takes the character after it along.
fn quoted(text: &str, quote: char) -> Option<(&str, &str)> {
    let mut characters = text.char_indices();
    while let Some((position, c)) = characters.next() {
        if c == quote {
            return Some((&text[..position], &text[position + 1..]));
        }
        if c == '\\' {
            characters.next();
        }
    }
    None
}

fn unescape(raw: &str, escapes: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars().peekable();
    while let Some(c) = characters.next() {
        let escaped = characters.peek().copied().filter(|next| c == '\\' && escapes.contains(*next));
        let Some(escaped) = escaped else {
            text.push(c);
            continue;
        };
        characters.next();
        text.push(match escaped {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            itself => itself,
        });
    }
    text
}

/// A comment in an unquoted value begins with a `#` after white space.
fn without_comment(line: &str) -> &str {
    let mut after_space = false;
    for (position, c) in line.char_indices() {
        if c == '#' && after_space {
            return &line[..position];
        }
        after_space = c.is_whitespace();
    }
    line
}

/// Skips blanks and a comment; nothing else may follow on the line.
fn end_of_line(text: &str) -> Result<&str, &str> {
    let rest = text.trim_start_matches(is_blank);
    let rest = rest.strip_prefix('#').map_or(rest, after_line);
    if rest.is_empty() || rest.starts_with(['\r', '\n']) { Ok(rest) } else { Err(rest) }
}

/// From the end of the line on.
fn after_line(text: &str) -> &str {
    &text[text.find(['\r', '\n']).unwrap_or(text.len())..]
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() && c != '\r' && c != '\n'
}

/// Replaces `${NAME}` and `${NAME:-default}`.
fn interpolate(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        result.push_str(before);
        if let Some((name, default, after)) = reference(after) {
            result.push_str(&variable(name).unwrap_or_else(|| default.to_owned()));
            rest = after;
        } else {
            result.push_str("${");
            rest = after;
        }
    }
    result.push_str(rest);
    result
}

/// Name, default and what comes after the reference whose `${` stands before `text`.
fn reference(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_at(text.find([':', '}'])?);
    match rest.strip_prefix(":-") {
        Some(rest) => rest.split_once('}').map(|(default, after)| (name, default, after)),
        None => rest.strip_prefix('}').map(|after| (name, "", after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let environment = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let expected: HashMap<_, _> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(parse(text, environment), expected, "{text:?}");
    }

    #[test]
    fn as_python_dotenv_does() {
        check("", &[]);
        check("A=1\nB = 2 \n\n# comment\nexport C=3 # comment", &[("A", "1"), ("B", "2"), ("C", "3")]);
        check("A= #1\nB=#1", &[("A", ""), ("B", "#1")]);
        check("A=a b \"c\"\r\nB=x#y", &[("A", "a b \"c\""), ("B", "x#y")]);
        check("A='a $b ${HOME} \\' \\n' # c", &[("A", "a $b /home/me ' \\n")]);
        check("A=\"two\\nlines\nthree \\\" \\x\"", &[("A", "two\nlines\nthree \" \\x")]);
        check("A=pa$word$\nB=${A}!${HOME}${NONE}${NONE:-d}", &[("A", "pa$word$"), ("B", "pa$word$!/home/med")]);
        check("A\nB=\n'C'=1\nC2", &[("B", ""), ("C", "1")]);
        check("A=\"open\nB=2", &[("B", "2")]);
        check("A='x' y\nB=2", &[("B", "2")]);
        check("=1\nB=2", &[("B", "2")]);
        check("A=1\nA=2", &[("A", "2")]);
        check("\u{feff}A=1", &[("A", "1")]);
        check("exporter=1", &[("exporter", "1")]);
        check("A=${open", &[("A", "${open")]);
    }
}
