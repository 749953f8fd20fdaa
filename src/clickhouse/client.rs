//! Carries statements out: sends, repeats what may be repeated, decodes.

use std::cell::Cell;
use std::time::Duration;

use uuid::Builder;

use crate::clickhouse::failure::{Failure, Stage};
use crate::clickhouse::{
    Answer, Effect, Statement, Tables, code, explain, history, request, response, schema, upgrade, version,
};
use crate::error::{Error, ErrorKind};
use crate::ports::{Ports, Timeouts, TransportErrorKind};
use crate::settings::Settings;

/// The pause before the first repetition; each further one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// A paused service takes a minute to wake: ask it every few seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
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
    /// Cleared when the user may not change a setting of [`FOR_FEW_ROWS`].
    may_tune: Cell<bool>,
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
            may_tune: Cell::new(true),
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

    /// Carries out a statement within the request timeout. What only reads is repeated when the connection is lost or
    /// the service is away for the moment; a write is repeated too if it is idempotent. A connection that is lost eight
    /// times is lost for good. What a server may be too old for is explained by its version, with one more request.
    ///
    /// # Errors
    /// [`ErrorKind::OutcomeUnknown`] if a write was sent and no answer came; otherwise what the failure was.
    pub fn run(&self, statement: &Statement) -> Result<Answer, Error> {
        self.carry_out(statement).map_err(|failure| self.blame_version(failure.error))
    }

    /// As [`Self::run`], with how far it came.
    pub(crate) fn carry_out(&self, statement: &Statement) -> Result<Answer, Failure> {
        let start = self.ports.clock.now();
        let mut pause = FIRST_PAUSE;
        // The same for all attempts: the server then refuses one while it still carries out another.
        let random_id = Builder::from_random_bytes(self.ports.random.random().to_be_bytes()).into_uuid().to_string();
        // Once one attempt may have arrived, a later failure to connect leaves the outcome as unknown as before.
        let mut may_have_arrived = false;
        let mut times_lost = 0;
        let mut earlier = None;
        let mut tuning = if statement.few_rows && self.may_tune.get() { FOR_FEW_ROWS } else { &[] };
        loop {
            let left = self.settings.request_timeout.saturating_sub(self.ports.clock.now() - start);
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
            times_lost += u32::from(failure.lost);
            let jittered = self.jittered(pause);
            let time_left = self.ports.clock.now() - start + jittered < self.settings.request_timeout;
            let may_pass = failure.passing && times_lost < LOST_BEFORE_GIVING_UP;
            if may_pass && statement.effect != Effect::Once && time_left && self.ports.clock.sleep(jittered) {
                pause = (pause * 2).min(LONGEST_PAUSE);
                earlier = Some(failure.error).filter(|error| error.kind == ErrorKind::Unreachable);
                continue;
            }
            return Err(if may_have_arrived && statement.effect != Effect::Read {
                Failure { error: explain::outcome_unknown(failure.error), ..failure }
            } else {
                failure
            });
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
        let response = self.ports.http.send(&request, timeouts).map_err(|error| Failure {
            error: explain::transport(&error, self.settings),
            passing: error.kind == TransportErrorKind::Lost,
            lost: error.kind == TransportErrorKind::Lost,
            may_have_arrived: error.kind.may_have_arrived(),
            stage: Stage::of(error.kind),
        })?;
        let status = response.status;
        response::decode(response, statement.query_id_or(random_id)).map_err(|error| Failure {
            // An answer that is not ClickHouse's does not tell what ClickHouse did, unless it refuses the request.
            may_have_arrived: error.server.is_none() && !matches!(status, 400..=499 | 503),
            passing: error.kind == ErrorKind::Unreachable
                || error.code() == Some(code::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING),
            lost: false,
            stage: Stage::Answer,
            error,
        })
    }

    /// What an old server does not know is explained by its version.
    fn blame_version(&self, error: Error) -> Error {
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
        match self.run(statement) {
            Err(error) if is_missing(&error) => {
                self.create_tables()?;
                self.run(statement)
            }
            other => other,
        }
    }

    /// Carries out a statement on tables whose absence means that there is nothing: none then.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_if_exists(&self, statement: &Statement) -> Result<Option<Answer>, Error> {
        match self.run(statement) {
            Err(error) if is_missing(&error) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Carries out a `DELETE` as a mutation. Where the table does not exist there is nothing to delete.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn delete(&self, statement: &Statement) -> Result<(), Error> {
        self.run_if_exists(statement).map(drop)
    }

    /// Carries out a `DELETE` as a patch part, which is faster, where server and table can. A mutation of the same table
    /// that runs at the same time may undo it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn delete_by_patch(&self, statement: &Statement) -> Result<(), Error> {
        if self.patch_deletes.get() {
            let patch = statement.clone().setting("lightweight_delete_mode", "lightweight_update");
            match self.run_if_exists(&patch) {
                Err(error) if error.code() == Some(code::UNKNOWN_SETTING) || forbids_settings(&error) => {
                    self.patch_deletes.set(false);
                }
                other => return other.map(drop),
            }
        }
        self.delete(statement)
    }

    /// Creates the database and the tables where they do not exist.
    ///
    /// # Errors
    /// As [`Self::run`], above all [`ErrorKind::PermissionDenied`].
    pub fn create_tables(&self) -> Result<(), Error> {
        schema::create(self, &self.tables)
    }

    /// Gives a lock table of the add-on's layout our columns and sorting key, if no live lock is in it and the user may.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn upgrade_lock_table(&self) -> Result<(), Error> {
        upgrade::lock_table(self)
    }

    /// Begins, changes or ends the keeping of earlier versions, as the setting says. Without it all stays as it is.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn keep_history(&self) -> Result<(), Error> {
        self.settings.history_days.map_or(Ok(()), |days| history::keep(self, days))
    }

    /// Between half of `pause` and all of it, so that clients that failed together do not come back together.
    pub(crate) fn jittered(&self, pause: Duration) -> Duration {
        let [low, ..] = self.ports.random.random().to_le_bytes();
        pause * (256 + u32::from(low)) / 512
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error.code(), Some(code::UNKNOWN_TABLE | code::UNKNOWN_DATABASE))
}

fn forbids_settings(error: &Error) -> bool {
    matches!(error.code(), Some(code::SETTING_CONSTRAINT_VIOLATION | code::READONLY))
}
