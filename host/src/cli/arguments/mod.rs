//! The command line.

mod verb;

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, ValueEnum};

pub(super) use verb::{
    Clear, Consent, Copy, Edit, Export, Get, History, Import, List, LockVerb, Merge, MergeSource, Restore, Set, Unlock,
    Verb,
};

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
    #[arg(long, global = true, value_name = "FILE", env = "MELTANO_STATE_CA_FILE", value_parser = file(), help_heading = "HTTPS")]
    pub(super) ca_file: Option<PathBuf>,

    /// A certificate in PEM form to show the server.
    #[arg(long, global = true, value_name = "FILE", env = "MELTANO_STATE_CLIENT_CERT", value_parser = file(), help_heading = "HTTPS")]
    pub(super) client_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM form.
    #[arg(long, global = true, value_name = "FILE", env = "MELTANO_STATE_CLIENT_KEY", value_parser = file(), help_heading = "HTTPS")]
    pub(super) client_key: Option<PathBuf>,

    /// Accept any certificate of the server: whoever stands between can then read and change everything, the password
    /// too.
    #[arg(long, global = true, visible_alias = "accept-invalid-certificate", help_heading = "HTTPS")]
    pub(super) insecure: bool,

    /// How large one answer of the server may be, in MiB.
    #[arg(long, global = true, value_name = "N", env = MAX_RESPONSE, value_parser = mebibytes, help_heading = "Limits")]
    #[arg(default_value = "64")]
    pub(super) max_response_mib: usize,

    /// How much memory the component may use, in MiB.
    #[arg(long, global = true, value_name = "N", env = MAX_MEMORY, value_parser = mebibytes, help_heading = "Limits")]
    #[arg(default_value = "256")]
    pub(super) max_memory_mib: usize,

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

/// The environment variables of the limits.
pub(super) const MAX_RESPONSE: &str = "MELTANO_STATE_MAX_RESPONSE_MIB";
pub(super) const MAX_MEMORY: &str = "MELTANO_STATE_MAX_MEMORY_MIB";

/// An empty path is no path, so that an empty variable is as one that is not set.
fn file() -> impl clap::builder::TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// At most what a component of 32 bits can address.
fn mebibytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=4096) => Ok(count),
        _ => Err("it has to be a whole number from 1 to 4096".to_owned()),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has to be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use meltano_state_host::Limits;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn limits_are_those_of_the_library() {
        let global = Arguments::try_parse_from(["meltano-state", "list"]).unwrap().global;
        let limits = Limits::default();
        assert_eq!((global.max_response_mib << 20, global.max_memory_mib << 20), (limits.response, limits.memory));
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
        check("meltano-state set a {} --force --dry-run", true);
        check("meltano-state merge a --from-state-id b", true);
        check("meltano-state merge a {} --from-state-id b", false);
        check("meltano-state set a --from-state-id b", false);
        check("meltano-state copy a", false);
        check("meltano-state move a b --keep-parts -n", true);
        check("meltano-state import", true);
        check("meltano-state export --pattern a* -o f", true);
        check("meltano-state history a --limit 3 --diff", true);
        check("meltano-state history a --limit 0", false);
        check("meltano-state restore a 1790000000123", true);
        check("meltano-state restore a yesterday", false);
        check("meltano-state list --max-memory-mib 0", false);
        check("meltano-state clear a -y", true);
        check("meltano-state clear --all --force", true);
        check("meltano-state clear", false);
        check("meltano-state clear a --all", false);
        check("meltano-state lock list --pattern a*", true);
        check("meltano-state lock run a -- sleep 1", true);
        check("meltano-state lock run a", false);
        check("meltano-state lock run -a -- -x --force", true);
        check("meltano-state lock run a --format json -- true", true);
        check("meltano-state unlock a", true);
        check("meltano-state unlock a b --force", true);
    }
}
