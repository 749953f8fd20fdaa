//! Copying and moving.

use meltano_state_host::{Acquire, ErrorKind};

use crate::sandbox::{Sandbox, component_error, instance, state};

const PARTIAL: &str = "{\"a\":{\"new\":1.10}}";
const COMPLETED: &str = "{\"a\":{\"old\":1},\"b\":2}";
const MERGED: &str = "{\"a\":{\"old\":1,\"new\":1.10},\"b\":2}";

/// What a copy of a state has.
async fn check(source: (Option<&str>, Option<&str>), keep_parts: bool, copied: (Option<&str>, Option<&str>)) {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let source = state("source", source.0, source.1);
    let copied = Some(state("destination", copied.0, copied.1));
    store.set(&source).await.unwrap();
    store.set(&state("destination", Some("{\"other\":1}"), None)).await.unwrap();
    store.copy("source", "destination", keep_parts).await.unwrap();
    assert_eq!(store.get("source").await.unwrap(), Some(source));
    assert_eq!(store.get("destination").await.unwrap(), copied);

    store.delete("destination").await.unwrap();
    store.move_state("source", "destination", keep_parts).await.unwrap();
    assert_eq!(store.get("source").await.unwrap(), None);
    assert_eq!(store.get("destination").await.unwrap(), copied);
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_copy_has_what_a_run_would_start_from() {
    check((Some(PARTIAL), Some(COMPLETED)), false, (None, Some(MERGED))).await;
    check((Some(PARTIAL), None), false, (None, Some(PARTIAL))).await;
    check((None, Some(COMPLETED)), false, (None, Some(COMPLETED))).await;
}

#[tokio::test]
async fn or_both_parts_as_they_are() {
    check((Some(PARTIAL), Some(COMPLETED)), true, (Some(PARTIAL), Some(COMPLETED))).await;
    check((Some(PARTIAL), None), true, (Some(PARTIAL), None)).await;
}

#[tokio::test]
async fn what_cannot_be_copied_changes_nothing() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let destination = state("destination", None, Some(COMPLETED));
    store.set(&destination).await.unwrap();
    store.set(&state("empty", None, None)).await.unwrap();
    for (source, to) in [
        ("none", "destination"),
        ("empty", "destination"),
        ("destination", "destination"),
        ("", "x"),
        ("destination", ""),
    ] {
        for keep_parts in [false, true] {
            let error = component_error(store.copy(source, to, keep_parts).await);
            assert_eq!(error.kind, ErrorKind::InvalidArgument, "{source:?} to {to:?}");
            let error = component_error(store.move_state(source, to, keep_parts).await);
            assert_eq!(error.kind, ErrorKind::InvalidArgument, "{source:?} to {to:?}");
        }
    }
    assert_eq!(store.get("destination").await.unwrap(), Some(destination));
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn both_ids_are_locked_while_a_state_moves() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let mut other = instance(&sandbox.uri(), &[("lock_wait_seconds", "0")]).await;
    for id in ["a", "b"] {
        store.set(&state("a", None, Some(COMPLETED))).await.unwrap();
        let lock = store.acquire(id, &Acquire::default()).await.unwrap();
        for (source, destination) in [("a", "b"), ("b", "a")] {
            let error = component_error(other.move_state(source, destination, false).await);
            assert_eq!(error.kind, ErrorKind::Locked, "{source} to {destination} while {id} is locked");
        }
        store.release(lock).await.unwrap();
        assert_eq!(store.get_state_ids(None).await.unwrap(), ["a"]);
        assert_eq!(sandbox.lock_rows(), "");
    }
}

/// Two that move states to and fro wait for each other, but never for ever.
#[tokio::test]
async fn moves_against_each_other_end() {
    let sandbox = Sandbox::new();
    sandbox.instance().await.set(&state("a", None, Some(COMPLETED))).await.unwrap();
    let run = async |source: &str, destination: &str| {
        let mut store = sandbox.instance().await;
        let mut moved = 0;
        for _ in 0..10 {
            match store.move_state(source, destination, true).await {
                Ok(_) => moved += 1,
                error => assert_eq!(component_error(error).kind, ErrorKind::InvalidArgument),
            }
        }
        moved
    };
    let (there, back) = tokio::join!(run("a", "b"), run("b", "a"));
    let mut store = sandbox.instance().await;
    let ids = store.get_state_ids(None).await.unwrap();
    assert_eq!(ids, [if there > back { "b" } else { "a" }], "{there} there, {back} back");
    assert_eq!(store.get(&ids[0]).await.unwrap(), Some(state(&ids[0], None, Some(COMPLETED))));
    assert_eq!(sandbox.lock_rows(), "");
}
