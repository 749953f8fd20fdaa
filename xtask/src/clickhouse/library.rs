//! Where `libchdb.so` is.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use etcetera::BaseStrategy;

use super::fetch;

/// The environment variable that names a libchdb.so of the user's own.
pub(super) const LIBCHDB: &str = "LIBCHDB";

/// The published version that is fetched when [`LIBCHDB`] is not set.
pub(super) const VERSION: &str = "26.7.3-stable.1";

/// The size of that version's libchdb.so in bytes.
///
/// It tells a file cut short from a whole one in no time. The content was checked against the package's digest
/// before the file got its name.
pub(super) const SIZE: u64 = 566_330_096;

/// The path of libchdb.so, which is fetched first if this user has none yet.
pub(super) fn locate() -> Result<PathBuf> {
    if let Some(own) = env::var_os(LIBCHDB).filter(|path| !path.is_empty()) {
        let own = PathBuf::from(own);
        if !own.is_file() {
            bail!("{LIBCHDB} is {}, and there is no such file", own.display());
        }
        return std::path::absolute(own).context("cannot make the path of libchdb.so absolute");
    }
    let cache = cache()?;
    let path = cache.join(format!("libchdb-{VERSION}")).join("libchdb.so");
    if !is_whole(&path, SIZE) {
        fetch::fetch(&cache, &path)?;
    }
    Ok(path)
}

/// Whether `path` is a file of `size` bytes.
pub(super) fn is_whole(path: &Path, size: u64) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == size)
}

/// This project's directory in the user's cache.
fn cache() -> Result<PathBuf> {
    let base = etcetera::choose_base_strategy().context("cannot tell the user's cache directory")?;
    Ok(base.cache_dir().join("meltano-state-backend-clickhouse"))
}
