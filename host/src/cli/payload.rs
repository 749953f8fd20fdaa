//! A state that the user gives by hand.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use meltano_state_backend_clickhouse::state::check_object;
use serde::de::IgnoredAny;

use super::failure::Failure;

const KEY: &str = "singer_state";
const FORM: &str = "give a JSON object such as {\"singer_state\": {\"bookmarks\": {}}}";

/// How many keys of a state that lacks this one are named.
const NAMED: usize = 5;

/// The text of a state, given itself or as a file, checked.
pub(super) fn read(json: Option<&str>, file: Option<&Path>) -> Result<String, Failure> {
    let text = match (json, file) {
        (Some(text), _) => text.to_owned(),
        (None, Some(file)) => read_file(file)?,
        (None, None) => String::new(),
    };
    // A file, and what `get` prints, ends in a line break that is not the state's.
    let text = text.trim();
    check(text).map_err(|reason| Failure::unusable(reason, FORM))?;
    Ok(text.to_owned())
}

/// The content of a file, or of standard input.
pub(super) fn read_file(file: &Path) -> Result<String, Failure> {
    let content = if file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    content.map_err(|error| {
        Failure::unusable(format!("{} cannot be read: {error}", file.display()), "nothing was changed")
    })
}

/// What Meltano asks of such a state, and what is needed to store it.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("the state that was given is an empty text".to_owned());
    }
    check_object(text).map_err(|reason| format!("the state cannot be used: {reason}"))?;
    let members: BTreeMap<String, IgnoredAny> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if members.contains_key(KEY) {
        return Ok(());
    }
    if members.is_empty() {
        return Err(format!(
            "the state has no top-level key \"{KEY}\": {{}} is what get prints where there is no state"
        ));
    }
    let found: Vec<String> = members.keys().take(NAMED).map(|key| format!("{key:?}")).collect();
    Err(format!("the state has no top-level key \"{KEY}\", but {}", found.join(", ")))
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
        refused("{}", "where there is no state");
        refused("{\"bookmarks\": {}, \"x\": 1}", "\"singer_state\", but \"bookmarks\", \"x\"");
        refused("", "empty text");
        for text in ["{\"singer_state\": NaN}", "[]", "null", "\"x\"", "{\"singer_state\": 1, \"singer_state\": 2}"] {
            refused(text, "cannot be used");
        }
    }
}
