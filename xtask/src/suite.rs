//! Steps that run one after the other until one fails.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// What has run so far. It reports on stderr, where cargo's own messages are.
pub(crate) struct Suite {
    started: Instant,
    done: Vec<(String, Outcome)>,
}

enum Outcome {
    Passed(Duration),
    Skipped,
}

impl Suite {
    /// The time of the whole suite counts from here.
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), done: Vec::new() }
    }

    /// Runs `check`. An error says which step failed and is the end of the suite.
    pub(crate) fn step(&mut self, name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
        eprintln!("==> {name}");
        let started = Instant::now();
        let outcome = check();
        let took = started.elapsed();
        if let Err(error) = outcome {
            self.summarise();
            eprintln!("  failed  {:>8}  {name}", seconds(took));
            eprintln!("stopped after {}", seconds(self.started.elapsed()));
            return Err(error.context(name.to_owned()));
        }
        eprintln!("    {}", seconds(took));
        self.done.push((name.to_owned(), Outcome::Passed(took)));
        Ok(())
    }

    /// Runs cargo with `arguments`, which spaces divide.
    pub(crate) fn cargo(&mut self, arguments: &str) -> Result<()> {
        self.cargo_with(&[], arguments)
    }

    /// Runs cargo with `arguments` and these variables added to the environment.
    pub(crate) fn cargo_with(&mut self, variables: &[(&str, String)], arguments: &str) -> Result<()> {
        let mut command = workspace::cargo();
        command.args(arguments.split_whitespace()).envs(variables.iter().map(|(name, value)| (*name, value)));
        let set: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        self.step(&format!("{set}cargo {arguments}"), || succeed(&mut command))
    }

    /// Notes that a step cannot run here, which is no failure.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        eprintln!("==> {name}\n    skipped: {reason}");
        self.done.push((name.to_owned(), Outcome::Skipped));
    }

    /// Reports that no step failed.
    pub(crate) fn finish(self) {
        self.summarise();
        eprintln!("all passed in {}", seconds(self.started.elapsed()));
    }

    fn summarise(&self) {
        eprintln!();
        for (name, outcome) in &self.done {
            match outcome {
                Outcome::Passed(took) => eprintln!("  passed  {:>8}  {name}", seconds(*took)),
                Outcome::Skipped => eprintln!("  skipped           {name}"),
            }
        }
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("{status}");
    }
    Ok(())
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
