//! `meltano-state check`.

use meltano_state_host::{Report, Status, Step};
use serde_json::{Value, json};

use crate::cli::arguments::Format;
use crate::cli::call::Call;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::table::Table;

pub(in crate::cli) async fn check(call: &mut Call) -> Result<(), Failure> {
    let report = call.run(async |instance| instance.check().await).await?;
    output::written(match call.format {
        Format::Text => output::lines(table(&report).lines()),
        Format::Json => output::line(&json(&report).to_string()),
    })?;
    // A failed step makes the command fail.
    if report.has_failed() { Err(Failure::shown()) } else { Ok(()) }
}

fn table(report: &Report) -> String {
    let mut table = Table::new(["", "step", "found"]);
    for step in &report.steps {
        let mut found = step.found.clone();
        if let Some(hint) = &step.hint {
            found = format!("{found}\nhint: {hint}");
        }
        table.row([step.status.name(), &step.name, &found]);
    }
    let count = |status| report.steps.iter().filter(|step| step.status == status).count();
    let (failed, warnings) = (count(Status::Failed), count(Status::Warning));
    format!("{table}\n\n{failed} failed, {warnings} warnings")
}

fn json(report: &Report) -> Value {
    let step = |step: &Step| {
        json!({
            "name": step.name, "status": step.status.name(), "tried": step.tried, "found": step.found, "hint": step.hint,
        })
    };
    json!({"ok": !report.has_failed(), "steps": report.steps.iter().map(step).collect::<Vec<_>>()})
}
