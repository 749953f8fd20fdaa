//! A checked configuration.

use std::fmt;
use std::time::Duration;

/// The lock table drops rows after this time, so no lock can be held longer without being renewed.
pub const LOCK_TABLE_TTL: Duration = Duration::from_secs(300);

/// The ports on which HTTPS is commonly served, and so is spoken unless `secure` says otherwise; as in ClickHouse's driver
/// for Python, which the published add-on uses.
pub const TLS_PORTS: [u16; 2] = [443, 8443];

/// A checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name or address of the server, an IPv6 address without brackets.
    pub host: String,
    /// The port of the server's HTTP or HTTPS interface.
    pub port: u16,
    /// The user's name.
    pub user: String,
    /// The user's password, possibly empty.
    pub password: Secret,
    /// The database that the connection names. No statement depends on it.
    pub database: String,
    /// Whether to use HTTPS.
    pub secure: bool,
    /// The database that holds the tables.
    pub schema: String,
    /// The state table; the lock table is named after it.
    pub table: String,
    /// How locks are taken.
    pub lock: LockSettings,
    /// For how many days `init` lets earlier versions be kept; 0: no longer; none: as it is.
    pub history_days: Option<u16>,
    /// Until a connection stands.
    pub connect_timeout: Duration,
    /// For one statement, its retries included.
    pub request_timeout: Duration,
}

/// How it is decided who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockProtocol {
    /// `Ticket` where the lock table can tell the order of its rows, else `Settle`.
    Auto,
    /// Wait until rivals are visible.
    Settle,
    /// The row that was inserted first, at once.
    Ticket,
}

/// How locks are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct LockSettings {
    /// How it is decided who holds a lock.
    pub protocol: LockProtocol,
    /// How long a candidate waits for rivals to become visible.
    pub settle: Duration,
    /// The age at which a lock counts as abandoned.
    pub stale: Duration,
    /// How long to wait for a lock that another holds.
    pub wait: Duration,
    /// The longest pause between attempts.
    pub retry: Duration,
}

/// A text that `Debug` does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Settings {
    /// The time limit of a write under a lock: the request timeout, rounded up to the whole seconds that the server counts.
    #[must_use]
    pub fn write_limit(&self) -> Duration {
        Duration::from_secs(self.request_timeout.as_secs() + u64::from(self.request_timeout.subsec_nanos() > 0))
    }

    /// A lock has to count for longer than this, or its holder could not write: the time limit of the write, the room for
    /// the server's clock, and the second to which the lock table knows when a row was inserted.
    #[must_use]
    pub fn shortest_stale(&self) -> Duration {
        self.write_limit() + self.lock.settle + Duration::from_secs(1)
    }

    /// How often to renew a lock that is held for long: at a third of the time for which it counts, or where that is
    /// short, often enough that it stays fresh enough to write.
    #[must_use]
    pub fn renew_interval(&self) -> Duration {
        let fresh = self.lock.stale.saturating_sub(self.shortest_stale());
        (self.lock.stale / 3).min(fresh / 2)
    }

    /// Whether requests go over plain HTTP to a port that commonly serves HTTPS, which only an explicit `secure` brings about.
    #[must_use]
    pub fn is_plain_on_tls_port(&self) -> bool {
        !self.secure && TLS_PORTS.contains(&self.port)
    }

    /// Host and port as they stand in a URL.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}
