//! Calls of the component, with a word on standard error while they take long.

use std::io::{self, Write as _};

use meltano_state_host::{CallError, Instance, Plugin, Warning};
use serde_json::{Value, json};

use super::arguments::Format;
use super::ending::{self, Busy};
use super::failure::Failure;
use super::output;
use super::progress::{self, Waits};

/// An instance, what to say while its calls take long, and how to write what comes of them.
pub(super) struct Call {
    pub(super) instance: Instance,
    pub(super) format: Format,
    waits: Waits,
}

impl Call {
    /// `locked` is the id whose lock the calls take.
    pub(super) async fn new(plugin: &Plugin, locked: Option<String>, format: Format) -> Result<Self, Failure> {
        let waits =
            Waits { for_answer_from: plugin.destination(), for_lock_of: locked, aloud: progress::aloud(format) };
        Ok(Self { instance: plugin.instance().await?, format, waits })
    }

    /// A call that changes nothing.
    pub(super) async fn run<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut Instance) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        ending::check()?;
        let activity = self.instance.activity();
        let call = ending::patiently(&mut self.instance, call);
        let result = progress::watch(&activity, &self.waits, call).await;
        match (result, ending::told()) {
            (Some(result), None) => Ok(result?),
            (Some(result), Some(signal)) => result.map_err(|error| Failure::from(error).after(signal)),
            (None, signal) => Err(Failure::cut_short(signal.unwrap_or_default())),
        }
    }

    /// A call that changes something or takes a lock: a signal lets it come to its end.
    pub(super) async fn change<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut Instance) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let _busy = Busy::begin()?;
        self.run(call).await
    }

    /// [`Self::change`] of what takes a lock itself: what it left behind is said on standard error.
    pub(super) async fn change_locked(
        &mut self,
        call: impl AsyncFnOnce(&mut Instance) -> Result<Vec<Warning>, CallError>,
    ) -> Result<(), Failure> {
        for Warning { message, hint } in self.change(call).await? {
            self.warn(&message, hint.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// Confirms a change: to people on standard error, as Meltano does, to programs on standard output.
    #[expect(clippy::needless_pass_by_value, reason = "a value made for this call")]
    pub(super) fn done(&self, result: Value, sentence: &str) -> Result<(), Failure> {
        output::written(match self.format {
            Format::Text => writeln!(io::stderr(), "{}", output::visible(sentence)),
            Format::Json => output::line(&result.to_string()),
        })
    }

    /// Says on standard error what a caller should know of a result.
    pub(super) fn warn(&self, message: &str, hint: &str) {
        let text = match self.format {
            Format::Text => output::visible(&format!("warning: {message}\nhint: {hint}")).into_owned(),
            Format::Json => json!({"warning": {"message": message, "hint": hint}}).to_string(),
        };
        // The result counts, whether or not this is read.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// A word to people about what happens on the way.
    pub(super) fn remark(&self, sentence: &str) {
        if self.format == Format::Text {
            // Nothing depends on this line being seen.
            let _ = writeln!(io::stderr(), "{}", output::visible(sentence));
        }
    }
}
