//! `list`.

use meltano_state_host::Entry;
use serde::Serialize;
use serde_json::Value;

use crate::cli::arguments::{Format, List};
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::human;
use crate::cli::output::{self, Items};
use crate::cli::stored::{Parts, Summary};

pub(in crate::cli) async fn list(call: &mut Call, list: List) -> Result<(), Failure> {
    if list.long {
        return long(call, list.pattern.as_deref()).await;
    }
    let ids = call.run(async |instance| instance.get_state_ids(list.pattern.as_deref()).await).await?;
    output::written(match call.format {
        // A line an id, whatever is in it.
        Format::Text => output::lines(ids.iter().map(|id| output::name(id))),
        Format::Json => output::line(&Value::from(ids).to_string()),
    })
}

#[derive(Serialize)]
struct Item<'a> {
    state_id: &'a str,
    #[serde(flatten)]
    summary: Summary,
}

/// Page by page, so that memory does not grow with the number of states. Fixed widths, with the id last, need no look
/// ahead.
async fn long(call: &mut Call, pattern: Option<&str>) -> Result<(), Failure> {
    let mut items = Items::new(call.format);
    if output::on_terminal() {
        items.heading(line("STATUS", "AGE", "SIZE", "STATE ID"));
    }
    let mut pages = Pages::of(pattern);
    while let Some(page) = pages.next(call).await? {
        for entry in page {
            let text = || {
                let (age, size) = (human::age(entry.age), human::size(entry.size));
                line(Parts::of(&entry.content).name(), &age, &size, &output::name(&entry.state_id))
            };
            items.add(text, &Item { state_id: &entry.state_id, summary: Summary::of(&entry) })?;
        }
    }
    items.end()
}

fn line(status: &str, age: &str, size: &str, state_id: &str) -> String {
    format!("{status:<10}  {age:>6}  {size:>10}  {state_id}")
}

/// All states that match a pattern, page by page.
pub(super) struct Pages<'a> {
    pattern: Option<&'a str>,
    last: Option<String>,
}

impl<'a> Pages<'a> {
    pub(super) fn of(pattern: Option<&'a str>) -> Self {
        Self { pattern, last: None }
    }

    /// None after the last page.
    pub(super) async fn next(&mut self, call: &mut Call) -> Result<Option<Vec<Entry>>, Failure> {
        let after = self.last.take();
        let page = call.run(async |instance| instance.get_all(self.pattern, after.as_deref(), None).await).await?;
        self.last = page.last().map(|entry| entry.state_id.clone());
        Ok(self.last.is_some().then_some(page))
    }
}
