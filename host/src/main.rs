//! `meltano-state`: looks at, changes and removes pipeline state, as `meltano state` does.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
