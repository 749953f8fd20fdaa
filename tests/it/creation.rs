//! Creating the database and the tables: by `init`, and on first use.

use meltano_state_host::Instance;

use crate::sandbox::{Sandbox, state};

/// The tables that exist in the sandbox's database, with what tells them apart from others.
fn tables(sandbox: &Sandbox) -> String {
    sandbox.sql("SELECT name, engine, sorting_key FROM system.tables WHERE database = '{}' ORDER BY name")
}

const BOTH: &str = "state\tReplacingMergeTree\tstate_id\nstate_lock\tReplacingMergeTree\tstate_id, lock_id\n";

#[tokio::test]
async fn init_creates_what_is_missing_and_changes_nothing_else() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    assert_eq!(tables(&sandbox), BOTH);
    store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
    store.init().await.unwrap();
    assert!(store.get("a").await.unwrap().is_some());

    sandbox.sql("DROP TABLE {}.state_lock SYNC");
    store.init().await.unwrap();
    assert_eq!(tables(&sandbox), BOTH);
    assert!(store.get("a").await.unwrap().is_some());
}

#[tokio::test]
async fn the_first_write_creates_the_tables() {
    async fn check(write: impl AsyncFnOnce(&mut Instance)) {
        let sandbox = Sandbox::new();
        write(&mut sandbox.instance().await).await;
        assert_eq!(tables(&sandbox), BOTH);
    }
    check(async |store| store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap()).await;
    check(async |store| drop(store.update(&state("a", Some("{\"x\":1}"), None)).await.unwrap())).await;
}

#[tokio::test]
async fn reading_creates_nothing() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    assert_eq!(store.get("a").await.unwrap(), None);
    assert_eq!(store.get_state_ids(None).await.unwrap(), [""; 0]);
    store.delete("a").await.unwrap();
    assert_eq!(sandbox.sql("SELECT count() FROM system.databases WHERE name = '{}'"), "0\n");
}

#[tokio::test]
async fn an_existing_database_is_filled() {
    let sandbox = Sandbox::new();
    sandbox.sql("CREATE DATABASE {}");
    sandbox.instance().await.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
    assert_eq!(tables(&sandbox), BOTH);
}

#[tokio::test]
async fn several_at_once_may_create() {
    let sandbox = Sandbox::new();
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(sandbox.instance().await);
    }
    let [a, b, c, d] = &mut stores[..] else { unreachable!() };
    let [first, second, third] = ["a", "b", "d"].map(|id| state(id, None, Some("{\"x\":1}")));
    let (one, two, init, three) = tokio::join!(a.set(&first), b.set(&second), c.init(), d.set(&third));
    assert_eq!([one, two, init.map(drop), three], [const { Ok(()) }; 4]);
    assert_eq!(sandbox.instance().await.get_state_ids(None).await.unwrap(), ["a", "b", "d"]);
}
