//! What `--verbose` shows.

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Once: each request. Twice: what the host does besides.
pub(super) fn start(verbosity: u8) {
    let level = match verbosity {
        0 => return,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // It would say on standard error that standard error cannot be written, and panic.
        .log_internal_errors(false);
    // Only the lines of this program and its own library: those of others show headers, the password among them.
    let ours = Targets::new().with_target("meltano_state", level);
    tracing_subscriber::registry().with(lines).with(ours).init();
}
