//! `xtask reproduce`: the component once more, from a copy of its sources at another place.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;
use sha2::{Digest as _, Sha256};

use crate::{
    build::{self, COMPONENT},
    tree::{self, Files},
    workspace,
};

/// Build the component a second time at another place, and compare the bytes
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<()> {
    check()
}

/// Whether the component is built from the sources, and not one that is there already.
pub(crate) fn can_check() -> bool {
    env::var_os("MELTANO_STATE_COMPONENT").is_none_or(|ready| ready.is_empty())
}

/// Fails if the copy's component differs, as it would if it told where a machine keeps sources and crates.
pub(crate) fn check() -> Result<()> {
    let metadata = workspace::metadata()?;
    let built = build::build(true)?;
    let component = read(&built.component)?;
    let directory = metadata.target_directory.join("reproduce");
    let again = make_again(&built.script, &metadata, directory.as_std_path())?;
    if component != read(&again)? {
        bail!("{} and {} differ", built.component.display(), again.display());
    }
    let digest: String = Sha256::digest(&component).iter().map(|byte| format!("{byte:02x}")).collect();
    println!("sha256     {digest}, the same from two places");
    Ok(())
}

/// Has the build script make the component from a copy of the sources below `directory`, and with crates that seem to lie
/// there too. Returns its file.
fn make_again(script: &Path, metadata: &Metadata, directory: &Path) -> Result<PathBuf> {
    let (copy, home, out) = (directory.join("at/another/place"), directory.join("cargo"), directory.join("out"));
    let sources = sources(metadata)?;
    // A copy that has not changed keeps its times, so that cargo does not compile it anew.
    if tree::read(&copy)? != sources {
        if copy.exists() {
            fs::remove_dir_all(&copy).with_context(|| format!("cannot remove {}", copy.display()))?;
        }
        tree::write(&copy, &sources)?;
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    if !home.exists() {
        symlink(cargo_home()?, &home).with_context(|| format!("cannot create {}", home.display()))?;
    }
    let host = copy.join("host");
    let mut make = Command::new(script);
    make.current_dir(&host)
        .env("CARGO", workspace::cargo().get_program())
        .env("CARGO_HOME", &home)
        .env("CARGO_MANIFEST_DIR", &host)
        .env("OUT_DIR", &out);
    let output = make.output().with_context(|| format!("cannot run {}", script.display()))?;
    if !output.status.success() {
        bail!("the build at another place failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(out.join(COMPONENT))
}

/// What the guest is built from: its sources, and of the other packages what cargo has to know of them.
fn sources(metadata: &Metadata) -> Result<Files> {
    let root = workspace::root().canonicalize().context("the workspace has no directory")?;
    let mut files = Files::new();
    for directory in ["src", "wit"] {
        let tree = tree::read(&root.join(directory))?;
        files.extend(tree.into_iter().map(|(path, content)| (Path::new(directory).join(path), content)));
    }
    let packages = metadata.workspace_packages();
    let manifests = packages.iter().map(|package| &package.manifest_path);
    let targets = packages.iter().flat_map(|package| &package.targets).map(|target| &target.src_path);
    let listed = manifests.chain(targets).map(|path| path.as_std_path().to_path_buf());
    for path in listed.chain([root.join("Cargo.toml"), root.join("Cargo.lock")]) {
        let path = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
        files.insert(path.strip_prefix(&root)?.to_path_buf(), read(&path)?);
    }
    Ok(files)
}

fn cargo_home() -> Result<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    home.context("neither CARGO_HOME nor a home directory is known")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
