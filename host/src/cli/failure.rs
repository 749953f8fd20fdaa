//! How a command fails: what is shown, and the exit code.

use std::fmt;
use std::io::{self, Write as _};

use meltano_state_host::{BuildError, CallError, Details, ErrorKind, Limit, ServerError, SettingsError, TlsError};
use serde_json::{Value, json};

use super::arguments::{Format, MAX_MEMORY, MAX_RESPONSE};
use super::ending;

/// The exit code for anything that went wrong with a usable command.
const FAILED: u8 = 1;
/// The exit code for arguments, settings and input that cannot be used: nothing was sent to the server.
const UNUSABLE: u8 = 2;
/// The exit code for a state that another process holds.
const LOCKED: u8 = 3;

#[derive(Debug)]
pub(super) struct Failure {
    kind: &'static str,
    message: String,
    hint: Option<String>,
    server: Option<Box<ServerError>>,
    pub(super) exit_code: u8,
}

impl Failure {
    /// Something that the user gave cannot be used.
    pub(super) fn unusable(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("usage", UNUSABLE, message, Some(hint.into()))
    }

    /// Reading or writing here, not at the server, failed.
    pub(super) fn io(message: impl Into<String>) -> Self {
        Self::new("io", FAILED, message, None)
    }

    /// The command does not fit what is there.
    pub(super) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("refused", FAILED, message, Some(hint.into()))
    }

    /// The command ran, but not under the lock all the time.
    pub(super) fn lost_while_running(state_id: &str) -> Self {
        let message = format!(
            "the lock of {} was lost while the command ran: another may have run too",
            super::output::name(state_id)
        );
        let hint = "look at what both did; a lock is lost when it is removed by hand, or this process stood still for too long";
        Self::new(ErrorKind::LockLost.name(), FAILED, message, Some(hint.to_owned()))
    }

    /// What failed stands in the result already.
    pub(super) fn shown() -> Self {
        Self::new("shown", FAILED, "", None)
    }

    /// Nobody reads the result any more.
    pub(super) fn unheard() -> Self {
        Self::new("unheard", 0, "", None)
    }

    /// The user was asked and did not say yes.
    pub(super) fn declined() -> Self {
        Self::new("declined", FAILED, "nothing was changed", None)
    }

    /// A signal told the command to end before it began with this.
    pub(super) fn told(signal: i32) -> Self {
        let message = format!("ended by {}, and nothing was written since", ending::name(signal));
        Self::new("interrupted", FAILED, message, None)
    }

    /// A signal told the command to end, and the server did not answer in time.
    pub(super) fn cut_short(signal: i32) -> Self {
        let message = format!(
            "ended by {} before the server had answered: it is not known whether the change was made",
            ending::name(signal)
        );
        let hint = "look at the state before you repeat the command; a lock that is left lasts until it is stale, or until \
                    meltano-state unlock removes it";
        Self::new(ErrorKind::OutcomeUnknown.name(), FAILED, message, Some(hint.to_owned()))
    }

    /// The same, as it came after a signal that told the command to end.
    pub(super) fn after(mut self, signal: i32) -> Self {
        self.message = format!("ended by {}: {}", ending::name(signal), self.message);
        self
    }

    /// The command line is no command.
    pub(super) fn command_line(error: &clap::Error) -> Self {
        let text = error.to_string();
        let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
        Self::unusable(message.trim_start_matches("error: "), rest.trim())
    }

    /// An argument is not UTF-8. Which one is not said: it may hold a password.
    pub(super) fn no_text() -> Self {
        let hint = "only names of files, and the command of lock run, may be in another encoding";
        Self::unusable("an argument is not UTF-8", hint)
    }

    /// The same with one more hint.
    pub(super) fn and_hint(mut self, hint: &str) -> Self {
        self.hint = Some(self.hint.map_or_else(|| hint.to_owned(), |first| format!("{first}; {hint}")));
        self
    }

    /// Says it on standard error.
    pub(super) fn report(&self, format: Format) {
        let text = match format {
            Format::Text => self.to_string(),
            Format::Json => self.json().to_string(),
        };
        // There is no other place to complain.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Whether nothing is left to say.
    pub(super) fn is_shown(&self) -> bool {
        self.message.is_empty()
    }

    fn new(kind: &'static str, exit_code: u8, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { kind, message: message.into(), hint, server: None, exit_code }
    }

    pub(super) fn json(&self) -> Value {
        let server = self
            .server
            .as_ref()
            .map(|server| json!({"code": server.code, "name": server.name, "query_id": server.query_id}));
        json!({"error": {"kind": self.kind, "message": self.message, "hint": self.hint, "server": server}})
    }
}

/// Messages come from the server too, so control characters in them are shown, not obeyed.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", super::output::visible(&self.message))?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", super::output::visible(hint))?;
        }
        Ok(())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::Error(error) => {
                let Details { kind, hint, server, .. } = error.into_details();
                let exit_code = match kind {
                    ErrorKind::Locked => LOCKED,
                    ErrorKind::MissingSetting
                    | ErrorKind::InvalidSetting
                    | ErrorKind::InvalidArgument
                    | ErrorKind::InvalidState => UNUSABLE,
                    _ => FAILED,
                };
                Self { kind: kind.name(), message, hint, server: server.map(Box::new), exit_code }
            }
            CallError::TimedOut(_) => {
                let hint = "a change may or may not have been made: look at the state before you repeat the command";
                Self::new("timed-out", FAILED, message, Some(hint.to_owned()))
            }
            CallError::Limit(limit) => Self::new("limit", FAILED, message, raised(limit)),
            _ => Self::new("trap", FAILED, message, None),
        }
    }
}

/// What raises a limit.
fn raised(limit: Limit) -> Option<String> {
    let (flag, variable) = match limit {
        Limit::Memory(_) => ("--max-memory-mib", MAX_MEMORY),
        Limit::Response(_) => ("--max-response-mib", MAX_RESPONSE),
        _ => return None,
    };
    Some(format!("raise the limit with {flag} or {variable}; a change may or may not have been made"))
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::new("invalid-setting", UNUSABLE, error.to_string(), error.hint())
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::new("tls", UNUSABLE, error.to_string(), None)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::new("host", FAILED, error.to_string(), None)
    }
}

#[cfg(test)]
mod tests {
    use meltano_state_host::Error;

    use super::*;

    fn check(kind: ErrorKind, exit_code: u8) {
        let failure = Failure::from(CallError::Error(Error::new(kind, "message")));
        assert_eq!(failure.exit_code, exit_code, "{kind:?}");
        assert_eq!(failure.json()["error"]["kind"], kind.name());
    }

    #[test]
    fn exit_codes() {
        check(ErrorKind::Locked, 3);
        check(ErrorKind::MissingSetting, 2);
        check(ErrorKind::InvalidState, 2);
        check(ErrorKind::CorruptState, 1);
        check(ErrorKind::OutcomeUnknown, 1);
        assert_eq!(Failure::from(CallError::Trap(String::new())).exit_code, 1);
    }

    #[test]
    fn what_is_shown() {
        let mut error = Error::new(ErrorKind::Server, "no\u{1b}[2J").with_hint("try");
        error.server = Some(ServerError { code: 241, name: "MEMORY_LIMIT_EXCEEDED".into(), query_id: None });
        let failure = Failure::from(CallError::Error(error));
        assert_eq!(failure.to_string(), "error: no\\u{1b}[2J\nhint: try");
        let expected = json!({"error": {
            "kind": "server", "message": "no\u{1b}[2J", "hint": "try",
            "server": {"code": 241, "name": "MEMORY_LIMIT_EXCEEDED", "query_id": null},
        }});
        assert_eq!(failure.json(), expected);
    }
}
