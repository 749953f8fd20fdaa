//! What a check found.

use crate::error::{Details, Error};

/// The steps, in their order.
const STEPS: [&str; 12] = [
    "settings",
    "connection",
    "tls",
    "http",
    "credentials",
    "version",
    "tables",
    "layout",
    "privileges",
    "clock",
    "profile",
    "replicas",
];

/// What a check found, step by step. No text in it holds a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order in which a connection is made and used; always the same steps.
    pub steps: Vec<Step>,
}

/// One thing that has to be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which: `settings`, `connection`, `tls`, `http`, `credentials`, `version`, `tables`, `layout`, `privileges`,
    /// `clock`, `profile`, `replicas`.
    pub name: String,
    /// How it went.
    pub status: Status,
    /// What was tried; empty if nothing was.
    pub tried: String,
    /// What came back, in a sentence.
    pub found: String,
    /// What to do about it: the setting or the statement that mends it.
    pub hint: Option<String>,
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As it should.
    Ok,
    /// The backend works, but something should be mended.
    Warning,
    /// The backend does not work, or only in part.
    Failed,
    /// Not tried: it does not matter here, or an earlier step failed.
    Skipped,
}

impl Status {
    /// The name in the WIT package.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl Report {
    /// Whether a step failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.steps.iter().any(|step| step.status == Status::Failed)
    }

    /// Adds the next step. None if it failed.
    pub(super) fn add(&mut self, tried: impl Into<String>, finding: Finding) -> Option<()> {
        let name = STEPS.get(self.steps.len()).copied().unwrap_or_default().to_owned();
        let Finding { status, found, hint } = finding;
        self.steps.push(Step { name, status, tried: tried.into(), found, hint });
        (status != Status::Failed).then_some(())
    }

    /// The report, with the steps that were not reached.
    pub(super) fn complete(mut self) -> Self {
        while self.steps.len() < STEPS.len() {
            self.add("", Finding::skipped("an earlier step failed"));
        }
        self
    }
}

/// What a step found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) status: Status,
    pub(super) found: String,
    pub(super) hint: Option<String>,
}

impl Finding {
    pub(super) fn ok(found: impl Into<String>) -> Self {
        Self { status: Status::Ok, found: found.into(), hint: None }
    }

    pub(super) fn skipped(found: impl Into<String>) -> Self {
        Self { status: Status::Skipped, found: found.into(), hint: None }
    }

    pub(super) fn failed(found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status: Status::Failed, found: found.into(), hint: Some(hint.into()) }
    }

    pub(super) fn warning(found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status: Status::Warning, found: found.into(), hint: Some(hint.into()) }
    }

    /// This finding and another one of the same step, with the hint of the first that has one.
    pub(super) fn and(mut self, other: Option<Self>) -> Self {
        if let Some(other) = other {
            self.found = format!("{}; {}", self.found, other.found);
            self.hint = self.hint.or(other.hint);
            if self.status == Status::Ok {
                self.status = other.status;
            }
        }
        self
    }

    /// This finding, unless there is an error.
    pub(super) fn unless(self, error: Option<Error>) -> Self {
        error.map_or(self, Self::from)
    }
}

/// The failure of a request.
impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        let Details { message, hint, .. } = error.into_details();
        Self { status: Status::Failed, found: message, hint }
    }
}
