//! What is stored is what was given, and what cannot be used is named and harms nothing else.

use meltano_state_host::ErrorKind;

use crate::sandbox::{Sandbox, component_error, state};

const BAD: [(&str, &[u8]); 9] = [
    ("an array", b"[]"),
    ("cut short", b"{\"a\": "),
    ("NaN", b"{\"a\": NaN}"),
    ("infinite", b"{\"a\": -Infinity}"),
    ("no JSON", b"garbage\x00\x07"),
    ("no text", b"{\"a\": \"\xff\"}"),
    ("a key twice", b"{\"a\": 1, \"a\": 2}"),
    ("half a pair", b"{\"a\": \"\\ud800\"}"),
    ("empty", b""),
];

/// Rows that only other programs can write.
fn plant(sandbox: &Sandbox, id: &str, column: &str, bytes: &[u8]) {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    sandbox.sql(&format!("INSERT INTO {{}}.state (state_id, {column}) VALUES ('{id}', unhex('{hex}'))"));
}

#[tokio::test]
async fn a_corrupt_state_is_named_shown_and_replaced_and_harms_no_other() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("good", None, Some("{\"a\":1}"))).await.unwrap();
    for (id, bytes) in BAD {
        plant(&sandbox, id, "completed_state", bytes);
        plant(&sandbox, &format!("{id} in part"), "partial_state", bytes);
    }
    let page = store.get_all(None, None, None).await.unwrap();
    assert_eq!(page.len(), BAD.len() * 2 + 1);
    assert_eq!(store.get_state_ids(None).await.unwrap().len(), page.len());
    for (id, bytes) in BAD {
        let entry = page.iter().find(|entry| entry.state_id == id).unwrap();
        let error = component_error(store.get(id).await);
        assert_eq!(error.kind, ErrorKind::CorruptState, "{id}");
        assert!(error.message.contains("completed") && error.message.contains(id), "{error}");
        assert_eq!(entry.content.as_ref().unwrap_err(), &error);
        assert_eq!(entry.size, bytes.len() as u64);
        let raw = store.get_raw(id).await.unwrap().unwrap();
        assert_eq!((raw.partial_state, raw.completed_state.as_deref()), (None, Some(bytes)));
        assert_eq!(raw.updated_at, entry.updated_at);

        let in_part = format!("{id} in part");
        let update = state(&in_part, Some("{\"b\":1}"), None);
        assert_eq!(component_error(store.update(&update).await).kind, ErrorKind::CorruptState);
        assert_eq!(component_error(store.copy(&in_part, "copy", true).await).kind, ErrorKind::CorruptState);
        assert_eq!(store.get_raw(&in_part).await.unwrap().unwrap().partial_state.as_deref(), Some(bytes));
        store.set(&update).await.unwrap();
        assert_eq!(store.get(&in_part).await.unwrap(), Some(update));
    }
    assert_eq!(store.get("copy").await.unwrap(), None);
    assert_eq!(store.get_raw("none").await.unwrap(), None);
    assert_eq!(sandbox.lock_rows(), "");
}

#[tokio::test]
async fn what_readers_do_not_agree_on_is_not_accepted() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    for (id, bytes) in BAD {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        for state in [state(id, Some(text), None), state(id, None, Some(text))] {
            assert_eq!(component_error(store.set(&state).await).kind, ErrorKind::InvalidState, "{id}");
            assert_eq!(component_error(store.update(&state).await).kind, ErrorKind::InvalidState, "{id}");
        }
    }
    assert_eq!(store.get_state_ids(None).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn merging_keeps_the_order_of_keys_and_the_text_of_numbers() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let stored = "{\"z\": 12345678901234567890123, \"a\": {\"n\": 1.10, \"m\": 1E400}, \"s\": \"\\u00e9\"}";
    store.set(&state("a", Some(stored), None)).await.unwrap();
    store.update(&state("a", Some("{\"a\":{\"m\":-0.0,\"k\":5e-324}}"), None)).await.unwrap();
    let merged = "{\"z\":12345678901234567890123,\"a\":{\"n\":1.10,\"m\":-0.0,\"k\":5e-324},\"s\":\"\\u00e9\"}";
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", Some(merged), None)));
}

#[tokio::test]
async fn deep_nesting_has_a_limit_that_is_named() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let deepest = state("a", Some(&nested(127)), None);
    store.set(&deepest).await.unwrap();
    store.update(&deepest).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(deepest));
    for levels in [128, 1_000_000] {
        let error = component_error(store.set(&state("a", Some(&nested(levels)), None)).await);
        assert_eq!(error.kind, ErrorKind::InvalidState);
        assert!(error.message.contains("more than 127"), "{error}");
    }
}

#[tokio::test]
async fn sizes_from_one_byte_to_the_largest() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    for length in [2_usize, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 16 << 20] {
        // Every character that the format escapes; an object of exactly that length.
        let filler: String = "a\\t\\\\\\n".chars().cycle().take(length.saturating_sub(8) / 7 * 7).collect();
        let text = match length {
            2 => "{}".to_owned(),
            _ => format!("{{\"k\":\"{filler}\"{}}}", " ".repeat(length - 8 - filler.len())),
        };
        assert_eq!(text.len(), length);
        let expected = state("a", None, (length > 2).then_some(text.as_str()));
        store.set(&state("a", None, Some(&text))).await.unwrap();
        assert!(store.get("a").await.unwrap().as_ref() == Some(&expected), "{length} bytes");
        let page = store.get_all(None, None, None).await.unwrap();
        assert!(page.len() == 1 && page[0].content.as_ref() == Ok(&expected), "{length} bytes");
    }
}

#[tokio::test]
async fn a_state_that_is_too_large_hides_no_other() {
    let sandbox = Sandbox::new();
    let mut store = sandbox.instance().await;
    store.set(&state("a", None, Some("{\"x\":1}"))).await.unwrap();
    store.set(&state("c", None, Some("{\"x\":1}"))).await.unwrap();
    sandbox.sql("INSERT INTO {}.state (state_id, completed_state) VALUES ('b', concat('{\"k\":\"', repeat(repeat('x', 1000000), 100), '\"}'))");
    let page = store.get_all(None, None, None).await.unwrap();
    let [_, b, _] = page.as_slice() else { panic!("{} entries", page.len()) };
    assert_eq!((b.state_id.as_str(), b.size), ("b", 100_000_008));
    let error = b.content.as_ref().unwrap_err();
    assert_eq!(error.kind, ErrorKind::CorruptState);
    assert!(error.message.contains("96 MiB"), "{error}");
    // The host's own limit ends the transfer.
    let error = store.get("b").await.unwrap_err();
    assert!(error.to_string().contains("answer is larger than"), "{error}");
    store.clear("c").await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), Some(state("a", None, Some("{\"x\":1}"))));
}
