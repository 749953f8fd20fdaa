//! Many states at once.

use meltano_state_host::{Entry, ErrorKind, Instance, State};

use crate::sandbox::{Sandbox, component_error, state};

/// Every page, one after the other.
async fn pages(store: &mut Instance, pattern: Option<&str>, limit: Option<u32>) -> Vec<Vec<Entry>> {
    let mut pages: Vec<Vec<Entry>> = Vec::new();
    loop {
        let after = pages.last().and_then(|page| page.last()).map(|entry| entry.state_id.clone());
        let page = store.get_all(pattern, after.as_deref(), limit).await.unwrap();
        if page.is_empty() {
            return pages;
        }
        pages.push(page);
    }
}

async fn all(store: &mut Instance, pattern: Option<&str>) -> Vec<State> {
    pages(store, pattern, None).await.concat().into_iter().map(|entry| entry.content.unwrap()).collect()
}

/// Ids that quoting, escaping or sorting might spoil, sorted by their bytes.
pub(crate) fn awkward_ids() -> Vec<String> {
    let mut ids: Vec<String> =
        ["\t", "\n", "\\N", "\\", "'", "\"", "`", "%", "_", " ", "{a:String}", "é", "🦀", "\u{0}", "a\r\nb", "NULL"]
            .map(str::to_owned)
            .into();
    ids.push("x".repeat(10_000));
    ids.sort();
    ids
}

#[tokio::test]
async fn what_is_set_together_comes_back_together() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    assert_eq!(pages(&mut store, None, None).await.len(), 0);
    assert_eq!(store.set_all(&[]).await.unwrap(), 0);
    let states: Vec<State> = awkward_ids()
        .iter()
        .zip(
            [
                (Some("{ \"p\": 1.10 }"), None),
                (None, Some("{\"c\":\"\\n\\\\\"}")),
                (Some("{\"p\":1}"), Some("{\"c\":1}")),
                (None, None),
            ]
            .iter()
            .cycle(),
        )
        .map(|(id, (partial, completed))| state(id, *partial, *completed))
        .collect();
    assert_eq!(store.set_all(&states).await.unwrap(), states.len() as u64);
    assert_eq!(all(&mut store, None).await, states);
    for one in &states {
        assert_eq!(store.get(&one.state_id).await.unwrap().as_ref(), Some(one));
    }
}

#[tokio::test]
async fn pages_are_small_and_miss_nothing() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let states: Vec<State> = (0..25).map(|n| state(&format!("id-{n:02}"), None, Some("{\"n\":1}"))).collect();
    store.set_all(&states).await.unwrap();
    let sizes = |pages: &[Vec<Entry>]| pages.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(sizes(&pages(&mut store, None, Some(10)).await), [10, 10, 5]);
    assert_eq!(sizes(&pages(&mut store, Some("id-0*"), Some(10)).await), [10]);
    assert_eq!(sizes(&pages(&mut store, Some("id-?5"), Some(1)).await), [1, 1]);
    assert_eq!(store.get_all(None, Some("id-23"), None).await.unwrap().len(), 1);
    assert_eq!(store.get_all(None, None, Some(0)).await.unwrap().len(), 0);

    let large = format!("{{\"k\":\"{}\"}}", "x".repeat(3 << 20));
    for n in [3, 4, 5, 6, 7] {
        store.set(&state(&format!("id-{n:02}"), Some(&large), None)).await.unwrap();
    }
    let pages = pages(&mut store, None, None).await;
    assert_eq!(sizes(&pages), [5, 2, 18], "at most 8 MiB a page");
    let ids: Vec<String> = pages.concat().into_iter().map(|entry| entry.state_id).collect();
    assert_eq!(ids, states.iter().map(|state| state.state_id.clone()).collect::<Vec<_>>());
}

#[tokio::test]
async fn entries_tell_when_and_how_large() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    sandbox.sql(
        "INSERT INTO {}.state VALUES ('a', '{\"p\":1}', '{\"é\":1}', now64(3) - 100), ('b', NULL, '{\"c\":1}', now64(3) + 100)",
    );
    let page = store.get_all(None, None, None).await.unwrap();
    let [a, b] = page.as_slice() else { panic!("{page:?}") };
    assert_eq!((a.size, b.size), (15, 7));
    assert!((100..110).contains(&a.age.as_secs()), "{a:?}");
    assert_eq!(b.age.as_secs(), 0);
    let expected = sandbox.sql("SELECT toUnixTimestamp64Milli(updated_at) FROM {}.state ORDER BY state_id");
    assert_eq!(expected, format!("{}\n{}\n", a.updated_at, b.updated_at));
}

#[tokio::test]
async fn one_that_cannot_be_stored_keeps_the_others_back() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let good = state("good", None, Some("{\"a\":1}"));
    for bad in [state("bad", Some("[]"), None), state("bad", None, Some("{\"a\":1,\"a\":1}"))] {
        let error = component_error(store.set_all(&[good.clone(), bad, good.clone()]).await);
        assert_eq!(error.kind, ErrorKind::InvalidState);
        assert!(error.message.contains("\"bad\""), "{error}");
    }
    let error = component_error(store.set_all(&[good, state("", None, None)]).await);
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
    assert_eq!(store.get_state_ids(None).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn of_several_with_one_id_the_last_is_stored() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let n = |n: u32| state("a", None, Some(&format!("{{\"n\":{n}}}")));
    assert_eq!(store.set_all(&[n(1), state("b", None, None), n(2)]).await.unwrap(), 2);
    assert_eq!(store.get("a").await.unwrap(), Some(n(2)));
}

#[tokio::test]
async fn a_newer_set_all_wins_whatever_the_clocks_say() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    sandbox.sql(
        "INSERT INTO {}.state (state_id, completed_state, updated_at) VALUES ('a', '{\"x\":1}', now64(3) + 86400)",
    );
    let states = [state("a", None, Some("{\"new\":1}")), state("b", None, Some("{\"new\":1}"))];
    store.set_all(&states).await.unwrap();
    assert_eq!(all(&mut store, None).await, states);
}

/// Ten thousand states in a handful of statements.
#[tokio::test]
async fn few_requests() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    let completed = format!("{{\"k\":\"{}\"}}", "x".repeat(200));
    let states: Vec<State> = (0..10_000).map(|n| state(&format!("id-{n:05}"), None, Some(&completed))).collect();
    let activity = store.activity();
    let before = activity.requests();
    assert_eq!(store.set_all(&states).await.unwrap(), 10_000);
    assert_eq!(activity.requests() - before, 1);
    assert_eq!(all(&mut store, None).await, states);
    assert_eq!(activity.requests() - before, 3);

    let large: Vec<State> = (0..9)
        .map(|n| state(&format!("large-{n}"), None, Some(&format!("{{\"k\":\"{}\"}}", "x".repeat(5 << 20)))))
        .collect();
    let before = activity.requests();
    store.set_all(&large).await.unwrap();
    assert_eq!(activity.requests() - before, 3);
    assert_eq!(all(&mut store, Some("large-*")).await, large);
}

#[tokio::test]
async fn ids_that_nobody_can_ask_for_are_left_out() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.init().await.unwrap();
    sandbox.sql(
        "INSERT INTO {}.state (state_id, completed_state) VALUES \
         ('a', '{}'), (unhex('FF'), '{}'), (repeat('z', 140000), '{}'), ('b', '{}'), ('', '{}')",
    );
    let ids: Vec<String> = pages(&mut store, None, Some(1)).await.concat().into_iter().map(|e| e.state_id).collect();
    assert_eq!(ids, ["", "a", "b"]);
    let longest = "y".repeat(100_000);
    store.set_all(&[state(&longest, None, Some("{\"x\":1}"))]).await.unwrap();
    assert!(store.get(&longest).await.unwrap().is_some());
    assert_eq!(pages(&mut store, Some("y*"), Some(1)).await.len(), 1);
    let longer = state(&"y".repeat(100_001), None, None);
    for error in
        [component_error(store.set(&longer).await), component_error(store.set_all(std::slice::from_ref(&longer)).await)]
    {
        assert_eq!(error.kind, ErrorKind::InvalidArgument);
    }
}

#[tokio::test]
async fn a_table_of_another_kind_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.sql("CREATE DATABASE {}");
    sandbox.sql(
        "CREATE TABLE {}.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), \
         updated_at DateTime64(3) DEFAULT now64(3)) ENGINE = MergeTree ORDER BY state_id",
    );
    sandbox.sql("INSERT INTO {}.state (state_id, completed_state) VALUES ('a', '{}')");
    let mut store = sandbox.instance().await;
    let b = state("b", None, Some("{\"x\":1}"));
    assert_eq!(component_error(store.set_all(&[b]).await).kind, ErrorKind::SchemaMismatch);
    assert_eq!(component_error(store.clear_all().await).kind, ErrorKind::SchemaMismatch);
    assert_eq!(sandbox.sql("SELECT count() FROM {}.state"), "1\n");
}
