//! What each operation of the store promises.

use meltano_state_host::{ErrorKind, Instance};

use crate::sandbox::{Sandbox, component_error, instance, state};

/// What is stored under `a`, after `set` of each of `states` in turn.
async fn check_set(
    partial: Option<&str>,
    completed: Option<&str>,
    stored_partial: Option<&str>,
    stored_completed: Option<&str>,
) {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("a", partial, completed)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", stored_partial, stored_completed)));
}

#[tokio::test]
async fn a_state_comes_back_byte_for_byte() {
    let text = "{ \"b\" : 1.10,\"a\":12345678901234567890123, \"é\":\"\\u00e9\\ud83e\\udd80 \\t\", \"c\":1E400 }";
    check_set(Some(text), None, Some(text), None).await;
    check_set(None, Some(text), None, Some(text)).await;
    check_set(Some("{\"p\":1}"), Some(text), Some("{\"p\":1}"), Some(text)).await;
}

#[tokio::test]
async fn an_empty_object_is_no_value() {
    check_set(Some("{}"), Some(" { } "), None, None).await;
}

#[tokio::test]
async fn large_states_and_long_ids() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    for size in [4095, 4096, 4097, 1 << 20, 5 << 20] {
        let text = format!("{{\"k\":\"{}\"}}", "\\n".repeat(size / 2));
        let id = format!("{}é", "x".repeat(10_000));
        store.set(&state(&id, None, Some(&text))).await.unwrap();
        assert_eq!(store.get(&id).await.unwrap(), Some(state(&id, None, Some(&text))));
        assert_eq!(store.get_state_ids(Some("x*")).await.unwrap(), [id.as_str()]);
        store.update(&state(&id, Some("{\"a\":1}"), None)).await.unwrap();
        assert_eq!(store.get(&id).await.unwrap(), Some(state(&id, Some("{\"a\":1}"), Some(&text))));
        store.clear(&id).await.unwrap();
        assert_eq!(store.get(&id).await.unwrap(), None);
    }
}

#[tokio::test]
async fn the_last_of_several_sets_is_seen_whatever_the_clocks_say() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    sandbox.sql(
        "INSERT INTO {}.state (state_id, completed_state, updated_at) VALUES ('a', '{\"from\":\"a wrong clock\"}', now64(3) + 86400)",
    );
    for round in 0..20 {
        let text = format!("{{\"round\":{round}}}");
        store.set(&state("a", None, Some(&text))).await.unwrap();
        assert_eq!(store.get("a").await.unwrap(), Some(state("a", None, Some(&text))));
    }
}

#[tokio::test]
async fn deleting_what_is_not_there_is_no_error() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.delete("a").await.unwrap();
    store.clear("a").await.unwrap();
    store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
    store.set(&state("b", None, Some("{\"x\":1}"))).await.unwrap();
    store.delete("a").await.unwrap();
    store.delete("a").await.unwrap();
    assert_eq!(store.get_state_ids(None).await.unwrap(), ["b"]);
}

#[tokio::test]
async fn a_state_may_be_set_again_after_it_was_deleted() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let first = state("a", None, Some("{\"x\":1}"));
    for _ in 0..3 {
        store.set(&first).await.unwrap();
        assert_eq!(store.get("a").await.unwrap(), Some(first.clone()));
        store.clear("a").await.unwrap();
        assert_eq!(store.get("a").await.unwrap(), None);
    }
}

#[tokio::test]
async fn clear_all_counts_states_not_their_versions() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    assert_eq!(store.clear_all().await.unwrap(), 0);
    for id in ["a", "b", "a", "c", "a"] {
        store.set(&state(id, None, Some("{\"x\":1}"))).await.unwrap();
    }
    assert_eq!(store.clear_all().await.unwrap(), 3);
    assert_eq!(store.get_state_ids(None).await.unwrap(), [""; 0]);
    assert_eq!(store.clear_all().await.unwrap(), 0);
}

/// What an update leaves of what was stored.
async fn check_update(
    stored: (Option<&str>, Option<&str>),
    update: (Option<&str>, Option<&str>),
    expected: (Option<&str>, Option<&str>),
) {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("a", stored.0, stored.1)).await.unwrap();
    store.update(&state("a", update.0, update.1)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", expected.0, expected.1)), "{stored:?} {update:?}");
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_partial_update_is_merged_and_a_complete_one_replaces() {
    let one = Some("{\"a\":{\"x\":1}}");
    let two = Some("{\"a\":{\"y\":2}}");
    let both = Some("{\"a\":{\"x\":1,\"y\":2}}");
    check_update((one, one), (two, None), (both, one)).await;
    check_update((one, None), (two, None), (both, None)).await;
    check_update((None, one), (two, None), (two, one)).await;
    check_update((one, one), (None, two), (None, two)).await;
    check_update((one, one), (two, two), (two, two)).await;
    check_update((one, two), (Some("{}"), Some("{}")), (one, two)).await;
}

#[tokio::test]
async fn an_update_of_nothing_is_written_as_given() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.update(&state("a", Some("{\"x\":1}"), None)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"x\":1}"), None)));
    assert_eq!(sandbox.lock_rows(), "");
}

async fn check_refused(store: &mut Instance, partial: Option<&str>, completed: Option<&str>) {
    let bad = state("a", partial, completed);
    for result in [store.set(&bad).await, store.update(&bad).await.map(drop)] {
        let error = component_error(result);
        assert_eq!(error.kind, ErrorKind::InvalidState, "{bad:?}");
        assert!(error.hint.is_some());
    }
}

#[tokio::test]
async fn what_is_no_state_is_refused_and_nothing_is_lost() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let good = state("a", Some("{\"x\":1}"), Some("{\"y\":2}"));
    store.set(&good).await.unwrap();
    for text in ["", "[]", "null", "\"x\"", "1", "{", "{\"a\":NaN}", "{} {}"] {
        check_refused(&mut store, Some(text), None).await;
        check_refused(&mut store, None, Some(text)).await;
    }
    assert_eq!(store.get("a").await.unwrap(), Some(good));
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_corrupt_state_is_reported_for_its_id_alone_and_can_be_repaired() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("good", None, Some("{\"x\":1}"))).await.unwrap();
    for (id, text) in [("nan", "{\"a\": NaN}"), ("list", "[1]"), ("cut", "{\"a\":"), ("bytes", "\\xff{}")] {
        sandbox.sql(&format!("INSERT INTO {{}}.state (state_id, partial_state) VALUES ('{id}', '{text}')"));
        assert_eq!(component_error(store.get(id).await).kind, ErrorKind::CorruptState, "{id}");
        let error = component_error(store.update(&state(id, Some("{\"x\":1}"), None)).await);
        assert_eq!(error.kind, ErrorKind::CorruptState, "{id}");
    }
    assert_eq!(sandbox.lock_rows(), "");
    assert_eq!(store.get_state_ids(None).await.unwrap(), ["bytes", "cut", "good", "list", "nan"]);
    assert!(store.get("good").await.unwrap().is_some());

    store.update(&state("nan", None, Some("{\"x\":1}"))).await.unwrap();
    store.set(&state("list", None, Some("{\"x\":1}"))).await.unwrap();
    store.clear("cut").await.unwrap();
    store.delete("bytes").await.unwrap();
    assert_eq!(store.get_state_ids(None).await.unwrap(), ["good", "list", "nan"]);
}

#[tokio::test]
async fn a_table_that_is_no_state_table_is_reported_as_such() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    sandbox.sql("CREATE DATABASE {}");
    sandbox.sql("CREATE TABLE {}.state (id UInt32) ENGINE = MergeTree ORDER BY id");
    let error = component_error(store.init().await);
    assert_eq!(error.kind, ErrorKind::SchemaMismatch, "{error}");
    let error = component_error(store.get("a").await);
    assert_eq!(error.kind, ErrorKind::SchemaMismatch);
    let error = component_error(store.set(&state("a", None, Some("{\"x\":1}"))).await);
    assert_eq!(error.kind, ErrorKind::SchemaMismatch);
}

#[tokio::test]
async fn a_state_that_is_too_large_is_refused_and_leaves_no_lock() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let large = |mib: usize| format!("{{\"k\":\"{}\"}}", "x".repeat(mib << 20));
    let half = large(13);
    store.update(&state("a", Some(&half), None)).await.unwrap();
    let other = half.replacen('k', "l", 1);
    for too_much in [state("a", Some(&other), None), state("a", None, Some(&large(25)))] {
        let error = component_error(store.update(&too_much).await);
        assert_eq!(error.kind, ErrorKind::InvalidState);
    }
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some(&half), None)));
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn settings_that_are_missing_are_named_before_any_request() {
    let mut uri = crate::server::SERVER.uri();
    uri.set_path("/");
    let error = component_error(instance(&uri, &[]).await.get("a").await);
    assert_eq!(error.kind, ErrorKind::MissingSetting);
    assert!(error.message.contains("state_backend.clickhouse.database"), "{error}");
}

/// Each part alone may be as large as a state, both together may not.
#[tokio::test]
async fn a_merge_that_makes_a_state_too_large_is_refused() {
    const LARGEST: usize = 24 << 20;
    let text = |length: usize| format!("{{\"k\":\"{}\"}}", "x".repeat(length - 8));
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let (completed, partial) = (text(LARGEST - 40), text(30));
    store.set(&state("a", Some(&partial), Some(&completed))).await.unwrap();
    let stored = Some(state("a", Some(&partial), Some(&completed)));
    let too_much = state("a", Some(&format!("{{\"m\":\"{}\"}}", "y".repeat(11))), None);
    for _ in 0..2 {
        let error = component_error(store.update(&too_much).await);
        assert_eq!(error.kind, ErrorKind::InvalidState);
        assert!(error.message.contains("nothing was written"), "{error}");
        assert!(store.get("a").await.unwrap() == stored, "it is what it was");
    }
    assert_eq!(sandbox.lock_rows(), "");
    // What just fits is stored.
    let shorter = state("a", Some("{\"m\":1}"), None);
    store.update(&shorter).await.unwrap();
    assert_eq!(store.get("a").await.unwrap().unwrap().partial_state.unwrap().len(), partial.len() + ",\"m\":1".len());
}
