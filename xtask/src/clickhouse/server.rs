//! `xtask clickhouse`: this process becomes a ClickHouse server.
//!
//! It is the server itself and no parent of it, so that a signal sent to it, be it SIGKILL or SIGSTOP, strikes the
//! server.

use std::{
    env,
    ffi::{CString, OsString},
    fs::{self, File},
    io::{self, IsTerminal, PipeReader, Write},
    os::{fd::AsRawFd, unix::ffi::OsStringExt},
    path::{self, Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Error, Result, anyhow};
use tempfile::TempDir;

use super::{
    chdb::Chdb,
    config::Config,
    embedded::uri,
    http::Http,
    library,
    port::Port,
    stdio::{Failure, Streams},
    stop::Stop,
};

/// ClickHouse's error code when it cannot listen.
const NETWORK_ERROR: u32 = 210;
/// ClickHouse's error code when another server holds the lock on the data.
const CANNOT_OPEN_FILE: u32 = 76;

/// How often the starting server is asked whether it is ready.
const POLL: Duration = Duration::from_millis(20);

/// Run a ClickHouse server on 127.0.0.1
///
/// When it answers, it prints `ready http://127.0.0.1:PORT`, and on stderr the URI to use it with, as all else. Ends on SIGINT
/// and SIGTERM.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The port of its HTTP interface; 0 takes a free one
    #[arg(long, default_value_t = 8123)]
    port: u16,
    /// Directory to keep the data in [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// ClickHouse configuration (XML) to merge over the built-in one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// ClickHouse users and profiles (XML) besides the built-in ones
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// End when stdin does, and so with the process that holds its other side
    #[arg(long)]
    until_stdin_closes: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let library = library::locate()?;
    // Before anything exists that a signal would leave behind.
    let (until_stopped, stop) = Stop::new()?;
    stop.on_signals()?;
    let work =
        tempfile::Builder::new().prefix("clickhouse-").tempdir().context("cannot create a temporary directory")?;
    let data = match &args.path {
        Some(path) => path::absolute(path).context("cannot make the path of the data absolute")?,
        None => work.path().join("data"),
    };
    fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
    let port = Port::new(args.port)?;
    let instance = instance(&work);
    let config = Config {
        instance: &instance,
        share_port: port.reservation.is_some(),
        overrides: args.config.as_deref(),
        users: args.users.as_deref(),
    };
    let config = config.write(work.path())?;
    // ClickHouse reads a config.xml of its working directory, and leaves files there.
    env::set_current_dir(work.path()).context("cannot change to the temporary directory")?;

    let chdb = Chdb::load(&library)?;
    if args.until_stdin_closes {
        stop.on_end_of_stdin();
    } else if io::stderr().is_terminal() {
        eprintln!(
            "{}; Ctrl-C ends it\nMELTANO_STATE_BACKEND_URI=clickhouse://meltano:s3cret@127.0.0.1:{}/meltano",
            if args.path.is_some() { "The data is kept" } else { "The data is temporary" },
            port.number
        );
    }

    let streams = Streams::redirect()?;
    announce(port.number, instance, streams.stdout()?, stop.clone());
    let ended = serve(&chdb, &config, &data, port.number, &until_stopped);
    let failure = streams.restore()?;
    if stop.requested() {
        return ended;
    }
    Err(explain(failure, ended, port.number, &data))
}

/// The temporary directory's name, which no other has.
fn instance(work: &TempDir) -> String {
    let name = work.path().file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Runs ClickHouse until `until_stopped` ends.
fn serve(chdb: &Chdb, config: &Path, data: &Path, port: u16, until_stopped: &PipeReader) -> Result<()> {
    let (start, mut statement) = io::pipe().context("cannot create a pipe")?;
    statement.write_all(b"SYSTEM START LISTEN HTTP;").context("cannot write to a pipe")?;
    drop(statement);
    let arguments: [OsString; 8] = [
        "clickhouse-local".into(),
        option("--path=", data),
        option("--config-file=", config),
        "--listen_host=127.0.0.1".into(),
        format!("--http_port={port}").into(),
        "--queries-file".into(),
        format!("/dev/fd/{}", start.as_raw_fd()).into(),
        format!("/dev/fd/{}", until_stopped.as_raw_fd()).into(),
    ];
    let arguments = arguments.into_iter().map(|argument| CString::new(argument.into_vec()));
    chdb.run_local(&arguments.collect::<Result<Vec<_>, _>>()?)
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

/// Prints the `ready` line once the server answers.
fn announce(port: u16, instance: String, mut stdout: File, stop: Stop) {
    let url = format!("http://127.0.0.1:{port}");
    thread::spawn(move || {
        let http = Http::new(url.as_str());
        while !stop.requested() {
            if http.is_ready(&instance) {
                // Nobody may be interested: then the server runs all the same.
                eprintln!("{}", uri(&url));
                let _ = writeln!(stdout, "ready {url}");
                return;
            }
            thread::sleep(POLL);
        }
    });
}

/// Why a server ended that nobody had asked to.
fn explain(failure: Option<Failure>, ended: Result<()>, port: u16, data: &Path) -> Error {
    match (failure, ended) {
        (Some(Failure { code: NETWORK_ERROR, text }), _) if text.contains("Address already in use") => {
            anyhow!("port {port} is in use: give another with --port, or --port 0 for a free one")
        }
        (Some(Failure { code: CANNOT_OPEN_FILE, text }), _) if text.contains("Cannot lock file") => {
            anyhow!("another ClickHouse server uses {}: stop it, or give another directory with --path", data.display())
        }
        (Some(_), _) => anyhow!("ClickHouse ended with the error above"),
        (None, Err(error)) => error.context("ClickHouse ended"),
        (None, Ok(())) => anyhow!("ClickHouse ended by itself"),
    }
}
