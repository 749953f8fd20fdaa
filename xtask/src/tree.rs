//! Directories of files, as values.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// File contents by path below a directory.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The files below `directory`; none when it does not exist.
pub(crate) fn read(directory: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(current) = pending.pop() {
        if !current.exists() {
            continue;
        }
        let entries = fs::read_dir(&current).with_context(|| format!("cannot read {}", current.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                files.insert(path.strip_prefix(directory)?.to_path_buf(), content);
            }
        }
    }
    Ok(files)
}

/// Writes the files, and the directories that they lie in.
pub(crate) fn write(directory: &Path, files: &Files) -> Result<()> {
    for (path, content) in files {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_tree_reads_back_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let file = |path: &str, content: &str| (PathBuf::from(path), content.as_bytes().to_vec());
        let tree = Files::from([file("io/poll.wit", "package a;\n"), file("world.wit", "")]);
        write(directory.path(), &tree).unwrap();
        assert_eq!(read(directory.path()).unwrap(), tree);
    }

    #[test]
    fn a_tree_that_is_not_there_has_no_files() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read(&directory.path().join("absent")).unwrap().is_empty());
    }
}
