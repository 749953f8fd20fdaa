//! `import`.

use std::collections::BTreeMap;

use meltano_state_host::{Entry, State};
use serde_json::json;

use crate::cli::arguments::Import;
use crate::cli::call::Call;
use crate::cli::exchange::{self, Fault};
use crate::cli::failure::Failure;
use crate::cli::output::Items;
use crate::cli::plan::Plan;
use crate::cli::{consent, payload, progress};

/// How many faults of a file are named.
const SHOWN: usize = 10;

/// What one call writes, so that the component's memory suffices and progress is seen.
const BATCH_BYTES: usize = 16 << 20;
const BATCH_STATES: usize = 10_000;

pub(in crate::cli) async fn import(call: &mut Call, import: Import) -> Result<(), Failure> {
    let Import { file, consent } = import;
    let text = payload::read_file(&file)?;
    let states = exchange::parse(&text).map_err(|faults| refused(&faults))?;
    drop(text);
    if consent.dry_run {
        return show(call, &states).await;
    }
    if !consent.force {
        ask(call, &states).await?;
    }
    let bar = progress::bar(states.len(), "states imported");
    let mut stored = 0;
    for batch in batches(&states) {
        let batch = call.change(async |instance| instance.set_all(batch).await).await;
        stored += batch.map_err(|failure| {
            failure.and_hint(&format!("{stored} of {} states are imported; import the file again", states.len()))
        })?;
        bar.set_position(stored);
    }
    bar.finish_and_clear();
    call.done(json!({"imported_count": stored}), &format!("{stored} states are imported"))
}

fn refused(faults: &[Fault]) -> Failure {
    let mut lines: Vec<String> = faults.iter().take(SHOWN).map(ToString::to_string).collect();
    if let Some(more @ 1..) = faults.len().checked_sub(SHOWN) {
        lines.push(format!("and {more} more"));
    }
    let message = format!("the file cannot be imported, and nothing was changed:\n{}", lines.join("\n"));
    Failure::unusable(message, "its form is {\"ID\": {\"completed\": {…}, \"partial\": {…}}, …}, as export writes it")
}

fn batches(states: &[State]) -> impl Iterator<Item = &[State]> {
    let mut rest = states;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |state: &&State| {
            let parts = [&state.completed_state, &state.partial_state];
            bytes += state.state_id.len() + parts.into_iter().flatten().map(String::len).sum::<usize>();
            bytes <= BATCH_BYTES
        };
        // One that is larger alone.
        let count = rest.iter().take(BATCH_STATES).take_while(fits).count().max(1).min(rest.len());
        let (batch, others) = rest.split_at(count);
        rest = others;
        (!batch.is_empty()).then_some(batch)
    })
}

/// What would become of each state of the file, in the order of their ids.
async fn show(call: &mut Call, states: &[State]) -> Result<(), Failure> {
    let mut items = Items::new(call.format);
    let mut search = Search::of(states);
    while let Some(found) = search.next(call).await? {
        for (state, stored) in found {
            let plan = Plan::new(&state.state_id, stored.as_ref(), Some(state));
            items.add(|| plan.text(), &plan)?;
        }
    }
    items.end()?;
    call.remark("dry run: nothing was changed");
    Ok(())
}

async fn ask(call: &mut Call, states: &[State]) -> Result<(), Failure> {
    let mut lost = Vec::new();
    let mut search = Search::of(states);
    while let Some(found) = search.next(call).await? {
        let plans = found.iter().map(|(state, stored)| Plan::new(&state.state_id, stored.as_ref(), Some(state)));
        lost.extend(plans.filter(Plan::loses).map(|plan| format!("  {}", plan.sentence())));
    }
    if lost.is_empty() {
        return Ok(());
    }
    consent::ask(&format!("replace {} of the stored states by those of the file", lost.len()), &lost)
}

/// Looks up what is stored of many states, in the order of their ids. It reads pages of the table and leaps over what
/// lies between the ids that it looks for.
struct Search<'a> {
    wanted: BTreeMap<&'a str, &'a State>,
    last: Option<String>,
}

impl<'a> Search<'a> {
    fn of(states: &'a [State]) -> Self {
        Self { wanted: states.iter().map(|state| (state.state_id.as_str(), state)).collect(), last: None }
    }

    /// The next states, each with what is stored of it. None when there are no more.
    async fn next(&mut self, call: &mut Call) -> Result<Option<Vec<(&'a State, Option<Entry>)>>, Failure> {
        let Some((first, _)) = self.wanted.first_key_value() else { return Ok(None) };
        let after = self.last.take().max(just_before(first));
        let limit = u32::try_from(self.wanted.len() * 2).unwrap_or(u32::MAX).clamp(10, 10_000);
        let page = call.run(async |instance| instance.get_all(None, after.as_deref(), Some(limit)).await).await?;
        let passed = match page.last() {
            None => std::mem::take(&mut self.wanted),
            Some(last) => {
                let ahead = self.wanted.split_off(last.state_id.as_str());
                let mut passed = std::mem::replace(&mut self.wanted, ahead);
                if let Some((id, state)) = self.wanted.remove_entry(last.state_id.as_str()) {
                    passed.insert(id, state);
                }
                passed
            }
        };
        self.last = page.last().map(|entry| entry.state_id.clone());
        let mut stored: BTreeMap<String, Entry> =
            page.into_iter().map(|entry| (entry.state_id.clone(), entry)).collect();
        Ok(Some(passed.into_values().map(|state| (state, stored.remove(&state.state_id))).collect()))
    }
}

/// The text that sorts right before this id, but for ids that nobody has; none before the first of all.
fn just_before(id: &str) -> Option<String> {
    let mut start = id.to_owned();
    let last = start.pop()?;
    if let Some(lower) = ('\0'..last).next_back() {
        start.extend([lower, char::MAX]);
    }
    (!start.is_empty()).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(id: &str, bytes: usize) -> State {
        State { state_id: id.to_owned(), completed_state: Some("x".repeat(bytes)), partial_state: None }
    }

    fn check(sizes: &[usize], counts: &[usize]) {
        let states: Vec<State> = sizes.iter().map(|bytes| state("", *bytes)).collect();
        let found: Vec<usize> = batches(&states).map(<[State]>::len).collect();
        assert_eq!(found, counts);
    }

    #[test]
    fn batches_are_small_enough() {
        check(&[], &[]);
        check(&[1, 2, 3], &[3]);
        check(&[BATCH_BYTES, 1], &[1, 1]);
        check(&[1, BATCH_BYTES + 1, BATCH_BYTES + 1, 1, 1], &[1, 1, 1, 2]);
        check(&vec![0; BATCH_STATES + 1], &[BATCH_STATES, 1]);
    }

    #[test]
    fn an_id_before_another() {
        for (id, before) in [("dev:b", "dev:a\u{10FFFF}"), ("\u{E000}", "\u{D7FF}\u{10FFFF}"), ("a\0", "a")] {
            assert_eq!(just_before(id).as_deref(), Some(before));
            assert!(before < id);
        }
        assert_eq!(just_before("\0"), None);
    }
}
