//! What the backend asks of the world around it, in its own plain types.
//!
//! `crate::component` answers from WASI; the tests answer from scripts.

use std::time::Duration;

/// One HTTP POST to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether to use HTTPS.
    pub secure: bool,
    /// Host and port, an IPv6 address in brackets.
    pub authority: String,
    /// Path and query, percent-encoded, without credentials.
    pub path_and_query: String,
    /// Header names in lower case, with their values.
    pub headers: Vec<(&'static str, Header)>,
    /// The body, sent with its length.
    pub body: Vec<u8>,
}

/// A header's value, which `Debug` shows unless it is a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Header {
    /// May be shown.
    Plain(String),
    /// Never shown.
    Secret(String),
}

impl Header {
    /// The value to send.
    #[must_use]
    pub fn value(&self) -> &str {
        match self {
            Self::Plain(value) | Self::Secret(value) => value,
        }
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(value) => write!(f, "{value:?}"),
            Self::Secret(_) => f.write_str("(secret)"),
        }
    }
}

/// A complete HTTP answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names and values in the order they came.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of that name, upper and lower case being the same.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(candidate, _)| candidate.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// How long a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the call to the last byte of the answer.
    pub total: Duration,
}

/// Why no complete answer came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// At which stage it failed.
    pub kind: TransportErrorKind,
    /// What the transport says of it.
    pub detail: String,
}

/// At which stage a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportErrorKind {
    /// The host name has no address.
    NameNotFound,
    /// No connection: the server has not seen the request.
    NotConnected,
    /// No TLS session: the server has not seen the request.
    Tls,
    /// The plugin host does not allow this destination.
    Denied,
    /// The time limit passed. The server may have seen the request.
    TimedOut,
    /// The connection ended early. The server may have seen the request.
    Lost,
    /// The answer is no valid HTTP. The server may have seen the request.
    BadAnswer,
    /// The answer is larger than the plugin host or this backend allows. The server may have seen the request.
    TooLarge,
}

impl TransportErrorKind {
    /// Whether the server may have carried the request out.
    #[must_use]
    pub const fn may_have_arrived(self) -> bool {
        matches!(self, Self::TimedOut | Self::Lost | Self::BadAnswer | Self::TooLarge)
    }
}

/// Sends requests.
pub trait Http {
    /// Sends `request` and waits for the whole answer.
    ///
    /// # Errors
    /// When no complete answer came within the time limits.
    fn send(&self, request: &Request, timeouts: Timeouts) -> Result<Response, TransportError>;
}

/// Time.
pub trait Clock {
    /// Time since a fixed moment, never going back.
    fn now(&self) -> Duration;
    /// Time since 1970-01-01 UTC. It may be wrong and may go back.
    fn unix_time(&self) -> Duration;
    /// Waits, and says whether it waited that long: a host that wants the call to end ends its waits early.
    fn sleep(&self, duration: Duration) -> bool;
}

/// Randomness.
pub trait Random {
    /// 128 bits that nobody can foretell.
    fn random(&self) -> u128;
}

/// Where settings come from.
pub trait SettingsSource {
    /// The value of a setting by its full dotted name, such as `state_backend.clickhouse.host`.
    ///
    /// # Errors
    /// A sentence that says why the source cannot be read.
    fn get(&self, name: &str) -> Result<Option<String>, String>;
}

/// All ports that the operations need.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// Sends requests.
    pub http: &'a dyn Http,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Randomness.
    pub random: &'a dyn Random,
}
