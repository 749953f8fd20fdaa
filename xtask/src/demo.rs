//! `xtask demo`: the main job on a real ClickHouse, each command with what it returned.

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::{
    build::{self, Artifacts},
    server::{Server, URI},
    story::{STORY, Step},
};

/// The database of the demo, apart from anything that the server may hold.
const SCHEMA: &str = "meltano_demo";

/// Play a pipeline whose state goes into ClickHouse and comes back
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Where the commands run.
struct Stage {
    program: PathBuf,
    server: Server,
    /// Where files are written.
    directory: TempDir,
}

pub(crate) fn run(_: &Args) -> Result<()> {
    // The server is this program too, which cargo may write anew while it builds.
    let server = Server::choose()?;
    eprintln!("building the component and the host …");
    let Artifacts { component, program } = build::build(true)?;
    let directory = tempfile::tempdir().context("cannot make a directory for the demo")?;
    let stage = Stage { program, server, directory };
    println!("component  {}", component.display());
    match &stage.server.embedded {
        Some(server) => println!("server     ClickHouse {} at {}", server.version()?, server.url()),
        None => println!("server     as {URI} says"),
    }
    for step in STORY {
        stage.play(step)?;
    }
    stage.show_tables()?;
    Ok(())
}

impl Stage {
    fn play(&self, step: &Step) -> Result<()> {
        match step {
            Step::Say(text) => {
                println!("\n# {text}");
                Ok(())
            }
            Step::Run(arguments) => self.expect(arguments, 0),
            Step::Contend { first, second } => self.contend(first, second),
        }
    }

    /// A command that ends with that exit code.
    fn expect(&self, arguments: &[&str], code: i32) -> Result<()> {
        let started = Instant::now();
        let output = self.command(arguments).output().context("cannot run meltano-state")?;
        report(arguments, &output, started.elapsed());
        if output.status.code() != Some(code) {
            bail!("expected exit code {code}, got {}", output.status);
        }
        Ok(())
    }

    /// The first command holds the lock while the second, which does not wait, asks for it.
    fn contend(&self, first: &[&str], second: &[&str]) -> Result<()> {
        let started = Instant::now();
        let mut holder = self.command(first);
        let holder =
            holder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot run meltano-state")?;
        // Long enough for the first to take the lock.
        thread::sleep(Duration::from_millis(500));
        self.expect(second, 3)?;
        let output = holder.wait_with_output().context("the first command does not end")?;
        report(first, &output, started.elapsed());
        if !output.status.success() {
            bail!("the holder of the lock failed: {}", output.status);
        }
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env(URI, &self.server.uri)
            .env("MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA", SCHEMA)
            .stdin(Stdio::null());
        command
    }

    /// What stands in the two tables at the end, and nothing of it on a server that is not the demo's own.
    fn show_tables(&self) -> Result<()> {
        let Some(server) = &self.server.embedded else {
            println!("\n# The states stand in {SCHEMA}.state on your server. They go, the tables stay:");
            return self.expect(&["clear", "--all", "--force"], 0);
        };
        for table in ["state", "state_lock"] {
            let statement = format!("SELECT * FROM {SCHEMA}.{table} FINAL ORDER BY ALL FORMAT Vertical");
            println!("\n# {statement}");
            match server.query(&statement)?.as_str() {
                "" => println!("(no rows)"),
                rows => println!("{rows}"),
            }
        }
        Ok(())
    }
}

fn report(arguments: &[&str], output: &Output, took: Duration) {
    let shown: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
    println!("\n$ meltano-state {}", shown.join(" "));
    print!("{}", String::from_utf8_lossy(&output.stdout));
    print!("{}", String::from_utf8_lossy(&output.stderr));
    match output.status.code() {
        Some(0) => println!("({:.2} s)", took.as_secs_f64()),
        _ => println!("({:.2} s, {})", took.as_secs_f64(), output.status),
    }
}

/// As one would type it.
fn quoted(argument: &str) -> String {
    let plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_:.=/".contains(c));
    if plain { argument.to_owned() } else { format!("'{argument}'") }
}
