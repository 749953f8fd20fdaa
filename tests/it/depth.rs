//! Texts that nest deeper than any reader goes down: refused on the way in, named on the way out, and fatal to nobody.

use meltano_state_host::ErrorKind;

use crate::cli::{meltano_state, run};
use crate::sandbox::{Sandbox, component_error, state};

/// How deep. What is longer than a state may be is cut to the longest one.
const LEVELS: usize = 1_000_000;
const LONGEST: usize = 20 << 20;

/// What a level begins and ends with. The last two are what JSON libraries call their own values.
const WAYS: [(&str, &str, &str); 5] = [
    ("arrays", "[", "]"),
    ("objects", "{\"a\":", "}"),
    ("both", "{\"a\":[", "]}"),
    ("numbers", "{\"$serde_json::private::Number\":", "}"),
    ("raw values", "{\"$serde_json::private::RawValue\":", "}"),
];

fn levels(begin: &str) -> usize {
    LEVELS.min(LONGEST / (begin.len() + 2))
}

fn deep(begin: &str, end: &str) -> String {
    let levels = levels(begin);
    format!("{{\"singer_state\":{}1{}}}", begin.repeat(levels), end.repeat(levels))
}

#[tokio::test]
async fn what_is_too_deep_is_refused_on_the_way_in() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("a", Some("{\"x\":1}"), None)).await.unwrap();
    for (way, begin, end) in WAYS {
        let deep = deep(begin, end);
        let (completed, partial) = (state("a", None, Some(&deep)), state("a", Some(&deep), None));
        for result in [
            store.set(&completed).await,
            store.set_all(&[state("b", None, None), partial.clone()]).await.map(drop),
            store.update(&completed).await.map(drop),
            store.update(&partial).await.map(drop),
        ] {
            let error = component_error(result);
            assert_eq!(error.kind, ErrorKind::InvalidState, "{way}");
            assert!(error.message.contains("more than 127 arrays and objects"), "{way}: {error}");
        }
    }
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some("{\"x\":1}"), None)));
    assert_eq!(sandbox.lock_rows(), "");
}

#[test]
fn the_command_takes_none_of_it() {
    let sandbox = Sandbox::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("deep.json");
    let file_name = file.to_str().unwrap();
    for (way, begin, end) in WAYS {
        let deep = deep(begin, end);
        let refused = |arguments: &[&str], text: &str| {
            std::fs::write(&file, text).unwrap();
            let run = run(&sandbox, arguments);
            assert_eq!(run.code, 2, "{way} {arguments:?}: {}", run.stderr);
            assert!(run.stderr.contains("127 arrays and objects"), "{way} {arguments:?}: {}", run.stderr);
        };
        refused(&["set", "a", "--input-file", file_name], &deep);
        refused(&["merge", "a", "--input-file", file_name], &deep);
        refused(&["import", file_name], &format!("{{\"a\":{{\"completed\":{deep}}}}}"));
        // Not in a place where a state belongs.
        std::fs::write(&file, format!("{{\"a\":{deep}}}")).unwrap();
        assert_eq!(run(&sandbox, &["import", file_name]).code, 2, "{way}");
        std::fs::write(&file, &deep).unwrap();
        assert_eq!(run(&sandbox, &["import", file_name]).code, 2, "{way}");
    }
}

#[test]
fn settings_that_are_too_deep_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let lists = ("lists", "- ", "");
    for (way, begin, end) in WAYS.into_iter().chain([lists]) {
        let deep = if way == "lists" { format!("\n {}1\n", "- ".repeat(LEVELS)) } else { deep(begin, end) };
        std::fs::write(directory.path().join("meltano.yml"), format!("state_backend: {deep}")).unwrap();
        let run = meltano_state(&[]).args(["config", "--project"]).arg(directory.path().to_str().unwrap()).run();
        assert_eq!(run.code, 2, "{way}: {}", run.stderr);
        assert!(run.stderr.contains("meltano.yml cannot be read"), "{way}: {}", run.stderr);
    }
}

#[tokio::test]
async fn what_is_too_deep_in_the_table_is_corrupt_and_harms_no_other() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("good", None, Some("{\"a\":1}"))).await.unwrap();
    for (way, begin, end) in WAYS {
        let levels = levels(begin);
        let text =
            format!("concat('{{\"singer_state\":', repeat('{begin}', {levels}), '1', repeat('{end}', {levels}), '}}')");
        sandbox.sql(&format!("INSERT INTO {{}}.state (state_id, completed_state) VALUES ('{way}', {text})"));
        assert_eq!(component_error(store.get(way).await).kind, ErrorKind::CorruptState, "{way}");
        let update = state(way, Some("{\"b\":1}"), None);
        assert_eq!(component_error(store.update(&update).await).kind, ErrorKind::CorruptState, "{way}");
        let run = run(&sandbox, &["get", way]);
        assert_eq!(run.code, 1, "{way}");
        assert!(run.stderr.contains("127 arrays and objects"), "{way}: {}", run.stderr);
    }
    let list = run(&sandbox, &["list", "-l"]);
    assert_eq!((list.code, list.stdout.matches("unreadable").count()), (0, WAYS.len()), "{list:?}");
    assert!(list.stdout.contains("good"), "{list:?}");
    let export = run(&sandbox, &["export"]);
    for (way, ..) in WAYS {
        assert!(export.stderr.contains(way), "{}", export.stderr);
    }
    for (way, ..) in WAYS {
        store.clear(way).await.unwrap();
    }
    assert_eq!(sandbox.lock_rows(), "");
}
