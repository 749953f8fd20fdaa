//! What may be shown of a setting's value.

use std::borrow::Cow;

use meltano_state_backend_clickhouse::settings::{Resolution, URI};

/// In place of what is not shown.
pub(super) const HIDDEN: &str = "***";

/// The value of a setting as it may be shown, where `resolution` is what became of all of them.
pub(super) fn value<'a>(full_name: &str, text: &'a str, resolution: &Resolution) -> Cow<'a, str> {
    let name = full_name.rsplit('.').next().unwrap_or_default();
    if full_name == URI {
        uri(text, resolution.is_uri_whole()).into()
    } else if name == "password" || !resolution.is_usable(name) || (name == "user" && text.contains(':')) {
        // A user with a colon is most likely a user and a password.
        HIDDEN.into()
    } else {
        text.into()
    }
}

/// A name of a setting that does not exist. With another sign in place of its `=` or `: `, a setting's value is taken for
/// a piece of its name.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    const PASSWORD: &str = "password";
    let end_of_name = text.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
    let end_of_password = text.find(PASSWORD).map(|start| start + PASSWORD.len());
    let end = end_of_name.into_iter().chain(end_of_password).min().unwrap_or(text.len());
    match text.split_at(end) {
        (name, "") => name.into(),
        (name, _) => format!("{name}{HIDDEN}").into(),
    }
}

/// A URI without user, password and query, which may name a password too. Of one that is not whole no more than its
/// scheme and the name after it is shown: the rest may be a password, which is often what makes it so, for an unencoded
/// `/`, `?` or `#` in it.
fn uri(text: &str, is_whole: bool) -> String {
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return HIDDEN.to_owned();
    };
    if !is_whole {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
        return match end.and_then(|end| rest.get(..=end)) {
            Some(beginning) => format!("{scheme}://{beginning}{HIDDEN}"),
            None => format!("{scheme}://{HIDDEN}"),
        };
    }
    let (userinfo, place) = match rest.rsplit_once('@') {
        Some((_, place)) => ("***@", place),
        None => ("", rest),
    };
    match place.split_once('?') {
        Some((place, _)) => format!("{scheme}://{userinfo}{place}?{HIDDEN}"),
        None => format!("{scheme}://{userinfo}{place}"),
    }
}

fn is_scheme(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphabetic() || c == '+')
}

#[cfg(test)]
mod tests {
    use meltano_state_backend_clickhouse::settings::Settings as Resolved;

    use super::*;
    use crate::settings::Settings;

    fn check_beside(text: &str, user: &str, shown: &str) {
        let settings = Settings::new().with("uri", text).unwrap().with("user", user).unwrap();
        assert_eq!(value(URI, text, &Resolved::resolve(&settings)), shown, "{text}");
    }

    fn check(text: &str, shown: &str) {
        check_beside(text, "", shown);
    }

    #[test]
    fn uris_that_are_whole() {
        check("clickhouse://me:pw@localhost/db", "clickhouse://***@localhost/db");
        check("clickhouse://me:p@w@localhost:8123/db", "clickhouse://***@localhost:8123/db");
        check("clickhouse://host/db?user=me&password=pw", "clickhouse://host/db?***");
        check_beside("clickhouse://localhost:8123/db", "me", "clickhouse://localhost:8123/db");
    }

    #[test]
    fn uris_that_are_not() {
        check("clickhouse://me:pw", "clickhouse://me:***");
        check("clickhouse://me:1234", "clickhouse://me:***");
        check("clickhouse://me:12/34", "clickhouse://me:***");
        check("clickhouse://me:p@w", "clickhouse://me:***");
        check("clickhouse://me:p/w?x@y@localhost/db", "clickhouse://me:***");
        check("clickhouse://me/pw@localhost/db", "clickhouse://me/***");
        check("clickhouse://h/d?user=me;password=pw", "clickhouse://h/***");
        check("clickhouse://me:pä ss#", "clickhouse://me:***");
        check("clickhouse://pw", "clickhouse://***");
        check("clickhouse://me€pw", "clickhouse://***");
        check("postgresql://me:pw@localhost/db", "postgresql://me:***");
        check("me:pw://localhost/db", "***");
        check("me:pw@localhost/db", "***");
    }

    #[test]
    fn names() {
        for (text, shown) in [
            ("clickhouse.hots", "clickhouse.hots"),
            ("clickhouse.pasword", "clickhouse.pasword"),
            ("clickhouse.password:pw", "clickhouse.password***"),
            ("state_backend.clickhouse.password.pw", "state_backend.clickhouse.password***"),
            ("uri pw", "uri***"),
            ("clickhouse://me:pw@h/d?secure", "clickhouse***"),
        ] {
            assert_eq!(name(text), shown);
        }
    }

    #[test]
    fn other_settings() {
        let settings = Settings::new().with("port", "pw").unwrap().with("user", "me").unwrap();
        let check = |name: &str, text: &str, shown: &str| {
            let name = format!("state_backend.clickhouse.{name}");
            assert_eq!(value(&name, text, &Resolved::resolve(&settings)), shown, "{name}");
        };
        check("password", "pw", "***");
        check("user", "me", "me");
        check("user", "me:pw", "***");
        check("port", "pw", "***");
    }
}
