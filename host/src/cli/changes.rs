//! What differs between two states, path by path.
//!
//! Values are compared by their text, so that 1.1 and 1.10 differ; white space between tokens does not count.

use std::collections::{HashMap, HashSet};
use std::fmt;

use meltano_state_host::State;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::layout::compact;

/// A value that is added, removed or replaced.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    /// As `jq` writes it, from the state as `export` writes it: `.completed.singer_state.bookmarks["public-users"]`.
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) new: Option<Box<RawValue>>,
}

/// The changes from one state to another; none is a state without parts.
pub(super) fn between(old: Option<&State>, new: Option<&State>) -> Vec<Change> {
    fn completed(state: &State) -> Option<&str> {
        state.completed_state.as_deref()
    }
    fn partial(state: &State) -> Option<&str> {
        state.partial_state.as_deref()
    }
    let mut changes = Vec::new();
    compare(".completed", old.and_then(completed), new.and_then(completed), 0, &mut changes);
    compare(".partial", old.and_then(partial), new.and_then(partial), 0, &mut changes);
    changes
}

/// Deeper than any state may be, so that no text exhausts the stack.
const DEEPEST: usize = 200;

fn compare(path: &str, old: Option<&str>, new: Option<&str>, depth: usize, changes: &mut Vec<Change>) {
    if old == new {
        return;
    }
    match (old.and_then(children), new.and_then(children)) {
        _ if depth == DEEPEST => {}
        (Some(before), Some(after)) if before.fit(&after) => return before.compare(after, path, depth, changes),
        (Some(before), None) if new.is_none() && !before.0.is_empty() => {
            return before.compare(Children::default(), path, depth, changes);
        }
        (None, Some(after)) if old.is_none() && !after.0.is_empty() => {
            return Children::default().compare(after, path, depth, changes);
        }
        _ => {}
    }
    let (old, new) = (old.map(compact), new.map(compact));
    if old != new {
        let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        changes.push(Change { path: path.to_owned(), old: raw(old), new: raw(new) });
    }
}

/// A place in an object or an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    /// The path of what lies there.
    fn below(&self, path: &str) -> String {
        match self {
            Self::Index(index) => format!("{path}[{index}]"),
            Self::Key(key) if is_plain(key) => format!("{path}.{key}"),
            Self::Key(key) => format!("{path}[{}]", serde_json::Value::from(key.as_str())),
        }
    }
}

/// Whether `jq` takes the key without quotes.
fn is_plain(key: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    key.chars().all(word) && key.starts_with(|c: char| !c.is_ascii_digit())
}

/// What an object or an array holds, in order.
#[derive(Default)]
struct Children<'a>(Vec<(Step, &'a str)>);

impl<'a> Children<'a> {
    /// Whether the two can be compared place by place: objects, or arrays of one length.
    fn fit(&self, other: &Self) -> bool {
        let array = |children: &Self| matches!(children.0.first(), Some((Step::Index(_), _)));
        match (array(self), array(other)) {
            (false, false) => true,
            (true, true) => self.0.len() == other.0.len(),
            _ => false,
        }
    }

    fn compare(self, other: Self, path: &str, depth: usize, changes: &mut Vec<Change>) {
        let after: HashMap<&Step, &str> = other.0.iter().map(|(step, value)| (step, *value)).collect();
        let before: HashSet<&Step> = self.0.iter().map(|(step, _)| step).collect();
        for (step, value) in &self.0 {
            compare(&step.below(path), Some(value), after.get(step).copied(), depth + 1, changes);
        }
        for (step, value) in other.0.iter().filter(|(step, _)| !before.contains(step)) {
            compare(&step.below(path), None, Some(value), depth + 1, changes);
        }
    }
}

/// None for a value that is neither object nor array, and for an empty array, which is a value like any other.
fn children(json: &str) -> Option<Children<'_>> {
    match json.trim_ascii_start().as_bytes().first()? {
        b'{' => serde_json::from_str(json).ok(),
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let elements = elements.into_iter().enumerate();
            let children: Vec<_> = elements.map(|(index, value)| (Step::Index(index), value.get())).collect();
            (!children.is_empty()).then_some(Children(children))
        }
        _ => None,
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Children<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Children<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Children<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((Step::Key(key), value.get()));
                }
                Ok(Children(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// How much of a value a person sees.
const SHOWN: usize = 100;

/// For people: `+ path: value`, `- path: value`, `~ path: old → new`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => write!(f, "~ {path}: {} → {}", Shown(old), Shown(new)),
            (Some(old), None) => write!(f, "- {path}: {}", Shown(old)),
            (None, Some(new)) => write!(f, "+ {path}: {}", Shown(new)),
            (None, None) => f.write_str(path),
        }
    }
}

struct Shown<'a>(&'a RawValue);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.get();
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => write!(f, "{}… ({} bytes)", text.get(..end).unwrap_or(text), text.len()),
            None => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(text: &str) -> State {
        State { state_id: String::new(), partial_state: None, completed_state: Some(text.to_owned()) }
    }

    fn check(old: &str, new: &str, expected: &[&str]) {
        let changes = between(Some(&completed(old)), Some(&completed(new)));
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(changes, expected, "{old} to {new}");
    }

    #[test]
    fn white_space_and_order_do_not_count() {
        check(r#"{"a": 1, "b": [1, {"c": "x"}]}"#, r#"{"b":[1,{"c":"x"}],"a":1}"#, &[]);
    }

    #[test]
    fn values_are_compared_by_their_text() {
        check(r#"{"a":1.10}"#, r#"{"a":1.1}"#, &["~ .completed.a: 1.10 → 1.1"]);
        check(r#"{"a":1E400}"#, r#"{"a":1e400}"#, &["~ .completed.a: 1E400 → 1e400"]);
        check(r#"{"a":" 1"}"#, r#"{"a":"1"}"#, &["~ .completed.a: \" 1\" → \"1\""]);
        check(r#"{"a":null}"#, "{}", &["- .completed.a: null"]);
    }

    #[test]
    fn paths_lead_to_the_values_that_differ() {
        check(
            r#"{"s":{"b":{"public-users":{"lsn":1},"x":{"y":2,"z":3}}}}"#,
            r#"{"s":{"b":{"public-users":{"lsn":4},"x":{"y":2}},"\"":{"é":true,"e":{}}}}"#,
            &[
                "~ .completed.s.b[\"public-users\"].lsn: 1 → 4",
                "- .completed.s.b.x.z: 3",
                "+ .completed.s[\"\\\"\"][\"é\"]: true",
                "+ .completed.s[\"\\\"\"].e: {}",
            ],
        );
    }

    #[test]
    fn arrays_of_one_length_are_compared_element_by_element() {
        check(r#"{"a":[1,{"b":2}]}"#, r#"{"a":[1,{"b":3}]}"#, &["~ .completed.a[1].b: 2 → 3"]);
        check(r#"{"a":[1,2]}"#, r#"{"a":[1]}"#, &["~ .completed.a: [1,2] → [1]"]);
        check(r#"{"a":[]}"#, r#"{"a":{}}"#, &["~ .completed.a: [] → {}"]);
        check(r#"{"a":{"b":1}}"#, r#"{"a":[1]}"#, &["~ .completed.a: {\"b\":1} → [1]"]);
    }

    #[test]
    fn parts_appear_and_disappear() {
        let partial = State { partial_state: Some("{\"a\":1}".into()), completed_state: None, state_id: String::new() };
        let changes = between(Some(&partial), Some(&completed("{\"a\":1}")));
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(changes, ["+ .completed.a: 1", "- .partial.a: 1"]);
        assert!(between(None, None).is_empty());
    }

    #[test]
    fn long_values_are_cut_and_deep_ones_are_compared_whole() {
        let text = format!("\"{}\"", "é".repeat(200));
        let change = Change { path: ".a".into(), old: RawValue::from_string(text).ok(), new: None };
        assert_eq!(change.to_string(), format!("- .a: \"{}… (402 bytes)", "é".repeat(99)));

        let nested = |value: u8| format!("{}{value}{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
        let changes = between(Some(&completed(&nested(1))), Some(&completed(&nested(2))));
        assert_eq!(changes.len(), 1);
    }
}
