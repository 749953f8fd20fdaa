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
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The values; where one cannot be used, the default.
    pub settings: Settings,
    /// Names every fault that was found.
    pub error: Option<Error>,
    pub(super) given: Vec<Given>,
    pub(super) unusable: Vec<&'static str>,
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

    /// Whether the value that is given for a setting can be used. One that cannot be used should not be shown: it may
    /// be a piece of a password that lacks its encoding.
    #[must_use]
    pub fn is_usable(&self, name: &str) -> bool {
        !self.unusable.contains(&name)
    }
}
