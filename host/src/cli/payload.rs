//! A state that the user gives by hand.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::{Map, Value};

use super::arguments::Payload;
use super::failure::Failure;

const KEY: &str = "singer_state";
const FORM: &str = "give a JSON object such as {\"singer_state\": {\"bookmarks\": {}}}";

/// The text of the state, checked.
pub(super) fn read(payload: &Payload) -> Result<String, Failure> {
    let text = match (&payload.json, &payload.input_file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read_file(file)?,
        (None, None) => String::new(),
    };
    // A file, and what `get` prints, ends in a line break that is not the state's.
    let text = text.trim();
    check(text).map_err(|reason| Failure::unusable(reason, FORM))?;
    Ok(text.to_owned())
}

fn read_file(file: &Path) -> Result<String, Failure> {
    let content = if file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    content.map_err(|error| Failure::io(format!("{} cannot be read: {error}", file.display())))
}

/// What Meltano asks of such a state.
fn check(text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("the state is not valid JSON: {error}"))?;
    let object: Map<String, Value> = match value {
        Value::Object(object) => object,
        other => return Err(format!("the state is {}, not a JSON object", kind(&other))),
    };
    if object.contains_key(KEY) { Ok(()) } else { Err(format!("the state has no top-level key \"{KEY}\"")) }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, reason: &str) {
        let message = check(text).unwrap_err();
        assert!(message.contains(reason), "{text}: {message}");
    }

    #[test]
    fn what_is_a_state() {
        assert_eq!(check("{\"singer_state\": {}}"), Ok(()));
        assert_eq!(check(" {\"a\": 1, \"singer_state\": null}\n"), Ok(()));
        refused("", "not valid JSON");
        refused("{\"singer_state\": NaN}", "not valid JSON");
        refused("[]", "an array");
        refused("null", "null");
        refused("\"x\"", "a string");
        refused("{}", "singer_state");
        refused("{\"bookmarks\": {}}", "singer_state");
    }
}
