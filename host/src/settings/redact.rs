//! What may be shown of a setting's value.

use std::borrow::Cow;

use meltano_state_backend_clickhouse::settings::URI;

const HIDDEN: &str = "***";

/// The value as it may be shown.
pub(super) fn value<'a>(full_name: &str, text: &'a str) -> Cow<'a, str> {
    if full_name == URI {
        uri(text).into()
    } else if full_name.ends_with(".password") {
        HIDDEN.into()
    } else {
        text.into()
    }
}

/// A URI without user and password. It may be malformed: the password is often what makes it so, for an unencoded `/`,
/// `?` or `#` in it. So all up to the last `@` is hidden, and with it the query, which may name a password too.
fn uri(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => return HIDDEN.to_owned(),
    };
    let (userinfo, place) = match rest.rsplit_once('@') {
        Some((_, place)) => ("***@", place),
        None => ("", rest),
    };
    match place.split_once('?') {
        Some((place, _)) => format!("{scheme}{userinfo}{place}?{HIDDEN}"),
        None => format!("{scheme}{userinfo}{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shown: &str) {
        assert_eq!(uri(text), shown);
    }

    #[test]
    fn uris() {
        check("clickhouse://localhost:8123/db", "clickhouse://localhost:8123/db");
        check("clickhouse://me:pw@localhost/db", "clickhouse://***@localhost/db");
        check("clickhouse://me:p/w?x@y@localhost/db", "clickhouse://***@localhost/db");
        check("clickhouse://host/db?user=me&password=pw", "clickhouse://host/db?***");
        check("not a uri: pw", "***");
    }

    #[test]
    fn other_settings() {
        assert_eq!(value("state_backend.clickhouse.password", "pw"), "***");
        assert_eq!(value("state_backend.clickhouse.user", "me"), "me");
    }
}
