//! What is wrong with the places that settings come from.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{names, redact};

/// Why settings could not be gathered. No text holds a value.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// There is no setting of that name.
    UnknownName {
        /// The name as it was given; where a password may have got into it, no more than what stands before.
        name: String,
        /// The file that it stands in; none for a flag.
        file: Option<PathBuf>,
    },
    /// A setting is a list or a block in `meltano.yml`, not a single value.
    NotAValue {
        /// The setting's full name.
        name: String,
        /// The file that it stands in.
        file: PathBuf,
    },
    /// A setting in `meltano.yml` is written as a number with a fraction, an exponent or many digits, which YAML does
    /// not keep as it is written.
    NeedsQuotes {
        /// The setting's full name.
        name: String,
        /// The file that it stands in.
        file: PathBuf,
    },
    /// An environment variable is not UTF-8.
    NotUnicode {
        /// The variable.
        variable: String,
    },
    /// The directory that was named as the Meltano project has no `meltano.yml`.
    NoProject(PathBuf),
    /// A file cannot be read.
    Unreadable {
        /// Which file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
}

impl SettingsError {
    pub(super) fn unknown(name: &str, file: Option<&Path>) -> Self {
        Self::UnknownName { name: redact::name(name).into_owned(), file: file.map(Path::to_owned) }
    }

    pub(super) fn unreadable(file: &Path, reason: impl fmt::Display) -> Self {
        Self::Unreadable { file: file.to_owned(), reason: reason.to_string() }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownName { .. } => Some(format!("known are {}", names::all().collect::<Vec<_>>().join(", "))),
            Self::NoProject(_) => Some("name the directory that holds meltano.yml".to_owned()),
            _ => None,
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name, file: None } => write!(f, "there is no setting {name:?}"),
            Self::UnknownName { name, file: Some(file) } => {
                write!(f, "{} sets {name:?}, which does not exist", file.display())
            }
            Self::NotAValue { name, file } => write!(f, "{name} in {} is not a single value", file.display()),
            Self::NeedsQuotes { name, file } => write!(f, "{name} in {} has to stand in quotes", file.display()),
            Self::NotUnicode { variable } => write!(f, "the environment variable {variable} is not UTF-8"),
            Self::NoProject(directory) => write!(f, "{} holds no meltano.yml", directory.display()),
            Self::Unreadable { file, reason } => write!(f, "{} cannot be read: {reason}", file.display()),
        }
    }
}

impl std::error::Error for SettingsError {}
