//! What a verb would do to a state: what is shown with `--dry-run`, and before a question.

use meltano_state_host::{Entry, State};
use serde::Serialize;

use super::arguments::Consent;
use super::call::Call;
use super::changes::{self, Change};
use super::failure::Failure;
use super::output::{self, Items};
use super::stored::{self, Parts, Summary};
use super::{consent, human};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    Replace,
    Remove,
    Keep,
}

/// What would become of one state.
#[derive(Serialize)]
pub(super) struct Plan {
    state_id: String,
    action: Action,
    stored: Option<Summary>,
    changes: Vec<Change>,
    /// What is stored, in words.
    #[serde(skip)]
    description: String,
}

impl Plan {
    /// `after` is what would be stored in place of `stored`, none if nothing.
    pub(super) fn new(state_id: &str, stored: Option<&Entry>, after: Option<&State>) -> Self {
        let before = stored.and_then(|entry| entry.content.as_ref().ok());
        let changes = changes::between(before, after);
        let action = match (stored, after) {
            (None, None) => Action::Keep,
            (None, Some(_)) => Action::Create,
            (Some(_), None) => Action::Remove,
            (Some(_), Some(_)) if before.is_some() && changes.is_empty() => Action::Keep,
            (Some(_), Some(_)) => Action::Replace,
        };
        Self {
            state_id: state_id.to_owned(),
            action,
            stored: stored.map(Summary::of),
            changes,
            description: stored.map(|entry| format!(" ({})", stored::describe(entry))).unwrap_or_default(),
        }
    }

    /// Whether a value that is stored would no longer be.
    pub(super) fn loses(&self) -> bool {
        self.unreadable().is_some() || self.changes.iter().any(|change| change.old.is_some())
    }

    fn unreadable(&self) -> Option<&Summary> {
        let stored = self.stored.as_ref()?;
        (stored.status == Parts::Unreadable && self.action != Action::Keep).then_some(stored)
    }

    /// Such as "replace the state of dev:a (complete, 1.2 KiB, 3 d old)".
    pub(super) fn sentence(&self) -> String {
        let verb = match self.action {
            Action::Create => "create",
            Action::Replace => "replace",
            Action::Remove => "remove",
            Action::Keep => "not change",
        };
        format!("{verb} the state of {}{}", output::name(&self.state_id), self.description)
    }

    /// A line for each path that changes.
    pub(super) fn lines(&self) -> Vec<String> {
        let unreadable = self.unreadable().map(|stored| {
            let reason = stored.error.as_deref().unwrap_or_default();
            format!("  - what is stored, {}: {reason}", human::size(stored.size))
        });
        unreadable.into_iter().chain(self.changes.iter().map(|change| format!("  {change}"))).collect()
    }

    /// Both.
    pub(super) fn text(&self) -> String {
        let lines = self.lines();
        std::iter::once(self.sentence()).chain(lines).collect::<Vec<_>>().join("\n")
    }

    /// Whether to carry it out. With `--dry-run` it is shown instead; otherwise the user is asked if it loses something.
    pub(super) fn settle(&self, call: &Call, consent: Consent) -> Result<bool, Failure> {
        if consent.dry_run {
            return show(call, [self]).map(|()| false);
        }
        if !consent.force && self.loses() {
            consent::ask(&self.sentence(), &self.lines())?;
        }
        Ok(true)
    }
}

/// Shows what `--dry-run` was asked for.
pub(super) fn show<'a>(call: &Call, plans: impl IntoIterator<Item = &'a Plan>) -> Result<(), Failure> {
    let mut items = Items::new(call.format);
    for plan in plans {
        items.add(|| plan.text(), plan)?;
    }
    items.end()?;
    call.remark("dry run: nothing was changed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use meltano_state_host::{Error, ErrorKind};

    use super::*;

    fn entry(content: Result<State, Error>) -> Entry {
        Entry { state_id: "a\n".into(), updated_at: 0, age: Duration::from_secs(120), size: 2048, content }
    }

    fn state(completed: &str, partial: Option<&str>) -> State {
        State {
            state_id: "a\n".into(),
            completed_state: Some(completed.into()),
            partial_state: partial.map(str::to_owned),
        }
    }

    fn check(stored: Option<&Entry>, after: Option<&State>, loses: bool, text: &str) {
        let plan = Plan::new("a\n", stored, after);
        assert_eq!((plan.text().as_str(), plan.loses()), (text, loses));
    }

    #[test]
    fn what_would_become_of_a_state() {
        let one = entry(Ok(state("{\"n\":1}", None)));
        let both = entry(Ok(state("{\"n\":1}", Some("{\"p\":1}"))));
        let broken = entry(Err(Error::new(ErrorKind::CorruptState, "it is no JSON")));
        let two = state("{\"n\":1, \"m\":2}", None);
        let was = "(complete, 2.0 KiB, 2 min old)";
        check(None, None, false, "not change the state of a\\n");
        check(None, Some(&two), false, "create the state of a\\n\n  + .completed.n: 1\n  + .completed.m: 2");
        check(Some(&one), Some(&two), false, &format!("replace the state of a\\n {was}\n  + .completed.m: 2"));
        check(Some(&one), one.content.as_ref().ok(), false, &format!("not change the state of a\\n {was}"));
        check(Some(&one), None, true, &format!("remove the state of a\\n {was}\n  - .completed.n: 1"));
        let was = "(complete and partial, 2.0 KiB, 2 min old)";
        let text = format!("replace the state of a\\n {was}\n  + .completed.m: 2\n  - .partial.p: 1");
        check(Some(&both), Some(&two), true, &text);
        let text =
            "remove the state of a\\n (unreadable, 2.0 KiB, 2 min old)\n  - what is stored, 2.0 KiB: it is no JSON";
        check(Some(&broken), None, true, text);
    }
}
