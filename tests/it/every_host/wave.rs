//! Between the contract's JSON and WAVE, the text form of WIT values that `wasmtime run --invoke` reads and prints.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use wasm_wave::ast::{Node, NodeType};
use wasm_wave::untyped::UntypedValue;

use super::contract::{Outcome, Step};

/// The call as one writes it: `get("dev:a")`.
pub(super) fn call(step: &Step) -> String {
    let (_, function) = step.call.split_once('.').unwrap();
    let arguments: Vec<String> = step.arguments.iter().map(written).collect();
    format!("{function}({})", arguments.join(", "))
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: {}", written(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => write!(quoted, "\\u{{{:x}}}", u32::from(control)).unwrap(),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// What the printed value says. A function whose result cannot be an error returns its value as it is.
pub(super) fn outcome(printed: &str) -> Outcome {
    let value = UntypedValue::parse(printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    match value.node().as_result() {
        Ok(Ok(returned)) => Outcome::Returns(returned.map_or(Value::Null, |node| read(node, printed))),
        Ok(Err(error)) => {
            let error = error.map(|node| read(node, printed)).unwrap();
            Outcome::Fails(error["kind"].as_str().unwrap().to_owned())
        }
        Err(_) => Outcome::Returns(read(value.node(), printed)),
    }
}

fn read(node: &Node, source: &str) -> Value {
    match node.ty() {
        NodeType::OptionNone => Value::Null,
        NodeType::OptionSome => read(node.as_option().unwrap().unwrap(), source),
        NodeType::BoolTrue | NodeType::BoolFalse => node.as_bool().unwrap().into(),
        NodeType::Number => node.as_number::<serde_json::Number>(source).unwrap().into(),
        NodeType::String | NodeType::MultilineString => node.as_str(source).unwrap().into(),
        NodeType::Label => node.as_enum(source).unwrap().into(),
        NodeType::List => node.as_list().unwrap().map(|item| read(item, source)).collect(),
        NodeType::Record => {
            let fields = node.as_record(source).unwrap();
            fields.map(|(name, value)| (name.to_owned(), read(value, source))).collect::<Map<_, _>>().into()
        }
        NodeType::ResultOk | NodeType::ResultErr => {
            let (tag, value) = match node.as_result().unwrap() {
                Ok(value) => ("ok", value),
                Err(value) => ("err", value),
            };
            let value = value.map_or(Value::Null, |value| read(value, source));
            Map::from_iter([(tag.to_owned(), value)]).into()
        }
        other => panic!("the contract has no {other:?}: {source}"),
    }
}
