//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Look at, change and remove the state of Meltano pipelines in ClickHouse.
///
/// The place and the credentials come from flags, the environment (MELTANO_STATE_BACKEND_URI,
/// MELTANO_STATE_BACKEND_CLICKHOUSE_HOST, …), the .env file and the meltano.yml of the Meltano project at or above the
/// current directory, in this order.
#[derive(Debug, Parser)]
#[command(name = "meltano-state", version, after_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 arguments, settings or input cannot be used, \
                          3 the state is locked by another process.";

/// Options of all verbs.
#[derive(Args, Clone)]
pub(super) struct Global {
    /// The server: clickhouse://user:password@host:port/database?setting=value (state_backend.uri).
    #[arg(long, global = true, value_name = "URI", help_heading = "Settings")]
    pub(super) uri: Option<String>,

    /// Any setting, such as clickhouse.schema=meltano. Repeatable.
    #[arg(long = "set", global = true, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Settings")]
    pub(super) settings: Vec<(String, String)>,

    /// The directory of the Meltano project, instead of the one around the current directory.
    #[arg(long, global = true, value_name = "DIR", help_heading = "Settings")]
    pub(super) project: Option<PathBuf>,

    /// Certificates in PEM form to trust besides the system's.
    #[arg(long, global = true, value_name = "FILE", env = "MELTANO_STATE_CA_FILE", help_heading = "HTTPS")]
    pub(super) ca_file: Option<PathBuf>,

    /// A certificate in PEM form to show the server.
    #[arg(long, global = true, value_name = "FILE", env = "MELTANO_STATE_CLIENT_CERT", help_heading = "HTTPS")]
    #[arg(requires = "client_key")]
    pub(super) client_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM form.
    #[arg(long, global = true, value_name = "FILE", env = "MELTANO_STATE_CLIENT_KEY", help_heading = "HTTPS")]
    #[arg(requires = "client_cert")]
    pub(super) client_key: Option<PathBuf>,

    /// Accept any certificate of the server: whoever stands between can then read and change everything, the password
    /// too.
    #[arg(long, global = true, visible_alias = "accept-invalid-certificate", help_heading = "HTTPS")]
    pub(super) insecure: bool,

    /// How results and errors are written.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Report every request on standard error; twice: more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
}

/// Flags may hold passwords.
impl std::fmt::Debug for Global {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Global").field("format", &self.format).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people, and for other programs line by line.
    Text,
    /// One JSON value.
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Find out, step by step, what stands in the way. Changes nothing; fails if a step does.
    Check,
    /// Show every setting: its value, secrets masked, and where it came from.
    Config,
    /// Create the database and the tables where they do not exist.
    Init,
    /// List the ids of all states, one a line.
    List {
        /// Only ids that match this shell glob: `*` `?` `[abc]` `[!a-z]`.
        #[arg(long, value_name = "GLOB")]
        pattern: Option<String>,
    },
    /// Print the state that the next run starts from, {} if there is none.
    Get {
        /// The state's id.
        state_id: String,
    },
    /// Replace a state, under its lock.
    Set {
        /// The state's id.
        state_id: String,
        #[command(flatten)]
        payload: Payload,
    },
    /// Lay a state over the stored one, as an unfinished run does, under its lock.
    Merge {
        /// The state's id.
        state_id: String,
        #[command(flatten)]
        payload: Payload,
    },
    /// Remove a state under its lock, or all states.
    Clear {
        /// The state's id.
        #[arg(required_unless_present = "all")]
        state_id: Option<String>,
        /// Remove all states.
        #[arg(long, conflicts_with = "state_id")]
        all: bool,
        /// Do not ask.
        #[arg(short = 'y', long, visible_alias = "yes")]
        force: bool,
    },
    /// Look at locks, or hold one while a command runs.
    #[command(subcommand)]
    Lock(LockVerb),
    /// Remove a lock, whoever holds it. Its holder can then no longer write.
    Unlock {
        /// The state's id.
        state_id: String,
        /// The lock's id, as lock list shows it: no other lock is removed then.
        lock_id: Option<String>,
        /// Do not ask.
        #[arg(short = 'y', long, visible_alias = "yes")]
        force: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum LockVerb {
    /// List locks, one a line: state id, lock id, owner, since when, when it expires.
    List {
        /// Only of state ids that match this shell glob, as in list.
        #[arg(long, value_name = "GLOB")]
        pattern: Option<String>,
    },
    /// Hold the lock of a state while a command runs, and end with the command's exit code.
    ///
    /// The lock is renewed at a third of the time after which it would count as abandoned; if it is lost all the same,
    /// the command is stopped. The command itself must not take the lock: meltano-state set, merge and clear would wait.
    Run {
        /// The state's id.
        state_id: String,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

/// A state given by hand.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct Payload {
    /// A JSON object with the key singer_state.
    pub(super) json: Option<String>,
    /// A file that holds it, - for standard input.
    #[arg(long, value_name = "FILE")]
    pub(super) input_file: Option<PathBuf>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has to be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    fn check(line: &str, accepted: bool) {
        let parsed = Arguments::try_parse_from(line.split(' '));
        assert_eq!(parsed.is_ok(), accepted, "{line}");
    }

    #[test]
    fn which_lines_are_accepted() {
        check("meltano-state list", true);
        check("meltano-state list --pattern dev:* --format json", true);
        check("meltano-state --uri clickhouse://h/d --set host=h --set port=1 get a", true);
        check("meltano-state --set host get a", false);
        check("meltano-state get", false);
        check("meltano-state set a {}", true);
        check("meltano-state set a --input-file -", true);
        check("meltano-state set a", false);
        check("meltano-state set a {} --input-file -", false);
        check("meltano-state clear a -y", true);
        check("meltano-state clear --all --force", true);
        check("meltano-state clear", false);
        check("meltano-state clear a --all", false);
        check("meltano-state list --client-cert c", false);
        check("meltano-state lock list --pattern a*", true);
        check("meltano-state lock run a -- sleep 1", true);
        check("meltano-state lock run a", false);
        check("meltano-state unlock a", true);
        check("meltano-state unlock a b --force", true);
    }
}
