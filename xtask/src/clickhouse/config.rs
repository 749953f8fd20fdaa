//! The configuration that an embedded server starts from.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// The users that every embedded server has.
const USERS: &str = include_str!("users.xml");

/// The macro that tells one embedded server from another, see [`Config::instance`].
pub(super) const INSTANCE_MACRO: &str = "embedded_instance";

/// What an embedded server is to be configured with.
pub(super) struct Config<'a> {
    /// A name that no other server has: by it a client knows that it speaks to this one.
    pub(super) instance: &'a str,
    /// Whether the port may be bound although this process holds it reserved.
    pub(super) share_port: bool,
    /// Settings that go over the built-in ones: an XML file.
    pub(super) overrides: Option<&'a Path>,
    /// Users and profiles besides the built-in ones: an XML file.
    pub(super) users: Option<&'a Path>,
}

impl Config<'_> {
    /// Writes the configuration into `directory` and returns the path of its main file.
    pub(super) fn write(&self, directory: &Path) -> Result<PathBuf> {
        let main = directory.join("config.xml");
        write(&directory.join("users.xml"), USERS)?;
        write(&main, &self.main_file())?;
        if let Some(overrides) = self.overrides {
            copy_overrides(overrides, &directory.join("config.d"))?;
        }
        if let Some(users) = self.users {
            copy_overrides(users, &directory.join("users.d"))?;
        }
        Ok(main)
    }

    fn main_file(&self) -> String {
        let Self { instance, share_port, .. } = self;
        format!(
            "<clickhouse>\n    \
                 <users_config>users.xml</users_config>\n    \
                 <listen_reuse_port>{share_port}</listen_reuse_port>\n    \
                 <macros><{INSTANCE_MACRO}>{instance}</{INSTANCE_MACRO}></macros>\n\
             </clickhouse>\n"
        )
    }
}

/// Puts `file` where ClickHouse looks for files to merge over its main one.
fn copy_overrides(file: &Path, directory: &Path) -> Result<()> {
    // ClickHouse tells the language by the name, and the library is built without YAML.
    if file.extension().is_none_or(|extension| extension != "xml") {
        bail!("the name of the configuration {} must end in .xml", file.display());
    }
    fs::create_dir(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    fs::copy(file, directory.join("overrides.xml"))
        .with_context(|| format!("cannot read the configuration {}", file.display()))?;
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(overrides: Option<&Path>) -> Config<'_> {
        Config { instance: "one", share_port: true, overrides, users: None }
    }

    #[test]
    fn overrides_are_put_where_clickhouse_merges_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keeper.xml");
        fs::write(&file, "<clickhouse/>").unwrap();
        config(Some(&file)).write(directory.path()).unwrap();
        let merged = fs::read_to_string(directory.path().join("config.d/overrides.xml")).unwrap();
        assert_eq!(merged, "<clickhouse/>");
    }

    #[test]
    fn overrides_that_clickhouse_cannot_read_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let refused = config(Some(Path::new("keeper.yaml"))).write(directory.path());
        let refused = refused.unwrap_err().to_string();
        assert_eq!(refused, "the name of the configuration keeper.yaml must end in .xml");
    }
}
