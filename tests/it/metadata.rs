//! What the component says of itself.

use meltano_state_host::COMPONENT;
use wasm_metadata::Payload;

#[test]
fn the_component_describes_itself_as_the_wit_package_does() {
    let payload = Payload::from_binary(COMPONENT).unwrap();
    let metadata = payload.metadata();
    assert_eq!(metadata.name.as_deref(), Some("meltano-state-backend-clickhouse"));
    assert_eq!(metadata.version.as_ref().unwrap().to_string(), env!("CARGO_PKG_VERSION"));

    let wkg = include_str!("../../wkg.toml");
    let written = |name: &str, value: String| {
        assert!(wkg.lines().any(|line| line == format!("{name} = \"{value}\"")), "{name}: {value}");
    };
    written("description", metadata.description.as_ref().unwrap().to_string());
    written("authors", metadata.authors.as_ref().unwrap().to_string());
    written("licenses", metadata.licenses.as_ref().unwrap().to_string());
}
