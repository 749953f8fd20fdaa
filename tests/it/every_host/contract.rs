//! The steps of the contract, and whether a host carried them out right.

use serde::Deserialize;
use serde_json::Value;

/// A call and what has to come of it. Values are those of the WIT package in JSON: records as objects, no value as null,
/// a list of bytes as numbers, a result within a record as an object with `ok` or `err`.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    /// Interface and function, as `store.get`.
    pub(super) call: String,
    pub(super) arguments: Vec<Value>,
    #[serde(flatten)]
    outcome: Outcome,
}

/// What came of a call.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Returns(Value),
    /// With an error of this kind.
    Fails(String),
}

/// The file of the steps, from the project's root.
pub(super) const CONTRACT: &str = "tests/hosts/contract.json";

pub(super) fn steps() -> Vec<Step> {
    serde_json::from_str(include_str!("../../hosts/contract.json")).unwrap()
}

/// Fails at the first step of which something else came than what the contract says.
pub(super) fn check(host: &str, steps: &[Step], outcomes: &[Outcome]) {
    assert_eq!(steps.len(), outcomes.len(), "{host} carries out every step");
    for (step, outcome) in steps.iter().zip(outcomes) {
        let right = match (&step.outcome, outcome) {
            (Outcome::Returns(expected), Outcome::Returns(returned)) => agrees(expected, returned),
            (expected, outcome) => expected == outcome,
        };
        assert!(right, "{host}: {step:#?} but came to {outcome:#?}");
    }
}

/// Whether `value` is what is expected. Of an object only the expected members count, so that times may differ.
fn agrees(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::Object(expected), Value::Object(object)) => {
            expected.iter().all(|(name, expected)| agrees(expected, object.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(expected), Value::Array(array)) => {
            expected.len() == array.len() && expected.iter().zip(array).all(|(expected, item)| agrees(expected, item))
        }
        _ => expected == value,
    }
}
