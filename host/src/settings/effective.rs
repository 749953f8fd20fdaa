//! Every setting with the value that counts and where it came from.

use std::time::Duration;

use meltano_state_backend_clickhouse::Error;
use meltano_state_backend_clickhouse::settings::{
    NAMES, Origin, Resolution, Settings as Resolved, TLS_PORTS, URI, full_name,
};

use super::redact;
use super::values::{Settings, Source};

/// A setting with the value that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The full name, such as `state_backend.clickhouse.host`.
    pub name: String,
    /// The value: a secret as `***`, none if there is none, or if what is given cannot be used and may be a piece of a
    /// password.
    pub value: Option<String>,
    /// Where it came from, in words: `environment variable MELTANO_STATE_BACKEND_URI`, `default`, …
    pub source: String,
}

impl Settings {
    /// Every setting that exists, with the value that counts, and what is wrong with them.
    #[must_use]
    pub fn effective(&self) -> (Vec<Effective>, Option<Error>) {
        let resolution = Resolved::resolve(self);
        let uri = Effective {
            name: URI.to_owned(),
            value: self.get(URI).map(|uri| redact::value(URI, uri, &resolution).into_owned()),
            source: self.source(URI).map_or_else(|| NOT_SET.to_owned(), words),
        };
        let others = NAMES.iter().map(|name| self.effective_one(name, &resolution));
        (std::iter::once(uri).chain(others).collect(), resolution.error.clone())
    }

    fn effective_one(&self, name: &str, resolution: &Resolution) -> Effective {
        let full_name = full_name(name);
        let origin = resolution.origin(name);
        let uri = || self.source(URI).map(words).unwrap_or_default();
        let from_uri = matches!(origin, Origin::UriQuery | Origin::UriPart);
        let value = match resolution.text(name) {
            _ if from_uri && !resolution.is_uri_whole() => Some(redact::HIDDEN.to_owned()),
            Some(text) => Some(text.to_owned()),
            None => value(name, &resolution.settings),
        };
        let source = match origin {
            Origin::Setting => self.source(&full_name).map(words).unwrap_or_default(),
            Origin::UriQuery => format!("query of the URI, {}", uri()),
            Origin::UriPart => format!("part of the URI, {}", uri()),
            Origin::Default if value.is_none() => NOT_SET.to_owned(),
            Origin::Default if name == "secure" => {
                let [first, second] = TLS_PORTS;
                format!("default (true on ports {first} and {second})")
            }
            Origin::Default => "default".to_owned(),
        };
        let remark = if !resolution.is_usable(name) {
            "; it cannot be used"
        } else if name == "secure" && resolution.settings.is_plain_on_tls_port() {
            "; warning: the port is for TLS, and all travels unencrypted, the password too"
        } else {
            ""
        };
        let value = value.filter(|_| resolution.is_usable(name));
        Effective {
            value: value.map(|value| redact::value(&full_name, &value, resolution).into_owned()),
            source: source + remark,
            name: full_name,
        }
    }
}

const NOT_SET: &str = "not set";

fn words(source: &Source) -> String {
    match source {
        Source::Given => "flag".to_owned(),
        other => other.to_string(),
    }
}

/// The value of a setting that no text is given for.
fn value(name: &str, settings: &Resolved) -> Option<String> {
    let text = match name {
        "host" => settings.host.clone(),
        "port" => settings.port.to_string(),
        "user" => settings.user.clone(),
        "password" => settings.password.0.clone(),
        "database" => settings.database.clone(),
        "secure" => settings.secure.to_string(),
        "schema" => settings.schema.clone(),
        "table" => settings.table.clone(),
        "lock_protocol" => "auto".to_owned(),
        "lock_settle_seconds" => seconds(settings.lock.settle),
        "lock_stale_seconds" => seconds(settings.lock.stale),
        "lock_wait_seconds" => seconds(settings.lock.wait),
        "lock_retry_seconds" => seconds(settings.lock.retry),
        "connect_timeout_seconds" => seconds(settings.connect_timeout),
        "request_timeout_seconds" => seconds(settings.request_timeout),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Sources;

    fn check(sources: &Sources, name: &str, value: Option<&str>, source: &str) {
        let (settings, _) = sources.gather().unwrap().effective();
        let found = settings.iter().find(|setting| setting.name == name).unwrap();
        assert_eq!((found.value.as_deref(), found.source.as_str()), (value, source), "{name}");
    }

    const URI_VARIABLE: &str = "MELTANO_STATE_BACKEND_URI";

    #[test]
    fn every_origin_is_told() {
        let sources = Sources::none()
            .with_variable(URI_VARIABLE, "clickhouse://me:pw@h:1/d?schema=s&table=")
            .with_variable("MELTANO_STATE_BACKEND_CLICKHOUSE_PORT", "2")
            .with_flag("lock_wait_seconds", "3.50");
        let uri = "URI, environment variable MELTANO_STATE_BACKEND_URI";
        let name = |short: &str| format!("state_backend.clickhouse.{short}");
        check(&sources, URI, Some("clickhouse://***@h:1/d?***"), "environment variable MELTANO_STATE_BACKEND_URI");
        check(&sources, &name("host"), Some("h"), &format!("part of the {uri}"));
        let port = "environment variable MELTANO_STATE_BACKEND_CLICKHOUSE_PORT";
        check(&sources, &name("port"), Some("2"), port);
        check(&sources, &name("password"), Some("***"), &format!("part of the {uri}"));
        check(&sources, &name("schema"), Some("s"), &format!("query of the {uri}"));
        check(&sources, &name("table"), Some("state"), "default");
        check(&sources, &name("secure"), Some("false"), "default (true on ports 443 and 8443)");
        check(&sources, &name("lock_wait_seconds"), Some("3.50"), "flag");
        check(&sources, "state_backend.lock_retry_seconds", Some("1"), "default");
        check(&sources, &name("cluster"), None, "not set");
        check(&Sources::none(), &name("user"), None, "not set");
        check(&Sources::none(), URI, None, "not set");
    }

    #[test]
    fn tls_is_told_where_the_port_decides() {
        const SECURE: &str = "state_backend.clickhouse.secure";
        let of = |uri: &str| Sources::none().with_flag("uri", uri);
        check(&of("clickhouse://me:pw@h:8443/d"), SECURE, Some("true"), "default (true on ports 443 and 8443)");
        let warning = "; warning: the port is for TLS, and all travels unencrypted, the password too";
        let plain = of("clickhouse://me:pw@h:443/d").with_flag("secure", "off");
        check(&plain, SECURE, Some("off"), &format!("flag{warning}"));
        check(
            &of("clickhouse+http://me:pw@h:8443/d"),
            SECURE,
            Some("false"),
            &format!("part of the URI, flag{warning}"),
        );
        check(&of("clickhouse+http://me:pw@h:8123/d"), SECURE, Some("false"), "part of the URI, flag");
    }

    #[test]
    fn of_a_uri_that_is_not_whole_no_part_is_shown() {
        for uri in ["clickhouse://me:1234", "clickhouse://me:pw@h", "clickhouse://h/d?table=t&none=x"] {
            let (settings, error) = Sources::none().with_flag("uri", uri).gather().unwrap().effective();
            for setting in settings.iter().filter(|setting| setting.source.contains("of the URI")) {
                assert_eq!(setting.value.as_deref(), Some("***"), "{uri}: {setting:?}");
            }
            assert!(error.is_some(), "{uri}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_not_shown() {
        let sources = Sources::none().with_flag("port", "pw").with_variable(URI_VARIABLE, "clickhouse://u:p#w@h/d");
        check(&sources, "state_backend.clickhouse.port", None, "flag; it cannot be used");
        let (_, error) = sources.gather().unwrap().effective();
        assert!(error.unwrap().message.contains("port"));
    }
}
