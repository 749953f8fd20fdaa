//! The verbs and what each of them takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Verb {
    /// Find out, step by step, what stands in the way. Changes nothing; fails if a step does.
    Check,
    /// Show every setting: its value, secrets masked, and where it came from.
    Config,
    /// Create what does not exist, upgrade the add-on's lock table, begin or end the history; say what was done.
    Init {
        /// Show what would be done, and change nothing.
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
    /// List the ids of all states, one a line.
    List(List),
    /// Print the state that the next run starts from, {} if there is none.
    Get(Get),
    /// Replace a state, under its lock.
    Set(Set),
    /// Lay a state over the stored one, as an unfinished run does, under its lock.
    Merge(Merge),
    /// Store a state under another id too.
    ///
    /// As Meltano does: what the next run would start from becomes the completed state there.
    Copy(Copy),
    /// Store a state under another id, and remove it under its own. Never is it in neither place.
    Move(Copy),
    /// Remove a state under its lock, or all states.
    Clear(Clear),
    /// Change a state in $VISUAL or $EDITOR, under its lock.
    Edit(Edit),
    /// Write states as one JSON object, by id, with both parts of each byte for byte.
    Export(Export),
    /// Store the states of a file that export wrote, here or in Meltano. Checks all of it before it writes.
    Import(Import),
    /// List the versions of a state, newest first, and what changed in each.
    History(History),
    /// Make an earlier version of a state the newest, under its lock.
    Restore(Restore),
    /// Look at locks, or hold one while a command runs.
    #[command(subcommand)]
    Lock(LockVerb),
    /// Remove a lock, whoever holds it. Its holder can then no longer write.
    Unlock(Unlock),
}

/// What every verb takes that may lose something.
#[derive(Args, Clone, Copy, Debug)]
pub(in crate::cli) struct Consent {
    /// Do not ask.
    #[arg(short = 'y', long, visible_alias = "yes")]
    pub(in crate::cli) force: bool,
    /// Show what would change, and change nothing.
    #[arg(short = 'n', long)]
    pub(in crate::cli) dry_run: bool,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct List {
    /// Only ids that match this shell glob: `*` `?` `[abc]` `[!a-z]`.
    #[arg(long, value_name = "GLOB")]
    pub(in crate::cli) pattern: Option<String>,
    /// Show of each state which parts it has, its age, its size and its id.
    #[arg(short, long)]
    pub(in crate::cli) long: bool,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Get {
    /// The state's id.
    pub(in crate::cli) state_id: String,
    /// Print both parts as they are stored, even if they are no state.
    #[arg(long)]
    pub(in crate::cli) raw: bool,
}

/// A state given by hand.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct Given {
    /// A JSON object with the key singer_state.
    pub(in crate::cli) json: Option<String>,
    /// A file that holds it, - for standard input.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) input_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(override_usage = "meltano-state set [OPTIONS] <STATE_ID> <JSON|--input-file <FILE>>")]
pub(in crate::cli) struct Set {
    /// The state's id.
    pub(in crate::cli) state_id: String,
    #[command(flatten)]
    pub(in crate::cli) given: Given,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}

/// A state given by hand, or another one that is stored.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct MergeSource {
    /// A JSON object with the key singer_state.
    pub(in crate::cli) json: Option<String>,
    /// A file that holds it, - for standard input.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) input_file: Option<PathBuf>,
    /// Another state: what its next run would start from.
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) from_state_id: Option<String>,
}

#[derive(Args, Debug)]
#[command(override_usage = "meltano-state merge [OPTIONS] <STATE_ID> <JSON|--input-file <FILE>|--from-state-id <ID>>")]
pub(in crate::cli) struct Merge {
    /// The state's id.
    pub(in crate::cli) state_id: String,
    #[command(flatten)]
    pub(in crate::cli) source: MergeSource,
    /// Show what would change, and change nothing.
    #[arg(short = 'n', long)]
    pub(in crate::cli) dry_run: bool,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Copy {
    /// The id of the state.
    pub(in crate::cli) source: String,
    /// The id that it gets.
    pub(in crate::cli) destination: String,
    /// Keep the partial and the completed part apart, as they are.
    #[arg(long)]
    pub(in crate::cli) keep_parts: bool,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Clear {
    /// The state's id.
    #[arg(required_unless_present = "all")]
    pub(in crate::cli) state_id: Option<String>,
    /// Remove all states.
    #[arg(long, conflicts_with = "state_id")]
    pub(in crate::cli) all: bool,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Edit {
    /// The state's id.
    pub(in crate::cli) state_id: String,
    /// Show what would change, take no lock, and change nothing.
    #[arg(short = 'n', long)]
    pub(in crate::cli) dry_run: bool,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Export {
    /// Only ids that match this shell glob, as in list.
    #[arg(long, value_name = "GLOB")]
    pub(in crate::cli) pattern: Option<String>,
    /// Write into this file instead of standard output. It appears when it is complete, for its owner alone; one that it
    /// replaces leaves it its permissions.
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Import {
    /// The file, - for standard input.
    #[arg(default_value = "-", value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct History {
    /// The state's id.
    pub(in crate::cli) state_id: String,
    /// Show each value that changed, old and new.
    #[arg(long)]
    pub(in crate::cli) diff: bool,
    /// Only the newest versions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::cli) limit: Option<u64>,
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Restore {
    /// The state's id.
    pub(in crate::cli) state_id: String,
    /// The version, as history names it.
    pub(in crate::cli) version: i64,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LockVerb {
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
        #[arg(allow_hyphen_values = true)]
        state_id: String,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Args, Debug)]
pub(in crate::cli) struct Unlock {
    /// The state's id.
    pub(in crate::cli) state_id: String,
    /// The lock's id, as lock list shows it: no other lock is removed then.
    pub(in crate::cli) lock_id: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}
