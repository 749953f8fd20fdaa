//! `$VAR` and `${VAR}` in the values of `meltano.yml`.

/// Replaces each `${NAME}` and `$NAME` with the variable's value, or with nothing if it is not set. As in Meltano, a
/// name without braces consists of capital letters, digits and underscores, a backslash before the `$` keeps the text
/// as it is (and goes away), and what was put in is not looked at again.
pub(super) fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, from_dollar) = rest.split_at(dollar);
        let Some((name, length)) = reference(from_dollar) else {
            expanded.push_str(before);
            expanded.push('$');
            rest = &from_dollar[1..];
            continue;
        };
        let (matched, after) = from_dollar.split_at(length);
        if let Some(before) = before.strip_suffix('\\') {
            expanded.push_str(before);
            expanded.push_str(matched);
        } else {
            expanded.push_str(before);
            expanded.push_str(&variable(name).unwrap_or_default());
        }
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}

/// The variable that a text beginning with `$` refers to, and how long the reference is.
fn reference(text: &str) -> Option<(&str, usize)> {
    let after_dollar = &text[1..];
    if let Some(inner) = after_dollar.strip_prefix('{') {
        let end = inner.find('}')?;
        let name = &inner[..end];
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        return is_name.then_some((name, end + "${}".len()));
    }
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let end = after_dollar.find(|c| !is_part(c)).unwrap_or(after_dollar.len());
    let name = &after_dollar[..end];
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some((name, end + "$".len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expanded: &str) {
        let variable = |name: &str| match name {
            "HOST" => Some("db.example".to_owned()),
            "lower" => Some("small".to_owned()),
            "NESTED" => Some("$HOST".to_owned()),
            _ => None,
        };
        assert_eq!(expand(text, variable), expanded, "{text}");
    }

    #[test]
    fn as_meltano_does() {
        check("", "");
        check("plain", "plain");
        check("$HOST", "db.example");
        check("${HOST}:8123", "db.example:8123");
        check("a$HOST/b${lower}c", "adb.example/bsmallc");
        check("$lower", "$lower");
        check("$UNSET.", ".");
        check("${UNSET}", "");
        check("\\$HOST \\${HOST}", "$HOST ${HOST}");
        check("$NESTED", "$HOST");
        check("pa$$word$", "pa$$word$");
        check("${no end", "${no end");
        check("${a-b}", "${a-b}");
        check("$1", "$1");
        check("$HOSTé", "db.exampleé");
    }
}
