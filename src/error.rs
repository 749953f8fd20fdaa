//! The one error type of the backend.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// What kind of failure an [`Error`] is: what a caller may branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A setting without a default is not set.
    MissingSetting,
    /// A setting has a value that cannot be used.
    InvalidSetting,
    /// An argument of the call cannot be used.
    InvalidArgument,
    /// A state given to the call is no JSON object.
    InvalidState,
    /// A state in the table is no JSON object.
    CorruptState,
    /// No connection to the server, or it was lost.
    Unreachable,
    /// The TLS handshake failed.
    Tls,
    /// The server did not answer in time.
    TimedOut,
    /// The server does not accept the user or the password.
    Authentication,
    /// The user lacks a privilege.
    PermissionDenied,
    /// The server is too old.
    UnsupportedServer,
    /// A table exists but is not what this backend needs.
    SchemaMismatch,
    /// Another process holds the lock.
    Locked,
    /// The lock was lost before the write.
    LockLost,
    /// A write was sent and no answer came.
    OutcomeUnknown,
    /// What answered does not speak ClickHouse's HTTP protocol, or the answer was cut short.
    Protocol,
    /// Any other failure that the server reported.
    Server,
}

impl ErrorKind {
    /// The name of the kind in the WIT package, such as `missing-setting`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MissingSetting => "missing-setting",
            Self::InvalidSetting => "invalid-setting",
            Self::InvalidArgument => "invalid-argument",
            Self::InvalidState => "invalid-state",
            Self::CorruptState => "corrupt-state",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::TimedOut => "timed-out",
            Self::Authentication => "authentication",
            Self::PermissionDenied => "permission-denied",
            Self::UnsupportedServer => "unsupported-server",
            Self::SchemaMismatch => "schema-mismatch",
            Self::Locked => "locked",
            Self::LockLost => "lock-lost",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::Protocol => "protocol",
            Self::Server => "server",
        }
    }
}

/// The failure that the server reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// ClickHouse's number for the failure; the ones that this backend acts on are in [`crate::clickhouse::code`].
    pub code: i32,
    /// ClickHouse's name for it, such as `MEMORY_LIMIT_EXCEEDED`; empty when the server gave none.
    pub name: String,
    /// Which query failed, to find it in `system.query_log`.
    pub query_id: Option<String>,
}

/// Why a call failed. Its texts never hold a password.
///
/// All functions pass errors on and few look into them, so they are boxed: by value they made every function larger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Details>);

/// What an [`Error`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// What to branch on.
    pub kind: ErrorKind,
    /// What happened, in a sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The server's own report, where the server reported the failure.
    pub server: Option<ServerError>,
}

impl Error {
    /// An error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Details { kind, message: message.into(), hint: None, server: None }.into()
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What it says, to be taken apart.
    #[must_use]
    pub fn into_details(self) -> Details {
        *self.0
    }

    /// The server's number for the failure, if the server reported it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.server.as_ref().map(|server| server.code)
    }
}

impl From<Details> for Error {
    fn from(details: Details) -> Self {
        Self(Box::new(details))
    }
}

impl AsRef<Self> for Error {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Deref for Error {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
