//! The block `state_backend` of `meltano.yml`.

use std::path::Path;

use yaml_serde::{Mapping, Value};

use super::error::SettingsError;
use super::names;

/// What the block begins with.
const BLOCK: &str = "state_backend";
/// Under this name every setting has to be known; elsewhere in the block other backends have theirs.
const OURS: &str = "state_backend.clickhouse.";

/// The settings in the text of a `meltano.yml`, by full name, values as they stand there.
///
/// # Errors
/// When the text is not YAML, or names a setting of this backend that does not exist or is not a single value.
pub(super) fn settings(text: &str, file: &Path) -> Result<Vec<(String, String)>, SettingsError> {
    if brackets_open_at_once(text) > MOST_BRACKETS {
        let reason = format!("more than {MOST_BRACKETS} brackets are open at once");
        return Err(SettingsError::unreadable(file, reason));
    }
    // An error's text names line and column and shows nothing of the file.
    let mut document: Value = yaml_serde::from_str(text).map_err(|error| SettingsError::unreadable(file, error))?;
    document.apply_merge().map_err(|error| SettingsError::unreadable(file, error))?;
    let mut found = Vec::new();
    if let Value::Mapping(document) = &document {
        for (key, value) in document {
            if let Some(key) = key.as_str().filter(|key| is_in_block(key)) {
                flatten(key, value, &mut found);
            }
        }
    }
    let mut settings = Vec::new();
    for (name, value) in found {
        let known = names::all().any(|known| known == name);
        match scalar(value) {
            _ if names::is_of_the_add_on(&name) => {}
            _ if !known && name.starts_with(OURS) => return Err(SettingsError::unknown(&name, Some(file))),
            _ if !known => {}
            Scalar::Text(text) => settings.push((name, text)),
            // `1.10` and digits beyond 64 bits are not read as they are written, which no duration minds.
            Scalar::Float(_) if !name.ends_with("_seconds") => {
                let file = file.to_owned();
                return Err(SettingsError::NeedsQuotes { name, file });
            }
            Scalar::Float(text) => settings.push((name, text)),
            Scalar::Null => {}
            Scalar::None => {
                let file = file.to_owned();
                return Err(SettingsError::NotAValue { name, file });
            }
        }
    }
    Ok(settings)
}

/// The parser takes a time that grows with their square before it finds that they are too many. In texts and comments there
/// may be brackets too, but not so many.
const MOST_BRACKETS: usize = 10_000;

fn brackets_open_at_once(text: &str) -> usize {
    let (_, most) = text.bytes().fold((0_usize, 0), |(open, most), byte| {
        let open = match byte {
            b'[' | b'{' => open + 1,
            b']' | b'}' => open.saturating_sub(1),
            _ => open,
        };
        (open, most.max(open))
    });
    most
}

fn is_in_block(key: &str) -> bool {
    key.strip_prefix(BLOCK).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Meltano reads `a: {b: 1}` and `a.b: 1` alike.
fn flatten<'a>(name: &str, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Mapping(mapping) if !mapping.is_empty() => flatten_mapping(name, mapping, found),
        value => found.push((name.to_owned(), value)),
    }
}

fn flatten_mapping<'a>(name: &str, mapping: &'a Mapping, found: &mut Vec<(String, &'a Value)>) {
    for (key, value) in mapping {
        let key = match scalar(key) {
            Scalar::Text(key) => key,
            Scalar::Float(_) | Scalar::Null | Scalar::None => continue,
        };
        flatten(&format!("{name}.{key}"), value, found);
    }
}

enum Scalar {
    Text(String),
    Float(String),
    Null,
    None,
}

fn scalar(value: &Value) -> Scalar {
    match value {
        Value::String(text) => Scalar::Text(text.clone()),
        Value::Bool(value) => Scalar::Text(value.to_string()),
        Value::Number(number) if number.is_f64() => Scalar::Float(number.to_string()),
        Value::Number(number) => Scalar::Text(number.to_string()),
        Value::Null => Scalar::Null,
        Value::Tagged(tagged) => scalar(&tagged.value),
        Value::Mapping(mapping) if mapping.is_empty() => Scalar::Null,
        Value::Mapping(_) | Value::Sequence(_) => Scalar::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
        settings(text, Path::new("meltano.yml"))
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(read(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn nested_and_dotted_keys_are_alike() {
        let expected = [
            ("state_backend.uri", "clickhouse://h/d"),
            ("state_backend.clickhouse.port", "8123"),
            ("state_backend.clickhouse.secure", "true"),
        ];
        check(
            "version: 1\nstate_backend:\n  uri: clickhouse://h/d\n  clickhouse:\n    port: 8123\n    secure: true\n",
            &expected,
        );
        check(
            "state_backend.uri: clickhouse://h/d\nstate_backend:\n  clickhouse.port: 8123\n  clickhouse:\n    secure: true\n",
            &expected,
        );
    }

    #[test]
    fn values_become_text() {
        check(
            "state_backend:\n  lock_retry_seconds: 0.5\n  clickhouse:\n    password: 12345\n    user: ~\n    host: ''\n    schema: \"a\\tb\"\n",
            &[
                ("state_backend.lock_retry_seconds", "0.5"),
                ("state_backend.clickhouse.password", "12345"),
                ("state_backend.clickhouse.host", ""),
                ("state_backend.clickhouse.schema", "a\tb"),
            ],
        );
    }

    #[test]
    fn digits_of_a_password_stay() {
        for password in ["0", "007", "1234567890123456789"] {
            let text = format!("state_backend.clickhouse.password: {password}");
            check(&text, &[("state_backend.clickhouse.password", password)]);
        }
    }

    #[test]
    fn anchors_and_merges() {
        check(
            "x: &server\n  host: h\nstate_backend:\n  clickhouse:\n    <<: *server\n    user: u\n",
            &[("state_backend.clickhouse.user", "u"), ("state_backend.clickhouse.host", "h")],
        );
    }

    #[test]
    fn what_belongs_to_others_is_ignored() {
        check("", &[]);
        check("state_backends: {uri: x}\nplugins: {extractors: [{name: a}]}", &[]);
        check("state_backend: {s3: {aws_access_key_id: x}, lock_timeout_seconds: 10}", &[]);
        check("state_backend:\n", &[]);
        check("state_backend: {clickhouse: {lock_per_run: true}}", &[]);
    }

    #[test]
    fn faults_are_named_without_values() {
        let error = read("state_backend: {clickhouse: {pasword: secret}}").unwrap_err();
        assert_eq!(error.to_string(), "meltano.yml sets \"state_backend.clickhouse.pasword\", which does not exist");
        let error = read("state_backend: {clickhouse: {host: [secret]}}").unwrap_err();
        assert_eq!(error.to_string(), "state_backend.clickhouse.host in meltano.yml is not a single value");
        let error = read("state_backend: {clickhouse: {password: 1.10}}").unwrap_err();
        assert_eq!(error.to_string(), "state_backend.clickhouse.password in meltano.yml has to stand in quotes");
        let error = read("state_backend: {clickhouse: {password: \"secret}}").unwrap_err().to_string();
        assert!(error.starts_with("meltano.yml cannot be read: ") && !error.contains("secret"), "{error}");
    }
}
