//! What the component asks of its host and offers it, as a list that may not grow unnoticed.

use meltano_state_host::COMPONENT;
use wasmtime::component::Component;
use wasmtime::{Config, Engine};

/// Names of imports and exports, in order.
fn surface() -> (Vec<String>, Vec<String>) {
    let engine = Engine::new(&Config::new()).unwrap();
    let component = Component::new(&engine, COMPONENT).unwrap();
    let ty = component.component_type();
    let names = |items: &mut dyn Iterator<Item = &str>| {
        let mut names: Vec<String> = items.map(str::to_owned).collect();
        names.sort();
        names
    };
    (names(&mut ty.imports(&engine).map(|(name, _)| name)), names(&mut ty.exports(&engine).map(|(name, _)| name)))
}

#[test]
fn imports_and_exports() {
    let (imports, exports) = surface();
    assert_eq!(
        imports,
        [
            // The types alone.
            "meltano:state-backend/types@0.1.0",
            "wasi:clocks/monotonic-clock@0.2.2",
            "wasi:clocks/wall-clock@0.2.2",
            "wasi:config/store@0.2.0-rc.1",
            "wasi:http/outgoing-handler@0.2.2",
            "wasi:http/types@0.2.2",
            "wasi:io/error@0.2.2",
            "wasi:io/poll@0.2.2",
            "wasi:io/streams@0.2.2",
            "wasi:random/random@0.2.2",
        ]
    );
    assert_eq!(
        exports,
        [
            "meltano:state-backend/diagnostics@0.1.0",
            "meltano:state-backend/history@0.1.0",
            "meltano:state-backend/locking@0.1.0",
            "meltano:state-backend/store@0.1.0",
        ]
    );
}

#[test]
fn size() {
    const LIMIT: usize = 300_000;
    assert!(COMPONENT.len() <= LIMIT, "{} bytes", COMPONENT.len());
}
