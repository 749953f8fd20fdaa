//! The check from its first step to its last.

use super::privileges::{self, Known, Wanted};
use super::report::{Finding, Report};
use super::tables::{self, Existing};
use super::{clock, layout, profile, replicas};
use crate::clickhouse::{Client, Effect, Stage, Statement, version};
use crate::error::{Error, ErrorKind};
use crate::ports::{Ports, SettingsSource};
use crate::settings::Settings;

/// Checks all that the backend needs. At most four requests on a healthy installation of one server.
pub fn check(source: &dyn SettingsSource, ports: Ports) -> Report {
    let mut report = Report::default();
    let tried = "read the settings";
    match Settings::load(source) {
        Ok(settings) => {
            report.add(tried, Finding::ok("complete and valid"));
            let client = Client::new(ports, &settings);
            if let Some(clocks) = connect(&client, &mut report) {
                inspect(&client, clocks, &mut report);
            }
        }
        Err(error) => {
            report.add(tried, error.into());
        }
    }
    report.complete()
}

/// The steps up to the version, with one request that servers of all versions understand. What the clocks show, if the
/// server can be used.
fn connect(client: &Client, report: &mut Report) -> Option<Finding> {
    let settings = client.settings();
    let clock = client.ports().clock;
    let statement = Statement::new(Effect::Read, "SELECT 1, version(), toUnixTimestamp(now()) FORMAT TabSeparated");
    let before = clock.unix_time();
    let answer = client.carry_out(&statement).and_then(|answer| Ok(answer.only_row::<3>()?));
    let after = clock.unix_time();
    let failure = answer.as_ref().err();
    let failed_at = |stage| failure.filter(|failure| failure.stage == stage).map(|failure| failure.error.clone());

    let authority = settings.authority();
    let connected = Finding::ok(format!("{authority} accepts connections"));
    report.add(format!("connect to {authority}"), connected.unless(failed_at(Stage::Connection)))?;
    if settings.secure {
        let session = Finding::ok("a session; the certificate is accepted");
        report.add("TLS handshake", session.unless(failed_at(Stage::Tls)))?;
    } else {
        let plain = "state_backend.clickhouse.secure is false: all travels unencrypted, the password too";
        report.add("", Finding::skipped(plain));
    }
    // With a code of ClickHouse's, the failure is one of logging in.
    let (refused, unclear): (Option<Error>, Option<Error>) = match failed_at(Stage::Answer) {
        Some(error) if error.server.is_some() => (Some(error), None),
        error => (None, error),
    };
    report.add("send a statement over HTTP", Finding::ok("ClickHouse answers").unless(unclear))?;
    let accepted = Finding::ok(format!("{} is accepted", settings.user));
    report.add(format!("log in as {}", settings.user), accepted.unless(refused))?;

    let [_, version, now] = answer.ok()?;
    let too_old = (!version::is_supported(&version)).then(|| version::unsupported(&version, None));
    report.add("SELECT version()", Finding::ok(format!("ClickHouse {version}")).unless(too_old))?;
    Some(clock::compare(before, now.parse().unwrap_or_default(), after))
}

/// The steps after the version.
fn inspect(client: &Client, clocks: Finding, report: &mut Report) {
    let names = Names::new(client.settings());
    let existing = tables::read(client);
    let profile = profile::read(client);
    let read_only = profile.as_deref().is_ok_and(profile::is_read_only);
    let tried = format!("look for {} and {}", names.state, names.lock);
    let existing = match existing {
        Ok(existing) => existing,
        Err(error) => {
            report.add(tried, error.into());
            return;
        }
    };
    let wanted = wanted(&existing, &names, read_only);
    let listed = privileges::list(&wanted, "", "");
    let known = privileges::find_missing(client, wanted);

    report.add(tried, existence(&existing, &names, known.as_ref(), read_only));
    let with_history = client.settings().history_days.is_some_and(|days| days > 0);
    let verdict = layout::judge(&existing, &names.state, &names.lock, with_history);
    report.add("compare with what the statements need", verdict);
    report.add(format!("CHECK GRANT {listed}"), privileges(known, &names, read_only));
    report.add("compare the clocks", clocks);
    let finding = profile.map_or_else(Finding::from, |rows| profile::judge(&rows, &names.user));
    report.add("read system.settings", finding);
    if replicas::exist(&existing) {
        report.add("read system.replicas", replicas::inspect(client));
    } else {
        report.add("", Finding::skipped("the tables are not replicated"));
    }
}

/// Fails if a table has the right name and is not what the statements need.
///
/// # Errors
/// [`ErrorKind::SchemaMismatch`], naming every fault; otherwise as the server reports them.
pub(crate) fn refuse_other_tables(client: &Client) -> Result<(), Error> {
    let names = Names::new(client.settings());
    let finding = layout::judge(&tables::read(client)?, &names.state, &names.lock, false);
    if finding.status != super::Status::Failed {
        return Ok(());
    }
    Err(Error { hint: finding.hint, ..Error::new(ErrorKind::SchemaMismatch, finding.found) })
}

/// Names as they stand in a statement, quoted where they have to be.
struct Names {
    database: String,
    state: String,
    lock: String,
    user: String,
}

impl Names {
    fn new(settings: &Settings) -> Self {
        let database = quote_if_needed(&settings.schema);
        Self {
            state: format!("{database}.{}", quote_if_needed(&settings.table)),
            lock: format!("{database}.{}", quote_if_needed(&format!("{}_lock", settings.table))),
            user: quote_if_needed(&settings.user),
            database,
        }
    }
}

fn quote_if_needed(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        name.to_owned()
    } else {
        crate::clickhouse::quote(name)
    }
}

/// The privileges that the user needs, given what exists. One who may only read needs one.
fn wanted(existing: &Existing, names: &Names, read_only: bool) -> Vec<Wanted> {
    let mut wanted = vec![("SELECT", names.state.clone())];
    if read_only {
        return wanted;
    }
    for privilege in ["INSERT", "ALTER DELETE"] {
        wanted.push((privilege, names.state.clone()));
    }
    for privilege in ["SELECT", "INSERT", "ALTER DELETE"] {
        wanted.push((privilege, names.lock.clone()));
    }
    if existing.state.is_none() || existing.lock.is_none() {
        wanted.push((CREATE_TABLE, format!("{}.*", names.database)));
    }
    if !existing.database {
        wanted.push((CREATE_DATABASE, format!("{}.*", names.database)));
    }
    wanted
}

const CREATE_TABLE: &str = "CREATE TABLE";
const CREATE_DATABASE: &str = "CREATE DATABASE";

/// What exists, and whether the rest can be created.
fn existence(existing: &Existing, names: &Names, known: Result<&Known, &Error>, read_only: bool) -> Finding {
    let absent: Vec<&str> = [
        (existing.database, &names.database),
        (existing.state.is_some(), &names.state),
        // One who only reads takes no locks.
        (existing.lock.is_some() || read_only, &names.lock),
    ]
    .into_iter()
    .filter_map(|(exists, name)| (!exists).then_some(name.as_str()))
    .collect();
    if absent.is_empty() {
        return Finding::ok("what is needed exists");
    }
    let absent = format!("absent, or hidden from this user: {}", absent.join(", "));
    let lacks_creation =
        |missing: &[Wanted]| missing.iter().any(|(privilege, _)| [CREATE_TABLE, CREATE_DATABASE].contains(privilege));
    let Names { database, user, .. } = names;
    let create = if existing.database { CREATE_TABLE } else { "CREATE DATABASE, CREATE TABLE" };
    let hint = format!(
        "let a user who may create them run meltano-state init, or GRANT {create} ON {database}.* TO {user}, or set \
         state_backend.clickhouse.schema to the database that holds the tables"
    );
    match known {
        Ok(Known::Missing(missing) | Known::NotFound(missing)) if !read_only && !lacks_creation(missing) => {
            Finding::ok(format!("{absent}; the first write creates them, and so does meltano-state init"))
        }
        Ok(Known::NotFound(_)) if !read_only => {
            Finding::warning(format!("{absent}; and perhaps the user may not create them"), hint)
        }
        _ => Finding::failed(format!("{absent}; and the user may not create them"), hint),
    }
}

fn privileges(known: Result<Known, Error>, names: &Names, read_only: bool) -> Finding {
    let to_user = format!(" TO {}", names.user);
    let grants = |missing: &[Wanted]| privileges::list(missing, "GRANT ", &to_user);
    match known {
        Ok(Known::Missing(missing) | Known::NotFound(missing)) if missing.is_empty() => {
            Finding::ok(if read_only { "all that reading needs" } else { "all that is needed" })
        }
        Ok(Known::Missing(missing)) => {
            Finding::failed(format!("the user lacks {}", privileges::list(&missing, "", "")), grants(&missing))
        }
        Ok(Known::NotFound(missing)) => Finding::warning(
            format!("not granted to the user directly, perhaps by a role: {}", privileges::list(&missing, "", "")),
            grants(&missing),
        ),
        Err(error) if error.kind == ErrorKind::PermissionDenied => Finding::skipped(error.message),
        Err(error) => error.into(),
    }
}
