//! The project's tasks, run as `cargo xtask <task>`.

#[cfg(not(unix))]
compile_error!("xtask needs Linux or macOS; on Windows use WSL");

mod bench;
mod build;
mod clickhouse;
mod compose;
mod demo;
mod install;
mod meltano;
mod node;
mod old_clickhouse;
mod peers;
mod progress;
mod reproduce;
mod server;
mod story;
mod suite;
mod test;
mod toolchain;
mod tree;
mod wit;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about, version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Bench(bench::Args),
    Build(build::Args),
    Clickhouse(clickhouse::Args),
    Compose(compose::Args),
    Demo(demo::Args),
    Meltano(meltano::Args),
    Reproduce(reproduce::Args),
    Test(test::Args),
    Wit(wit::Args),
}

fn main() -> ExitCode {
    let task = Cli::parse().task;
    let outcome = workspace::own_program().and_then(|_| match task {
        Task::Bench(args) => bench::run(&args),
        Task::Build(args) => build::run(&args),
        Task::Clickhouse(args) => clickhouse::run(&args),
        Task::Compose(args) => compose::run(&args),
        Task::Demo(args) => demo::run(&args),
        Task::Meltano(args) => meltano::run(&args),
        Task::Reproduce(args) => reproduce::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Wit(args) => wit::run(&args),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
