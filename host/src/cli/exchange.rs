//! The file that `export` writes and `import` reads: one JSON object with an entry for each state id, as Meltano has it,
//! `{"dev:a": {"completed": {…}, "partial": {…}}}`. The text of each part is the stored one, byte for byte.

use std::collections::HashMap;
use std::fmt;

use meltano_state_backend_clickhouse::state::{LARGEST, check_object};
use meltano_state_host::State;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The entry of a state.
pub(super) fn entry(state: &State) -> String {
    fn part(text: Option<&String>) -> &str {
        text.map_or("null", String::as_str)
    }
    let (completed, partial) = (part(state.completed_state.as_ref()), part(state.partial_state.as_ref()));
    let id = serde_json::Value::from(state.state_id.as_str());
    format!("{id}: {{\"completed\": {completed}, \"partial\": {partial}}}")
}

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The entry in which it is.
    pub(super) state_id: Option<String>,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state_id, line, column, reason } = self;
        write!(f, "line {line}, column {column}: ")?;
        if let Some(state_id) = state_id {
            write!(f, "the entry {state_id:?} ")?;
        }
        f.write_str(reason)
    }
}

/// The states of a file, in its order, or everything that is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<State>, Vec<Fault>> {
    let mut entries = Entries::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = entries.deserialize(&mut json).and_then(|()| json.end());
    if let Err(error) = parsed {
        let (line, column) = (error.line(), error.column());
        let what = if entries.open.is_some() { "" } else { "the file " };
        let reason = format!("{what}cannot be read: {}", without_place(&error.to_string()));
        return Err(vec![Fault { state_id: entries.open, line, column, reason }]);
    }
    let mut states = Vec::with_capacity(entries.found.len());
    let mut faults = Vec::new();
    let mut first_of: HashMap<&str, &RawValue> = HashMap::new();
    for (id, value) in &entries.found {
        let mut wrong = |at: &str, reason: String| {
            let (line, column) = position(text, at);
            faults.push(Fault { state_id: Some(id.clone()), line, column, reason });
        };
        if let Some(first) = first_of.insert(id, value) {
            let (line, _) = position(text, first.get());
            wrong(value.get(), format!("stands in the file twice, first on line {line}"));
        }
        if id.is_empty() {
            wrong(value.get(), "has an empty id".to_owned());
        }
        match state(id, value) {
            Ok(state) => states.push(state),
            Err((at, reason)) => wrong(at.get(), reason),
        }
    }
    if faults.is_empty() { Ok(states) } else { Err(faults) }
}

/// The state of an entry, or the value that is wrong in it and why.
fn state<'a>(id: &str, value: &'a RawValue) -> Result<State, (&'a RawValue, String)> {
    let mut members = Entries::default();
    if members.deserialize(value).is_err() {
        return Err((value, "is no object with the members completed and partial".to_owned()));
    }
    let mut state = State { state_id: id.to_owned(), completed_state: None, partial_state: None };
    for (index, (name, part)) in members.found.iter().enumerate() {
        let text = match name.as_str() {
            "completed" => &mut state.completed_state,
            "partial" => &mut state.partial_state,
            _ => return Err((part, format!("has the member {name:?}; only completed and partial are known"))),
        };
        if members.found.iter().take(index).any(|(earlier, _)| earlier == name) {
            return Err((part, format!("has two members {name:?}")));
        }
        if part.get() != "null" {
            check_object(part.get()).map_err(|reason| {
                (*part, format!("has a {name} part that cannot be used: {}", without_place(&reason)))
            })?;
            *text = Some(part.get().to_owned());
        }
    }
    let size = [&state.completed_state, &state.partial_state].into_iter().flatten().map(String::len).sum::<usize>();
    // The component would say so too, but only of the states that it is given.
    if size > LARGEST {
        let most = LARGEST >> 20;
        return Err((value, format!("holds {size} bytes, more than the {most} MiB that a state may")));
    }
    Ok(state)
}

/// What is wrong without where it is, which is said otherwise, or counted from the beginning of a part.
fn without_place(reason: &str) -> &str {
    reason.rsplit_once(" at line ").map_or(reason, |(reason, _)| reason)
}

/// The members of an object, and while it is read the key of the one that is being read.
#[derive(Default)]
struct Entries<'de> {
    found: Vec<(String, &'de RawValue)>,
    open: Option<String>,
}

impl<'de> DeserializeSeed<'de> for &mut Entries<'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Entries<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of states by id")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.open = Some(key);
            let value = map.next_value::<&RawValue>()?;
            let key = self.open.take().ok_or_else(|| A::Error::custom("no key"))?;
            self.found.push((key, value));
        }
        Ok(())
    }
}

/// The line and the column, in characters, at which a part of a text begins, counted from 1.
fn position(text: &str, part: &str) -> (usize, usize) {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before.get(line_start..).unwrap_or_default().chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(id: &str, completed: Option<&str>, partial: Option<&str>) -> State {
        State {
            state_id: id.to_owned(),
            completed_state: completed.map(str::to_owned),
            partial_state: partial.map(str::to_owned),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let states = [
            state("dev:a", Some("{\"n\": 1.10,  \"\\u00e9\":[\n]}"), None),
            state("\n\t\"\\\u{1F980}%", None, Some("{\"x\":1E400}")),
            state("both", Some("{\"a\":1}"), Some("{\"b\":2}")),
            state("none", None, None),
        ];
        let entries: Vec<String> = states.iter().map(entry).collect();
        assert_eq!(parse(&format!("{{{}}}", entries.join(",\n"))), Ok(states.to_vec()));
        assert_eq!(parse(" { } \n"), Ok(Vec::new()));
    }

    #[test]
    fn parts_may_be_missing() {
        let text = "{\"a\": {\"completed\": {\"x\":1}}, \"b\": {\"partial\":{\"x\":1},\"completed\":null}, \"c\":{}}";
        let states = [state("a", Some("{\"x\":1}"), None), state("b", None, Some("{\"x\":1}")), state("c", None, None)];
        assert_eq!(parse(text), Ok(states.to_vec()));
    }

    fn refused(text: &str, faults: &[&str]) {
        let found: Vec<String> = parse(text).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), faults.len(), "{text}: {found:?}");
        for (found, fault) in found.iter().zip(faults) {
            assert!(found.contains(fault), "{text}: {found}");
        }
    }

    #[test]
    fn faults_are_named_with_their_places() {
        refused("", &["line 1, column 0: the file cannot be read"]);
        refused("[]", &["line 1, column 0: the file cannot be read: invalid type: sequence"]);
        refused("{\"a\": {}", &["the file cannot be read"]);
        refused("{\"a\": {}} {}", &["line 1, column 11: the file cannot be read: trailing"]);
        refused(
            "{\"ok\": {},\n\"é\": {\"completed\": {\"n\": NaN}}}",
            &["line 2, column 27: the entry \"é\" cannot be read: expected value"],
        );
        refused(
            "{\"a\": 1,\n \"b\": {\"completed\": []},\n  \"c\": {\"singer_state\": {}}, \"a\": {},\n\"\": {}}",
            &[
                "line 1, column 7: the entry \"a\" is no object",
                "line 2, column 21: the entry \"b\" has a completed part",
                "line 3, column 25: the entry \"c\" has the member \"singer_state\"",
                "line 3, column 35: the entry \"a\" stands in the file twice, first on line 1",
                "line 4, column 5: the entry \"\" has an empty id",
            ],
        );
        refused("{\"a\": {\"partial\": null, \"partial\": null}}", &["two members"]);
        refused("{\"a\": {\"partial\": {\"x\": 1, \"x\": 2}}}", &["has a partial part"]);
        let large = format!("{{\"a\": {{\"partial\": {{\"x\": \"{}\"}}}}}}", "y".repeat(LARGEST));
        refused(&large, &["more than the 24 MiB"]);
    }
}
