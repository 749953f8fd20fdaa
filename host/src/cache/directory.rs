//! Compiled components on disk, so that a start takes under a millisecond instead of a tenth of a second.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy as _;
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::access;

/// The length of the checksum in front of the machine code.
const CHECKSUM: usize = 32;

/// How long a file stays when newer ones are stored: 90 days.
const KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A directory for compiled components.
///
/// What lies there is run as machine code, so it has to belong to the user who runs this program and be writable by
/// nobody else; otherwise it is not used. A file that is damaged, or that another version made, is made anew. No
/// failure of the cache is an error: the component is compiled instead.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The user's usual place for caches, such as `~/.cache/meltano-state`; none for a user without a home.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(Self::in_directory(base.cache_dir().join("meltano-state")))
    }

    /// A directory of your choice. It is created, for the user alone, when the first component is stored.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The component, from the cache if it is there, else compiled and stored.
    pub(crate) fn component(&self, engine: &Engine, wasm: &[u8]) -> wasmtime::Result<Component> {
        let file = self.directory.join(file_name(engine, wasm));
        match self.load(engine, &file) {
            Ok(component) => return Ok(component),
            Err(reason) => tracing::debug!("no compiled component from {}: {reason}", file.display()),
        }
        let component = Component::new(engine, wasm)?;
        let stored = component.serialize().map_err(io::Error::other).and_then(|code| self.store(&file, &code));
        if let Err(reason) = stored {
            tracing::debug!("the compiled component is not kept in {}: {reason}", file.display());
        }
        Ok(component)
    }

    fn load(&self, engine: &Engine, path: &Path) -> io::Result<Component> {
        access::check(&fs::symlink_metadata(&self.directory)?, fs::Metadata::is_dir)?;
        let mut file = fs::File::open(path)?;
        access::check(&file.metadata()?, fs::Metadata::is_file)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let (checksum, code) = content.split_at_checked(CHECKSUM).ok_or_else(|| access::refusal("it is cut short"))?;
        if Sha256::digest(code).as_slice() != checksum {
            return Err(access::refusal("its checksum is wrong"));
        }
        // SAFETY: `code` has to be the unchanged output of `Component::serialize`. The checksum rules out damage, and
        // nobody but the user who runs this process could have written the file: it and its directory were checked
        // for that, the file by the same handle that it was read from.
        #[expect(unsafe_code, reason = "running stored machine code is what the cache is for")]
        unsafe { Component::deserialize(engine, code) }.map_err(io::Error::other)
    }

    fn store(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        access::create_directory(&self.directory)?;
        access::check(&fs::symlink_metadata(&self.directory)?, fs::Metadata::is_dir)?;
        // Written apart and renamed, so that a process that starts now never reads half a file.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.directory)?;
        file.write_all(&Sha256::digest(code))?;
        file.write_all(code)?;
        file.persist(path)?;
        self.remove_old();
        Ok(())
    }

    /// Each version of the component leaves a file of about 1 MB. One that is in use and removed is made anew.
    fn remove_old(&self) {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        for file in files {
            let age =
                file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > KEPT) {
                // Whoever comes next tries again.
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

/// Which component, for which engine: both the code and what it was compiled with.
fn file_name(engine: &Engine, wasm: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(wasm);
    engine.precompile_compatibility_hash().hash(&mut Feed(&mut hash));
    format!("{:x}.compiled", hash.finalize())
}

/// Lets a cryptographic hash take what `Hash` types feed.
struct Feed<'a>(&'a mut Sha256);

impl Hasher for Feed<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0 // Only the wrapped hash is used.
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// The empty component.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    struct Setup {
        _parent: tempfile::TempDir,
        cache: Cache,
        engine: Engine,
        file: PathBuf,
    }

    /// A cache with one component in it.
    fn filled() -> Setup {
        let parent = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(parent.path().join("cache"));
        let engine = Engine::default();
        let file = cache.directory.join(file_name(&engine, EMPTY));
        cache.component(&engine, EMPTY).unwrap();
        Setup { _parent: parent, cache, engine, file }
    }

    impl Setup {
        fn check_refused(&self, reason: &str) {
            let refusal = self.cache.load(&self.engine, &self.file).err().map(|error| error.to_string());
            assert_eq!(refusal.as_deref(), Some(reason));
        }

        /// A component comes from the cache again once one was asked for.
        fn check_repaired(&self) {
            self.cache.component(&self.engine, EMPTY).unwrap();
            self.cache.load(&self.engine, &self.file).unwrap();
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_stored_component_is_for_its_owner_alone_and_is_used() {
        let setup = filled();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&setup.cache.directory), mode(&setup.file)), (0o700, 0o600));
        setup.cache.load(&setup.engine, &setup.file).unwrap();
        let names = fs::read_dir(&setup.cache.directory).unwrap().count();
        assert_eq!(names, 1, "no temporary file is left");
    }

    #[test]
    fn another_component_or_engine_has_another_file() {
        let engine = Engine::default();
        let mut config = wasmtime::Config::new();
        config.epoch_interruption(true);
        let other = Engine::new(&config).unwrap();
        assert_ne!(file_name(&engine, EMPTY), file_name(&engine, b"other"));
        assert_ne!(file_name(&engine, EMPTY), file_name(&other, EMPTY));
    }

    #[test]
    fn a_damaged_file_is_made_anew() {
        let setup = filled();
        let mut content = fs::read(&setup.file).unwrap();
        *content.last_mut().unwrap() ^= 1;
        fs::write(&setup.file, &content).unwrap();
        setup.check_refused("its checksum is wrong");
        setup.check_repaired();

        fs::write(&setup.file, &content[..100]).unwrap();
        setup.check_refused("its checksum is wrong");
        fs::write(&setup.file, "").unwrap();
        setup.check_refused("it is cut short");
        setup.check_repaired();
    }

    #[test]
    fn what_others_may_write_is_not_run() {
        let setup = filled();
        set_mode(&setup.file, 0o620);
        setup.check_refused("others may write to it");
        setup.check_repaired();

        set_mode(&setup.cache.directory, 0o707);
        setup.check_refused("others may write to it");
        setup.cache.component(&setup.engine, EMPTY).unwrap();
        setup.check_refused("others may write to it");
    }

    #[test]
    fn old_files_go_when_a_new_one_comes() {
        let setup = filled();
        let old = setup.cache.directory.join("old.compiled");
        let long_ago = std::time::SystemTime::now() - 2 * KEPT;
        fs::File::create(&old).unwrap().set_modified(long_ago).unwrap();
        fs::remove_file(&setup.file).unwrap();
        setup.check_repaired();
        assert!(!old.exists());
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_not_followed() {
        let setup = filled();
        let link = setup.cache.directory.with_file_name("link");
        symlink(&setup.cache.directory, &link).unwrap();
        let cache = Cache::in_directory(link);
        let file = cache.directory.join(file_name(&setup.engine, EMPTY));
        assert!(cache.load(&setup.engine, &file).is_err());
    }

    #[test]
    fn an_unusable_place_is_no_error() {
        let cache = Cache::in_directory("/dev/null/cache");
        cache.component(&Engine::default(), EMPTY).unwrap();
    }
}
