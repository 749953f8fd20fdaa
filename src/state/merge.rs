//! Meltano's merge, on the text of the values.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::check_object;

/// Lays `source` over `destination` and returns the result: Meltano's merge. Objects go down, every other value
/// replaces, nothing is removed. The destination's keys keep their order and new ones come after them; what is not
/// merged keeps its text, byte for byte.
///
/// # Errors
/// Says which of the two is no state, and why.
pub fn merge(source: &str, destination: &str) -> Result<String, MergeError> {
    check_object(source).map_err(MergeError::Source)?;
    check_object(destination).map_err(MergeError::Destination)?;
    let mut merged = String::with_capacity(source.len() + destination.len());
    merge_into(source, destination, &mut merged).map_err(|error| MergeError::Source(error.to_string()))?;
    Ok(merged)
}

/// Which of two texts is no state, and why.
#[derive(Debug)]
pub enum MergeError {
    /// The text that was to be laid over the other.
    Source(String),
    /// The text below it.
    Destination(String),
}

/// Both are checked: they are objects, and not too deep to go down into.
fn merge_into(source: &str, destination: &str, out: &mut String) -> Result<(), serde_json::Error> {
    let source: Object = serde_json::from_str(source)?;
    let destination: Object = serde_json::from_str(destination)?;

    out.push('{');
    let mut first = true;
    for (key, stored) in destination.in_order() {
        member(&mut first, key, out);
        match source.get(key).map(RawValue::get) {
            None => out.push_str(stored.get()),
            Some(new) if !is_object(new) => out.push_str(new),
            Some(new) if is_object(stored.get()) => merge_into(new, stored.get(), out)?,
            // As if the new object were merged into whatever stands there: an empty one changes nothing.
            Some(new) if !serde_json::from_str::<Object>(new)?.0.is_empty() => out.push_str(new),
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

/// An object's members: their places and the text of their values, by key; and how many places there are.
struct Object<'a>(BTreeMap<String, (usize, &'a RawValue)>, usize);

impl<'a> Object<'a> {
    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.get(key).map(|(_, value)| *value)
    }

    /// Put where they belong: to sort them takes 4 KB of code.
    fn in_order(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        let mut places = vec![None; self.1];
        for (key, (place, value)) in &self.0 {
            if let Some(free) = places.get_mut(*place) {
                *free = Some((key.as_str(), *value));
            }
        }
        places.into_iter().flatten()
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
                let mut members = Object(BTreeMap::new(), 0);
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.0.insert(key, (members.1, value));
                    members.1 += 1;
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::DEEPEST;
    use serde_json::Value;

    const CASES: &str = include_str!("../../tests/cases/merge.json");

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
    fn what_is_not_merged_keeps_its_text() {
        check(
            r#"{"b": {"x":  1.50, "s": "\ud83e\udd80\/"}}"#,
            r#"{"a": [ 1E5 ]}"#,
            r#"{"a":[ 1E5 ],"b":{"x":  1.50, "s": "\ud83e\udd80\/"}}"#,
        );
        check(r#"{"é\n": 1}"#, "{}", r#"{"é\n":1}"#);
        check(r#"{"n": 1E400}"#, r#"{"n": 2, "m": -0.0}"#, r#"{"n":1E400,"m":-0.0}"#);
    }

    #[test]
    fn objects_merge_down_to_the_deepest_level() {
        let nested = |value: &str| format!("{}{value}{}", r#"{"a":"#.repeat(DEEPEST), "}".repeat(DEEPEST));
        check(&nested("1"), &nested("2"), &nested("1"));
    }

    #[test]
    fn the_faulty_side_of_a_merge_is_named() {
        assert!(matches!(merge("[]", "{}"), Err(MergeError::Source(_))));
        assert!(matches!(merge("{}", "[]"), Err(MergeError::Destination(_))));
    }
}
