//! Asks all places for settings, in the order of their precedence.

use std::collections::HashMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use meltano_state_backend_clickhouse::settings::environment_variable;

use super::error::SettingsError;
use super::expand::expand;
use super::values::{Settings, Source};
use super::{dotenv, meltano_yml, names};

const PROJECT_FILE: &str = "meltano.yml";
/// Names the project's directory, for Meltano as well.
const PROJECT_VARIABLE: &str = "MELTANO_PROJECT_ROOT";

/// The places that settings come from.
#[derive(Clone, Default)]
pub struct Sources {
    flags: Vec<(String, String)>,
    environment: HashMap<OsString, OsString>,
    project: Option<PathBuf>,
    current_directory: Option<PathBuf>,
}

impl Sources {
    /// No places at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// This process's environment, and the Meltano project that its current directory lies in.
    #[must_use]
    pub fn of_process() -> Self {
        Self { environment: env::vars_os().collect(), current_directory: env::current_dir().ok(), ..Self::default() }
    }

    /// Adds a value with precedence over all places. The last value for a name counts.
    #[must_use]
    pub fn with_flag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.flags.push((name.into(), value.into()));
        self
    }

    /// Sets a variable of the environment to read, not of this process.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Takes this directory for the Meltano project instead of searching for it.
    #[must_use]
    pub fn with_project(mut self, directory: impl Into<PathBuf>) -> Self {
        self.project = Some(directory.into());
        self
    }

    /// Asks all places.
    ///
    /// # Errors
    /// When a place cannot be read, or names a setting that does not exist.
    pub fn gather(&self) -> Result<Settings, SettingsError> {
        let mut settings = Settings::new();
        for (name, value) in self.flags.iter().rev() {
            settings = settings.with(name, value.clone())?;
        }
        for name in names::all() {
            let variable = environment_variable(&name);
            if let Some(value) = self.variable(&variable)? {
                settings.insert_if_absent(name, value, Source::Environment(variable));
            }
        }
        if let Some(project) = self.find_project()? {
            self.gather_from_project(&project, &mut settings)?;
        }
        Ok(settings)
    }

    fn gather_from_project(&self, project: &Path, settings: &mut Settings) -> Result<(), SettingsError> {
        let dotenv_file = project.join(".env");
        let text = read_if_there(&dotenv_file)?.unwrap_or_default();
        let dotenv = dotenv::parse(&text, |name| self.lossless_variable(name));
        for name in names::all() {
            let variable = environment_variable(&name);
            if let Some(value) = dotenv.get(&variable) {
                let source = Source::DotEnv(dotenv_file.clone(), variable);
                settings.insert_if_absent(name, value.clone(), source);
            }
        }
        let file = project.join(PROJECT_FILE);
        let text = read_if_there(&file)?.unwrap_or_default();
        for (name, value) in meltano_yml::settings(&text, &file)? {
            let variable = |name: &str| self.lossless_variable(name).or_else(|| dotenv.get(name).cloned());
            settings.insert_if_absent(name, expand(&value, variable), Source::MeltanoYml(file.clone()));
        }
        Ok(())
    }

    /// The project that was named, or the nearest one at or above the current directory.
    fn find_project(&self) -> Result<Option<PathBuf>, SettingsError> {
        let named = self.project.clone().or_else(|| {
            let directory = self.environment.get(OsStr::new(PROJECT_VARIABLE));
            directory.filter(|directory| !directory.is_empty()).map(PathBuf::from)
        });
        if let Some(directory) = named {
            if directory.join(PROJECT_FILE).is_file() {
                return Ok(Some(directory));
            }
            return Err(SettingsError::NoProject(directory));
        }
        let start = self.current_directory.as_deref();
        let found = start.and_then(|start| start.ancestors().find(|directory| directory.join(PROJECT_FILE).is_file()));
        Ok(found.map(Path::to_owned))
    }

    fn variable(&self, name: &str) -> Result<Option<String>, SettingsError> {
        match self.environment.get(OsStr::new(name)) {
            None => Ok(None),
            Some(value) => match value.to_str() {
                Some(value) => Ok(Some(value.to_owned())),
                None => Err(SettingsError::NotUnicode { variable: name.to_owned() }),
            },
        }
    }

    fn lossless_variable(&self, name: &str) -> Option<String> {
        self.environment.get(OsStr::new(name))?.to_str().map(str::to_owned)
    }
}

/// Only what was set by name is shown: the environment and flags may hold secrets.
impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("project", &self.project)
            .field("current_directory", &self.current_directory)
            .finish_non_exhaustive()
    }
}

fn read_if_there(file: &Path) -> Result<Option<String>, SettingsError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SettingsError::unreadable(file, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "state_backend.clickhouse.host";
    const HOST_VARIABLE: &str = "MELTANO_STATE_BACKEND_CLICKHOUSE_HOST";

    fn project(meltano_yml: &str, dotenv: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(PROJECT_FILE), meltano_yml).unwrap();
        fs::write(directory.path().join(".env"), dotenv).unwrap();
        directory
    }

    fn check(sources: &Sources, value: Option<&str>) {
        assert_eq!(sources.gather().unwrap().get(HOST), value);
    }

    #[test]
    fn the_first_place_with_a_value_counts() {
        let all = project("state_backend: {clickhouse: {host: from-yml}}", &format!("{HOST_VARIABLE}=from-dotenv"));
        let yml_only = project("state_backend: {clickhouse: {host: from-yml}}", "");
        let yml = Sources::none().with_project(yml_only.path());
        let dotenv = Sources::none().with_project(all.path());
        let environment = dotenv.clone().with_variable(HOST_VARIABLE, "from-environment");
        let flag = environment.clone().with_flag("clickhouse.host", "from-flag");
        check(&Sources::none(), None);
        check(&yml, Some("from-yml"));
        check(&dotenv, Some("from-dotenv"));
        check(&environment, Some("from-environment"));
        check(&flag, Some("from-flag"));
        check(&flag.clone().with_flag("state_backend.clickhouse.host", "last-flag"), Some("last-flag"));
        assert_eq!(flag.gather().unwrap().source(HOST), Some(&Source::Given));
    }

    #[test]
    fn an_empty_value_is_not_set() {
        let project = project("state_backend: {clickhouse: {host: from-yml}}", &format!("{HOST_VARIABLE}="));
        let sources = Sources::none().with_project(project.path());
        check(&sources.with_variable(HOST_VARIABLE, "").with_flag("host", ""), Some("from-yml"));
        let project = self::project("state_backend: {clickhouse: {host: $UNSET}}", "");
        check(&Sources::none().with_project(project.path()), None);
    }

    #[test]
    fn references_are_looked_up_in_the_environment_and_then_in_dotenv() {
        let project = project("state_backend: {clickhouse: {host: \"${A}-${B}\"}}", "A=a1\nB=b1");
        let sources = Sources::none().with_project(project.path()).with_variable("A", "a2");
        check(&sources, Some("a2-b1"));
    }

    #[test]
    fn the_project_is_searched_upwards() {
        let project = project("state_backend.clickhouse.host: found", "");
        let below = project.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let sources = Sources { current_directory: Some(below.clone()), ..Sources::default() };
        check(&sources, Some("found"));
        check(&Sources::none().with_variable(PROJECT_VARIABLE, project.path()), Some("found"));
        let missing = Sources::none().with_project(&below).gather();
        assert_eq!(missing, Err(SettingsError::NoProject(below)));
    }

    #[test]
    fn an_unknown_flag_is_named() {
        let error = Sources::none().with_flag("clickhouse.hots", "secret").gather().unwrap_err();
        assert_eq!(error.to_string(), "there is no setting \"clickhouse.hots\"");
        assert!(error.hint().unwrap().contains(HOST));
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_not_text_is_named() {
        use std::os::unix::ffi::OsStringExt as _;
        let sources = Sources::none().with_variable(HOST_VARIABLE, OsString::from_vec(vec![0xff]));
        let variable = HOST_VARIABLE.to_owned();
        assert_eq!(sources.gather(), Err(SettingsError::NotUnicode { variable }));
    }

    #[test]
    fn debug_shows_no_secrets() {
        let project = project("state_backend: {clickhouse: {password: s3cret}}", "X=s3cret");
        let sources = Sources::none()
            .with_project(project.path())
            .with_variable("MELTANO_STATE_BACKEND_URI", "clickhouse://me:s3cret@h/d?password=s3cret");
        let settings = sources.gather().unwrap();
        assert_eq!(settings.get("state_backend.clickhouse.password"), Some("s3cret"));
        let shown = format!("{sources:?} {settings:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.contains("clickhouse://***@h/d"), "{shown}");
    }
}
