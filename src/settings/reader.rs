//! Reads settings: which of a setting's sources counts, and which values are accepted.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::fault::{Fault, summarize};
use super::model::{LOCK_TABLE_TTL, LockProtocol, LockSettings, Secret, Settings, TLS_PORTS};
use super::names::{NAMES, PREFIX, URI, full_name};
use super::origin::{Given, Origin, Resolution};
use crate::error::Error;
use crate::ports::SettingsSource;
use crate::seconds::{self, Seconds};
use crate::uri::{self, UriParts};

impl Settings {
    /// Reads and checks all settings. For each, the first of these that is set counts: the setting itself, the URI's
    /// query, the URI's own parts, the default. An empty text is not set.
    ///
    /// # Errors
    /// [`MissingSetting`](crate::ErrorKind::MissingSetting) or [`InvalidSetting`](crate::ErrorKind::InvalidSetting), naming every fault that was found.
    pub fn load(source: &dyn SettingsSource) -> Result<Self, Error> {
        let Resolution { settings, error, .. } = Self::resolve(source);
        error.map_or(Ok(settings), Err)
    }

    /// As [`Self::load`], with the origin of each value, and with what can be read where something is wrong.
    pub fn resolve(source: &dyn SettingsSource) -> Resolution {
        let mut reader =
            Reader { source, uri: UriParts::default(), faults: Vec::new(), given: Vec::new(), unusable: Vec::new() };
        reader.read_uri();
        let settings = reader.read();
        let Reader { faults, given, unusable, .. } = reader;
        Resolution { settings, error: summarize(faults), given, unusable }
    }
}

/// Gathers values and faults.
struct Reader<'a> {
    source: &'a dyn SettingsSource,
    uri: UriParts,
    faults: Vec<Fault>,
    given: Vec<Given>,
    unusable: Vec<&'static str>,
}

impl Reader<'_> {
    fn explicit(&mut self, full_name: &str) -> Option<String> {
        match self.source.get(full_name) {
            Ok(value) => value.filter(|value| !value.is_empty()),
            Err(reason) => {
                self.faults.push(Fault::invalid(
                    format!("{full_name} cannot be read: {reason}"),
                    "the plugin host has to provide wasi:config/store",
                ));
                None
            }
        }
    }

    fn read_uri(&mut self) {
        let Some(text) = self.explicit(URI) else { return };
        self.note("uri", Origin::Setting, Some(&text));
        match uri::parse(&text) {
            Ok(parts) => self.uri = parts,
            Err(fault) => {
                self.unusable.push("uri");
                self.faults.push(fault);
            }
        }
        for (name, _) in &self.uri.query {
            if !NAMES.contains(&name.as_str()) {
                self.unusable.push("uri");
                // What is no misspelt name may follow an unencoded & in a password.
                let unknown = if NAMES.iter().any(|known| is_misspelt(name, known)) {
                    format!("the unknown setting {name:?}")
                } else {
                    "a setting that does not exist".to_owned()
                };
                self.faults.push(Fault::invalid(
                    format!("{URI}: the query names {unknown}"),
                    format!("known are {}; in a value, & is written %26", NAMES.join(", ")),
                ));
            }
        }
    }

    /// The setting itself, or else the last value in the URI's query.
    fn text(&mut self, name: &'static str) -> Option<String> {
        if let Some(value) = self.explicit(&full_name(name)) {
            self.note(name, Origin::Setting, Some(&value));
            return Some(value);
        }
        let named = self.uri.query.iter().rev().find(|(candidate, _)| candidate == name);
        let value = named.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())?;
        self.note(name, Origin::UriQuery, Some(&value));
        Some(value)
    }

    fn note(&mut self, name: &'static str, origin: Origin, text: Option<&str>) {
        self.given.push(Given { name, origin, text: text.map(str::to_owned) });
    }

    /// `value`, or else what a part of the URI says.
    fn or_part<T>(
        &mut self,
        name: &'static str,
        value: Option<T>,
        part: impl FnOnce(&mut UriParts) -> Option<T>,
    ) -> Option<T> {
        value.or_else(|| {
            let value = part(&mut self.uri)?;
            self.note(name, Origin::UriPart, None);
            Some(value)
        })
    }

    fn read(&mut self) -> Settings {
        self.refuse_unsupported();
        let secure = self.parsed("secure", "true or false", parse_bool);
        let secure = self.or_part("secure", secure, |uri| uri.secure);
        let port = self.parsed("port", "a number from 1 to 65535", |text| text.parse().ok().filter(|port| *port != 0));
        let port = self.or_part("port", port, |uri| uri.port).unwrap_or(if secure == Some(true) { 8443 } else { 8123 });
        let host = self.text_or_part("host", |uri| uri.host.take());
        let host = host.unwrap_or_else(|| "localhost".to_owned());
        let password = self.text_or_part("password", |uri| uri.password.take());
        let request_timeout = self.seconds("request_timeout_seconds", millis(60_000), millis(1)..=millis(3_600_000));
        let settings = Settings {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            secure: secure.unwrap_or_else(|| TLS_PORTS.contains(&port)),
            user: self.required("user", "clickhouse://USER@…", |uri| uri.user.take()),
            database: self.required("database", "clickhouse://…/DATABASE", |uri| uri.database.take()),
            password: Secret(password.unwrap_or_default()),
            schema: self.identifier("schema", "meltano"),
            table: self.identifier("table", "state"),
            lock: LockSettings {
                protocol: self.lock_protocol(),
                settle: self.seconds("lock_settle_seconds", millis(1_000), millis(100)..=millis(60_000)),
                stale: self.seconds("lock_stale_seconds", millis(300_000), millis(1_000)..=LOCK_TABLE_TTL),
                wait: self.seconds("lock_wait_seconds", millis(30_000), millis(0)..=millis(86_400_000)),
                retry: self.seconds("lock_retry_seconds", millis(1_000), millis(10)..=millis(3_600_000)),
            },
            history_days: self.parsed("history_days", "a number of days, from 0 to 36500", |text| {
                text.parse().ok().filter(|days| *days <= 36_500)
            }),
            connect_timeout: self.seconds("connect_timeout_seconds", millis(10_000), millis(1)..=millis(3_600_000)),
            request_timeout,
        };
        self.check_header("user", &settings.user);
        self.check_header("password", &settings.password.0);
        for (name, value) in
            [("database", &settings.database), ("schema", &settings.schema), ("table", &settings.table)]
        {
            if value.contains("://") {
                self.invalid_value(name, "a name");
            }
        }
        if !is_host(&settings.host) {
            self.unusable.push("host");
            self.faults.push(Fault::invalid(
                format!("{PREFIX}host is neither a name nor an address"),
                format!("give the name or address alone, without a scheme, and the port as {PREFIX}port"),
            ));
        }
        if settings.lock.stale <= settings.shortest_stale() {
            self.faults.push(Fault::invalid(
                format!(
                    "{PREFIX}lock_stale_seconds is not greater than request_timeout_seconds, lock_settle_seconds \
                     and a second together, so a lock could be taken for abandoned while its holder writes"
                ),
                format!("raise {PREFIX}lock_stale_seconds or lower {PREFIX}request_timeout_seconds"),
            ));
        }
        settings
    }

    /// A setting that has a name but no function yet is refused rather than ignored.
    fn refuse_unsupported(&mut self) {
        let name = "cluster";
        if self.text(name).is_some() {
            self.unusable.push(name);
            self.faults.push(Fault::invalid(
                format!("this version does not support {PREFIX}{name}"),
                format!("leave {PREFIX}{name} unset"),
            ));
        }
    }

    fn lock_protocol(&mut self) -> LockProtocol {
        let protocol = self.parsed("lock_protocol", "auto, settle or ticket", |text| match text {
            "auto" => Some(LockProtocol::Auto),
            "settle" => Some(LockProtocol::Settle),
            "ticket" => Some(LockProtocol::Ticket),
            // keeper has a name and no function yet.
            _ => None,
        });
        protocol.unwrap_or(LockProtocol::Auto)
    }

    fn text_or_part(
        &mut self,
        name: &'static str,
        part: impl FnOnce(&mut UriParts) -> Option<String>,
    ) -> Option<String> {
        let value = self.text(name);
        self.or_part(name, value, part)
    }

    fn required(
        &mut self,
        name: &'static str,
        place_in_uri: &str,
        part: impl FnOnce(&mut UriParts) -> Option<String>,
    ) -> String {
        self.text_or_part(name, part).unwrap_or_else(|| {
            // A faulty URI may well say it.
            if !self.unusable.contains(&"uri") {
                self.faults.push(Fault::missing(name, place_in_uri));
            }
            String::new()
        })
    }

    fn parsed<T>(&mut self, name: &'static str, form: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(text.trim());
        if value.is_none() {
            self.invalid_value(name, form);
        }
        value
    }

    /// Does not repeat the value: a password with special characters can end up in any part of a URI.
    fn invalid_value(&mut self, name: &'static str, form: &str) {
        let full_name = full_name(name);
        self.unusable.push(name);
        self.faults.push(Fault::invalid(
            format!("the value of {full_name} is not {form}"),
            format!("set {full_name} to {form}"),
        ));
    }

    fn seconds(&mut self, name: &'static str, default: Duration, range: RangeInclusive<Duration>) -> Duration {
        let form = format!("a number of seconds, from {} to {}", Seconds(*range.start()), Seconds(*range.end()));
        let duration = self.parsed(name, &form, |text| {
            let duration = seconds::parse(text)?;
            range.contains(&duration).then_some(duration)
        });
        duration.unwrap_or(default)
    }

    fn identifier(&mut self, name: &'static str, default: &str) -> String {
        let value = self.text(name).unwrap_or_else(|| default.to_owned());
        if value.trim().is_empty() || value.contains('\0') {
            self.invalid_value(name, "a name");
        }
        value
    }

    /// Credentials travel in headers, which cannot hold control characters.
    fn check_header(&mut self, name: &'static str, value: &str) {
        if value.chars().any(char::is_control) {
            self.unusable.push(name);
            self.faults.push(Fault::invalid(
                format!("{PREFIX}{name} holds a control character, such as a line break"),
                "remove it; a file read into a variable often ends in a line break",
            ));
        }
    }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Whether a text may be the name of a host, an IPv4 or an IPv6 address. Only the latter has colons, and more than one.
fn is_host(text: &str) -> bool {
    // Of other alphabets everything may be a letter: their tables take 2 KB.
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || !b.is_ascii() || b"-_.".contains(&b));
    let is_ipv6 = || text.matches(':').count() > 1 && text.chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c));
    is_name || is_ipv6()
}

/// Whether a name differs from a known one in at most two letters side by side, and in less than half of it.
fn is_misspelt(name: &str, known: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let beginning = name.bytes().zip(known.bytes()).take_while(|(a, b)| a == b).count();
    let end = name.bytes().rev().zip(known.bytes().rev()).take_while(|(a, b)| a == b).count();
    let different = name.len().max(known.len()).saturating_sub(beginning + end);
    different <= 2 && different * 2 < known.len()
}
