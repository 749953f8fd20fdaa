//! `xtask wit`: the WASI interfaces that the project's own refer to, vendored from the crates that bind them.
//!
//! Guest and host then mean the same revision of each interface as their bindings do.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;

use crate::{
    tree::{self, Files},
    workspace,
};

/// Vendor the WASI interfaces into wit/deps
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when wit/deps is not what would be written
    #[arg(long)]
    check: bool,
}

/// A crate that ships WIT packages under `wit/deps`.
struct Source {
    name: &'static str,
    version: &'static str,
    packages: &'static [&'static str],
}

const SOURCES: [Source; 2] = [
    Source {
        name: "waki",
        version: "0.5.1",
        // All that it ships, used or not: a package's files name each other's packages.
        packages: &["cli", "clocks", "filesystem", "http", "io", "random", "sockets"],
    },
    Source { name: "wasmtime-wasi-config", version: "48.0.8", packages: &["config"] },
];

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.check { check() } else { vendor() }
}

/// Fails, naming each file, when `wit/deps` is not what [`vendor`] would write.
pub(crate) fn check() -> Result<()> {
    let differences = differences(&wanted(&workspace::metadata()?)?, &tree::read(&deps())?);
    if differences.is_empty() {
        return Ok(());
    }
    bail!(
        "wit/deps is not what the pinned crates hold (cargo xtask wit writes it anew):\n  {}",
        differences.join("\n  ")
    );
}

/// Writes `wit/deps` anew.
fn vendor() -> Result<()> {
    let wanted = wanted(&workspace::metadata()?)?;
    let deps = deps();
    if deps.exists() {
        fs::remove_dir_all(&deps).with_context(|| format!("cannot remove {}", deps.display()))?;
    }
    tree::write(&deps, &wanted)?;
    println!("{} files in {}", wanted.len(), deps.display());
    Ok(())
}

fn deps() -> PathBuf {
    workspace::root().join("wit/deps")
}

/// What `wit/deps` should hold.
fn wanted(metadata: &Metadata) -> Result<Files> {
    let mut files = Files::new();
    for source in &SOURCES {
        let tree = sources_of(source, metadata)?;
        for package in source.packages {
            let shipped = tree::read(&tree.join(package))?;
            if shipped.is_empty() {
                bail!("{} {} ships no WIT package {package}", source.name, source.version);
            }
            let placed = |(path, content)| (Path::new(package).join(path), content);
            files.extend(shipped.into_iter().map(placed));
        }
    }
    Ok(files)
}

/// The directory of the WIT packages that `source` ships.
fn sources_of(source: &Source, metadata: &Metadata) -> Result<PathBuf> {
    let Source { name, version, .. } = source;
    let mut crates = metadata.packages.iter().filter(|package| package.name.as_str() == *name);
    let found = crates.next().with_context(|| format!("the workspace does not depend on {name}"))?;
    if found.version.to_string() != *version {
        bail!(
            "the workspace depends on {name} {}, but wit/deps is taken from {version}: \
             set the new version in xtask/src/wit.rs, then run cargo xtask wit",
            found.version
        );
    }
    let directory = found.manifest_path.parent().context("a manifest without a directory")?;
    Ok(directory.join("wit/deps").into())
}

/// One line for each file that differs.
fn differences(wanted: &Files, present: &Files) -> Vec<String> {
    let paths: BTreeSet<&PathBuf> = wanted.keys().chain(present.keys()).collect();
    paths
        .into_iter()
        .filter_map(|path| {
            let what = match (wanted.get(path), present.get(path)) {
                (Some(wanted), Some(present)) if wanted == present => return None,
                (Some(_), Some(_)) => "different",
                (Some(_), None) => "missing",
                (None, _) => "extra",
            };
            Some(format!("{what}: {}", path.display()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(listed: &[(&str, &str)]) -> Files {
        let entry = |&(path, content): &(&str, &str)| (PathBuf::from(path), content.as_bytes().to_vec());
        listed.iter().map(entry).collect()
    }

    #[test]
    fn every_kind_of_difference_is_named() {
        let wanted = files(&[("io/poll.wit", "a"), ("io/streams.wit", "b"), ("http/types.wit", "c")]);
        let present = files(&[("io/poll.wit", "a"), ("io/streams.wit", "B"), ("cli/run.wit", "d")]);
        assert_eq!(
            differences(&wanted, &present),
            ["extra: cli/run.wit", "missing: http/types.wit", "different: io/streams.wit"]
        );
    }
}
