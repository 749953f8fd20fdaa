//! Users whose profiles change how the server carries statements out.

use std::sync::Arc;

use meltano_state_host::{Acquire, ErrorKind, Faults, Plugin, PooledClient, Settings};

use crate::sandbox::{Sandbox, cache, component_error, instance, state};
use crate::users::{CLASSIC, SKIPPING, TIED, UNPATCHED, User};

#[tokio::test]
async fn locks_and_writes_under_them_work_with_the_old_analyzer() {
    // An insert and a read; and as the user may not see mutations, another read.
    assert_eq!(under_locks(&CLASSIC).await, 3);
}

#[tokio::test]
async fn locks_and_writes_under_them_work_without_the_settings_that_make_them_fast() {
    // The first request is refused.
    assert_eq!(under_locks(&TIED).await, 4);
}

#[tokio::test]
async fn locks_are_released_where_no_patch_can_be_asked_for() {
    under_locks(&UNPATCHED).await;
}

#[tokio::test]
async fn what_was_not_stored_is_no_success() {
    let (sandbox, uri) = Sandbox::of(&SKIPPING);
    sandbox.instance().await.init().await.unwrap();
    let mut store = instance(&uri, &[]).await;
    let first = state("a", Some("{\"x\":1}"), None);
    let error = component_error(store.set(&first).await);
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert!(error.message.contains("0 of 1"), "{error}");
    let error = component_error(store.set_all(&[first, state("b", None, None)]).await);
    assert!(error.message.contains("1 of 2"), "{error}");
    let report = store.check().await.unwrap();
    assert!(format!("{report:?}").contains("input_format_tsv_skip_first_lines"), "{report:?}");
}

/// Says how many requests the first lock took.
async fn under_locks(user: &User) -> usize {
    let (sandbox, uri) = Sandbox::of(user);
    sandbox.instance().await.init().await.unwrap();
    let transport = Arc::new(Faults::over(PooledClient::default()));
    let settings = Settings::new().with("state_backend.uri", uri.as_str()).unwrap();
    let settings = settings.with("state_backend.clickhouse.lock_wait_seconds", "0").unwrap();
    let plugin = Plugin::builder().settings(settings).transport(Arc::clone(&transport)).cache(cache()).build().unwrap();
    let mut store = plugin.instance().await.unwrap();
    let first = store.acquire("a", &Acquire::default()).await.unwrap();
    let requests = transport.requests();
    store.release(first).await.unwrap();

    let update = |member: &str| state("a", Some(&format!("{{\"{member}\":1}}")), None);

    // With a read, and twice without.
    for member in ["a", "b", "c"] {
        store.update(&update(member)).await.unwrap();
    }
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    for member in ["d", "e"] {
        store.update_locked(&lock, &update(member)).await.unwrap();
        store.renew(&lock).await.unwrap();
    }
    let all = state("a", Some("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1}"), None);
    assert_eq!(store.get("a").await.unwrap(), Some(all.clone()));

    // Another has written what is not known here.
    sandbox.instance().await.set(&update("x")).await.unwrap();
    store.update_locked(&lock, &update("f")).await.unwrap();
    let both = state("a", Some("{\"x\":1,\"f\":1}"), None);
    assert_eq!(store.get("a").await.unwrap(), Some(both.clone()));

    // Another has taken the lock.
    sandbox.sql("DELETE FROM {}.state_lock WHERE true");
    let mut thief = sandbox.instance().await;
    let stolen = thief.acquire("a", &Acquire::default()).await.unwrap();
    assert_eq!(component_error(store.update_locked(&lock, &update("g")).await).kind, ErrorKind::LockLost);
    assert_eq!(component_error(store.renew(&lock).await).kind, ErrorKind::LockLost);
    assert_eq!(component_error(store.update(&update("h")).await).kind, ErrorKind::Locked);
    assert_eq!(store.get("a").await.unwrap(), Some(both));
    thief.release(stolen).await.unwrap();
    store.clear("a").await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), None);
    assert_eq!(sandbox.lock_rows(), "");
    requests
}
