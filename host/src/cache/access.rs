//! Who may write what the cache runs.

use std::io;

/// `check` passes what is of the expected kind, belongs to the user who runs this and is writable by nobody else.
pub(super) use system::{check, create_directory};

pub(super) fn refusal(reason: &str) -> io::Error {
    io::Error::other(reason)
}

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, Metadata};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    use std::path::Path;

    pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    pub(crate) fn check(metadata: &Metadata, is_expected: impl Fn(&Metadata) -> bool) -> io::Result<()> {
        if !is_expected(metadata) {
            return Err(super::refusal("it is not of the expected kind"));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(super::refusal("it belongs to another user"));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(super::refusal("others may write to it"));
        }
        Ok(())
    }
}

/// Elsewhere the user's cache directory is the user's by the system's own rules.
#[cfg(not(unix))]
mod system {
    use std::fs::{self, Metadata};
    use std::io;
    use std::path::Path;

    pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    pub(crate) fn check(metadata: &Metadata, is_expected: impl Fn(&Metadata) -> bool) -> io::Result<()> {
        if is_expected(metadata) { Ok(()) } else { Err(super::refusal("it is not of the expected kind")) }
    }
}
