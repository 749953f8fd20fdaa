//! Locks that could not be removed: the call is carried out, and says so.

use meltano_state_host::{Acquire, Fault, Faults, Instance, Plugin, PooledClient, Settings, State, Warning};

use crate::cli::meltano_state;
use crate::sandbox::{Sandbox, cache, component_error, instance, state};
use crate::users::{TAKER, User, WITHOUT_DDL};

fn one(number: u32) -> State {
    state("a", Some(&format!("{{\"x\":{number}}}")), None)
}

/// The only warning names the only lock that is left.
fn check(sandbox: &Sandbox, warnings: &[Warning], reason: &str, remedy: &str) {
    let [Warning { message, hint: Some(hint) }] = warnings else { panic!("{warnings:?}") };
    let rows = sandbox.lock_rows();
    let (state_id, lock_id) = rows.trim_end().split_once('\t').unwrap();
    assert!(message.contains(lock_id) && message.contains(state_id) && message.contains(reason), "{message}");
    let unlock = format!("meltano-state unlock {state_id} {lock_id}");
    assert!(hint.contains(remedy) && hint.contains(&unlock), "{hint}");
    sandbox.sql("DELETE FROM {}.state_lock WHERE true");
}

async fn refused(user: &User, reason: &str, remedy: &str) {
    let (sandbox, uri) = Sandbox::of(user);
    sandbox.instance().await.init().await.unwrap();
    let mut store = instance(&uri, &[]).await;
    let warnings = store.update(&one(1)).await.unwrap();
    check(&sandbox, &warnings, reason, remedy);
    assert_eq!(store.get("a").await.unwrap(), Some(one(1)));

    // A call that fails for another reason says both.
    let corrupt = "INSERT INTO {}.state (state_id, partial_state) VALUES ('a', 'no JSON')";
    sandbox.sql(corrupt);
    let error = component_error(store.update(&one(2)).await);
    assert_eq!(error.kind.name(), "corrupt-state");
    let hint = error.hint.clone().unwrap();
    assert!(hint.contains("meltano-state unlock a 00000000-") && hint.contains(remedy), "{hint}");
    sandbox.sql("DELETE FROM {}.state_lock WHERE true");

    let run =
        |arguments: &[&str]| meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri.as_str())]).args_list(arguments).run();
    let set = run(&["set", "a", "{\"singer_state\":{\"y\":1}}", "--force"]);
    assert_eq!(set.code, 0, "{}", set.stderr);
    assert!(set.stderr.contains("warning: lock ") && set.stderr.contains("the state of a is set"), "{}", set.stderr);
    sandbox.sql("DELETE FROM {}.state_lock WHERE true");
    let merge = run(&["--format", "json", "merge", "a", "{\"singer_state\":{\"z\":1}}"]);
    assert_eq!((merge.code, merge.stdout.as_str()), (0, "{\"merged\":\"a\"}\n"), "{}", merge.stderr);
    let warning: serde_json::Value = serde_json::from_str(merge.stderr.trim()).unwrap();
    assert!(warning["warning"]["message"].as_str().unwrap().contains(reason), "{warning}");
}

#[tokio::test]
async fn a_user_who_may_not_delete() {
    refused(&TAKER, "Not enough privileges", "GRANT ALTER DELETE").await;
}

#[tokio::test]
async fn a_profile_without_ddl() {
    refused(&WITHOUT_DDL, "DDL", "allow_ddl").await;
}

/// Every call that takes a lock.
#[tokio::test]
async fn a_quota_that_is_used_up_at_the_wrong_moment() {
    let sandbox = Sandbox::new();
    let full = Fault::Answer {
        status: 500,
        body: "Code: 201. DB::Exception: Quota for user x has been exceeded. (QUOTA_EXCEEDED)".into(),
    };
    let faults = Faults::over(PooledClient::default());
    let lock = format!("DELETE FROM `{}`.`state_lock`", sandbox.schema);
    let transport = faults.when(move |request| request.contains(&lock), full);
    let settings = Settings::new().with("state_backend.uri", sandbox.uri().as_str()).unwrap();
    let settings = settings.with("state_backend.clickhouse.history_days", "1").unwrap();
    let plugin = Plugin::builder().settings(settings).transport(transport).cache(cache()).build().unwrap();
    let mut store = plugin.instance().await.unwrap();
    store.init().await.unwrap();
    let said = |warnings: Vec<Warning>| check(&sandbox, &warnings, "Quota for user", "quota");
    said(store.update(&one(1)).await.unwrap());
    let version = newest_version(&mut store).await;
    // The second one claims the lock without a look.
    said(store.update(&one(2)).await.unwrap());
    said(store.copy("a", "b", true).await.unwrap());
    said(store.restore("a", version).await.unwrap());
    said(store.clear("b").await.unwrap());
    let warnings = store.move_state("a", "c", true).await.unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    sandbox.sql("DELETE FROM {}.state_lock WHERE true");
    assert_eq!(store.get("c").await.unwrap(), Some(State { state_id: "c".to_owned(), ..one(1) }));

    // Who holds a lock gives it up by itself, and hears of it.
    let lock = store.acquire("a", &Acquire::default()).await.unwrap();
    assert_eq!(component_error(store.release(lock).await).code(), Some(201));
}

async fn newest_version(store: &mut Instance) -> i64 {
    store.versions("a", None, Some(1)).await.unwrap()[0].updated_at
}

/// Many calls of one process wait for their turn for longer than connecting may take.
#[tokio::test]
async fn a_crowd_in_one_process_leaves_no_lock() {
    const CALLS: usize = 300;
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    let hasty = [("state_backend.clickhouse.connect_timeout_seconds", "0.2")];
    let plugin = crate::sandbox::plugin(&sandbox.uri(), &hasty);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CALLS {
        let mut store = plugin.instance().await.unwrap();
        let state = state(&number.to_string(), Some("{\"x\":1}"), None);
        tasks.spawn(async move { store.update(&state).await.unwrap() });
    }
    let warnings: Vec<Warning> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(warnings, []);
    assert_eq!(sandbox.sql("SELECT uniqExact(state_id) FROM {}.state"), format!("{CALLS}\n"));
    assert_eq!(sandbox.lock_rows(), "");
}
