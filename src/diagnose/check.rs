//! The check from its first step to its last.

use super::names::Names;
use super::needs::{self, Job, Wanted};
use super::privileges::{self, Known};
use super::report::{Finding, Report};
use super::{clock, layout, profile, replicas};
use crate::clickhouse::{Client, Effect, Existing, HistoryPlan, Stage, Statement, existing, version};
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
        report.add(
            "",
            match settings.is_plain_on_tls_port() {
                true => Finding::warning(format!("{plain}, though port {} is for TLS", settings.port), UNSET_SECURE),
                false => Finding::skipped(plain),
            },
        );
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

const UNSET_SECURE: &str = "unset state_backend.clickhouse.secure, or set it to true (or write clickhouse:// in place of \
                            clickhouse+http://)";

/// The steps after the version.
fn inspect(client: &Client, clocks: Finding, report: &mut Report) {
    let names = Names::new(client.settings());
    let existing = existing::read(client);
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
    let days = client.settings().history_days;
    let history = HistoryPlan::new(&existing, days);
    let wanted = needs::wanted(&names, &|job| match job {
        Job::Read => true,
        // One who may only read wants nothing else.
        _ if read_only => false,
        Job::Write => true,
        Job::LookBack => existing.history.is_some() || existing.is_recorded() || history.begin,
        job => needs::is_due(job, &existing, history),
    });
    let listed = privileges::list(&wanted, "", "");
    let known = privileges::find_missing(client, wanted);

    report.add(tried, existence(&existing, &names, known.as_ref(), read_only));
    report.add("compare with what the statements need", layout::judge(&existing, &names, days, false));
    report.add(format!("CHECK GRANT {listed}"), privileges(known, &names, read_only));
    report.add("compare the clocks", clocks);
    let finding = profile.map_or_else(Finding::from, |rows| profile::judge(&rows, &names.user));
    report.add("read system.settings", finding);
    if replicas::exist(&existing) {
        report.add("read system.replicas", replicas::inspect(client, &names));
    } else {
        report.add("", Finding::skipped("the tables are not replicated"));
    }
}

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
    let creation = [Job::CreateDatabase, Job::CreateState, Job::CreateLock];
    let lacks_creation = |missing: &[Wanted]| missing.iter().any(|wanted| creation.contains(&wanted.job));
    let Names { database, user, .. } = names;
    let create = if existing.database { "CREATE TABLE" } else { "CREATE DATABASE, CREATE TABLE" };
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
    match known {
        Ok(Known::Missing(missing) | Known::NotFound(missing)) if missing.is_empty() => {
            Finding::ok(if read_only { "all that reading needs" } else { "all that is needed" })
        }
        Ok(Known::Missing(missing)) => {
            let hint = privileges::grants(&missing, &names.user);
            let found = format!("the user lacks {}", privileges::list(&missing, "", ""));
            if missing.iter().all(|wanted| matches!(wanted.job, Job::Upgrade | Job::LookBack)) {
                Finding::warning(format!("{found}, to replace the lock table or to look into the history"), hint)
            } else {
                Finding::failed(found, hint)
            }
        }
        Ok(Known::NotFound(missing)) => Finding::warning(
            format!("not granted to the user directly, perhaps by a role: {}", privileges::list(&missing, "", "")),
            privileges::grants(&missing, &names.user),
        ),
        Err(error) if error.kind == ErrorKind::PermissionDenied => Finding::skipped(error.into_details().message),
        Err(error) => error.into(),
    }
}
