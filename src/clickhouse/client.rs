//! Carries statements out: sends, repeats what may be repeated, decodes.

use std::cell::Cell;
use std::time::Duration;

use uuid::Builder;

use crate::clickhouse::failure::{Broken, Failure};
use crate::clickhouse::passing::Again;
use crate::clickhouse::{
    Answer, Deletion, Effect, Existing, HistoryPlan, Obstacle, Statement, Tables, code, existing, explain, request,
    response, schema, upgrade, version,
};
use crate::error::{Error, ErrorKind};
use crate::ports::{Ports, Timeouts};
use crate::settings::Settings;

/// The pause before the first repetition; each further one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// A paused service takes a minute to wake: ask it every few seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A server that says "not now" may be able a moment later, and one that restarts is back within seconds.
const LONGEST_PAUSE_WHEN_NEAR: Duration = Duration::from_secs(1);
/// A server that restarts refuses connections, and one that wakes holds them or says so. One that closes every
/// connection unasked expects something else, TLS for one, and will go on to: this many attempts take about 8 s.
const LOST_BEFORE_GIVING_UP: u32 = 8;

/// The server, the user and the tables.
pub struct Client<'a> {
    ports: Ports<'a>,
    settings: &'a Settings,
    tables: Tables,
    /// Cleared when the server does not know the setting `lightweight_delete_mode`, or the user may not change it.
    patch_deletes: Cell<bool>,
    /// Cleared when `DELETE FROM` is refused, as on a table with a projection.
    lightweight_deletes: Cell<bool>,
    /// Cleared when the user may not change a setting of [`FOR_FEW_ROWS`].
    may_tune: Cell<bool>,
    /// Whether ClickHouse has answered a request.
    has_answered: Cell<bool>,
}

/// What makes the server faster at a statement that touches few rows, by a quarter to a third: no threads to hand them to.
/// (Reads from remote disks go on ahead in threads of their own.)
const FOR_FEW_ROWS: &[(&str, &str)] = &[("max_threads", "1"), ("local_filesystem_read_method", "pread")];

impl<'a> Client<'a> {
    /// Connects nowhere yet.
    #[must_use]
    pub fn new(ports: Ports<'a>, settings: &'a Settings) -> Self {
        Self {
            ports,
            settings,
            tables: Tables::new(settings),
            patch_deletes: Cell::new(true),
            lightweight_deletes: Cell::new(true),
            may_tune: Cell::new(true),
            has_answered: Cell::new(false),
        }
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn ports(&self) -> Ports<'a> {
        self.ports
    }

    pub(crate) fn settings(&self) -> &'a Settings {
        self.settings
    }

    pub(crate) fn schema(&self) -> &'a str {
        &self.settings.schema
    }

    /// The unquoted names of the state table and the lock table.
    pub(crate) fn table_names(&self) -> (String, String) {
        let state = &self.settings.table;
        (state.clone(), format!("{state}_lock"))
    }

    /// The unquoted names of the table of earlier versions and of the view that fills it.
    pub(crate) fn history_names(&self) -> [String; 2] {
        ["_history", "_history_feed"].map(|suffix| format!("{}{suffix}", self.settings.table))
    }

    /// Carries out a statement within the request timeout.
    ///
    /// What only reads, and a write that is idempotent, is sent again when the connection is lost, the service is away for the
    /// moment, or the server says that it cannot do it now. What the server has not begun to carry out is sent again in
    /// any case. A connection that is lost eight times is lost for good, and a server that has answered before is missed
    /// for as long as connecting may take. What a server may be too old for is explained by its version, with one more
    /// request.
    ///
    /// # Errors
    /// [`ErrorKind::OutcomeUnknown`] if a write was sent and no answer came; otherwise what the failure was.
    pub fn run(&self, statement: &Statement) -> Result<Answer, Error> {
        self.carry_out(statement).map_err(|failure| self.blame_version(failure.into_error(statement.effect)))
    }

    /// As [`Self::run`], with how far it came. The error is that of the last attempt.
    pub(crate) fn carry_out(&self, statement: &Statement) -> Result<Answer, Failure> {
        let now = || self.ports.clock.now();
        let start = now();
        let mut pause = FIRST_PAUSE;
        // The same for all attempts: the server then refuses one while it still carries out another.
        let random_id = self.random_id();
        // Once one attempt may have arrived, a later failure to connect leaves the outcome as unknown as before.
        let mut may_have_arrived = false;
        let mut times_lost = 0;
        let mut absent_since = None;
        let mut earlier = None;
        let mut tuning = if statement.few_rows && self.may_tune.get() { FOR_FEW_ROWS } else { &[] };
        loop {
            let began = now();
            let left = self.settings.request_timeout.saturating_sub(began - start);
            let failure = match self.attempt(statement, tuning, &random_id, left) {
                Ok(answer) => return Ok(answer),
                Err(failure) if !tuning.is_empty() && forbids_settings(&failure.error) => {
                    self.may_tune.set(false);
                    tuning = &[];
                    continue;
                }
                Err(failure) => failure,
            };
            may_have_arrived |= failure.may_have_arrived;
            // That the time ran out says less than why it had to be tried again.
            let failure = match earlier.take() {
                Some(error) if failure.error.kind == ErrorKind::TimedOut => Failure { error, ..failure },
                _ => failure,
            };
            let may_repeat = match failure.again {
                Again::Nothing => false,
                Again::Repeatable => statement.effect != Effect::Once,
                Again::Everything => statement.effect != Effect::Once || !may_have_arrived,
            };
            let away = failure.connection.is_none() && failure.error.kind == ErrorKind::Unreachable;
            pause = pause.min(if away { LONGEST_PAUSE } else { LONGEST_PAUSE_WHEN_NEAR });
            let jittered = self.jittered(pause);
            let next = now() + jittered;
            let is_in_time = match failure.connection {
                Some(Broken::Lost) => {
                    times_lost += 1;
                    times_lost < LOST_BEFORE_GIVING_UP
                }
                Some(Broken::Absent) => next - *absent_since.get_or_insert(began) < self.settings.connect_timeout,
                None => true,
            };
            if may_repeat
                && is_in_time
                && next - start < self.settings.request_timeout
                && self.ports.clock.sleep(jittered)
            {
                pause *= 2;
                // That an earlier attempt is still carried out explains nothing.
                earlier = Some(failure.error)
                    .filter(|error| error.code() != Some(code::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING));
                continue;
            }
            return Err(Failure { may_have_arrived, ..failure });
        }
    }

    fn attempt(
        &self,
        statement: &Statement,
        tuning: &[(&str, &str)],
        random_id: &str,
        left: Duration,
    ) -> Result<Answer, Failure> {
        let request = request::build(statement, tuning, self.settings, random_id);
        let timeouts = Timeouts { connect: self.settings.connect_timeout.min(left), total: left };
        let response = self.ports.http.send(&request, timeouts).map_err(|error| {
            let explained = explain::transport(&error, self.settings);
            Failure::of_transport(error.kind, explained, self.has_answered.get())
        })?;
        let status = response.status;
        let answer = response::decode(response, statement.query_id_or(random_id));
        if answer.as_ref().err().is_none_or(|error| error.server.is_some()) {
            self.has_answered.set(true);
        }
        answer.map_err(|error| Failure::of_answer(status, error))
    }

    /// What an old server does not know is explained by its version.
    pub(crate) fn blame_version(&self, error: Error) -> Error {
        if !explain::may_be_too_old(&error) {
            return error;
        }
        let statement = Statement::new(Effect::Read, "SELECT 1, version() FORMAT TabSeparated");
        let Ok(answer) = self.carry_out(&statement) else { return error };
        let Ok([_, version]) = answer.only_row() else { return error };
        if version::is_supported(&version) {
            error
        } else {
            version::unsupported(&version, error.into_details().server)
        }
    }

    /// Carries out a statement that needs the tables, and creates them if they do not exist.
    ///
    /// # Errors
    /// As [`Self::run`] and [`Self::create_tables`].
    pub fn run_creating(&self, statement: &Statement) -> Result<Answer, Error> {
        let result = self.carry_out_creating(statement);
        result.map_err(|failure| self.blame_version(failure.into_error(statement.effect)))
    }

    /// As [`Self::run_creating`], with how far it came.
    pub(crate) fn carry_out_creating(&self, statement: &Statement) -> Result<Answer, Failure> {
        match self.carry_out(statement) {
            Err(failure) if is_missing(&failure.error) => {
                self.create_tables()?;
                self.carry_out(statement)
            }
            other => other,
        }
    }

    /// Carries out a statement on tables whose absence means that there is nothing: none then.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_if_exists(&self, statement: &Statement) -> Result<Option<Answer>, Error> {
        existing(self.run(statement))
    }

    /// Carries out a deletion as a mutation. Where the table does not exist there is nothing to delete.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn delete(&self, deletion: &Deletion) -> Result<(), Error> {
        if self.lightweight_deletes.get() {
            match self.carry_out(&deletion.lightweight()) {
                // The table has a projection, or the profile does without lightweight deletes.
                Err(failure) if failure.error.code() == Some(code::SUPPORT_IS_DISABLED) => {
                    self.lightweight_deletes.set(false);
                }
                other => return self.removed(other),
            }
        }
        self.run_if_exists(&deletion.heavyweight()).map(drop)
    }

    /// Carries out a deletion as a patch part, which is faster, where server and table can. A mutation of the same table
    /// that runs at the same time may undo it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn delete_by_patch(&self, deletion: &Deletion) -> Result<(), Error> {
        if self.patch_deletes.get() {
            match self.carry_out(&deletion.patch()) {
                Err(failure) if may_not_patch(&failure.error) => self.patch_deletes.set(false),
                other => return self.removed(other),
            }
        }
        self.delete(deletion)
    }

    /// What came of a deletion.
    fn removed(&self, result: Result<Answer, Failure>) -> Result<(), Error> {
        existing(result.map_err(|failure| self.blame_version(failure.into_error(Effect::Idempotent)))).map(drop)
    }

    /// Creates the database and the tables where they do not exist.
    ///
    /// # Errors
    /// As [`Self::run`], above all [`ErrorKind::PermissionDenied`].
    pub fn create_tables(&self) -> Result<(), Error> {
        self.create_absent(&existing::read(self)?)
    }

    /// Creates what is not among what exists.
    pub(crate) fn create_absent(&self, existing: &Existing) -> Result<(), Error> {
        schema::create(self, existing)
    }

    /// Gives a lock table of the add-on's layout our columns and sorting key, or says what stands in the way.
    pub(crate) fn upgrade_lock_table(&self) -> Result<Option<Obstacle>, Error> {
        upgrade::lock_table(self)
    }

    /// The live locks, if there are any, as they stand in the way of an upgrade.
    pub(crate) fn live_locks(&self) -> Result<Option<Obstacle>, Error> {
        upgrade::live_locks(self)
    }

    /// Finishes upgrades of the lock table that were broken off.
    pub(crate) fn finish_upgrades(&self, existing: &Existing) -> Result<(), Error> {
        upgrade::finish(self, &existing.leftovers)
    }

    /// Begins, changes or ends the keeping of earlier versions, as the setting says. Without it all stays as it is.
    pub(crate) fn keep_history(&self, existing: &Existing) -> Result<(), Error> {
        HistoryPlan::new(existing, self.settings.history_days).carry_out(self)
    }

    /// A UUID that nobody else has.
    pub(crate) fn random_id(&self) -> String {
        Builder::from_random_bytes(self.ports.random.random().to_be_bytes()).into_uuid().to_string()
    }

    /// Between half of `pause` and all of it, so that clients that failed together do not come back together.
    pub(crate) fn jittered(&self, pause: Duration) -> Duration {
        let [low, ..] = self.ports.random.random().to_le_bytes();
        pause * (256 + u32::from(low)) / 512
    }
}

/// What came of a statement, if its table exists.
fn existing(result: Result<Answer, Error>) -> Result<Option<Answer>, Error> {
    match result {
        Err(error) if is_missing(&error) => Ok(None),
        other => other.map(Some),
    }
}

/// Whether the server, the table or the profile allow no patch parts.
fn may_not_patch(error: &Error) -> bool {
    forbids_settings(error)
        || matches!(error.code(), Some(code::UNKNOWN_SETTING | code::SUPPORT_IS_DISABLED | code::NOT_IMPLEMENTED))
}

fn is_missing(error: &Error) -> bool {
    matches!(error.code(), Some(code::UNKNOWN_TABLE | code::UNKNOWN_DATABASE))
}

fn forbids_settings(error: &Error) -> bool {
    matches!(error.code(), Some(code::SETTING_CONSTRAINT_VIOLATION | code::READONLY))
}
