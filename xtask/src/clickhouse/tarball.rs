//! An npm package as a file: its digest, and one of its members.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use anyhow::{Context, Result, bail};
use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha512};
use tar::Archive;

use crate::progress;

/// Fails unless the digest of `package` is `integrity`, an SHA-512 in the form of Subresource Integrity.
pub(super) fn verify(package: &Path, integrity: &str) -> Result<()> {
    let mut file = open(package)?;
    let mut digest = Sha512::new();
    io::copy(&mut file, &mut digest).with_context(|| format!("cannot read {}", package.display()))?;
    let found = format!("sha512-{}", BASE64_STANDARD.encode(digest.finalize()));
    if found != integrity {
        bail!(
            "the package that npm fetched is not the published one, and is thrown away: \
             its digest is {found}, not {integrity}. Try again; if this stays so, do not trust the network or \
             the registry that npm is set up for"
        );
    }
    Ok(())
}

/// Unpacks the file `member` of `package` to `target`, on disk when this returns, and returns its size in bytes.
/// `expected_size` is for the progress shown.
pub(super) fn unpack(package: &Path, member: &str, target: &Path, expected_size: u64) -> Result<u64> {
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(open(package)?)));
    let entries = archive.entries().with_context(|| format!("cannot read {}", package.display()))?;
    for entry in entries {
        let mut entry = entry.with_context(|| format!("cannot read {}", package.display()))?;
        if entry.path()?.as_ref() != Path::new(member) {
            continue;
        }
        let file = File::create(target).with_context(|| format!("cannot create {}", target.display()))?;
        let bar = progress::bytes(expected_size, "Unpacking");
        let copied = io::copy(&mut entry, &mut bar.wrap_write(&file)).and_then(|size| file.sync_all().map(|()| size));
        bar.finish_and_clear();
        return copied.with_context(|| format!("cannot write {}", target.display()));
    }
    bail!("{} has no file {member}", package.display());
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// `echo -n abc`, with the digest that FIPS 180-4 gives for it.
    #[test]
    fn only_the_published_bytes_pass() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("abc.tgz");
        let integrity =
            "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==";
        fs::write(&file, "abc").unwrap();
        verify(&file, integrity).unwrap();
        fs::write(&file, "abd").unwrap();
        let refused = verify(&file, integrity).unwrap_err().to_string();
        assert!(refused.contains("thrown away") && refused.contains(integrity), "{refused}");
    }

    #[test]
    fn one_member_is_unpacked() {
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("package.tgz");
        let mut archive = tar::Builder::new(GzEncoder::new(File::create(&package).unwrap(), Compression::fast()));
        for (path, content) in [("package/index.js", "other"), ("package/libchdb.so", "wanted")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, path, content.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap();

        let target = directory.path().join("libchdb.so");
        assert_eq!(unpack(&package, "package/libchdb.so", &target, 6).unwrap(), 6);
        assert_eq!(fs::read_to_string(&target).unwrap(), "wanted");
        let absent = unpack(&package, "package/absent", &target, 6).unwrap_err().to_string();
        assert!(absent.ends_with("has no file package/absent"), "{absent}");
    }
}
