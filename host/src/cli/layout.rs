//! White space in JSON text. Strings and numbers keep their characters, and members their order.

/// The text without white space between its tokens.
pub(super) fn compact(json: &str) -> String {
    tokens(json).collect()
}

/// The text with each member and each element on a line of its own.
pub(super) fn indented(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut tokens = tokens(json).peekable();
    while let Some(token) = tokens.next() {
        text.push_str(token);
        let next = tokens.peek().copied();
        match token {
            "{" | "[" if matches!(next, Some("}" | "]")) => continue,
            "{" | "[" => {
                depth += 1;
                new_line(depth, &mut text);
            }
            "," => new_line(depth, &mut text),
            ":" => text.push(' '),
            _ => {}
        }
        if matches!(next, Some("}" | "]")) {
            depth -= 1;
            new_line(depth, &mut text);
        }
    }
    text
}

fn new_line(depth: usize, text: &mut String) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

/// Brackets, commas, colons, strings and other values, of a text that is JSON.
fn tokens(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json.trim_ascii_start();
    std::iter::from_fn(move || {
        let end = match *rest.as_bytes().first()? {
            b'"' => string_end(rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => rest.find(|c: char| c.is_ascii_whitespace() || "{}[],:\"".contains(c)).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        rest = after.trim_ascii_start();
        Some(token)
    })
}

/// Where the string ends with which the text begins.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, compacted: &str, laid_out: &str) {
        assert_eq!(compact(json), compacted);
        assert_eq!(indented(json), laid_out);
        assert_eq!(indented(compacted), laid_out);
        assert_eq!(compact(laid_out), compacted);
    }

    #[test]
    fn white_space_alone_changes() {
        check("{}", "{}", "{}");
        check(" [ ] ", "[]", "[]");
        check("1.10", "1.10", "1.10");
        check(
            r#"{"b": 1E400, "a" :[1.10,{ },-0.0], "c":{"d":null}}"#,
            r#"{"b":1E400,"a":[1.10,{},-0.0],"c":{"d":null}}"#,
            "{\n  \"b\": 1E400,\n  \"a\": [\n    1.10,\n    {},\n    -0.0\n  ],\n  \"c\": {\n    \"d\": null\n  }\n}",
        );
    }

    #[test]
    fn strings_keep_what_looks_like_structure() {
        check(
            r#"{"a , b": "{ \" : \\", "\u00e9":"é\\\""}"#,
            r#"{"a , b":"{ \" : \\","\u00e9":"é\\\""}"#,
            "{\n  \"a , b\": \"{ \\\" : \\\\\",\n  \"\\u00e9\": \"é\\\\\\\"\"\n}",
        );
    }
}
