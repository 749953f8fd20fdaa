//! What users may do: the privileges that the README lists are enough, and a missing one is named.

use meltano_state_host::ErrorKind;

use crate::sandbox::{Sandbox, component_error, instance, state};
use crate::server::SERVER;
use crate::users::{
    CREATOR, HISTORIAN, HISTORY, HISTORY_READER, LIMITED, MINIMAL, READER, READER_WITH_SETTINGS, REMEMBERER, STRANGER,
    UNAWARE,
};

#[tokio::test]
async fn the_documented_privileges_are_enough_for_everything_but_creating() {
    for grant in MINIMAL {
        assert_documented(grant);
    }

    let (sandbox, uri) = Sandbox::of(&LIMITED);
    sandbox.instance().await.init().await.unwrap();
    let mut store = instance(&uri, &[]).await;
    store.init().await.unwrap();
    store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
    store.update(&state("a", Some("{\"y\":2}"), None)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"y\":2}"), Some("{\"x\":1}"))));
    assert_eq!(store.get_state_ids(Some("*")).await.unwrap(), ["a"]);
    assert!(store.get_raw("a").await.unwrap().is_some());
    store.copy("a", "b", true).await.unwrap();
    store.move_state("b", "c", false).await.unwrap();
    assert_eq!(store.get_all(None, None, None).await.unwrap().len(), 2);
    store.set_all(&[state("d", None, None)]).await.unwrap();
    store.delete("d").await.unwrap();
    store.delete("c").await.unwrap();
    store.clear("a").await.unwrap();
    store.set(&state("b", None, Some("{\"x\":1}"))).await.unwrap();
    assert_eq!(store.clear_all().await.unwrap(), 1);
    assert_eq!(sandbox.lock_rows(), "");
}

fn assert_documented(grant: &str) {
    let documented = format!("GRANT {} TO", grant.replace("{}", "meltano"));
    assert!(include_str!("../../README.md").contains(&documented), "{documented}");
}

#[tokio::test]
async fn the_documented_privileges_are_enough_for_a_history() {
    assert_documented(HISTORY);
    assert_documented(HISTORY_READER);
    let (sandbox, uri) = Sandbox::of(&HISTORIAN);
    sandbox.sql("CREATE DATABASE {}");
    for days in ["7", "30", "0", "7"] {
        let mut store = instance(&uri, &[("state_backend.clickhouse.history_days", days)]).await;
        store.init().await.unwrap();
        store.update(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
    }
    assert_eq!(instance(&uri, &[]).await.versions("a", None, None).await.unwrap().len(), 4);

    // What another keeps, a user may write to without knowing, and look into with one privilege more.
    for (user, may_look) in [(UNAWARE, false), (REMEMBERER, true)] {
        let (sandbox, uri) = Sandbox::of(&user);
        let mut keeper = instance(&sandbox.uri(), &[("state_backend.clickhouse.history_days", "7")]).await;
        keeper.init().await.unwrap();
        let mut store = instance(&uri, &[]).await;
        store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
        store.update(&state("a", Some("{\"x\":2}"), None)).await.unwrap();
        let entries = keeper.versions("a", None, None).await.unwrap();
        assert_eq!(entries.len(), 2);
        if may_look {
            assert_eq!(store.versions("a", None, None).await.unwrap().len(), 2);
            store.restore("a", entries[1].updated_at).await.unwrap();
        } else {
            let error = component_error(store.versions("a", None, None).await);
            assert_eq!(error.kind, ErrorKind::PermissionDenied);
        }
    }
}

#[tokio::test]
async fn a_read_only_user_can_get_and_list() {
    for user in [READER, READER_WITH_SETTINGS] {
        let (sandbox, uri) = Sandbox::of(&user);
        let stored = state("a", None, Some("{\"x\":1}"));
        sandbox.instance().await.set(&stored).await.unwrap();
        let mut store = instance(&uri, &[]).await;
        assert_eq!(store.get("a").await.unwrap(), Some(stored));
        assert_eq!(store.get(&"long".repeat(3000)).await.unwrap(), None);
        assert_eq!(store.get_state_ids(Some("a*")).await.unwrap(), ["a"]);
        assert_eq!(store.get_all(Some("a*"), None, Some(5)).await.unwrap().len(), 1);
        let error = component_error(store.set(&state("a", None, Some("{\"x\":2}"))).await);
        assert_eq!(error.kind, ErrorKind::PermissionDenied, "{error}");
        assert!(error.hint.is_some());
    }
}

#[tokio::test]
async fn a_missing_privilege_is_named() {
    let (_sandbox, uri) = Sandbox::of(&STRANGER);
    let mut store = instance(&uri, &[]).await;
    let error = component_error(store.set(&state("a", None, Some("{\"x\":1}"))).await);
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert!(error.hint.unwrap().contains("GRANT "), "{}", error.message);
    assert!(error.server.is_some());
}

#[tokio::test]
async fn one_who_may_create_tables_needs_no_privilege_to_create_databases() {
    let (sandbox, uri) = Sandbox::of(&CREATOR);
    sandbox.sql("CREATE DATABASE {}");
    let mut store = instance(&uri, &[]).await;
    store.update(&state("a", Some("{\"x\":1}"), None)).await.unwrap();
    assert_eq!(store.get_state_ids(None).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_are_told_apart_from_a_missing_privilege() {
    let sandbox = Sandbox::new();
    for uri in [SERVER.uri_of("nobody", "x"), SERVER.uri_of(SERVER.uri().username(), "wrong")] {
        let mut uri = uri;
        uri.query_pairs_mut().append_pair("schema", &sandbox.schema);
        let error = component_error(instance(&uri, &[]).await.get("a").await);
        assert_eq!(error.kind, ErrorKind::Authentication, "{error}");
    }
}
