//! `init`.

use meltano_state_host::{Deed, Prepared, Thing};
use serde_json::{Value, json};

use crate::cli::arguments::Format;
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::table::Table;

pub(in crate::cli) async fn init(call: &mut Call, dry_run: bool) -> Result<(), Failure> {
    let prepared = match dry_run {
        true => call.run(async |instance| instance.preview_init().await).await?,
        false => call.change(async |instance| instance.init().await).await?,
    };
    output::written(match call.format {
        Format::Text => output::lines(table(&prepared, dry_run).lines()),
        Format::Json => output::line(&json(&prepared, dry_run).to_string()),
    })?;
    let is_left = prepared.iter().any(|prepared| prepared.deed == Deed::Left);
    call.remark(match (dry_run, is_left) {
        (true, _) => "dry run: nothing was changed",
        (false, false) => "the tables are ready",
        (false, true) => "the tables can be used; what was left as it is, and why, is said above",
    });
    Ok(())
}

fn table(prepared: &[Prepared], dry_run: bool) -> String {
    let mut table = Table::new(["", "what", "found"]);
    for Prepared { thing, name, deed, note, hint } in prepared {
        let done = match deed {
            Deed::Right => "right".to_owned(),
            Deed::Left => "left as it is".to_owned(),
            deed if dry_run => format!("would be {}", deed.name()),
            deed => deed.name().to_owned(),
        };
        let what = match thing {
            Thing::Database => format!("database {name}"),
            Thing::StateTable => format!("state table {name}"),
            Thing::LockTable => format!("lock table {name}"),
            Thing::History => format!("history {name}"),
        };
        let hint = hint.iter().map(|hint| format!("hint: {hint}"));
        let found: Vec<String> = note.iter().cloned().chain(hint).collect();
        table.row([&done, &what, &found.join("\n")]);
    }
    let is_done = prepared.iter().all(|prepared| prepared.deed == Deed::Right);
    let end = if is_done { "\n\ndatabase and tables: what is needed exists" } else { "" };
    format!("{table}{end}")
}

fn json(prepared: &[Prepared], dry_run: bool) -> Value {
    let thing = |Prepared { thing, name, deed, note, hint }: &Prepared| json!({"thing": thing.name(), "name": name, "deed": deed.name(), "note": note, "hint": hint});
    json!({"initialized": !dry_run, "dry_run": dry_run, "things": prepared.iter().map(thing).collect::<Vec<_>>()})
}
