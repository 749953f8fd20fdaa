//! ClickHouse's TabSeparated format: the text of parameters, of rows sent and of rows received.
//!
//! Of the server's formats it is the one that carries any bytes unchanged, in which no line of a result can be
//! mistaken for an exception, and that parameters use too.

/// Appends a value.
pub(crate) fn escape_into(value: &str, out: &mut String) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '\t' => out.push_str(r"\t"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\0' => out.push_str(r"\0"),
            c => out.push(c),
        }
    }
}

/// Appends a value or NULL.
pub(crate) fn escape_nullable_into(value: Option<&str>, out: &mut String) {
    match value {
        Some(value) => escape_into(value, out),
        None => out.push_str(r"\N"),
    }
}

/// The value of a field, none for NULL.
pub(crate) fn unescape(field: &[u8]) -> Option<Vec<u8>> {
    if field == br"\N" {
        return None;
    }
    let mut value = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        value.push(match byte {
            b'\\' => match bytes.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b'0') => 0,
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, escaped: &str) {
        let mut out = String::new();
        escape_into(value, &mut out);
        assert_eq!(out, escaped);
        assert_eq!(unescape(escaped.as_bytes()).unwrap(), value.as_bytes());
    }

    #[test]
    fn values_come_back() {
        check("", "");
        check("a'b\"c`d", "a'b\"c`d");
        check("tab\tline\nreturn\rnull\0", r"tab\tline\nreturn\rnull\0");
        check(r"\N", r"\\N");
        check(r"\\", r"\\\\");
        check("é🦀", "é🦀");
    }

    #[test]
    fn what_the_server_escapes_besides() {
        assert_eq!(unescape(br"\N"), None);
        assert_eq!(unescape(br"\b\f\'").unwrap(), b"\x08\x0c'");
    }
}
