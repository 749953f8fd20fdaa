//! Cases of `tests/cases/uri.json`, and what they leave open.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Origin, Resolution, Secret, Settings, full_name};
use crate::error::{Error, ErrorKind};
use crate::ports::SettingsSource;

const CASES: &str = include_str!("../../tests/cases/uri.json");

struct Given(HashMap<String, String>);

impl SettingsSource for Given {
    fn get(&self, name: &str) -> Result<Option<String>, String> {
        Ok(self.0.get(name).cloned())
    }
}

fn load(uri: &str, settings: &[(&str, &str)]) -> Result<Settings, Error> {
    let mut given = HashMap::from([("state_backend.uri".to_owned(), uri.to_owned())]);
    given.extend(settings.iter().map(|(name, value)| (full_name(name), (*value).to_owned())));
    Settings::load(&Given(given))
}

fn load_case(case: &Value) -> Result<Settings, Error> {
    let settings = case["settings"].as_object().unwrap();
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
    load(case["uri"].as_str().unwrap(), &settings)
}

fn cases(list: &str) -> Vec<Value> {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    cases[list].as_array().unwrap().clone()
}

#[test]
fn what_resolves() {
    for case in cases("resolve") {
        let settings = load_case(&case).unwrap_or_else(|error| panic!("{case}: {error}"));
        let found = json!({
            "host": settings.host, "port": settings.port, "user": settings.user, "password": settings.password.0,
            "database": settings.database, "secure": settings.secure, "schema": settings.schema,
            "table": settings.table,
        });
        assert_eq!(found, case["expect"], "{case}");
    }
}

#[test]
fn what_is_refused() {
    for case in cases("refuse") {
        let error = load_case(&case).expect_err(&case.to_string());
        assert_eq!(error.kind.name(), case["kind"], "{case}");
        let text = format!("{} {}", error.message, error.hint.as_deref().unwrap_or_default());
        for word in case["mentions"].as_array().unwrap() {
            assert!(text.contains(word.as_str().unwrap()), "{case}: {text}");
        }
    }
}

fn check_refused(uri: &str, settings: &[(&str, &str)], mention: &str) {
    let error = load(uri, settings).expect_err(uri);
    assert_eq!(error.kind, ErrorKind::InvalidSetting, "{uri} {settings:?}");
    assert!(error.message.contains(mention), "{}", error.message);
}

const URI: &str = "clickhouse://u:p@h/db";

#[test]
fn values_that_cannot_be_used() {
    check_refused(URI, &[("host", "http://h")], "host");
    check_refused(URI, &[("host", "a b")], "host");
    check_refused(URI, &[("host", "db:8123")], "host");
    check_refused(URI, &[("host", "::1%lo")], "host");
    check_refused(URI, &[("password", "p\n")], "password");
    check_refused(URI, &[("table", "a\0b")], "table");
    check_refused(URI, &[("lock_settle_seconds", "0")], "lock_settle_seconds");
    check_refused(URI, &[("lock_wait_seconds", "NaN")], "lock_wait_seconds");
    check_refused(URI, &[("lock_retry_seconds", "0")], "state_backend.lock_retry_seconds");
    check_refused(URI, &[("request_timeout_seconds", "1e9")], "request_timeout_seconds");
    check_refused(URI, &[("lock_stale_seconds", "301")], "lock_stale_seconds");
    check_refused(URI, &[("lock_stale_seconds", "60")], "lock_stale_seconds");
    check_refused("clickhouse://u:p@[::1/db", &[], "state_backend.uri");
    check_refused("clickhouse://u:p%ff@h/db", &[], "UTF-8");
}

#[test]
fn settings_without_a_function_yet_are_refused() {
    check_refused(URI, &[("cluster", "c")], "cluster");
    check_refused(URI, &[("history_days", "-1")], "history_days");
    check_refused(URI, &[("history_days", "36501")], "history_days");
    check_refused(URI, &[("lock_protocol", "keeper")], "lock_protocol");
    load(URI, &[("lock_protocol", "settle"), ("history_days", "0")]).unwrap();
    load(URI, &[("lock_protocol", "auto")]).unwrap();
    load(URI, &[("lock_protocol", "ticket")]).unwrap();
}

#[test]
fn all_faults_are_named_at_once() {
    let error = load("clickhouse://h:1/", &[("secure", "perhaps"), ("port", "x")]).unwrap_err();
    for word in ["secure", "port", "clickhouse.user", "clickhouse.database"] {
        assert!(error.message.contains(word), "{}", error.message);
    }
    // But not what a URI that cannot be taken apart may well say.
    let error = load("clickhouse://u:p#w@h/d", &[("port", "x")]).unwrap_err();
    assert!(error.message.contains("port") && !error.message.contains("required"), "{}", error.message);
}

#[test]
fn an_ipv6_address_without_brackets_is_named_as_such() {
    for uri in ["clickhouse://u:p@::1:8123/d", "clickhouse://u:p@fe80::1/d"] {
        let error = load(uri, &[]).unwrap_err();
        assert!(error.hint.as_deref().unwrap().contains("[::1]"), "{}", error.message);
    }
}

fn check_origin(resolution: &Resolution, name: &str, origin: Origin, text: Option<&str>) {
    assert_eq!((resolution.origin(name), resolution.text(name)), (origin, text), "{name}");
}

#[test]
fn origins_are_told() {
    let given = Given(HashMap::from([
        ("state_backend.uri".to_owned(), "clickhouse://u:p@h/d?table=t&port=x".to_owned()),
        (full_name("host"), "other".to_owned()),
    ]));
    let resolution = Settings::resolve(&given);
    check_origin(&resolution, "host", Origin::Setting, Some("other"));
    check_origin(&resolution, "table", Origin::UriQuery, Some("t"));
    check_origin(&resolution, "user", Origin::UriPart, None);
    check_origin(&resolution, "schema", Origin::Default, None);
    assert!(resolution.is_usable("table") && !resolution.is_usable("port"));
    assert!(resolution.error.is_some());
    assert!(!format!("{resolution:?}").contains("port=x"));
}

#[test]
fn no_error_and_no_debug_text_holds_the_password() {
    const PASSWORD: &str = "hunter2hunter2";
    for uri in [
        "clickhouse://u:hunter2hunter2@h:0/db",
        "clickhouse://u:hunter2hunter2#@h/db",
        "clickhouse://u:hunter2hunter2%zz@h/db",
        "clickhouse://u:hunter2hunter2/@h/db",
        "clickhouse://u:1/hunter2hunter2@h/db",
        "clickhouse://u:1?hunter2hunter2@h/db",
        "clickhouse://h/db?port=hunter2hunter2",
        "clickhouse://h/db?lock_protocol=hunter2hunter2",
        "u:hunter2hunter2@h/db",
        "postgresql://u:hunter2hunter2@h/db",
        "clickhouse://h/db?password=hunter2hunter2&x=hunter2hunter2",
    ] {
        let error = load(uri, &[]).expect_err(uri);
        assert!(!format!("{error:?}").contains(PASSWORD), "{uri}: {error:?}");
    }
    let settings = load("clickhouse://u:hunter2hunter2@h/db", &[]).unwrap();
    assert_eq!(settings.password, Secret(PASSWORD.to_owned()));
    assert!(!format!("{settings:?}").contains(PASSWORD));
}

#[test]
fn defaults_and_limits() {
    let settings = load(URI, &[]).unwrap();
    assert_eq!(settings.lock.settle, Duration::from_secs(1));
    assert_eq!(settings.lock.stale, Duration::from_secs(300));
    assert_eq!(settings.lock.wait, Duration::from_secs(30));
    assert_eq!(settings.lock.retry, Duration::from_secs(1));
    assert_eq!(settings.connect_timeout, Duration::from_secs(10));
    assert_eq!(settings.request_timeout, Duration::from_secs(60));

    let settings = load("clickhouse://u:p@h/db?lock_settle_seconds=0.25&lock_retry_seconds=0.5", &[]).unwrap();
    assert_eq!(settings.lock.settle, Duration::from_millis(250));
    assert_eq!(settings.lock.retry, Duration::from_millis(500));
}

#[test]
fn an_ipv6_address_stands_in_brackets_in_the_authority() {
    for (uri, settings) in
        [("clickhouse://u:p@[::1]/db", &[][..]), (URI, &[("host", "[::1]")]), (URI, &[("host", "::1")])]
    {
        assert_eq!(load(uri, settings).unwrap().authority(), "[::1]:8123");
    }
}

#[test]
fn the_port_decides_on_tls_unless_secure_is_given() {
    let check = |uri: &str, secure: Option<&str>, expected: (bool, u16)| {
        let given: Vec<_> = secure.map(|secure| ("secure", secure)).into_iter().collect();
        let settings = load(uri, &given).unwrap();
        assert_eq!((settings.secure, settings.port), expected, "{uri} {secure:?}");
    };
    check("clickhouse://u:p@h/d", None, (false, 8123));
    check("clickhouse://u:p@h/d", Some("true"), (true, 8443));
    check("clickhouse://u:p@h/d", Some("false"), (false, 8123));
    for port in [443, 8443] {
        let uri = format!("clickhouse://u:p@h:{port}/d");
        check(&uri, None, (true, port));
        check(&uri, Some("false"), (false, port));
        check(&format!("{uri}?secure=no"), None, (false, port));
        check(&format!("clickhouse+http://u:p@h:{port}/d"), None, (false, port));
        assert!(load(&uri, &[("secure", "false")]).unwrap().is_plain_on_tls_port());
        assert!(!load(&uri, &[]).unwrap().is_plain_on_tls_port());
        // Whatever says it.
        let settings = load("clickhouse://u:p@h/d", &[("port", &port.to_string())]).unwrap();
        assert_eq!((settings.secure, settings.port), (true, port));
    }
    check("clickhouse://u:p@h:9443/d", None, (false, 9443));
    check("clickhouse+https://u:p@h:8123/d", None, (true, 8123));
}
