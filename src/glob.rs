//! Patterns that select state ids: shell globs over the whole id, carried out by the server.

/// What selects the same ids on the server as the glob does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// What every selected id begins with; the primary key finds these.
    pub prefix: String,
    /// What the whole id has to match, in RE2's syntax; none if the prefix says it all.
    pub expression: Option<String>,
}

/// Translates a glob: `*` any text, `?` one character, `[abc]`, `[a-z]`, `[!a-z]` one character of a set; everything
/// else stands for itself, as does a `[` that no `]` follows. An empty pattern selects every id.
#[must_use]
pub fn translate(pattern: &str) -> Selection {
    let pattern = if pattern.is_empty() { "*" } else { pattern };
    let prefix: String = pattern.chars().take_while(|c| !"*?[".contains(*c)).collect();
    let rest = pattern.get(prefix.len()..).unwrap_or_default();
    if !rest.is_empty() && rest.chars().all(|c| c == '*') {
        return Selection { prefix, expression: None };
    }

    let mut expression = String::from(r"(?s)\A");
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => match set(rest.as_str()) {
                Some((class, after)) => {
                    expression.push_str(&class);
                    rest = after.chars();
                }
                None => literal(c, &mut expression),
            },
            c => literal(c, &mut expression),
        }
    }
    expression.push_str(r"\z");
    Selection { prefix, expression: Some(expression) }
}

/// The expression for the set that begins after its `[`, and what follows its `]`.
fn set(text: &str) -> Option<(String, &str)> {
    let (negated, body) = text.strip_prefix('!').map_or((false, text), |body| (true, body));
    // A `]` that comes first is a member, not the end.
    let first = body.chars().next()?;
    let (_, others) = body.split_at(first.len_utf8());
    let end = first.len_utf8() + others.find(']')?;
    let (members, after) = body.split_at(end);

    let mut ranges = String::new();
    let mut members = members.chars().peekable();
    while let Some(low) = members.next() {
        let mut ahead = members.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) => {
                members = ahead;
                high
            }
            _ => low,
        };
        if low <= high {
            literal(low, &mut ranges);
            ranges.push('-');
            literal(high, &mut ranges);
        }
    }
    let class = match (negated, ranges.is_empty()) {
        (false, false) => format!("[{ranges}]"),
        (true, false) => format!("[^{ranges}]"),
        // Every range is the wrong way round: nothing is in the set, and everything outside.
        (false, true) => r"[^\x{0}-\x{10FFFF}]".to_owned(),
        (true, true) => ".".to_owned(),
    };
    after.strip_prefix(']').map(|after| (class, after))
}

/// One character that stands for itself, also within brackets.
fn literal(c: char, expression: &mut String) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        expression.push(c);
    } else {
        expression.push_str(&format!(r"\x{{{:x}}}", u32::from(c)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, prefix: &str, expression: Option<&str>) {
        let expected = Selection { prefix: prefix.to_owned(), expression: expression.map(str::to_owned) };
        assert_eq!(translate(pattern), expected, "{pattern:?}");
    }

    #[test]
    fn a_prefix_needs_no_expression() {
        check("", "", None);
        check("*", "", None);
        check("dev:*", "dev:", None);
        check("dev:**", "dev:", None);
    }

    #[test]
    fn wildcards_sets_and_literals() {
        check("a?b", "a", Some(r"(?s)\Aa.b\z"));
        check("*b", "", Some(r"(?s)\A.*b\z"));
        check("a.b", "a.b", Some(r"(?s)\Aa\x{2e}b\z"));
        check("é_", "é_", Some(r"(?s)\Aé\x{5f}\z"));
        check("[a-c]x", "", Some(r"(?s)\A[a-c]x\z"));
        check("[!a-c]", "", Some(r"(?s)\A[^a-c]\z"));
        check("[]a]", "", Some(r"(?s)\A[\x{5d}-\x{5d}a-a]\z"));
        check("[a-]", "", Some(r"(?s)\A[a-a\x{2d}-\x{2d}]\z"));
        check("[\\]", "", Some(r"(?s)\A[\x{5c}-\x{5c}]\z"));
    }

    #[test]
    fn unusual_sets() {
        check("a[b", "a", Some(r"(?s)\Aa\x{5b}b\z"));
        check("[!", "", Some(r"(?s)\A\x{5b}\x{21}\z"));
        check("[]", "", Some(r"(?s)\A\x{5b}\x{5d}\z"));
        check("[z-a]", "", Some(r"(?s)\A[^\x{0}-\x{10FFFF}]\z"));
        check("[!z-a]", "", Some(r"(?s)\A.\z"));
    }
}
