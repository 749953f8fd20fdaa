//! The verbs that look at locks and remove them.

use std::io;

use jiff::Timestamp;
use meltano_state_host::{Holder, Instance};
use serde_json::{Value, json};

use crate::cli::arguments::{Format, Unlock};
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::{consent, output, stored};

/// `lock list`: a line each, its fields parted by tabs, with a heading on a terminal.
pub(in crate::cli) async fn lock_list(call: &mut Call, pattern: Option<&str>) -> Result<(), Failure> {
    let holders = call.run(async |instance| instance.holders(pattern).await).await?;
    show(&holders, call.format)
}

fn show(holders: &[Holder], format: Format) -> Result<(), Failure> {
    output::written(match format {
        Format::Text => text(holders),
        Format::Json => output::line(&Value::from_iter(holders.iter().map(json)).to_string()),
    })
}

fn text(holders: &[Holder]) -> io::Result<()> {
    let heading = output::on_terminal().then(|| "STATE ID\tLOCK ID\tOWNER\tSINCE\tEXPIRES".to_owned());
    let lines: Vec<String> = heading.into_iter().chain(holders.iter().map(line)).collect();
    output::lines(lines.iter().map(String::as_str))
}

fn line(holder: &Holder) -> String {
    let owner = if holder.owner.is_empty() { "-" } else { &holder.owner };
    let [state_id, lock_id, owner] = [&holder.state_id, &holder.lock_id, owner].map(|text| output::name(text));
    [&state_id, &lock_id, &owner, since(holder).as_str(), &expires(holder)].join("\t")
}

fn json(holder: &Holder) -> Value {
    json!({
        "state_id": holder.state_id,
        "lock_id": holder.lock_id,
        "owner": holder.owner,
        "since": since(holder),
        "age_seconds": holder.age.as_secs(),
        "expires_in_seconds": holder.expires_in.as_secs(),
        "stale": holder.stale,
    })
}

/// When the lock was taken or last renewed, in UTC.
fn since(holder: &Holder) -> String {
    Timestamp::from_second(holder.locked_at).map_or_else(|_| holder.locked_at.to_string(), |time| time.to_string())
}

fn expires(holder: &Holder) -> String {
    if holder.stale { "stale".to_owned() } else { format!("in {} s", holder.expires_in.as_secs()) }
}

/// `unlock`: removes the lock with that id, or whatever locks the state.
pub(in crate::cli) async fn unlock(call: &mut Call, unlock: Unlock) -> Result<(), Failure> {
    let Unlock { state_id, lock_id, consent } = unlock;
    let shown = output::name(&state_id);
    stored::named(&state_id)?;
    let pattern = stored::literal(&state_id);
    let mut locks = call.run(async |instance| instance.holders(Some(&pattern)).await).await?;
    if let Some(wanted) = lock_id {
        if let Some(other) = locks.first().filter(|_| !locks.iter().any(|lock| lock.lock_id == wanted)) {
            let message =
                format!("the state of {shown} is locked by {}, not by {wanted}: nothing was removed", other.lock_id);
            return Err(Failure::refused(message, "look at it with: meltano-state lock list"));
        }
        locks.retain(|lock| lock.lock_id == wanted);
    }
    if consent.dry_run {
        show(&locks, call.format)?;
        call.remark("dry run: these locks would be removed; nothing was changed");
        return Ok(());
    }
    if locks.is_empty() {
        return call.done(json!({"unlocked": []}), &format!("the state of {shown} is not locked"));
    }
    if !consent.force {
        let lines: Vec<String> = locks.iter().map(line).collect();
        consent::ask(&format!("remove the lock of {shown}, whose holder can then no longer write"), &lines)?;
    }
    let mut removed = Vec::new();
    for lock in locks {
        let release = async |instance: &mut Instance| instance.force_release(&state_id, &lock.lock_id).await;
        if call.change(release).await? {
            removed.push(lock.lock_id);
        }
    }
    let sentence = format!("the state of {shown} is unlocked");
    call.done(json!({"unlocked": removed}), &sentence)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_of_the_list() {
        let mut holder = Holder {
            state_id: "dev:a".to_owned(),
            lock_id: "00000000-1".to_owned(),
            owner: String::new(),
            locked_at: 1_790_000_000,
            age: Duration::from_secs(10),
            expires_in: Duration::from_secs(290),
            stale: false,
        };
        assert_eq!(line(&holder), "dev:a\t00000000-1\t-\t2026-09-21T14:13:20Z\tin 290 s");
        holder.stale = true;
        holder.owner = "me".to_owned();
        assert!(line(&holder).ends_with("\tme\t2026-09-21T14:13:20Z\tstale"));
    }
}
