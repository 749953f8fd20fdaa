//! What is seen of work that takes long: a word on standard error, and on a terminal a bar.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use meltano_state_host::Activity;
use tokio::time::{Instant, interval_at};

use super::arguments::Format;
use super::output;

/// How long a call may take before the user is told what it waits for, and how often that is looked at again.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a call may wait for.
pub(super) struct Waits {
    pub(super) for_answer_from: Option<String>,
    pub(super) for_lock_of: Option<String>,
    /// Whether to say so: to people, and into the log of a job, but not to a program that reads errors as JSON.
    pub(super) aloud: bool,
}

impl Waits {
    fn describe(&self, activity: &Activity) -> String {
        if activity.in_flight() > 0 {
            format!("an answer from {}", self.for_answer_from.as_deref().unwrap_or("the server"))
        } else if let Some(state_id) = &self.for_lock_of {
            format!("the lock of {}", output::visible(state_id))
        } else {
            "the time to ask the server again".to_owned()
        }
    }
}

/// Whether someone may want to read what is being waited for.
pub(super) fn aloud(format: Format) -> bool {
    format == Format::Text || io::stderr().is_terminal()
}

/// A bar for a known number of things. Shown on a terminal only.
pub(super) fn bar(total: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(total.try_into().unwrap_or(u64::MAX));
    shown(bar, &format!("{{wide_bar}} {{human_pos}} of {{human_len}} {what} {{eta}}"))
}

/// A count of things whose number is not known. Shown on a terminal only.
pub(super) fn counter(what: &str) -> ProgressBar {
    shown(ProgressBar::new_spinner(), &format!("{{spinner}} {{human_pos}} {what} {{elapsed}}"))
}

fn shown(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Waits for a call, and says what is being waited for whenever that changes.
pub(super) async fn watch<T>(activity: &Activity, waits: &Waits, call: impl Future<Output = T>) -> T {
    let mut call = std::pin::pin!(call);
    if !waits.aloud {
        return call.await;
    }
    let start = Instant::now();
    let mut ticks = interval_at(start + PATIENCE, PATIENCE);
    let mut said = None;
    loop {
        tokio::select! {
            biased;
            result = &mut call => return result,
            _ = ticks.tick() => {
                let waiting_for = waits.describe(activity);
                if said.as_ref() != Some(&waiting_for) {
                    let seconds = start.elapsed().as_secs();
                    // Nothing depends on this line being seen.
                    let _ = writeln!(io::stderr(), "waiting for {waiting_for} ({seconds} s so far)");
                    said = Some(waiting_for);
                }
            }
        }
    }
}
