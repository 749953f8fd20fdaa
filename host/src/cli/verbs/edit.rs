//! `edit`.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use meltano_state_host::{CallError, Entry, Lock, State};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use super::lock_run::{give_back, take};
use crate::cli::arguments::Edit;
use crate::cli::call::Call;
use crate::cli::ending::{self, Busy, Leftover};
use crate::cli::failure::Failure;
use crate::cli::held::{self, Renewal, WhenLost};
use crate::cli::layout::{compact, indented};
use crate::cli::plan::{self, Plan};
use crate::cli::{output, payload, stored};

/// What a person starts from where there is no state.
const TEMPLATE: &str = r#"{"singer_state":{"bookmarks":{}}}"#;

const EDITOR: &str = "set VISUAL or EDITOR to the editor of your choice";

/// As Meltano does, what the next run starts from is edited, and becomes the completed state.
pub(in crate::cli) async fn edit(call: &mut Call, edit: Edit, renewal: Renewal) -> Result<(), Failure> {
    let Edit { state_id, dry_run } = edit;
    stored::named(&state_id)?;
    if dry_run {
        return edited(call, &state_id, None, renewal).await;
    }
    let _busy = Busy::begin()?;
    let lock = take(call, &state_id, "an editor").await?;
    let result = edited(call, &state_id, Some(&lock), renewal).await;
    give_back(call, lock).await;
    result
}

/// Edits under the lock; without one what would change is shown. A text that could not be stored is kept.
async fn edited(call: &mut Call, state_id: &str, lock: Option<&Lock>, renewal: Renewal) -> Result<(), Failure> {
    let stored = stored::read(call, state_id).await?;
    let before = stored.as_ref().map(|entry| entry.content.clone()).transpose().map_err(CallError::Error)?;
    let merged = before.map(stored::merged).transpose()?.flatten();
    let draft = Draft::new(merged.as_deref().unwrap_or(TEMPLATE))?;
    let result = async {
        let held = open(call, &draft, lock, renewal).await?;
        let Some(completed) = draft.changed()? else {
            return call.done(json!({"edited": null}), "nothing was changed");
        };
        let state = State { state_id: state_id.to_owned(), completed_state: Some(completed), partial_state: None };
        held?;
        write(call, stored.as_ref(), &state, lock).await
    };
    let result = result.await;
    result.map_err(|failure| draft.kept(failure, state_id))
}

/// Lets the editor run. Whether the lock was held all the time.
async fn open(
    call: &mut Call,
    draft: &Draft,
    lock: Option<&Lock>,
    renewal: Renewal,
) -> Result<Result<(), CallError>, Failure> {
    ending::check()?;
    let editor = draft.open()?;
    let (status, held) = match lock {
        Some(lock) => held::run(&mut call.instance, lock, renewal, editor, WhenLost::GoOn).await,
        None => (held::wait_for(editor).await, Ok(())),
    };
    let status = status.map_err(|error| Failure::io(error.to_string()))?;
    ending::check()?;
    if !status.success() {
        return Err(Failure::refused(format!("the editor failed ({status}): nothing was changed"), EDITOR));
    }
    Ok(held)
}

async fn write(call: &mut Call, stored: Option<&Entry>, state: &State, lock: Option<&Lock>) -> Result<(), Failure> {
    let id = &state.state_id;
    let Some(lock) = lock else { return plan::show(call, [&Plan::new(id, stored, Some(state))]) };
    // Those who take no lock may have written meanwhile.
    let now = stored::read(call, id).await?;
    if now.map(|entry| entry.updated_at) != stored.map(|entry| entry.updated_at) {
        let reason = format!("the state of {} has changed meanwhile: nothing was written", output::name(id));
        return Err(Failure::refused(reason, "look at it with: meltano-state get"));
    }
    call.change(async |instance| instance.set_locked(lock, state).await).await?;
    call.done(json!({"edited": id}), &format!("the state of {} is changed", output::name(id)))
}

/// The file that the editor opens.
struct Draft {
    file: NamedTempFile,
    original: String,
    _leftover: Leftover,
}

impl Draft {
    fn new(state: &str) -> Result<Self, Failure> {
        let original = indented(state);
        let file = tempfile::Builder::new().prefix("meltano-state-").suffix(".json").tempfile();
        let file = file.and_then(|mut file| {
            writeln!(file, "{original}")?;
            file.flush()?;
            Ok(file)
        });
        let file = file.map_err(|error| Failure::io(format!("the state cannot be written for the editor: {error}")))?;
        let (path, unchanged) = (file.path().to_owned(), original.clone());
        let leftover = Leftover::new(move || abandon(&path, &unchanged));
        Ok(Self { file, original, _leftover: leftover })
    }

    /// Starts the editor. The variable may hold arguments too, so a shell reads it.
    fn open(&self) -> Result<Child, Failure> {
        let variable =
            |name| std::env::var_os(name).filter(|editor| !editor.as_encoded_bytes().trim_ascii().is_empty());
        let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".into());
        let mut script = editor.clone();
        script.push(" \"$1\"");
        Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg("sh")
            .arg(self.file.path())
            .spawn()
            .map_err(|error| Failure::io(format!("the editor {} does not start: {error}", editor.display())))
    }

    fn text(&self) -> io::Result<String> {
        text(self.file.path())
    }

    /// The edited state. None if it is what it was, or nothing.
    fn changed(&self) -> Result<Option<String>, Failure> {
        let text = self.text().map_err(|error| {
            Failure::unusable(format!("the edited state cannot be read: {error}"), "nothing was changed")
        })?;
        if text.is_empty() || compact(&text) == compact(&self.original) {
            return Ok(None);
        }
        payload::check(&text).map_err(|reason| Failure::unusable(reason, "nothing was changed"))?;
        Ok(Some(compact(&text)))
    }

    /// The failure, which says where the text stays if it is not what it was.
    fn kept(self, failure: Failure, state_id: &str) -> Failure {
        if self.text().is_ok_and(|text| text == self.original) {
            return failure;
        }
        match self.file.keep() {
            Ok((_, path)) => {
                let (path, id) = (path.display(), output::name(state_id));
                failure.and_hint(&format!(
                    "your text stays in {path}; store it with: meltano-state set {id} --input-file {path}"
                ))
            }
            Err(error) => failure.and_hint(&format!("your text could not be kept: {error}")),
        }
    }
}

/// The text of a file, by its name: an editor may have put another file in its place.
fn text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}

/// What becomes of the text when a signal ends the command at once: what was edited stays.
fn abandon(path: &Path, original: &str) {
    if text(path).is_ok_and(|text| text == original) {
        let _ = fs::remove_file(path);
    } else {
        // There is no other place to say so.
        let _ = writeln!(io::stderr(), "your text stays in {}", path.display());
    }
}
