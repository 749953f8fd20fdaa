//! The contract in this project's own host, through its typed calls.

use meltano_state_host::{CallError, Entry, Holder, Instance, Keeping, Prepared, RawState, Report, State, Warning};
use serde_json::{Value, json};

use super::contract::{Outcome, Step};

pub(super) async fn carry_out(backend: &mut Instance, step: &Step) -> Outcome {
    let argument = |index: usize| &step.arguments[index];
    let text = |index| argument(index).as_str();
    let id = |index| text(index).unwrap();
    let flag = |index| argument(index).as_bool().unwrap();
    let limit = |index| argument(index).as_u64().map(|limit| u32::try_from(limit).unwrap());
    match step.call.as_str() {
        "store.init" => {
            let prepared = if flag(0) { backend.preview_init().await } else { backend.init().await };
            outcome(prepared, |prepared| prepared.iter().map(self::prepared).collect())
        }
        "store.get" => outcome(backend.get(id(0)).await, |found| found.map(state).into()),
        "store.get-merged" => outcome(backend.get_merged(id(0)).await, Value::from),
        "store.get-raw" => outcome(backend.get_raw(id(0)).await, |found| found.map(raw).into()),
        "store.get-all" => outcome(backend.get_all(text(0), text(1), limit(2)).await, entries),
        "store.get-state-ids" => outcome(backend.get_state_ids(text(0)).await, Value::from),
        "store.set" => outcome(backend.set(&to_state(argument(0))).await, done),
        "store.set-all" => {
            let states: Vec<State> = argument(0).as_array().unwrap().iter().map(to_state).collect();
            outcome(backend.set_all(&states).await, Value::from)
        }
        "store.update" => outcome(backend.update(&to_state(argument(0))).await, warnings),
        "store.delete" => outcome(backend.delete(id(0)).await, done),
        "store.clear" => outcome(backend.clear(id(0)).await, warnings),
        "store.copy" => outcome(backend.copy(id(0), id(1), flag(2)).await, warnings),
        "store.move-state" => outcome(backend.move_state(id(0), id(1), flag(2)).await, warnings),
        "store.clear-all" => outcome(backend.clear_all().await, Value::from),
        "locking.holders" => {
            outcome(backend.holders(text(0)).await, |holders| holders.into_iter().map(holder).collect())
        }
        "locking.force-release" => outcome(backend.force_release(id(0), id(1)).await, Value::from),
        "history.kept" => {
            let keeping = |kept: Keeping| json!({"days": kept.days, "recording": kept.recording});
            outcome(backend.kept().await, |kept| kept.map(keeping).into())
        }
        "history.versions" => outcome(backend.versions(id(0), argument(1).as_i64(), limit(2)).await, entries),
        "history.restore" => outcome(backend.restore(id(0), argument(1).as_i64().unwrap()).await, warnings),
        "diagnostics.check" => outcome(backend.check().await, report),
        other => panic!("this host has no {other}"),
    }
}

fn outcome<T>(result: Result<T, CallError>, to_json: impl FnOnce(T) -> Value) -> Outcome {
    match result {
        Ok(value) => Outcome::Returns(to_json(value)),
        Err(CallError::Error(error)) => Outcome::Fails(error.kind.name().to_owned()),
        Err(other) => panic!("{other}"),
    }
}

fn done((): ()) -> Value {
    Value::Null
}

fn warnings(warnings: Vec<Warning>) -> Value {
    warnings.into_iter().map(|warning| json!({"message": warning.message, "hint": warning.hint})).collect()
}

fn prepared(prepared: &Prepared) -> Value {
    json!({"thing": prepared.thing.name(), "name": prepared.name, "deed": prepared.deed.name(), "note": prepared.note})
}

fn to_state(value: &Value) -> State {
    let part = |name: &str| value[name].as_str().map(str::to_owned);
    State {
        state_id: part("state-id").unwrap(),
        partial_state: part("partial-state"),
        completed_state: part("completed-state"),
    }
}

fn state(state: State) -> Value {
    json!({
        "state-id": state.state_id,
        "partial-state": state.partial_state,
        "completed-state": state.completed_state,
    })
}

fn raw(raw: RawState) -> Value {
    json!({
        "updated-at": raw.updated_at,
        "partial-state": raw.partial_state,
        "completed-state": raw.completed_state,
    })
}

fn entries(entries: Vec<Entry>) -> Value {
    let entry = |entry: Entry| {
        let content = match entry.content {
            Ok(content) => json!({"ok": state(content)}),
            Err(error) => json!({"err": {"kind": error.kind.name()}}),
        };
        json!({"state-id": entry.state_id, "updated-at": entry.updated_at, "size": entry.size, "content": content})
    };
    entries.into_iter().map(entry).collect()
}

fn holder(holder: Holder) -> Value {
    json!({"state-id": holder.state_id, "lock-id": holder.lock_id})
}

fn report(report: Report) -> Value {
    let step = |step: meltano_state_host::Step| json!({"name": step.name, "status": step.status.name()});
    json!({"steps": report.steps.into_iter().map(step).collect::<Vec<_>>()})
}
