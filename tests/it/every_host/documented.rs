//! The calls that `docs/hosts.md` lists for a stock wasmtime: each prints what the page says.

use std::collections::BTreeSet;
use std::fs;

use meltano_state_host::COMPONENT;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::programs::{component, source, uri};
use crate::peers::{invoke, peer};
use crate::sandbox::Sandbox;

#[test]
fn every_documented_call_prints_what_the_page_says() {
    let Some(wasmtime) = peer("PEERS_WASMTIME") else { return };
    let page = fs::read_to_string(source("docs/hosts.md")).unwrap();
    let sandbox = Sandbox::new();
    let uri = uri(&sandbox);
    for (call, documented) in rows(&page) {
        let printed = invoke(&wasmtime, component(), uri.as_str(), call);
        assert!(prints(documented, &printed), "{call}\ndocumented: {documented}\nprinted: {printed}");
    }
}

#[test]
fn every_free_function_is_documented() {
    let page = fs::read_to_string(source("docs/hosts.md")).unwrap();
    let documented: BTreeSet<_> = rows(&page).into_iter().filter_map(|(call, _)| call.split('(').next()).collect();
    let functions = functions();
    let functions: BTreeSet<_> = functions.iter().map(String::as_str).collect();
    assert_eq!(documented, functions);
}

#[test]
fn an_ellipsis_stands_for_anything() {
    assert!(prints("ok([…])", "ok([1, 2])"));
    assert!(prints("err({kind: locked, …})", "err({kind: locked, message: \"\"})"));
    assert!(prints("{a: …, b: 2}", "{a: 1, b: 2}"));
    assert!(!prints("{a: …, b: 2}", "{a: 1, b: 3}"));
    assert!(!prints("ok", "ok(1)"));
    assert!(!prints("ok(…)", "ok(1"));
}

/// The rows of the page's table: a call, and what it prints.
fn rows(page: &str) -> Vec<(&str, &str)> {
    page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |")?.split_once("` | `")).collect()
}

/// Whether `printed` is what is documented, where `…` stands for what differs from run to run.
fn prints(documented: &str, printed: &str) -> bool {
    let Some((beginning, after)) = documented.split_once('…') else { return documented == printed };
    let Some(rest) = printed.strip_prefix(beginning) else { return false };
    rest.char_indices().any(|(at, _)| prints(after, &rest[at..])) || after.is_empty()
}

/// The functions of the component that a command line can call: those that are no methods and return no resource.
fn functions() -> BTreeSet<String> {
    let engine = Engine::default();
    let component = Component::new(&engine, COMPONENT).unwrap();
    let mut functions = BTreeSet::new();
    for (_, interface) in component.component_type().exports(&engine) {
        let ComponentItem::ComponentInstance(interface) = interface.ty else { panic!("an interface") };
        let items = interface.exports(&engine).filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)));
        functions.extend(items.map(|(name, _)| name.to_owned()));
    }
    functions.retain(|name| !name.starts_with('[') && name != "acquire");
    functions
}
