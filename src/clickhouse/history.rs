//! Begins, changes and ends the keeping of earlier versions.

use crate::clickhouse::{Client, Existing};
use crate::error::Error;

/// What is to be done so that a history is what the setting says. What is right already needs no privilege; a history that
/// ends keeps what it has, and without the setting all stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HistoryPlan {
    /// For how many days versions are to be kept.
    pub(crate) days: u16,
    /// Create the table.
    pub(crate) create: bool,
    /// Let the table keep them for another time.
    pub(crate) change: bool,
    /// Record from now on.
    pub(crate) begin: bool,
    /// Record no longer.
    pub(crate) end: bool,
}

impl HistoryPlan {
    /// The plan for what exists, given the setting `history_days`.
    pub(crate) fn new(existing: &Existing, days: Option<u16>) -> Self {
        let Some(days) = days else { return Self::default() };
        let on = days > 0;
        let is_recorded = existing.is_recorded();
        Self {
            days,
            // Whoever may not see the view, and sees that it records, may not see the table either.
            create: on && existing.history.is_none() && (existing.history_feed || !existing.recording),
            change: on && existing.history.is_some_and(|history| history.days != Some(days.into())),
            begin: on && !is_recorded,
            end: !on && is_recorded,
        }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// As the server reports them.
    pub(super) fn carry_out(self, client: &Client) -> Result<(), Error> {
        let tables = client.tables();
        if self.create {
            client.run(&tables.create_history(self.days))?;
        }
        if self.change {
            client.run(&tables.change_history_days(self.days))?;
        }
        if self.begin {
            client.run(&tables.create_history_feed())?;
            client.run(&tables.begin_history())?;
        }
        if self.end {
            client.run(&tables.drop_history_feed())?;
        }
        Ok(())
    }
}
