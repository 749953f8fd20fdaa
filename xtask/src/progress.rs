//! Progress on stderr: drawn on a terminal, one plain line elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner with the time elapsed, for work whose progress cannot be seen.
pub(crate) fn spinner(message: impl Into<String>) -> ProgressBar {
    shown(ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}", message.into())
}

/// A bar that counts `total` bytes.
pub(crate) fn bytes(total: u64, message: impl Into<String>) -> ProgressBar {
    let template = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {elapsed}";
    shown(ProgressBar::new(total), template, message.into())
}

fn shown(bar: ProgressBar, template: &str, message: String) -> ProgressBar {
    if bar.is_hidden() {
        eprintln!("{message}");
        return bar;
    }
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    bar.set_message(message);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
