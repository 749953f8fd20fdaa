//! `state_backend.uri`: `clickhouse://user:password@host:port/database?setting=value`.

use percent_encoding::percent_decode_str;
use url::{Host, ParseError, form_urlencoded};

use crate::settings::Fault;

/// What a URI says, each part percent-decoded; an empty part is absent.
#[derive(Default)]
pub(crate) struct UriParts {
    pub(crate) secure: Option<bool>,
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<String>,
    /// The query's names and values, in order.
    pub(crate) query: Vec<(String, String)>,
}

const NAME: &str = "state_backend.uri";
const FORM: &str = "clickhouse://user:password@host:8123/database";
const BRACKETS: &str = "write an IPv6 address in brackets: clickhouse://user@[::1]:8123/database";
const ENCODE: &str = "percent-encode special characters in the user and the password: \
                      @ as %40, : as %3A, / as %2F, # as %23, ? as %3F, % as %25";
const SEPARATE: &str = "settings follow a ? and are separated by &: clickhouse://host/database?user=me&password=…; \
                        within a name or a value ; is written %3B, = %3D, ? %3F, & %26";

/// Takes a URI apart. No fault repeats the URI, since it may hold a password.
pub(crate) fn parse(uri: &str) -> Result<UriParts, Fault> {
    // As in every URL, line breaks and tabs count for nothing.
    let uri = &uri.trim().replace(['\t', '\n', '\r'], "");
    if uri.is_empty() {
        return Ok(UriParts::default());
    }
    let fault = |message: &str, hint: &str| Fault::invalid(format!("{NAME}: {message}"), hint);

    let Some((scheme, rest)) = uri.split_once("://") else {
        return Err(fault("the value does not begin with clickhouse://", &format!("write it as {FORM}")));
    };
    let secure = match scheme.to_ascii_lowercase().as_str() {
        "clickhouse" => None,
        "clickhouse+https" => Some(true),
        "clickhouse+http" => Some(false),
        other => {
            // Whatever else may be a user and a password.
            let is_scheme = other.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'+');
            let scheme = if is_scheme { format!("the scheme {other:?}") } else { "the scheme".to_owned() };
            return Err(fault(
                &format!("{scheme} is not one of clickhouse, clickhouse+http, clickhouse+https"),
                &format!("write it as {FORM}"),
            ));
        }
    };
    if rest.contains('#') {
        return Err(fault("the value holds an unencoded #", ENCODE));
    }
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    if tail.contains('@') {
        return Err(fault("an @ follows the first / or ?", ENCODE));
    }
    check_escapes(rest).map_err(|()| fault("a % is not followed by two hexadecimal digits", ENCODE))?;

    let (userinfo, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    if !address.starts_with('[') && address.matches(':').count() > 1 {
        return Err(fault("the host has more than one colon", &format!("{BRACKETS}; in a password, : is %3A")));
    }
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    // The colons of an IPv6 address come before its closing bracket.
    let (host, port) = address.rsplit_once(':').filter(|(_, port)| !port.contains(']')).unwrap_or((address, ""));
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let database = path.trim_matches('/');
    if database.contains('/') {
        return Err(fault(
            "the path names more than one database",
            "the path is the name of the database alone; a / within a name is written %2F",
        ));
    }
    // Else what is meant as a password would be taken, and shown, as a piece of them.
    if holds_settings(user) || holds_settings(database) || query.split('&').any(names_another_setting) {
        return Err(fault("a setting stands in the name of the user or the database, or in another setting", SEPARATE));
    }
    let decode = |text: &str| -> Result<Option<String>, Fault> {
        let text = percent_decode_str(text)
            .decode_utf8()
            .map_err(|_| fault("a part is not UTF-8 after percent-decoding", ENCODE))?;
        Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
    };
    Ok(UriParts {
        secure,
        host: match Host::parse_opaque(host) {
            Ok(Host::Domain(name)) => decode(&name)?,
            Ok(Host::Ipv6(address)) => Some(address.to_string()),
            Ok(Host::Ipv4(address)) => Some(address.to_string()),
            Err(ParseError::InvalidIpv6Address) => return Err(fault("the host is no valid IPv6 address", BRACKETS)),
            Err(error) => return Err(fault(&error.to_string(), ENCODE)),
        },
        port: parse_port(port).map_err(|()| fault("the port is not a number from 1 to 65535", ENCODE))?,
        user: decode(user)?,
        password: decode(password)?,
        database: decode(database)?,
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
    })
}

/// The port, if one is given.
fn parse_port(text: &str) -> Result<Option<u16>, ()> {
    match text.parse() {
        _ if text.is_empty() => Ok(None),
        Ok(port) if port > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Some(port)),
        _ => Err(()),
    }
}

/// Whether an unencoded separator of settings stands in a text that is none.
fn holds_settings(text: &str) -> bool {
    text.contains([';', '=', '?', '&'])
}

/// Whether a setting of the query goes on where another one seems to begin. A password may: nothing of it is shown.
fn names_another_setting(setting: &str) -> bool {
    setting.split_once('=').is_some_and(|(name, value)| name != "password" && holds_settings(value))
}

/// Whether each `%` begins an escape.
fn check_escapes(text: &str) -> Result<(), ()> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('%') {
        match after.as_bytes() {
            [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => rest = after,
            _ => return Err(()),
        }
    }
    Ok(())
}
