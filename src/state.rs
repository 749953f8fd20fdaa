//! States: what they consist of, what counts as a state, how two of them merge.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What one pipeline has reached. Each part is the text of a JSON object, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Which pipeline.
    pub state_id: String,
    /// What a run that has not finished has reached.
    pub partial_state: Option<String>,
    /// What the last run that finished has reached.
    pub completed_state: Option<String>,
}

/// The deepest level at which two objects are merged. serde_json's own limit for nested values is the same.
const DEEPEST_MERGE: usize = 128;

/// Whether `text` is a JSON object, and whether it has members.
///
/// # Errors
/// Says where `text` stops being a JSON object.
pub fn has_members(text: &str) -> Result<bool, serde_json::Error> {
    serde_json::from_str::<Object>(text).map(|object| !object.0.is_empty())
}

/// Lays `source` over `destination` and returns the result: Meltano's merge. Objects go down, every other value
/// replaces, nothing is removed. The destination's keys keep their order and new ones come after them; what is not
/// merged keeps its text, byte for byte.
///
/// # Errors
/// Says where a text stops being a JSON object, and which of the two it is.
pub fn merge(source: &str, destination: &str) -> Result<String, MergeError> {
    let mut merged = String::with_capacity(source.len() + destination.len());
    merge_into(source, destination, 0, &mut merged)?;
    Ok(merged)
}

/// Why two texts cannot be merged.
#[derive(Debug)]
pub enum MergeError {
    /// The text that was to be laid over the other is no JSON object.
    Source(serde_json::Error),
    /// The text below it is none.
    Destination(serde_json::Error),
    /// Both hold objects below each other in too many levels.
    TooDeep,
}

fn merge_into(source: &str, destination: &str, depth: usize, out: &mut String) -> Result<(), MergeError> {
    if depth == DEEPEST_MERGE {
        return Err(MergeError::TooDeep);
    }
    let source: Object = serde_json::from_str(source).map_err(MergeError::Source)?;
    let destination: Object = serde_json::from_str(destination).map_err(MergeError::Destination)?;

    out.push('{');
    let mut first = true;
    for (key, stored) in destination.in_order() {
        member(&mut first, key, out);
        match source.get(key).map(RawValue::get) {
            None => out.push_str(stored.get()),
            Some(new) if !is_object(new) => out.push_str(new),
            Some(new) if is_object(stored.get()) => merge_into(new, stored.get(), depth + 1, out)?,
            // As if the new object were merged into whatever stands there: an empty one changes nothing.
            Some(new) if has_members(new).map_err(MergeError::Source)? => out.push_str(new),
            Some(_) => out.push_str(stored.get()),
        }
    }
    for (key, new) in source.in_order() {
        if destination.get(key).is_none() {
            member(&mut first, key, out);
            out.push_str(new.get());
        }
    }
    out.push('}');
    Ok(())
}

/// What comes before a member's value.
fn member(first: &mut bool, key: &str, out: &mut String) {
    if !std::mem::take(first) {
        out.push(',');
    }
    #[expect(clippy::expect_used, reason = "every text has a form in JSON")]
    out.push_str(&serde_json::to_string(key).expect("a text"));
    out.push(':');
}

fn is_object(json: &str) -> bool {
    json.starts_with('{')
}

/// An object's members: their places and the text of their values, by key. Of members with one key the last counts,
/// at the first's place.
struct Object<'a>(BTreeMap<String, (usize, &'a RawValue)>);

impl<'a> Object<'a> {
    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.get(key).map(|(_, value)| *value)
    }

    fn in_order(&self) -> Vec<(&str, &'a RawValue)> {
        let mut members: Vec<_> = self.0.iter().map(|(key, (place, value))| (place, key.as_str(), *value)).collect();
        members.sort_unstable_by_key(|(place, ..)| *place);
        members.into_iter().map(|(_, key, value)| (key, value)).collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    let place = members.len();
                    members.entry(key).or_insert((place, value)).1 = value;
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const CASES: &str = include_str!("../tests/cases/merge.json");

    fn check(source: &str, destination: &str, result: &str) {
        assert_eq!(merge(source, destination).unwrap(), result, "{source} over {destination}");
    }

    #[test]
    fn cases() {
        let cases: Value = serde_json::from_str(CASES).unwrap();
        for case in cases["cases"].as_array().unwrap() {
            let text = |name: &str| case[name].to_string();
            check(&text("source"), &text("destination"), &text("result"));
        }
        for case in cases["texts"].as_array().unwrap() {
            let text = |name: &str| case[name].as_str().unwrap();
            check(text("source"), text("destination"), text("result"));
        }
    }

    #[test]
    fn members_are_counted_and_checked() {
        assert!(!has_members(" { } ").unwrap());
        assert!(has_members(r#"{"a": {}}"#).unwrap());
        for text in ["", "[]", "null", "\"x\"", "{} {}", "{\"a\": NaN}", "{\"a\": 1", "{a: 1}"] {
            assert!(has_members(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_merged_keeps_its_text() {
        check(
            r#"{"b": {"x":  1.50, "s": "\ud800\/"}}"#,
            r#"{"a": [ 1E5 ]}"#,
            r#"{"a":[ 1E5 ],"b":{"x":  1.50, "s": "\ud800\/"}}"#,
        );
        check(r#"{"é\n": 1}"#, "{}", r#"{"é\n":1}"#);
        check(r#"{"a":1,"b":2,"a":3}"#, r#"{"b":0,"b":1}"#, r#"{"b":2,"a":3}"#);
    }

    #[test]
    fn a_merge_has_a_deepest_level() {
        let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        check(&nested(DEEPEST_MERGE), &nested(DEEPEST_MERGE), &nested(DEEPEST_MERGE));
        let deep = nested(DEEPEST_MERGE + 1);
        assert!(matches!(merge(&deep, &deep), Err(MergeError::TooDeep)));
        check(&nested(10_000), "{}", &nested(10_000));
    }

    #[test]
    fn the_faulty_side_of_a_merge_is_named() {
        assert!(matches!(merge("[]", "{}"), Err(MergeError::Source(_))));
        assert!(matches!(merge("{}", "[]"), Err(MergeError::Destination(_))));
    }
}
