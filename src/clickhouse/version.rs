//! Which servers are new enough.

use crate::error::{Details, Error, ErrorKind, ServerError};

/// The oldest supported version: the first with `DELETE FROM` ready for use.
const OLDEST: (u32, u32) = (23, 3);

/// Whether a server with this `version()`, such as `26.7.2.1`, is new enough. One that cannot be read counts as new:
/// then the statements will show.
pub(crate) fn is_supported(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) >= OLDEST,
        _ => true,
    }
}

/// The error that names both versions.
pub(crate) fn unsupported(version: &str, server: Option<ServerError>) -> Error {
    let (major, minor) = OLDEST;
    let message = format!("the server is ClickHouse {version}; {major}.{minor} or later is needed");
    let hint = format!("use a server with ClickHouse {major}.{minor} or later");
    Details { kind: ErrorKind::UnsupportedServer, message, hint: Some(hint), server }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: &str, supported: bool) {
        assert_eq!(is_supported(version), supported, "{version}");
    }

    #[test]
    fn from_23_3_on() {
        check("18.16.1", false);
        check("22.8.21.38", false);
        check("23.2.9", false);
        check("23.3.1.2823", true);
        check("24.1", true);
        check("26.7.2.1", true);
        check("head", true);
    }

    #[test]
    fn the_error_names_both_versions() {
        let error = unsupported("18.16.1", None);
        assert!(error.message.contains("18.16.1") && error.message.contains("23.3"), "{error}");
    }
}
