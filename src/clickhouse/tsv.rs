//! ClickHouse's TabSeparated format: the text of parameters, of rows sent and of rows received.
//!
//! Of the server's formats it is the one that carries any bytes unchanged, in which no line of a result can be
//! mistaken for an exception, and that parameters use too.

use memchr::memchr;

/// Appends a value.
pub(crate) fn escape_into(value: &str, out: &mut String) {
    let mut rest = value;
    // Between what is escaped, text is copied as it is: almost all of it.
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r' | 0)) {
        let (plain, from) = rest.split_at(at);
        let mut chars = from.chars();
        out.push_str(plain);
        out.push_str(match chars.next() {
            Some('\t') => r"\t",
            Some('\n') => r"\n",
            Some('\r') => r"\r",
            Some('\0') => r"\0",
            _ => r"\\",
        });
        rest = chars.as_str();
    }
    out.push_str(rest);
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
    let mut rest = field;
    while let Some((plain, escaped)) = memchr(b'\\', rest).and_then(|at| rest.split_at_checked(at)) {
        value.extend_from_slice(plain);
        let (byte, after) = match escaped {
            [_, b't', after @ ..] => (b'\t', after),
            [_, b'n', after @ ..] => (b'\n', after),
            [_, b'r', after @ ..] => (b'\r', after),
            [_, b'0', after @ ..] => (0, after),
            [_, b'b', after @ ..] => (8, after),
            [_, b'f', after @ ..] => (12, after),
            [_, other, after @ ..] => (*other, after),
            _ => (b'\\', &[][..]),
        };
        value.push(byte);
        rest = after;
    }
    value.extend_from_slice(rest);
    Some(value)
}

/// The parts of a text between its separators.
pub(crate) fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr(separator, text);
        rest = end.and_then(|end| text.get(end + 1..));
        text.get(..end.unwrap_or(text.len()))
    })
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
    fn parts_may_be_empty() {
        let parts = |text: &'static [u8]| split(text, b'\t').collect::<Vec<_>>();
        assert_eq!(parts(b""), [b""]);
        assert_eq!(parts(b"a\t\tbc\t"), [&b"a"[..], b"", b"bc", b""]);
    }

    #[test]
    fn what_the_server_escapes_besides() {
        assert_eq!(unescape(br"\N"), None);
        assert_eq!(unescape(br"\b\f\'").unwrap(), b"\x08\x0c'");
        assert_eq!(unescape(br"a\").unwrap(), br"a\");
    }
}
