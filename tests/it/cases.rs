//! `tests/cases/glob.json`, `names.json` and `merge.json` on the real server.

use meltano_state_host::ErrorKind;
use serde_json::Value;

use crate::sandbox::{Sandbox, component_error, instance, state};

const GLOB: &str = include_str!("../cases/glob.json");
const NAMES: &str = include_str!("../cases/names.json");
const MERGE: &str = include_str!("../cases/merge.json");

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn sorted(mut texts: Vec<&str>) -> Vec<&str> {
    texts.sort_unstable();
    texts
}

#[tokio::test]
async fn globs_select_ids() {
    let cases: Value = serde_json::from_str(GLOB).unwrap();
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    for id in texts(&cases["ids"]) {
        store.set(&state(id, None, Some("{\"x\":1}"))).await.unwrap();
    }
    for case in cases["patterns"].as_array().unwrap() {
        let pattern = case["pattern"].as_str().unwrap();
        let found = store.get_state_ids(Some(pattern)).await.unwrap();
        assert_eq!(found, sorted(texts(&case["matches"])), "{pattern:?}");
    }
    assert_eq!(store.get_state_ids(None).await.unwrap(), sorted(texts(&cases["ids"])));
}

#[tokio::test]
async fn awkward_ids_survive_every_operation() {
    let cases: Value = serde_json::from_str(NAMES).unwrap();
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let ids = texts(&cases["state_ids"]);
    for id in &ids {
        let first = state(id, None, Some("{\"x\":1}"));
        store.set(&first).await.unwrap();
        assert_eq!(store.get(id).await.unwrap(), Some(first), "{id:?}");
    }
    assert_eq!(store.get_state_ids(None).await.unwrap(), sorted(ids.clone()));
    for id in &ids {
        store.update(&state(id, Some("{\"y\":2}"), None)).await.unwrap();
        let updated = state(id, Some("{\"y\":2}"), Some("{\"x\":1}"));
        assert_eq!(store.get(id).await.unwrap(), Some(updated), "{id:?}");
    }
    assert_eq!(sandbox.lock_rows(), "");
    for (done, id) in ids.iter().enumerate() {
        store.delete(id).await.unwrap();
        assert_eq!(store.get(id).await.unwrap(), None, "{id:?}");
        assert_eq!(store.get_state_ids(None).await.unwrap().len(), ids.len() - done - 1, "{id:?}");
    }
}

#[tokio::test]
async fn awkward_names_of_database_and_table() {
    let cases: Value = serde_json::from_str(NAMES).unwrap();
    for name in texts(&cases["schemas_and_tables"]) {
        let mut sandbox = Sandbox::new();
        sandbox.schema = format!("{} {name}", sandbox.schema);
        let mut uri = sandbox.uri();
        uri.query_pairs_mut().append_pair("table", name);
        let mut store = instance(&uri, &[]).await;
        store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
        store.update(&state("a", Some("{\"y\":1}"), None)).await.unwrap();
        assert_eq!(store.get_state_ids(None).await.unwrap(), ["a"], "{name:?}");
        store.clear("a").await.unwrap();
        assert_eq!(store.get("a").await.unwrap(), None, "{name:?}");
    }
}

#[tokio::test]
async fn refused_ids() {
    let cases: Value = serde_json::from_str(NAMES).unwrap();
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    for id in texts(&cases["refused_state_ids"]) {
        assert_eq!(component_error(store.set(&state(id, None, None)).await).kind, ErrorKind::InvalidArgument);
        assert_eq!(component_error(store.get(id).await).kind, ErrorKind::InvalidArgument);
        assert_eq!(component_error(store.update(&state(id, None, None)).await).kind, ErrorKind::InvalidArgument);
        assert_eq!(component_error(store.delete(id).await).kind, ErrorKind::InvalidArgument);
        assert_eq!(component_error(store.clear(id).await).kind, ErrorKind::InvalidArgument);
    }
}

#[tokio::test]
async fn updates_merge() {
    let cases: Value = serde_json::from_str(MERGE).unwrap();
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let objects = cases["cases"].as_array().unwrap().iter().map(|case| {
        let text = |name: &str| case[name].to_string();
        (text("source"), text("destination"), text("result"))
    });
    let written = cases["texts"].as_array().unwrap().iter().map(|case| {
        let text = |name: &str| case[name].as_str().unwrap().to_owned();
        (text("source"), text("destination"), text("result"))
    });
    for (source, destination, result) in objects.chain(written) {
        store.set(&state("a", Some(&destination), None)).await.unwrap();
        store.update(&state("a", Some(&source), None)).await.unwrap();
        let stored = store.get("a").await.unwrap().unwrap().partial_state;
        assert_eq!(stored.as_deref().unwrap_or("{}"), result, "{source} over {destination}");
    }
}
