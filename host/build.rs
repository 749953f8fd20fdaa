//! Builds the component that the host embeds.
//!
//! The guest is compiled for `wasm32-unknown-unknown` into a target directory of its own (the outer build holds the
//! lock of the usual one) and turned into a component. With `MELTANO_STATE_COMPONENT` set to the path of a component,
//! that file is embedded instead and nothing is compiled.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use wasm_encoder::{Component, RawSection};
use wasm_metadata::{AddMetadata, AddMetadataField, Authors, Description, Licenses, Source, Version};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

const GUEST: &str = "meltano-state-backend-clickhouse";
const TARGET: &str = "wasm32-unknown-unknown";
const PROFILE: &str = "component";
const DESCRIPTION: &str = "Keeps the state of Meltano pipelines in ClickHouse";
const READY_COMPONENT: &str = "MELTANO_STATE_COMPONENT";

fn main() -> Result<()> {
    let host = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = host.parent().context("the host package lies inside the workspace")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let destination = out.join("meltano_state_backend_clickhouse.wasm");

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={READY_COMPONENT}");
    if let Some(ready) = env::var_os(READY_COMPONENT).filter(|path| !path.is_empty()) {
        println!("cargo::rerun-if-changed={}", ready.display());
        fs::copy(&ready, &destination)
            .with_context(|| format!("{READY_COMPONENT} names {}, which cannot be read", ready.display()))?;
        return Ok(());
    }

    for input in ["src", "wit", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    let module = compile_guest(root, &out.join("guest"))?;
    let component = ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .context("the core module cannot be turned into a component")?;
    fs::write(&destination, described(&without_names(&component)?)?)?;
    Ok(())
}

/// The component, with what registries and `wasm-tools metadata show` say of it.
fn described(component: &[u8]) -> Result<Vec<u8>> {
    let mut metadata = AddMetadata::default();
    metadata.name = AddMetadataField::Set(GUEST.to_owned());
    metadata.description = AddMetadataField::Set(Description::new(DESCRIPTION));
    metadata.version = AddMetadataField::Set(Version::new(env!("CARGO_PKG_VERSION")));
    metadata.licenses = AddMetadataField::Set(Licenses::new(env!("CARGO_PKG_LICENSE"))?);
    metadata.authors = AddMetadataField::Set(Authors::new(env!("CARGO_PKG_AUTHORS")));
    // Empty until the workspace names the place of its sources.
    let repository = env!("CARGO_PKG_REPOSITORY");
    if !repository.is_empty() {
        metadata.source = AddMetadataField::Set(Source::new(repository)?);
    }
    metadata.to_wasm(component).context("the component cannot be described")
}

/// Compiles the guest and returns its core module.
fn compile_guest(root: &Path, target_directory: &Path) -> Result<Vec<u8>> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root)
        .args(["rustc", "--lib", "--package", GUEST, "--profile", PROFILE, "--target", TARGET])
        // With the library for Rust beside it, cargo would leave out the optimisation at link time.
        .args(["--crate-type", "cdylib"])
        .arg("--target-dir")
        .arg(target_directory)
        // Numbers that the linker filled in take the bytes that they need, not the five of the longest.
        .args(["--", "-C", "link-arg=--compress-relocations"]);
    for (name, _) in env::vars_os() {
        if changes_the_guest(&name) {
            cargo.env_remove(name);
        }
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", without_machine_paths()?);
    let output = cargo.output().context("cargo cannot be started")?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stderr);
        eprintln!("{report}");
        // Rustc reports an absent target as E0463, "can't find crate for `core`" or `std`.
        if report.contains("E0463") {
            bail!("the target {TARGET} is not installed: run `rustup target add {TARGET}`");
        }
        bail!("the component did not compile; cargo's own report is above");
    }
    let module = target_directory.join(TARGET).join(PROFILE).join(format!("{}.wasm", GUEST.replace('-', "_")));
    fs::read(&module).with_context(|| format!("{} cannot be read", module.display()))
}

/// The component without the names of its internal items, which only people who take it apart see: 10 KB.
fn without_names(component: &[u8]) -> Result<Vec<u8>> {
    let mut stripped = Component::new();
    let mut depth = 0_i32;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        let is_names = matches!(&payload, Payload::CustomSection(section) if section.name() == "component-name");
        if let Some((id, range)) = payload.as_section().filter(|_| depth == 0 && !is_names) {
            let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
            let data = component.get(range).context("a section ends with the component")?;
            stripped.section(&RawSection { id, data });
        }
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ => {}
        }
    }
    Ok(stripped.finish())
}

/// Flags that leave out of panic messages where this machine keeps the sources of crates, so that the component has the
/// same bytes wherever it is built.
fn without_machine_paths() -> Result<OsString> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home.context("neither CARGO_HOME nor a home directory is known")?.join("registry/src");
    let mut flags = Vec::new();
    // One directory for each registry, with its name in it. There is none where all crates are vendored.
    for registry in fs::read_dir(&sources).into_iter().flatten() {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(registry?.path());
        flag.push("=");
        flags.push(flag);
    }
    Ok(flags.join(OsStr::new("\x1f")))
}

/// Whether a variable of the outer build would leak into the guest's: flags and wrappers meant for the native build
/// (Clippy's among them), the outer package's own data, and the outer target directory. What tells cargo where its
/// home, its registries and the network are stays, and so does the job server, which bounds both builds together.
fn changes_the_guest(name: &OsStr) -> bool {
    const LEAKS: [&str; 12] = [
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_ENCODED_RUSTDOCFLAGS",
        "CARGO_TARGET_DIR",
        "CLIPPY_ARGS",
        "DEBUG",
        "OPT_LEVEL",
        "PROFILE",
        "RUSTC",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTFLAGS",
        "TARGET",
    ];
    const LEAKING_PREFIXES: [&str; 6] =
        ["CARGO_BUILD_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_PKG_", "CARGO_PROFILE_", "CARGO_TARGET_"];
    let Some(name) = name.to_str() else { return false };
    LEAKS.contains(&name) || LEAKING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
