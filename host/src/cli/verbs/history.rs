//! `history`.

use meltano_state_host::Entry;
use serde::Serialize;

use crate::cli::arguments::History;
use crate::cli::call::Call;
use crate::cli::changes::{self, Change};
use crate::cli::failure::Failure;
use crate::cli::human;
use crate::cli::output::{self, Items};
use crate::cli::stored::{self, Parts, Summary};

/// How many changed paths a line names.
const NAMED: usize = 3;

#[derive(Serialize)]
struct Version {
    #[serde(flatten)]
    summary: Summary,
    /// None where nothing older is kept, or one of the two cannot be read.
    changes: Option<Vec<Change>>,
}

pub(in crate::cli) async fn history(call: &mut Call, history: History) -> Result<(), Failure> {
    let History { state_id, diff, limit } = history;
    stored::named(&state_id)?;
    let mut items = Items::new(call.format);
    if output::on_terminal() {
        items.heading(columns("VERSION", "WRITTEN", "STATUS", "SIZE", "CHANGED"));
    }
    let mut left = limit.unwrap_or(u64::MAX);
    let mut before = None;
    // Each is compared with the next older one, so it waits for that.
    let mut newer: Option<Entry> = None;
    while left > 0 {
        let limit = u32::try_from(left.saturating_add(1)).ok();
        let page = call.run(async |instance| instance.versions(&state_id, before, limit).await).await?;
        if page.is_empty() {
            break;
        }
        for older in page {
            before = Some(older.updated_at);
            if let Some(entry) = newer.take().filter(|_| left > 0) {
                add(&mut items, &entry, Some(&older), diff)?;
                left -= 1;
            }
            newer = Some(older);
        }
    }
    if let Some(first) = newer.filter(|_| left > 0) {
        add(&mut items, &first, None, diff)?;
    }
    items.end()?;
    warn_if_ended(call).await
}

/// Says that what was written since is missing from the list. Who may list may look this up too.
async fn warn_if_ended(call: &mut Call) -> Result<(), Failure> {
    let kept = call.run(async |instance| instance.kept().await).await?;
    if kept.is_some_and(|kept| !kept.recording) {
        call.warn(
            "no further versions are recorded: the history has ended, and what was written since is not in it",
            "set history_days and run meltano-state init to record them again",
        );
    }
    Ok(())
}

fn add(items: &mut Items, entry: &Entry, older: Option<&Entry>, diff: bool) -> Result<(), Failure> {
    let changes = older.and_then(|older| match (&older.content, &entry.content) {
        (Ok(old), Ok(new)) => Some(changes::between(Some(old), Some(new))),
        _ => None,
    });
    let version = Version { summary: Summary::of(entry), changes };
    items.add(|| text(entry, &version, older.is_none(), diff), &version)
}

fn text(entry: &Entry, version: &Version, is_oldest: bool, diff: bool) -> String {
    let changed = match &version.changes {
        Some(changes) => named(changes),
        None if is_oldest => "the oldest that is kept".to_owned(),
        None => "cannot be compared".to_owned(),
    };
    let (number, time) = (entry.updated_at.to_string(), human::time(entry.updated_at));
    let mut text = columns(&number, &time, Parts::of(&entry.content).name(), &human::size(entry.size), &changed);
    for change in version.changes.iter().flatten().filter(|_| diff) {
        text.push_str(&format!("\n  {change}"));
    }
    text
}

fn columns(version: &str, time: &str, status: &str, size: &str, changed: &str) -> String {
    format!("{version:<13}  {time:<24}  {status:<10}  {size:>10}  {changed}")
}

/// The paths, the first few of them.
fn named(changes: &[Change]) -> String {
    let paths: Vec<&str> = changes.iter().take(NAMED).map(|change| change.path.as_str()).collect();
    match changes.len() {
        0 => "nothing".to_owned(),
        count if count > NAMED => format!("{} and {} more", paths.join(", "), count - NAMED),
        _ => paths.join(", "),
    }
}
