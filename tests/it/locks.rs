//! The lock: who gets it, who waits, what is left.

use std::time::{Duration, Instant};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use meltano_state_host::{Acquire, ErrorKind, Fault, Faults, Instance, Plugin, PooledClient, Seen, Settings};

use crate::sandbox::{Sandbox, cache, component_error, instance, state};

const SETTLE: &str = "state_backend.clickhouse.lock_settle_seconds";
const PROTOCOL: &str = "state_backend.clickhouse.lock_protocol";
const WAIT: &str = "state_backend.clickhouse.lock_wait_seconds";
const RETRY: &str = "state_backend.lock_retry_seconds";

fn insert_lock(sandbox: &Sandbox, lock_id: &str, age_seconds: u32) {
    sandbox.sql(&format!(
        "INSERT INTO {{}}.state_lock (state_id, lock_id, locked_at) VALUES ('a', '{lock_id}', now() - {age_seconds})"
    ));
}

#[tokio::test]
async fn a_held_lock_is_waited_for_and_its_holder_named() {
    let sandbox = Sandbox::new();
    let mut store = instance(&sandbox.uri(), &[(WAIT, "1.5"), (RETRY, "0.2")]).await;
    store.init().await.unwrap();
    insert_lock(&sandbox, "rival", 10);
    let start = Instant::now();
    let error = component_error(store.update(&state("a", Some("{\"x\":1}"), None)).await);
    let waited = start.elapsed();
    assert_eq!(error.kind, ErrorKind::Locked);
    assert!(error.message.contains("rival"), "{error}");
    assert!(waited > Duration::from_millis(1000) && waited < Duration::from_secs(3), "{waited:?}");
    assert_eq!(component_error(store.clear("a").await).kind, ErrorKind::Locked);
    assert_eq!(store.get("a").await.unwrap(), None);
    assert_eq!(sandbox.lock_rows(), "a\trival\n");
    // Locks of other ids do not matter, and neither do locks to calls that take none.
    store.update(&state("b", Some("{\"x\":1}"), None)).await.unwrap();
    store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
}

#[tokio::test]
async fn a_released_lock_is_taken() {
    let sandbox = Sandbox::new();
    let mut store = instance(&sandbox.uri(), &[(RETRY, "0.05")]).await;
    store.init().await.unwrap();
    insert_lock(&sandbox, "rival", 0);
    let update = state("a", Some("{\"x\":1}"), None);
    let release = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        sandbox.sql("DELETE FROM {}.state_lock WHERE lock_id = 'rival'");
    };
    let (updated, ()) = tokio::join!(store.update(&update), release);
    updated.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(update));
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_stale_lock_is_removed() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    insert_lock(&sandbox, "dead", 301);
    store.update(&state("a", Some("{\"x\":1}"), None)).await.unwrap();
    assert_eq!(sandbox.lock_rows(), "");
    // One second later it would be stale; the margin is for the statements before this one.
    insert_lock(&sandbox, "alive", 290);
    let mut impatient = instance(&sandbox.uri(), &[(WAIT, "0")]).await;
    assert_eq!(component_error(impatient.clear("a").await).kind, ErrorKind::Locked);
}

/// Creates the tables with the add-on's own lock table.
async fn plain_lock_table(sandbox: &Sandbox) {
    sandbox.instance().await.init().await.unwrap();
    make_plain(sandbox);
}

fn make_plain(sandbox: &Sandbox) {
    sandbox.sql("DROP TABLE {}.state_lock SYNC");
    sandbox.sql(
        "CREATE TABLE {}.state_lock (state_id String, lock_id String, locked_at DateTime DEFAULT now()) \
         ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL locked_at + INTERVAL 300 SECOND",
    );
}

/// A peer that has looked before our row was there inserts its own while we settle.
async fn race(sandbox: &Sandbox, rival: &str) -> bool {
    let mut store = instance(&sandbox.uri(), &[(PROTOCOL, "settle"), (SETTLE, "1"), (WAIT, "0")]).await;
    let peer = async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        insert_lock(sandbox, rival, 0);
    };
    let update = state("a", Some("{\"x\":1}"), None);
    let (updated, ()) = tokio::join!(store.update(&update), peer);
    assert_eq!(sandbox.lock_rows(), format!("a\t{rival}\n"));
    updated.is_ok()
}

#[tokio::test]
async fn on_the_addons_table_the_lower_id_wins_and_on_ours_the_first() {
    for (rival, wins_on_theirs) in [("00000000-0000-0000-0000-000000000000", false), ("ffffffff", true)] {
        let theirs = Sandbox::new();
        plain_lock_table(&theirs).await;
        assert_eq!(race(&theirs, rival).await, wins_on_theirs, "{rival}");
        let ours = Sandbox::new();
        ours.instance().await.init().await.unwrap();
        assert!(race(&ours, rival).await, "{rival}");
    }
}

#[tokio::test]
async fn ticket_needs_our_table() {
    let sandbox = Sandbox::new();
    plain_lock_table(&sandbox).await;
    let mut store = instance(&sandbox.uri(), &[(PROTOCOL, "ticket")]).await;
    let error = component_error(store.clear("a").await);
    assert_eq!(error.kind, ErrorKind::SchemaMismatch, "{error}");
    assert_eq!(sandbox.lock_rows(), "");
}

/// The lock table's columns and sorting key.
fn lock_table(sandbox: &Sandbox) -> String {
    sandbox.sql(
        "SELECT (SELECT groupArray(name) FROM system.columns WHERE database = '{}' AND table = 'state_lock'), sorting_key \
         FROM system.tables WHERE database = '{}' AND name = 'state_lock'",
    )
}

const PLAIN: &str = "['state_id','lock_id','locked_at']\tstate_id\n";
const OURS: &str = "['state_id','lock_id','locked_at','owner','ticket','stale_ms']\tstate_id, lock_id\n";

#[tokio::test]
async fn init_upgrades_the_addons_lock_table_unless_a_live_lock_is_in_it() {
    let sandbox = Sandbox::new();
    plain_lock_table(&sandbox).await;
    let mut store = sandbox.instance().await;
    // Works on the old layout meanwhile, and knows it.
    store.update(&state("a", Some("{\"x\":1}"), None)).await.unwrap();
    insert_lock(&sandbox, "rival", 200);
    store.init().await.unwrap();
    assert_eq!(lock_table(&sandbox), PLAIN);

    sandbox.sql("DELETE FROM {}.state_lock WHERE true");
    insert_lock(&sandbox, "dead", 1000);
    sandbox.instance().await.init().await.unwrap();
    assert_eq!(lock_table(&sandbox), OURS);
    assert_eq!(sandbox.sql("SELECT count() FROM system.tables WHERE database = '{}'"), "2\n");
    // An instance that knew the old layout finds out.
    store.update(&state("a", Some("{\"y\":1}"), None)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"x\":1,\"y\":1}"), None)));
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_held_lock_is_renewed_written_through_and_released() {
    for plain in [false, true] {
        let sandbox = Sandbox::new();
        if plain {
            plain_lock_table(&sandbox).await;
        }
        let mut store = instance(&sandbox.uri(), &[(WAIT, "0")]).await;
        let options = Acquire { owner: "a test".to_owned(), ..Acquire::default() };
        let lock = store.acquire("a", &options).await.unwrap();
        assert!(lock.lock_id().starts_with("00000000-"));
        store.update_locked(&lock, &state("a", Some("{\"x\":1}"), None)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        store.renew(&lock).await.unwrap();
        store.update_locked(&lock, &state("a", Some("{\"y\":1}"), None)).await.unwrap();
        let merged = state("a", Some("{\"x\":1,\"y\":1}"), None);
        assert_eq!(store.get("a").await.unwrap(), Some(merged));

        let holders = store.holders(Some("*")).await.unwrap();
        let [holder] = &holders[..] else { panic!("{holders:?}") };
        assert_eq!((holder.state_id.as_str(), holder.lock_id.as_str()), ("a", lock.lock_id()));
        assert_eq!(holder.owner, if plain { "" } else { "a test" });
        assert!(!holder.stale && holder.age <= Duration::from_secs(1), "renewed: {holder:?}");
        assert!(holder.expires_in > Duration::from_secs(290), "{holder:?}");

        let mut rival = instance(&sandbox.uri(), &[(WAIT, "0")]).await;
        let error = component_error(rival.acquire("a", &Acquire::default()).await);
        assert_eq!(error.kind, ErrorKind::Locked);
        assert!(plain || error.message.contains("a test"), "{error}");

        store.set_locked(&lock, &state("a", None, Some("{\"z\":1}"))).await.unwrap();
        let other = store.set_locked(&lock, &state("b", None, None)).await;
        assert_eq!(component_error(other).kind, ErrorKind::InvalidArgument);
        store.release(lock).await.unwrap();
        assert_eq!(store.holders(None).await.unwrap(), []);
        let lock = rival.acquire("a", &Acquire::default()).await.unwrap();
        rival.release(lock).await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_removed_by_force_is_lost() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    let mut operator = sandbox.instance().await;
    assert!(!operator.force_release("a", "another").await.unwrap());
    assert!(operator.force_release("a", lock.lock_id()).await.unwrap());
    assert_eq!(component_error(store.renew(&lock).await).kind, ErrorKind::LockLost);
    let written = store.update_locked(&lock, &state("a", Some("{\"x\":1}"), None)).await;
    assert_eq!(component_error(written).kind, ErrorKind::LockLost);
    assert_eq!(store.get("a").await.unwrap(), None);
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_stale_holder_cannot_write_after_another_took_over() {
    let sandbox = Sandbox::new();
    let short = [
        ("state_backend.clickhouse.lock_stale_seconds", "2.5"),
        ("state_backend.clickhouse.request_timeout_seconds", "1"),
    ];
    let mut first = instance(&sandbox.uri(), &short).await;
    let lock = first.acquire("a", &Acquire::default()).await.unwrap();
    let mut second = instance(&sandbox.uri(), &short).await;
    let taken_over = second.acquire("a", &Acquire::default()).await.unwrap();
    let written = first.update_locked(&lock, &state("a", Some("{\"late\":1}"), None)).await;
    assert_eq!(component_error(written).kind, ErrorKind::LockLost);
    assert_eq!(component_error(first.renew(&lock).await).kind, ErrorKind::LockLost);
    second.update_locked(&taken_over, &state("a", Some("{\"x\":1}"), None)).await.unwrap();
    // Releasing what is lost harms nobody.
    first.release(lock).await.unwrap();
    second.renew(&taken_over).await.unwrap();
    second.release(taken_over).await.unwrap();
    assert_eq!(second.get("a").await.unwrap(), Some(state("a", Some("{\"x\":1}"), None)));
}

#[tokio::test]
async fn a_set_that_takes_no_lock_is_not_lost_to_an_update() {
    let sandbox = Sandbox::new();
    let mut other = sandbox.instance().await;
    other.set(&state("a", Some("{\"a\":1}"), None)).await.unwrap();
    // The first write waits until another process has written without a lock.
    let slow = faults().at(2, Fault::Delay(Duration::from_millis(700)));
    let mut store = instance_over(slow, &sandbox).await;
    let update = state("a", Some("{\"c\":3}"), None);
    let set = async {
        tokio::time::sleep(Duration::from_millis(350)).await;
        other.set(&state("a", Some("{\"b\":2}"), None)).await.unwrap();
    };
    let (updated, ()) = tokio::join!(store.update(&update), set);
    updated.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"b\":2,\"c\":3}"), None)));
}

#[tokio::test]
async fn with_tickets_a_section_takes_three_requests_and_an_update_as_many_once_the_state_is_known() {
    let sandbox = Sandbox::new();
    let counted = Arc::new(faults());
    let settings = Settings::new().with("state_backend.uri", sandbox.uri().as_str()).unwrap();
    let plugin = Plugin::builder().settings(settings).transport(Arc::clone(&counted)).cache(cache()).build().unwrap();
    let mut store = plugin.instance().await.unwrap();
    store.init().await.unwrap();
    store.set(&state("a", Some("{\"x\":1}"), None)).await.unwrap();
    let requests = async |action: &str, store: &mut Instance| {
        let before = counted.requests();
        match action {
            "section" => {
                let lock = store.acquire("a", &Acquire::default()).await.unwrap();
                store.release(lock).await.unwrap();
            }
            "section with an update" => {
                let lock = store.acquire("a", &Acquire::default()).await.unwrap();
                store.update_locked(&lock, &state("a", Some("{\"y\":1}"), None)).await.unwrap();
                store.release(lock).await.unwrap();
            }
            "other" => drop(store.update(&state("b", Some("{\"y\":1}"), None)).await.unwrap()),
            "partial" => drop(store.update(&state("a", Some("{\"y\":1}"), None)).await.unwrap()),
            _ => drop(store.update(&state("a", None, Some("{\"y\":1}"))).await.unwrap()),
        }
        counted.requests() - before
    };
    // The first one too, which finds out what the table can tell.
    assert_eq!(requests("section", &mut store).await, 3);
    assert_eq!(requests("section", &mut store).await, 3);
    for (action, expected) in [
        ("partial", 4),
        ("partial", 3),
        ("complete", 3),
        ("section with an update", 4),
        ("partial", 3),
        // Only the state that was written last is known.
        ("other", 4),
        ("section with an update", 5),
    ] {
        assert_eq!(requests(action, &mut store).await, expected, "{action}");
    }
    // The lock table has to be looked at again.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(requests("partial", &mut store).await, 4);
}

#[tokio::test]
async fn an_update_of_a_known_state_sees_what_others_did_to_it() {
    let sandbox = Sandbox::new();
    let (mut store, mut other) = (sandbox.instance().await, sandbox.instance().await);
    store.init().await.unwrap();
    let update = async |store: &mut Instance, text: &str| store.update(&state("a", Some(text), None)).await.unwrap();
    update(&mut store, r#"{"x":1}"#).await;
    other.set(&state("a", Some(r#"{"y":2}"#), Some(r#"{"z":3}"#))).await.unwrap();
    update(&mut store, r#"{"x":3}"#).await;
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some(r#"{"y":2,"x":3}"#), Some(r#"{"z":3}"#))));
    update(&mut other, r#"{"w":4}"#).await;
    update(&mut store, r#"{"x":5}"#).await;
    let both = state("a", Some(r#"{"y":2,"x":5,"w":4}"#), Some(r#"{"z":3}"#));
    assert_eq!(store.get("a").await.unwrap(), Some(both));
    other.delete("a").await.unwrap();
    update(&mut store, r#"{"x":6}"#).await;
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some(r#"{"x":6}"#), None)));
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    other.set(&state("a", Some(r#"{"y":7}"#), None)).await.unwrap();
    store.update_locked(&lock, &state("a", Some(r#"{"x":8}"#), None)).await.unwrap();
    store.release(lock).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some(r#"{"y":7,"x":8}"#), None)));
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn an_update_of_a_known_state_sees_what_was_written_in_the_same_millisecond() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    for n in 0..20 {
        store.update(&state("a", Some(&format!("{{\"x\":{n}}}")), Some("{}"))).await.unwrap();
        sandbox.sql(
            "INSERT INTO {}.state SELECT state_id, '{\"y\":1}', NULL, updated_at FROM {}.state FINAL WHERE state_id = 'a'",
        );
        store.update(&state("a", Some("{\"z\":1}"), None)).await.unwrap();
        assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"y\":1,\"z\":1}"), None)), "{n}");
    }
}

#[tokio::test]
async fn an_update_of_a_known_state_does_not_take_an_empty_text_for_no_state() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let update = state("a", Some("{\"x\":1}"), None);
    for (partial, completed) in [("'{\"x\":1}'", "''"), ("''", "NULL"), ("''", "''")] {
        store.set(&update).await.unwrap();
        store.update(&update).await.unwrap();
        sandbox.sql(&format!(
            "INSERT INTO {{}}.state (state_id, partial_state, completed_state, updated_at) \
             SELECT 'a', {partial}, {completed}, now64(3) + 1"
        ));
        let error = component_error(store.update(&update).await);
        assert_eq!(error.kind, ErrorKind::CorruptState, "{partial}, {completed}");
        store.delete("a").await.unwrap();
    }
}

/// A fenced write rests on this: within a union, the server looks at the tables in their order.
#[test]
fn of_a_union_the_server_looks_at_the_first_table_first() {
    let sandbox = Sandbox::new();
    sandbox.sql("CREATE DATABASE {}");
    sandbox.sql("CREATE TABLE {}.first (a UInt8) ENGINE = MergeTree ORDER BY a");
    sandbox.sql("INSERT INTO {}.first VALUES (0)");
    for (analyzer, table) in [(0, "old"), (1, "new")] {
        sandbox.sql(&format!("CREATE TABLE {{}}.{table} (a UInt8) ENGINE = MergeTree ORDER BY a"));
        let seen = std::thread::scope(|scope| {
            // The condition on the first table takes two seconds, within which the second table gets a row.
            let union = scope.spawn(|| {
                sandbox.sql(&format!(
                    "SELECT max(a) FROM (SELECT 0 AS a FROM {{}}.first WHERE (SELECT sum(sleepEachRow(0.5)) = 0 FROM numbers(4) \
                     SETTINGS max_block_size = 1) HAVING count() = 1 UNION ALL SELECT a FROM {{}}.{table}) \
                     SETTINGS enable_analyzer = {analyzer}"
                ))
            });
            std::thread::sleep(Duration::from_millis(1000));
            sandbox.sql(&format!("INSERT INTO {{}}.{table} VALUES (1)"));
            union.join().unwrap()
        });
        assert_eq!(seen, "1\n", "analyzer = {analyzer}");
    }
}

#[tokio::test]
async fn an_update_of_a_known_state_waits_for_a_holder() {
    let sandbox = Sandbox::new();
    let mut store = instance(&sandbox.uri(), &[(WAIT, "0.5")]).await;
    let known = state("a", Some("{\"x\":1}"), None);
    store.update(&known).await.unwrap();
    insert_lock(&sandbox, "rival", 0);
    let error = component_error(store.update(&state("a", Some("{\"x\":2}"), None)).await);
    assert_eq!(error.kind, ErrorKind::Locked);
    assert!(error.message.contains("rival"), "{error}");
    assert_eq!(store.get("a").await.unwrap(), Some(known.clone()));
    assert_eq!(sandbox.lock_rows(), "a\trival\n");
    sandbox.sql("DELETE FROM {}.state_lock WHERE true");
    store.update(&known).await.unwrap();
    // One that is stale does not count.
    insert_lock(&sandbox, "dead", 301);
    store.update(&state("a", Some("{\"x\":3}"), None)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"x\":3}"), None)));
}

#[tokio::test]
async fn a_table_that_loses_its_order_between_two_updates_is_settled_on() {
    let sandbox = Sandbox::new();
    let mut store = instance(&sandbox.uri(), &[(SETTLE, "0.5"), (WAIT, "0")]).await;
    let update = |n: u32| state("a", Some(&format!("{{\"x\":{n}}}")), None);
    store.update(&update(1)).await.unwrap();
    make_plain(&sandbox);
    let start = Instant::now();
    store.update(&update(2)).await.unwrap();
    assert!(start.elapsed() > Duration::from_millis(500));
    insert_lock(&sandbox, "rival", 0);
    assert_eq!(component_error(store.update(&update(3)).await).kind, ErrorKind::Locked);
    assert_eq!(sandbox.lock_rows(), "a\trival\n");
    assert_eq!(store.get("a").await.unwrap(), Some(update(2)));
}

#[tokio::test]
async fn a_stale_row_that_comes_back_does_not_stop_a_holder() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    // Takes the first block number, which the row that comes back has.
    let first = store.acquire("b", &Acquire::default()).await.unwrap();
    store.release(first).await.unwrap();
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    // As a mutation can bring it back that runs while the row is deleted. It came before every other.
    sandbox
        .sql("INSERT INTO {}.state_lock (state_id, lock_id, locked_at, ticket) VALUES ('a', 'dead', now() - 301, 1)");
    store.update_locked(&lock, &state("a", Some("{\"x\":1}"), None)).await.unwrap();
    assert_eq!(sandbox.lock_rows(), format!("a\t{}\n", lock.lock_id()));
    store.release(lock).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"x\":1}"), None)));
}

/// Whether a lock row is inserted without a look for a live one.
fn is_claim(request: &Seen<'_>) -> bool {
    request.contains("stale_ms) SELECT {") && !request.contains("NOT IN")
}

#[tokio::test]
async fn an_update_of_a_known_state_that_fails_half_way_leaves_no_lock() {
    let sandbox = Sandbox::new();
    let update = |n: u32| state("a", Some(&format!("{{\"x\":{n}}}")), None);
    let claim_lost = faults().when(is_claim, Fault::FailAfter);
    let mut store = instance_over(claim_lost, &sandbox).await;
    store.update(&update(1)).await.unwrap();
    // The claim is taken back, and the lock taken in the usual way.
    store.update(&update(2)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(update(2)));
    assert_eq!(sandbox.lock_rows(), "");

    // The first attempt is carried out and its answer lost, so the second finds another state than was known.
    let lost_once = AtomicBool::new(false);
    let write_lost = faults().when(
        move |request| request.contains("was_partial") && !lost_once.swap(true, Ordering::Relaxed),
        Fault::FailAfter,
    );
    let mut store = instance_over(write_lost, &sandbox).await;
    store.update(&update(3)).await.unwrap();
    store.update(&update(4)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(update(4)));
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_lock_taken_away_before_the_write_is_noticed_and_nothing_is_written() {
    let sandbox = Sandbox::new();
    let before = state("a", Some("{\"before\":1}"), None);
    sandbox.instance().await.set(&before).await.unwrap();
    let slow_writes = faults().when(|request| request.contains("FROM rows"), Fault::Delay(Duration::from_millis(800)));
    let mut store = instance_over(slow_writes, &sandbox).await;
    let thief = async {
        // After the settle time of 0.1 s, before the write.
        tokio::time::sleep(Duration::from_millis(500)).await;
        sandbox.sql("DELETE FROM {}.state_lock WHERE true");
        insert_lock(&sandbox, "thief", 0);
    };
    let update = state("a", Some("{\"after\":1}"), None);
    let (updated, ()) = tokio::join!(store.update(&update), thief);
    let error = component_error(updated);
    assert_eq!(error.kind, ErrorKind::LockLost);
    assert!(error.message.contains("was lost"), "{error}");
    assert_eq!(store.get("a").await.unwrap(), Some(before));
    assert_eq!(sandbox.lock_rows(), "a\tthief\n");
}

#[tokio::test]
async fn a_lock_whose_table_was_replaced_is_lost() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    let before = state("a", Some("{\"x\":1}"), None);
    store.update_locked(&lock, &before).await.unwrap();
    make_plain(&sandbox);
    let update = state("a", Some("{\"x\":2}"), None);
    assert_eq!(component_error(store.update_locked(&lock, &update).await).kind, ErrorKind::LockLost);
    assert_eq!(component_error(store.set_locked(&lock, &update).await).kind, ErrorKind::LockLost);
    assert_eq!(component_error(store.renew(&lock).await).kind, ErrorKind::LockLost);
    assert_eq!(store.get("a").await.unwrap(), Some(before));
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    store.update_locked(&lock, &update).await.unwrap();
    store.release(lock).await.unwrap();
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn an_uncertain_insert_of_a_lock_is_taken_back() {
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    let lost = faults().when(|request| request.contains("NOT IN"), Fault::FailAfter);
    let mut store = instance_over(lost, &sandbox).await;
    let error = component_error(store.update(&state("a", Some("{\"x\":1}"), None)).await);
    assert_eq!(error.kind, ErrorKind::Unreachable);
    assert!(error.message.contains("nothing was written"), "{error}");
    assert_eq!(sandbox.lock_rows(), "");
    assert_eq!(store.get("a").await.unwrap(), None);
}

#[tokio::test]
async fn a_state_from_before_1970_is_updated() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    sandbox.sql("INSERT INTO {}.state VALUES ('a', '{\"x\":1}', NULL, '1969-12-31 12:00:00.000')");
    store.update(&state("a", Some("{\"y\":1}"), None)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"x\":1,\"y\":1}"), None)));
}

#[tokio::test]
async fn instances_that_write_one_state_in_turns_soon_read_it_again() {
    let sandbox = Sandbox::new();
    let settings = Settings::new().with("state_backend.uri", sandbox.uri().as_str()).unwrap();
    let counted = Arc::new(faults());
    let plugin = Plugin::builder().settings(settings).transport(Arc::clone(&counted)).cache(cache()).build().unwrap();
    let mut stores = [plugin.instance().await.unwrap(), plugin.instance().await.unwrap()];
    stores[0].init().await.unwrap();
    for attempt in 0..10 {
        let state_id = attempt.to_string();
        let start = Instant::now();
        let mut requests = Vec::new();
        for (turn, who) in [0, 1, 0, 1, 0, 1, 0, 0, 0].into_iter().enumerate() {
            let before = counted.requests();
            stores[who].update(&state(&state_id, Some(&format!("{{\"{turn}\":1}}")), None)).await.unwrap();
            requests.push(counted.requests() - before);
        }
        let all: String = (0..9).map(|turn| format!(",\"{turn}\":1")).collect();
        let all = format!("{{{}}}", all.trim_start_matches(','));
        assert_eq!(stores[1].get(&state_id).await.unwrap(), Some(state(&state_id, Some(&all), None)));
        // After a second the lock table is looked at again.
        if start.elapsed() < Duration::from_secs(1) {
            // Each expects to be alone once. That it is again, a read shows.
            assert_eq!(requests, [4, 4, 5, 5, 4, 4, 4, 4, 3]);
            return;
        }
    }
    panic!("too slow");
}

/// The server may still be inserting a row when the connection is given up.
#[tokio::test]
async fn a_lock_row_that_comes_late_is_taken_back() {
    for renews in [false, true] {
        let sandbox = Sandbox::new();
        let hasty = [
            ("state_backend.clickhouse.lock_stale_seconds", "5"),
            ("state_backend.clickhouse.request_timeout_seconds", "1.2"),
            // One attempt.
            ("state_backend.clickhouse.lock_wait_seconds", "0"),
        ];
        let mut store = instance(&sandbox.uri(), &hasty).await;
        store.init().await.unwrap();
        let lock = if renews { Some(store.acquire("a", &Acquire::default()).await.unwrap()) } else { None };
        sandbox.sql("ALTER TABLE {}.state_lock ADD COLUMN slow UInt8 MATERIALIZED sleepEachRow(1.5)");
        if let Some(lock) = lock {
            assert_eq!(component_error(store.renew(&lock).await).kind, ErrorKind::OutcomeUnknown);
            store.release(lock).await.unwrap();
        } else {
            let error = component_error(store.update(&state("a", Some("{\"x\":1}"), None)).await);
            assert_eq!(error.kind, ErrorKind::TimedOut);
            assert!(error.message.contains("nothing was written"), "{error}");
        }
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(sandbox.lock_rows(), "");
        let parts = "SELECT sum(rows) FROM system.parts WHERE database = '{}' AND table = 'state_lock' AND level = 0";
        assert_eq!(sandbox.sql(parts), if renews { "2\n" } else { "1\n" }, "it has come");
    }
}

#[tokio::test]
async fn a_lock_inserted_behind_a_proxy_that_says_it_was_not_is_taken_back() {
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    for status in [408, 429, 500, 502, 503, 504] {
        let refusing = Fault::AnswerAfter { status };
        let mut store = instance_over(faults().when(|request| request.contains("NOT IN"), refusing), &sandbox).await;
        let error = component_error(store.update(&state("a", Some("{\"x\":1}"), None)).await);
        assert_ne!(error.kind, ErrorKind::OutcomeUnknown, "{status}");
    }
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn a_lock_that_is_too_old_to_write_under_is_named_as_such() {
    let sandbox = Sandbox::new();
    let short = [
        ("state_backend.clickhouse.lock_stale_seconds", "5"),
        ("state_backend.clickhouse.request_timeout_seconds", "1"),
    ];
    let mut store = instance(&sandbox.uri(), &short).await;
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    // Past the margin of 3.9 s, and not yet stale.
    tokio::time::sleep(Duration::from_millis(4200)).await;
    let error = component_error(store.update_locked(&lock, &state("a", Some("{\"x\":1}"), None)).await);
    assert_eq!(error.kind, ErrorKind::LockLost);
    assert!(error.message.contains("about to pass on") || error.message.contains("was lost"), "{error}");
    assert_eq!(store.get("a").await.unwrap(), None);
}

#[tokio::test]
async fn lost_answers_are_asked_for_again() {
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    // Lock rows, state, write, release: each is lost once; only the insert of the candidate, the first, may not be.
    let lost = (1..8).step_by(2).fold(faults(), |faults, ordinal| {
        let fault = if ordinal % 4 == 1 { Fault::FailAfter } else { Fault::CutBody(0) };
        faults.at(ordinal, fault)
    });
    let mut store = instance_over(lost, &sandbox).await;
    let update = state("a", Some("{\"x\":1}"), None);
    store.update(&update).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(update));
    assert_eq!(sandbox.lock_rows(), "");
}

fn faults() -> Faults<PooledClient> {
    Faults::over(PooledClient::default())
}

async fn instance_over(transport: Faults<PooledClient>, sandbox: &Sandbox) -> Instance {
    let settings = Settings::new().with("state_backend.uri", sandbox.uri().as_str()).unwrap();
    let plugin = Plugin::builder().settings(settings).transport(transport).cache(cache()).build().unwrap();
    plugin.instance().await.unwrap()
}

#[tokio::test]
async fn many_updates_of_one_id_leave_no_pile() {
    check_pile(100).await;
}

#[tokio::test]
#[ignore = "a minute: cargo xtask test --long"]
async fn a_thousand_updates_of_one_id_leave_no_pile() {
    check_pile(1000).await;
}

async fn check_pile(updates: u32) {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("a", Some("{\"n\":-1}"), None)).await.unwrap();
    let start = Instant::now();
    for n in 0..updates {
        store.update(&state("a", Some(&format!("{{\"n\":{n}}}")), None)).await.unwrap();
    }
    let parts = sandbox
        .sql("SELECT table, count() FROM system.parts WHERE database = '{}' AND active GROUP BY table ORDER BY table");
    let mutations = sandbox.sql("SELECT count(), countIf(NOT is_done) FROM system.mutations WHERE database = '{}'");
    println!("{updates} updates in {:?}; active parts:\n{parts}mutations, unfinished: {mutations}", start.elapsed());
    for line in parts.lines() {
        let count: u32 = line.split('\t').nth(1).unwrap().parse().unwrap();
        assert!(count < 30, "{parts}");
    }
    assert_eq!(mutations, "0\t0\n");
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some(&format!("{{\"n\":{}}}", updates - 1)), None)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_lock_stays_released_beside_mutations() {
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    // What peers do while they wait. A mutation that runs at the same time undoes a delete by patch.
    let mutate = || sandbox.sql("DELETE FROM {}.state_lock WHERE locked_at < now() - 300");
    mutate();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                mutate();
            }
        });
        let uri = sandbox.uri();
        let sections = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut store = instance(&uri, &[(WAIT, "5")]).await;
                for _ in 0..40 {
                    store.update(&state("a", Some("{\"x\":1}"), None)).await.unwrap();
                }
            });
        });
        let result = sections.join();
        done.store(true, Ordering::Relaxed);
        result.unwrap();
    });
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn rivals_do_not_lose_updates() {
    let sandbox = Sandbox::new();
    let settings = [(RETRY, "0.05"), (WAIT, "60")];
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let uri = sandbox.uri();
            tokio::spawn(async move {
                let mut store = instance(&uri, &settings).await;
                for section in 0..3 {
                    let text = format!("{{\"t{task}s{section}\":1}}");
                    store.update(&state("a", Some(&text), None)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let merged = sandbox.instance().await.get("a").await.unwrap().unwrap().partial_state.unwrap();
    let merged: serde_json::Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(merged.as_object().unwrap().len(), 12, "{merged}");
    assert_eq!(sandbox.lock_rows(), "");
}
