//! What counts as a state: a JSON object that means the same to every reader.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// How many arrays and objects may lie within each other. Readers commonly stop at 128, or soon after. It is the limit of
/// `serde_json`'s parser, which so bounds every function here that goes down into a text.
pub const DEEPEST: usize = 127;

/// Whether an object has members, for a text that is one as RFC 8259 defines it, with no member twice, no half of a
/// surrogate pair and at most [`DEEPEST`] levels: readers do not agree on what anything else means.
///
/// # Errors
/// Says what is wrong with the text, and where.
pub fn check_object(text: &str) -> Result<bool, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let members = Value.deserialize(&mut json).and_then(|members| json.end().map(|()| members));
    let members = members.map_err(|error| in_our_words(&error.to_string()))?;
    if text.trim_start().starts_with('{') { Ok(members > 0) } else { Err("it is not a JSON object".to_owned()) }
}

fn in_our_words(error: &str) -> String {
    error
        .replace("recursion limit exceeded", &format!("more than {DEEPEST} arrays and objects lie within each other"))
        // So it says when the first half of a surrogate pair stands alone.
        .replace("unexpected end of hex escape", "incomplete \\u escape or surrogate pair")
}

/// A value of any kind. It comes to the number of its members or elements.
///
/// A number that a machine's integer cannot hold comes as an object with one member, which holds its text.
#[derive(Clone, Copy)]
struct Value;

impl<'de> DeserializeSeed<'de> for Value {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_str<E>(self, _: &str) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while array.next_element_seed(self)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<usize, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = object.next_key_seed(Key)? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("the member {key:?} is there twice")));
            }
            object.next_value_seed(self)?;
            keys.insert(key);
        }
        Ok(keys.len())
    }
}

/// The name of a member, borrowed from the text where nothing in it is escaped.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, reason: &str) {
        let message = check_object(text).unwrap_err();
        assert!(message.contains(reason), "{text}: {message}");
    }

    #[test]
    fn members_are_counted() {
        for empty in ["{}", " { } \n", "\t{}\r\n"] {
            assert_eq!(check_object(empty), Ok(false), "{empty}");
        }
        for text in [r#"{"a": {}}"#, r#"{"": null}"#, r#"{"a": [1, -0.0, 1E400, 12345678901234567890123, 1.10]}"#] {
            assert_eq!(check_object(text), Ok(true), "{text}");
        }
        assert_eq!(check_object(r#"{"a": {"k": 1}, "b": {"k": 1}, "A": "\ud83e\udd80 \u00e9 é"}"#), Ok(true));
    }

    #[test]
    fn what_is_no_object() {
        refused("", "EOF");
        for text in ["[]", "[1]", "null", "\"x\"", "1", " 1.5e3", "true"] {
            refused(text, "not a JSON object");
        }
        for text in ["{} {}", "{\"a\": NaN}", "{\"a\": -Infinity}", "{\"a\": 1", "{a: 1}", "{'a': 1}", "{\"a\": 01}"] {
            refused(text, "line 1 column");
        }
        refused("{\"a\": \"line\nbreak\"}", "control character");
        refused("\u{feff}{}", "expected value");
    }

    #[test]
    fn what_readers_do_not_agree_on() {
        refused(r#"{"a": 1, "b": {"c": 1, "d": 2, "c": 3}}"#, r#"the member "c" is there twice at line 1"#);
        refused(r#"{"a": 1, "\u0061": 2}"#, r#"the member "a" is there twice"#);
        refused(r#"{"a": "\ud800"}"#, "surrogate");
        refused(r#"{"a": "\udc00x"}"#, "surrogate");
        refused(r#"{"\ud800": 1}"#, "surrogate");
    }

    #[test]
    fn levels() {
        let objects = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let arrays = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
        let mixed = |levels: usize| format!("{}{}", r#"{"a":["#.repeat(levels / 2), "]}".repeat(levels / 2));
        let numbers = |levels: usize| objects(levels).replace(r#""a""#, r#""$serde_json::private::Number""#);
        let empty =
            |levels: usize| format!("{}{}", r#"{"a":"#.repeat(levels), "}".repeat(levels)).replace(":}", ":{}}");
        assert_eq!(check_object(&objects(DEEPEST)), Ok(true));
        assert_eq!(check_object(&numbers(DEEPEST)), Ok(true));
        assert_eq!(check_object(&arrays(DEEPEST)), Ok(true));
        assert_eq!(check_object(&mixed(DEEPEST - 1)), Ok(true));
        assert_eq!(check_object(&objects(DEEPEST).replace('1', "1e400")), Ok(true));
        assert_eq!(check_object(&empty(DEEPEST - 1)), Ok(true));
        refused(&empty(DEEPEST), "more than 127");
        for levels in [DEEPEST + 1, 1_000_000] {
            refused(&objects(levels), "more than 127");
            refused(&numbers(levels), "more than 127");
            refused(&arrays(levels), "more than 127");
            refused(&mixed(levels), "more than 127");
        }
    }
}
