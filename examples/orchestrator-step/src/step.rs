//! The step and its world.

use serde_json::{Value, json};

use bindings::meltano::state_backend::{store, types};

#[allow(unsafe_code, missing_docs, unused_qualifications, unreachable_pub, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package example:orchestrator-step@0.1.0;

            world step {
                import meltano:state-backend/store@0.1.0;

                /// Loads the next page and returns which one that was.
                export run: func(state-id: string) -> result<u64, string>;
            }
        ",
        generate_all,
    });
}

struct Step;

impl bindings::Guest for Step {
    fn run(state_id: String) -> Result<u64, String> {
        let page = bookmark(&state_id)? + 1;
        // Here a real step would load the page. Only then does the bookmark move on, so that a step that fails is tried again.
        let reached = json!({"singer_state": {"page": page}});
        let state = types::State { state_id, partial_state: Some(reached.to_string()), completed_state: None };
        store::update(&state).map_err(|error| error.message)?;
        Ok(page)
    }
}

/// The page that was loaded last; 0 if none was.
fn bookmark(state_id: &str) -> Result<u64, String> {
    // What unfinished runs have reached is laid over what the last finished one has.
    let reached = store::get_merged(state_id).map_err(|error| error.message)?;
    let Some(reached) = reached else { return Ok(0) };
    let reached: Value = serde_json::from_str(&reached).map_err(|error| error.to_string())?;
    match &reached["singer_state"]["page"] {
        Value::Null => Ok(0),
        page => page.as_u64().ok_or_else(|| format!("the page of {state_id} is no number: {page}")),
    }
}

bindings::export!(Step with_types_in bindings);
