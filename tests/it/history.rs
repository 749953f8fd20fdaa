//! Earlier versions.

use meltano_state_host::{Deed, Entry, ErrorKind, Instance, Keeping, State, Status, Step, Thing};

use crate::sandbox::{Sandbox, component_error, instance, state};

const DAYS: &str = "state_backend.clickhouse.history_days";

async fn keeping(sandbox: &Sandbox, days: &str) -> Instance {
    let mut store = instance(&sandbox.uri(), &[(DAYS, days)]).await;
    store.init().await.unwrap();
    store
}

fn n(n: u32) -> State {
    state("a", None, Some(&format!("{{\"n\":{n}}}")))
}

async fn versions(store: &mut Instance) -> Vec<State> {
    let versions = store.versions("a", None, None).await.unwrap();
    assert!(versions.is_sorted_by(|newer, older| newer.updated_at > older.updated_at));
    versions.into_iter().map(|entry| entry.content.unwrap()).collect()
}

#[tokio::test]
async fn it_is_off_unless_it_is_turned_on() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    store.set(&n(1)).await.unwrap();
    assert_eq!(sandbox.sql("SELECT count() FROM system.tables WHERE database = '{}'"), "2\n");
    for error in [component_error(store.versions("a", None, None).await), component_error(store.restore("a", 1).await)]
    {
        assert_eq!(error.kind, ErrorKind::InvalidArgument);
        assert!(error.hint.as_deref().unwrap().contains("history_days"));
    }
}

#[tokio::test]
async fn every_write_of_anybody_is_a_version() {
    let sandbox = Sandbox::new();
    // Without init: the first write creates the tables, and the history with them.
    let mut store = instance(&sandbox.uri(), &[(DAYS, "7")]).await;
    store.set(&n(1)).await.unwrap();
    store.update(&state("a", Some("{\"p\":1}"), None)).await.unwrap();
    store.set_all(&[n(2), state("b", None, Some("{\"x\":1}"))]).await.unwrap();
    sandbox.sql("INSERT INTO {}.state (state_id, partial_state, completed_state) VALUES ('a', NULL, '{\"n\": 3}')");
    let both = state("a", Some("{\"p\":1}"), Some("{\"n\":1}"));
    assert_eq!(versions(&mut store).await, [state("a", None, Some("{\"n\": 3}")), n(2), both.clone(), n(1)]);

    let entries = store.versions("a", None, None).await.unwrap();
    let page = store.versions("a", Some(entries[0].updated_at), Some(2)).await.unwrap();
    assert_eq!(
        page.iter().map(|entry| entry.updated_at).collect::<Vec<_>>(),
        [entries[1].updated_at, entries[2].updated_at]
    );
    assert_eq!(entries[2].size, 14);
    assert_eq!(store.versions("a", Some(entries[3].updated_at), None).await.unwrap(), []);
    assert_eq!(store.versions("none", None, None).await.unwrap(), []);
    // Nothing was written twice, and what is deleted stays.
    store.clear("a").await.unwrap();
    assert_eq!(versions(&mut store).await.len(), 4);
}

#[tokio::test]
async fn a_version_is_restored_as_a_new_one() {
    let sandbox = Sandbox::new();
    let mut store = keeping(&sandbox, "7").await;
    for count in 1..=3 {
        store.set(&n(count)).await.unwrap();
    }
    let first = store.versions("a", None, None).await.unwrap().pop().unwrap().updated_at;
    store.restore("a", first).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(n(1)));
    assert_eq!(versions(&mut store).await, [n(1), n(3), n(2), n(1)]);
    store.delete("a").await.unwrap();
    store.restore("a", first).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(n(1)));
    let error = component_error(store.restore("a", first - 1).await);
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert_eq!(component_error(store.restore("b", first).await).kind, ErrorKind::InvalidArgument);
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn turning_it_on_and_off_loses_nothing() {
    let sandbox = Sandbox::new();
    let mut without = sandbox.instance().await;
    without.set(&n(1)).await.unwrap();
    let mut store = keeping(&sandbox, "7").await;
    assert_eq!(versions(&mut store).await, [n(1)], "what was there when it began");
    without.set(&n(2)).await.unwrap();
    assert_eq!(versions(&mut store).await, [n(2), n(1)], "who sets nothing changes nothing");
    without.init().await.unwrap();
    without.set(&n(3)).await.unwrap();
    let ttl = |days: u32| sandbox.sql("SHOW CREATE TABLE {}.state_history").contains(&format!("toIntervalDay({days})"));
    assert!(ttl(7));
    let mut store = keeping(&sandbox, "30").await;
    assert!(ttl(30));
    assert_eq!(versions(&mut store).await, [n(3), n(2), n(1)]);

    let mut store = keeping(&sandbox, "0").await;
    store.set(&n(4)).await.unwrap();
    assert_eq!(versions(&mut store).await, [n(3), n(2), n(1)], "what it has it keeps");
    store.set(&n(5)).await.unwrap();
    let mut store = keeping(&sandbox, "30").await;
    assert_eq!(versions(&mut store).await, [n(5), n(3), n(2), n(1)]);
    let again = keeping(&sandbox, "30").await;
    drop(again);
    assert_eq!(versions(&mut store).await.len(), 4, "to begin twice records nothing twice");
    assert_eq!(store.get("a").await.unwrap(), Some(n(5)));
}

#[tokio::test]
async fn a_version_that_cannot_be_used_is_named() {
    let sandbox = Sandbox::new();
    let mut store = keeping(&sandbox, "7").await;
    sandbox.sql("INSERT INTO {}.state (state_id, completed_state) VALUES ('a', 'NaN')");
    store.set(&n(2)).await.unwrap();
    let entries: Vec<Entry> = store.versions("a", None, None).await.unwrap();
    assert_eq!(entries[0].content, Ok(n(2)));
    assert_eq!(entries[1].content.as_ref().unwrap_err().kind, ErrorKind::CorruptState);
    assert_eq!(component_error(store.restore("a", entries[1].updated_at).await).kind, ErrorKind::CorruptState);
    assert_eq!(store.get("a").await.unwrap(), Some(n(2)));
}

/// As two who write at the same time without the lock may do.
#[tokio::test]
async fn of_two_versions_of_one_moment_the_last_counts() {
    let sandbox = Sandbox::new();
    let mut store = keeping(&sandbox, "7").await;
    for id in 0..12 {
        for count in [1, 2] {
            sandbox.sql(&format!(
                "INSERT INTO {{}}.state VALUES ('{id}', NULL, '{{\"n\":{count}}}', '2026-11-29 10:00:00.000')"
            ));
        }
        let id = id.to_string();
        let last = store.get(&id).await.unwrap();
        let versions = store.versions(&id, None, None).await.unwrap();
        let [version] = versions.as_slice() else { panic!("{versions:?}") };
        assert_eq!(version.content.as_ref().ok(), last.as_ref());
        store.set(&state(&id, None, Some("{\"n\":3}"))).await.unwrap();
        store.restore(&id, version.updated_at).await.unwrap();
        assert_eq!(store.get(&id).await.unwrap(), last);
    }
}

#[tokio::test]
async fn init_mends_a_history_whose_table_is_gone() {
    let sandbox = Sandbox::new();
    for days in ["7", "0"] {
        drop(keeping(&sandbox, "7").await);
        sandbox.sql("DROP TABLE {}.state_history");
        let mut store = keeping(&sandbox, days).await;
        store.set(&n(1)).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_kept_is_told_by_init_check_and_the_component() {
    async fn layout(store: &mut Instance) -> Step {
        let report = store.check().await.unwrap();
        report.steps.into_iter().find(|step| step.name == "layout").unwrap()
    }
    async fn history(store: &mut Instance) -> (Deed, String) {
        let preview = store.preview_init().await.unwrap();
        let prepared = store.init().await.unwrap();
        assert_eq!(preview, prepared);
        let history = prepared.into_iter().find(|prepared| prepared.thing == Thing::History).unwrap();
        (history.deed, history.note.unwrap())
    }
    let kept = |days, recording| Some(Keeping { days: Some(days), recording });
    let sandbox = Sandbox::new();
    let mut without = sandbox.instance().await;
    assert_eq!(without.kept().await.unwrap(), None);
    without.init().await.unwrap();
    assert_eq!(without.kept().await.unwrap(), None);
    assert_eq!(history(&mut without).await, (Deed::Right, "no earlier versions of states are kept".to_owned()));

    let mut seven = instance(&sandbox.uri(), &[(DAYS, "7")]).await;
    let seven_days = "earlier versions of states are kept for 7 days";
    assert_eq!(layout(&mut seven).await.status, Status::Warning);
    assert_eq!(history(&mut seven).await, (Deed::Begun, seven_days.to_owned()));
    assert_eq!(history(&mut seven).await, (Deed::Right, seven_days.to_owned()));
    let step = layout(&mut seven).await;
    assert!(step.status == Status::Ok && step.found.contains(seven_days), "{step:?}");
    assert_eq!(without.kept().await.unwrap(), kept(7, true));
    let step = layout(&mut without).await;
    assert!(step.status == Status::Warning && step.found.contains(seven_days), "{step:?}");
    assert_eq!(history(&mut without).await, (Deed::Left, format!("{seven_days}, and history_days is not set")));

    let mut thirty = instance(&sandbox.uri(), &[(DAYS, "30")]).await;
    let step = layout(&mut thirty).await;
    assert!(step.status == Status::Warning && step.found.contains("history_days is 30"), "{step:?}");
    assert_eq!(history(&mut thirty).await.0, Deed::Changed);
    assert_eq!(without.kept().await.unwrap(), kept(30, true));

    let mut ended = instance(&sandbox.uri(), &[(DAYS, "0")]).await;
    assert_eq!(layout(&mut ended).await.status, Status::Warning);
    assert_eq!(history(&mut ended).await.0, Deed::Ended);
    assert_eq!(without.kept().await.unwrap(), kept(30, false));
    for store in [&mut ended, &mut without] {
        let step = layout(store).await;
        assert!(step.status == Status::Ok && step.found.contains("any more"), "{step:?}");
    }
    assert_eq!(history(&mut ended).await.0, Deed::Right);
    assert_eq!(history(&mut thirty).await.0, Deed::Begun);
}

#[tokio::test]
async fn old_versions_go_after_the_time_that_was_set() {
    let sandbox = Sandbox::new();
    let mut store = keeping(&sandbox, "7").await;
    for count in 1..=2 {
        store.set(&n(count)).await.unwrap();
    }
    sandbox.sql("ALTER TABLE {}.state_history UPDATE recorded_at = now() - toIntervalDay(8) WHERE completed_state LIKE '%1%' SETTINGS mutations_sync = 1");
    sandbox.sql("OPTIMIZE TABLE {}.state_history FINAL");
    assert_eq!(versions(&mut store).await, [n(2)]);
}
