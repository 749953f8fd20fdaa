//! `clear`.

use serde_json::json;

use super::list::Pages;
use crate::cli::arguments::{Clear, Consent};
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::output::Items;
use crate::cli::plan::Plan;
use crate::cli::{consent, output, stored};

pub(in crate::cli) async fn clear(call: &mut Call, clear: Clear) -> Result<(), Failure> {
    match clear.state_id {
        Some(id) => one(call, &id, clear.consent).await,
        None => all(call, clear.consent).await,
    }
}

async fn one(call: &mut Call, id: &str, consent: Consent) -> Result<(), Failure> {
    let stored = stored::read(call, id).await?;
    let plan = Plan::new(id, stored.as_ref(), None);
    if consent.dry_run {
        return plan.settle(call, consent).map(|_| ());
    }
    if stored.is_none() {
        return call.done(json!({"cleared": null}), &format!("there is no state of {}", output::name(id)));
    }
    if !consent.force {
        consent::ask(&plan.sentence(), &plan.lines())?;
    }
    call.change_locked(async |instance| instance.clear(id).await).await?;
    call.done(json!({"cleared": id}), &format!("the state of {} is removed", output::name(id)))
}

async fn all(call: &mut Call, consent: Consent) -> Result<(), Failure> {
    if consent.dry_run {
        return show_all(call).await;
    }
    if !consent.force {
        let ids = call.run(async |instance| instance.get_state_ids(None).await).await?;
        if !ids.is_empty() {
            // More of them are not shown.
            let first = call.run(async |instance| instance.get_all(None, None, Some(consent::SHOWN)).await).await?;
            let described = first.iter().map(stored::describe);
            let described = described.map(Some).chain(std::iter::repeat(None));
            let lost = ids.iter().zip(described).map(|(id, description)| {
                let description = description.map(|text| format!(" ({text})")).unwrap_or_default();
                format!("  {}{description}", output::name(id))
            });
            let lost: Vec<String> = lost.collect();
            consent::ask(&format!("remove ALL states, {} of them, also those that are locked", ids.len()), &lost)?;
        }
    }
    let count = call.change(async |instance| instance.clear_all().await).await?;
    call.done(json!({"cleared_count": count}), &format!("{count} states are removed"))
}

/// Page by page: they may be many.
async fn show_all(call: &mut Call) -> Result<(), Failure> {
    let mut items = Items::new(call.format);
    let mut pages = Pages::of(None);
    while let Some(page) = pages.next(call).await? {
        for entry in page {
            let plan = Plan::new(&entry.state_id, Some(&entry), None);
            items.add(|| plan.sentence(), &plan)?;
        }
    }
    items.end()?;
    call.remark("dry run: nothing was changed");
    Ok(())
}
