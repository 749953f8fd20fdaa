//! The lock table: what is known of it, reading it, deleting from it.

use std::cell::Cell;
use std::time::Duration;

use crate::clickhouse::{Client, Deletion, Layout, Look, StateRead, code};
use crate::error::{Error, ErrorKind};
use crate::glob::Selection;
use crate::lock::reading::holders;
use crate::lock::{Holder, Reading};

/// The lock table, and what was last found out of it.
pub(crate) struct LockTable<'a> {
    client: Client<'a>,
    /// What is known of the lock table's layout.
    layout: Cell<Layout>,
    /// Whether the lock table was mutated lately, as far as is known.
    mutated: Cell<bool>,
    /// When both were last looked up.
    looked_up: Cell<Option<Duration>>,
    /// Cleared when the user lacks the privilege. Then only rows of others tell that they are there.
    may_see_mutations: Cell<bool>,
}

/// How long it may go unnoticed that somebody begins to mutate the lock table. Looking costs 2 ms.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl<'a> LockTable<'a> {
    pub(super) fn new(client: Client<'a>) -> Self {
        Self {
            client,
            layout: Cell::new(Layout::Unknown),
            mutated: Cell::new(false),
            looked_up: Cell::new(None),
            may_see_mutations: Cell::new(true),
        }
    }

    pub(super) fn client(&self) -> &Client<'a> {
        &self.client
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout.get()
    }

    /// Whether it is time to look up the lock table again.
    pub(super) fn look_is_due(&self, now: Duration) -> bool {
        self.looked_up.get().is_none_or(|last| now - last > LOOK_AGAIN)
    }

    /// The lock rows of a state id, and its state if that is asked for.
    ///
    /// # Errors
    /// As the server reports them.
    pub(crate) fn read(&self, state_id: &str, stale: Duration, state: StateRead) -> Result<Reading, Error> {
        // Again if the layout turns out to be another, is changed in between, or mutations may not be seen.
        for _ in 0..4 {
            let layout = self.layout.get();
            let tables = self.client.tables();
            let now = self.client.ports().clock.now();
            // An add-on's table may be upgraded at any moment, and then other rows count.
            let unsure = matches!(layout, Layout::Unknown | Layout::Plain);
            let due = self.look_is_due(now);
            let look = match self.may_see_mutations.get() {
                true if unsure || due => Look::Mutations,
                false if unsure || due => Look::Table,
                _ => Look::Rows,
            };
            let statement = tables.lock_rows(state_id, stale, layout, state, look);
            let answer = match self.client.run_creating(&statement) {
                Err(error) if self.is_of_other_layout(&error) => continue,
                Err(error) if error.kind == ErrorKind::PermissionDenied && look == Look::Mutations => {
                    self.may_see_mutations.set(false);
                    continue;
                }
                other => other?,
            };
            let (reading, table) = Reading::decode(&answer, layout)?;
            if let Some(table) = table {
                self.looked_up.set(Some(now));
                self.layout.set(table.layout);
                self.mutated.set(table.mutated);
            }
            if let Some(reading) = reading {
                if reading.has_foreign_rows() {
                    self.mutated.set(true);
                }
                return Ok(reading);
            }
        }
        Err(Error::new(ErrorKind::SchemaMismatch, "the lock table's columns change while it is used")
            .with_hint("wait until its upgrade is done"))
    }

    /// The lock rows of the selected state ids; none where there is no table.
    ///
    /// # Errors
    /// As the server reports them.
    pub(crate) fn holders(&self, selection: &Selection) -> Result<Vec<Holder>, Error> {
        let stale = self.client.settings().lock.stale;
        let answer = self.with_layout(|layout| {
            self.client.run_if_exists(&self.client.tables().all_lock_rows(selection, stale, layout))
        })?;
        answer.map_or_else(|| Ok(Vec::new()), |answer| holders(&answer))
    }

    /// Removes a lock, whoever holds it, and says whether it was there.
    ///
    /// # Errors
    /// As the server reports them.
    pub(crate) fn force_release(&self, state_id: &str, lock_id: &str) -> Result<bool, Error> {
        let stale = self.client.settings().lock.stale;
        let reading = self.read(state_id, stale, StateRead::Nothing)?;
        if !reading.rows.iter().any(|row| row.lock_id == lock_id) {
            return Ok(false);
        }
        self.delete(&self.client.tables().delete_lock(state_id, lock_id))?;
        Ok(true)
    }

    /// Runs a statement that depends on the layout, again if the table turns out to have the add-on's columns.
    pub(super) fn with_layout<T, E: AsRef<Error>>(&self, run: impl Fn(Layout) -> Result<T, E>) -> Result<T, E> {
        match run(self.layout.get()) {
            Err(error) if self.is_of_other_layout(error.as_ref()) => run(self.layout.get()),
            other => other,
        }
    }

    /// Whether a statement failed because the table has the add-on's columns only; remembers it then.
    fn is_of_other_layout(&self, error: &Error) -> bool {
        let other = lacks_column(error) && self.layout.get() != Layout::Plain;
        if other {
            self.layout.set(Layout::Plain);
            self.looked_up.set(None);
        }
        other
    }

    /// Removes the rows of a state id that are too old to count.
    pub(crate) fn delete_stale(&self, state_id: &str, stale: Duration) -> Result<(), Error> {
        self.delete(&self.client.tables().delete_stale(state_id, stale, self.layout.get()))
    }

    /// Removes a row of this process, `is_uncertain` if a statement that adds it may still be carried out.
    pub(super) fn delete_own(&self, state_id: &str, lock_id: &str, is_uncertain: bool) -> Result<(), Error> {
        let tables = self.client.tables();
        self.delete(&match is_uncertain {
            true => tables.delete_uncertain_lock(state_id, lock_id),
            false => tables.delete_lock(state_id, lock_id),
        })
    }

    /// Deletes lock rows: as a patch, unless somebody, such as the add-on, deletes by mutation. Those could undo a patch,
    /// and the row would be back.
    fn delete(&self, deletion: &Deletion) -> Result<(), Error> {
        match self.mutated.get() {
            true => self.client.delete(deletion),
            false => self.client.delete_by_patch(deletion),
        }
    }
}

pub(super) fn lacks_column(error: &Error) -> bool {
    matches!(error.code(), Some(code::NO_SUCH_COLUMN_IN_TABLE | code::UNKNOWN_IDENTIFIER))
}
