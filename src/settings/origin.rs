//! Where the value of each setting comes from.

use std::fmt;

use super::model::Settings;
use crate::error::Error;

/// Where the value of a setting comes from, within what the plugin host provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The setting itself.
    Setting,
    /// The query of the URI.
    UriQuery,
    /// A part of the URI, such as its host.
    UriPart,
    /// Nothing is said about it.
    Default,
}

/// A setting that is given.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) name: &'static str,
    pub(super) origin: Origin,
    pub(super) text: Option<String>,
}

/// The text may be a secret.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.name, self.origin)
    }
}

/// All settings, as far as they can be read, with the origin of each.
#[derive(Clone)]
pub struct Resolution {
    /// The values; where one cannot be used, the default.
    pub settings: Settings,
    /// Names every fault that was found.
    pub error: Option<Error>,
    pub(super) given: Vec<Given>,
    pub(super) unusable: Vec<&'static str>,
}

/// Without the values: those of a URI that is not complete may be pieces of a password.
impl fmt::Debug for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolution").field("given", &self.given).field("error", &self.error).finish_non_exhaustive()
    }
}

impl Resolution {
    /// The origin of a setting by its short name, such as `host`.
    #[must_use]
    pub fn origin(&self, name: &str) -> Origin {
        self.given(name).map_or(Origin::Default, |given| given.origin)
    }

    /// The text that is given for a setting; none for a default and for a part of the URI.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given(name)?.text.as_deref()
    }

    fn given(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|given| given.name == name)
    }

    /// Whether the URI is whole: it can be taken apart, and with it user and database are known. Nothing of one that is
    /// not should be shown: where it was cut off, or split in the wrong place, a password may stand for the host, the
    /// port or the database.
    #[must_use]
    pub fn is_uri_whole(&self) -> bool {
        self.is_usable("uri") && !self.settings.user.is_empty() && !self.settings.database.is_empty()
    }

    /// Whether the value that is given for a setting can be used. One that cannot be used should not be shown: it may
    /// be a piece of a password that lacks its encoding.
    #[must_use]
    pub fn is_usable(&self, name: &str) -> bool {
        !self.unusable.contains(&name)
    }
}
