//! The upgrade of the add-on's lock table: by several at once, broken off anywhere, on databases of other engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meltano_state_host::{
    Acquire, Deed, Fault, Faults, Instance, Plugin, PooledClient, Prepared, Settings, Status, Thing, Transport,
};

use crate::sandbox::{Sandbox, cache, instance, state};
use crate::server::SERVER;

/// A database of an engine that can exchange tables, and of one that can only rename them.
const ENGINES: [&str; 2] = ["Atomic", "Ordinary"];

const ADDONS: &str = "(state_id String, lock_id String, locked_at DateTime DEFAULT now()) \
    ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL locked_at + INTERVAL 300 SECOND";

/// A database with the add-on's tables.
fn of_addon(engine: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let create = format!("CREATE DATABASE {} ENGINE = {engine}", sandbox.schema);
    SERVER.try_sql_with("&allow_deprecated_database_ordinary=1", &create).unwrap();
    sandbox.sql(
        "CREATE TABLE {}.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), \
         updated_at DateTime64(3) DEFAULT now64(3)) ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id",
    );
    sandbox.sql(&format!("CREATE TABLE {{}}.state_lock {ADDONS}"));
    sandbox
}

fn insert_lock(schema: &str, table: &str, lock_id: &str) {
    SERVER.sql(&format!("INSERT INTO {schema}.{table} (state_id, lock_id) VALUES ('a', '{lock_id}')"));
}

/// What an upgraded database looks like: its tables, and the lock table's sorting key and columns.
fn tables(sandbox: &Sandbox) -> String {
    sandbox.sql(
        "SELECT groupArray(name), (SELECT sorting_key FROM system.tables WHERE database = '{}' AND name = 'state_lock'), \
         (SELECT countIf(name = 'ticket') FROM system.columns WHERE database = '{}' AND table = 'state_lock') \
         FROM (SELECT name FROM system.tables WHERE database = '{}' ORDER BY name)",
    )
}

const UPGRADED: &str = "['state','state_lock']\tstate_id, lock_id\t1\n";
const OLD: &str = "['state','state_lock']\tstate_id\t0\n";

fn lock_table(prepared: &[Prepared]) -> &Prepared {
    prepared.iter().find(|prepared| prepared.thing == Thing::LockTable).unwrap()
}

async fn over(transport: impl Transport + 'static, sandbox: &Sandbox) -> Instance {
    let settings = Settings::new().with("state_backend.uri", sandbox.uri().as_str()).unwrap();
    let plugin = Plugin::builder().settings(settings).transport(transport).cache(cache()).build().unwrap();
    plugin.instance().await.unwrap()
}

fn faults() -> Faults<PooledClient> {
    Faults::over(PooledClient::default())
}

/// Which statement lets the new table change places with the old one. It is asked for once before.
fn swaps(engine: &str) -> (&'static str, usize) {
    if engine == "Atomic" { ("EXCHANGE TABLES", 1) } else { ("_lock` TO", 0) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_at_once_upgrade_it_once_and_lose_no_lock() {
    for engine in ENGINES {
        for round in 0..15 {
            let sandbox = of_addon(engine);
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let mut store = sandbox.instance().await;
                tasks.spawn(async move { store.init().await.map(|prepared| lock_table(&prepared).clone()) });
            }
            let schema = sandbox.schema.clone();
            let addon = tokio::task::spawn_blocking(move || insert_lock(&schema, "state_lock", "rival"));
            let done = tasks.join_all().await;
            addon.await.unwrap();
            let upgraded = done.iter().filter(|done| done.as_ref().unwrap().deed != Deed::Left).count();
            // The add-on's lock may have come before all of them.
            assert_eq!(
                tables(&sandbox),
                if upgraded > 0 { UPGRADED } else { OLD },
                "{engine}, round {round}: {done:#?}"
            );
            assert_eq!(sandbox.lock_rows(), "a\trival\n", "{engine}, round {round}: {done:#?}");
        }
    }
}

/// The other's lock is one of ours: a second new table would not know its owner and its place.
#[tokio::test]
async fn one_that_stalls_right_before_it_swaps_leaves_what_another_has_made_meanwhile() {
    for engine in ENGINES {
        let sandbox = of_addon(engine);
        let uri = sandbox.uri();
        let ((swap, asked), seen) = (swaps(engine), AtomicUsize::new(0));
        let meanwhile = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut store = instance(&uri, &[]).await;
                assert_eq!(lock_table(&store.init().await.unwrap()).deed, Deed::Upgraded);
                let options = Acquire { owner: "another".to_owned(), ..Acquire::default() };
                store.acquire("a", &options).await.unwrap();
            });
        };
        let stalled = faults().when(
            move |request| {
                if request.contains(swap) && seen.fetch_add(1, Ordering::Relaxed) == asked {
                    std::thread::scope(|scope| scope.spawn(&meanwhile).join().unwrap());
                }
                false
            },
            Fault::Pass,
        );
        let prepared = over(stalled, &sandbox).await.init().await.unwrap();
        assert_eq!(lock_table(&prepared).deed, Deed::Upgraded);
        assert_eq!(tables(&sandbox), UPGRADED, "{engine}");
        let row = sandbox.sql("SELECT state_id, owner, ticket, _block_number FROM {}.state_lock");
        assert_eq!(row, "a\tanother\t0\t1\n", "{engine}");
    }
}

/// An `init` whose process dies after its request of that number, carried out or not. An add-on takes a lock right before the
/// swap. Says how many requests there were.
async fn broken_off(sandbox: &Sandbox, engine: &str, last: usize, fault: Fault) -> usize {
    let ((swap, asked), schema) = (swaps(engine), sandbox.schema.clone());
    let seen = AtomicUsize::new(0);
    let dead = Fault::Answer { status: 400, body: "nobody".into() };
    let transport = Arc::new(faults());
    transport.add(
        move |request| {
            if request.contains(swap) && seen.fetch_add(1, Ordering::Relaxed) == asked {
                insert_lock(&schema, "state_lock", "rival");
            }
            false
        },
        Fault::Pass,
    );
    transport.add(move |request| request.ordinal == last, fault);
    transport.add(move |request| request.ordinal > last, dead);
    let _ = over(Arc::clone(&transport), sandbox).await.init().await;
    transport.requests()
}

#[tokio::test]
async fn broken_off_anywhere_it_leaves_a_lock_table_and_what_the_next_init_finishes() {
    for engine in ENGINES {
        for fault in [Fault::FailAfter, Fault::Answer { status: 400, body: "nobody".into() }] {
            for last in 0.. {
                let sandbox = of_addon(engine);
                let requests = broken_off(&sandbox, engine, last, fault.clone()).await;
                let is_locked = sandbox.sql("SELECT count() FROM merge('{}', '^state_lock')") != "0\n";
                assert!(tables(&sandbox).contains("'state_lock'"), "{engine}, {last}: {}", tables(&sandbox));

                let prepared = sandbox.instance().await.init().await.unwrap();
                let deed = lock_table(&prepared).deed;
                let context = format!("{engine}, {last}, {fault:?}: {prepared:#?}");
                assert_eq!(tables(&sandbox), if deed == Deed::Left { OLD } else { UPGRADED }, "{context}");
                assert_eq!(sandbox.lock_rows(), if is_locked { "a\trival\n" } else { "" }, "{context}");
                assert!(deed != Deed::Left || is_locked, "{context}");
                // All statements came through.
                if requests <= last {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn what_others_have_left_is_finished_and_shown_before() {
    for leftover in ["state_lock_old", "`state_lock_new_01234567-89ab-4def-8123-456789abcdef`"] {
        let sandbox = Sandbox::new();
        let mut store = sandbox.instance().await;
        store.init().await.unwrap();
        sandbox.sql(&format!("CREATE TABLE {{}}.{leftover} {ADDONS}"));
        insert_lock(&sandbox.schema, leftover, "rival");
        let report = store.check().await.unwrap();
        let layout = report.steps.iter().find(|step| step.name == "layout").unwrap();
        assert!(layout.status == Status::Warning && layout.found.contains("broken off"), "{layout:?}");
        assert_eq!(lock_table(&store.preview_init().await.unwrap()).deed, Deed::Upgraded);
        assert_ne!(tables(&sandbox), UPGRADED);
        assert_eq!(lock_table(&store.init().await.unwrap()).deed, Deed::Upgraded);
        assert_eq!((tables(&sandbox).as_str(), sandbox.lock_rows().as_str()), (UPGRADED, "a\trival\n"));
    }
    // Tables of other kinds are none of its business.
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    sandbox.sql("CREATE TABLE {}.state_lock_old (n UInt8) ENGINE = MergeTree ORDER BY n");
    sandbox.sql(&format!("CREATE TABLE {{}}.state_lock_older {ADDONS}"));
    assert_eq!(lock_table(&sandbox.instance().await.init().await.unwrap()).deed, Deed::Right);
    assert!(tables(&sandbox).contains("state_lock_old','state_lock_older"));
}

/// As a server leaves it that ends while it renames.
#[tokio::test]
async fn a_write_that_finds_no_lock_table_finds_the_locks_of_the_last() {
    let sandbox = of_addon(ENGINES[1]);
    sandbox.sql("RENAME TABLE {}.state_lock TO {}.`state_lock_new_01234567-89ab-4def-8123-456789abcdef`");
    insert_lock(&sandbox.schema, "`state_lock_new_01234567-89ab-4def-8123-456789abcdef`", "rival");
    let mut store = sandbox.instance().await;
    store.update(&state("b", Some("{\"x\":1}"), None)).await.unwrap();
    assert_eq!((tables(&sandbox).as_str(), sandbox.lock_rows().as_str()), (UPGRADED, "a\trival\n"));
}

#[tokio::test]
async fn what_cannot_be_upgraded_is_left_and_said() {
    // Such a database can neither exchange nor rename tables.
    let sandbox = of_addon("Memory");
    let prepared = sandbox.instance().await.init().await.unwrap();
    let left = lock_table(&prepared);
    assert_eq!((left.deed, tables(&sandbox).as_str()), (Deed::Left, OLD), "{left:?}");
    assert!(left.note.as_ref().is_some_and(|note| note.contains("not supported")), "{left:?}");
    assert!(left.hint.as_ref().is_some_and(|hint| hint.contains("Atomic")), "{left:?}");

    let sandbox = of_addon(ENGINES[0]);
    insert_lock(&sandbox.schema, "state_lock", "rival");
    let mut store = sandbox.instance().await;
    for prepared in [store.preview_init().await.unwrap(), store.init().await.unwrap()] {
        let left = lock_table(&prepared);
        assert_eq!((left.deed, tables(&sandbox).as_str()), (Deed::Left, OLD), "{left:?}");
        assert!(left.note.as_ref().is_some_and(|note| note.contains("locks are held")), "{left:?}");
        assert!(left.hint.as_ref().is_some_and(|hint| hint.contains("lock list")), "{left:?}");
    }
    assert_eq!(sandbox.lock_rows(), "a\trival\n");
}
