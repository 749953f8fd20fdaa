//! `init`.

use meltano_state_host::Report;
use serde_json::json;

use super::check;
use crate::cli::call::Call;
use crate::cli::failure::Failure;

/// The steps of `check` that say what `init` would find.
const CONCERNED: [&str; 3] = ["tables", "layout", "privileges"];

pub(in crate::cli) async fn init(call: &mut Call, dry_run: bool) -> Result<(), Failure> {
    if dry_run {
        let Report { steps } = call.run(async |instance| instance.check().await).await?;
        // A step before these that failed explains why nothing is known of them.
        let failed = |status| status == meltano_state_host::Status::Failed;
        let steps = steps.into_iter().filter(|step| failed(step.status) || CONCERNED.contains(&step.name.as_str()));
        check::show(&Report { steps: steps.collect() }, call.format)?;
        call.remark("dry run: init creates what does not exist; nothing was changed");
        return Ok(());
    }
    call.change(async |instance| instance.init().await).await?;
    call.done(json!({"initialized": true}), "the tables are ready")
}
