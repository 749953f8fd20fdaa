//! Tables with a projection, from which rows cannot be removed by marking them.

use crate::sandbox::{Sandbox, state};

#[tokio::test]
async fn states_and_locks_go_as_from_any_table() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    for (table, key) in [("state", "updated_at"), ("state_lock", "locked_at")] {
        sandbox.sql(&format!("ALTER TABLE {{}}.{table} MODIFY SETTING deduplicate_merge_projection_mode = 'rebuild'"));
        sandbox
            .sql(&format!("ALTER TABLE {{}}.{table} ADD PROJECTION by_time (SELECT state_id, {key} ORDER BY {key})"));
    }
    let value = |id: &str| state(id, Some("{\"x\":1}"), None);
    for id in ["a", "b", "c", "d"] {
        assert_eq!(store.update(&value(id)).await.unwrap(), []);
        store.set(&value(id)).await.unwrap();
    }
    assert_eq!(store.clear("a").await.unwrap(), []);
    assert_eq!(store.move_state("b", "e", true).await.unwrap(), []);
    store.delete("c").await.unwrap();
    assert_eq!(store.get_state_ids(None).await.unwrap(), ["d", "e"]);
    assert_eq!(store.get("e").await.unwrap(), Some(value("e")));
    assert_eq!(sandbox.lock_rows(), "");
    assert_eq!(store.clear_all().await.unwrap(), 2);
    assert_eq!(store.get_state_ids(None).await.unwrap(), [""; 0]);
}
