//! The client against scripted answers: what is sent, what is repeated, what the outcome is.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use super::{Client, Deletion, Effect, Statement, code};
use crate::error::{Error, ErrorKind};
use crate::ports::{
    Clock, Header, Http, Ports, Random, Request, Response, SettingsSource, Timeouts, TransportError, TransportErrorKind,
};
use crate::settings::Settings;

type Outcome = Result<Response, TransportErrorKind>;

/// A server that answers from a script, and a clock that only its answers and sleeps move.
struct Script {
    outcomes: RefCell<VecDeque<(Duration, Outcome)>>,
    requests: RefCell<Vec<(Request, Timeouts)>>,
    time: Cell<Duration>,
}

impl Http for Script {
    fn send(&self, request: &Request, timeouts: Timeouts) -> Result<Response, TransportError> {
        self.requests.borrow_mut().push((request.clone(), timeouts));
        let (took, outcome) = self.outcomes.borrow_mut().pop_front().expect("no more requests than scripted");
        self.time.set(self.time.get() + took);
        outcome.map_err(|kind| TransportError { kind, detail: "scripted".to_owned() })
    }
}

impl Clock for Script {
    fn now(&self) -> Duration {
        self.time.get()
    }
    fn unix_time(&self) -> Duration {
        self.time.get()
    }
    fn sleep(&self, duration: Duration) -> bool {
        self.time.set(self.time.get() + duration);
        true
    }
}

impl Random for Script {
    fn random(&self) -> u128 {
        0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF
    }
}

struct Given;

impl SettingsSource for Given {
    fn get(&self, name: &str) -> Result<Option<String>, String> {
        Ok((name == "state_backend.uri").then(|| "clickhouse://me:s3cret@h:1/db".to_owned()))
    }
}

fn ok(body: &str) -> Outcome {
    Ok(Response { status: 200, headers: vec![("x-clickhouse-query-id".to_owned(), "q".to_owned())], body: body.into() })
}

fn status(status: u16) -> Outcome {
    Ok(Response { status, headers: vec![], body: vec![] })
}

fn exception(code: i32) -> Outcome {
    exception_saying(code, "x")
}

fn exception_saying(code: i32, text: &str) -> Outcome {
    Ok(Response {
        status: 500,
        headers: vec![("x-clickhouse-exception-code".to_owned(), code.to_string())],
        body: format!("Code: {code}. DB::Exception: {text}. (X)").into(),
    })
}

fn lost() -> Outcome {
    Err(TransportErrorKind::Lost)
}

/// Runs `action` against answers that each take 10 ms; all of them have to be asked for.
fn play<T>(outcomes: Vec<Outcome>, action: impl FnOnce(&Client) -> T) -> (T, Vec<(Request, Timeouts)>) {
    play_timed(outcomes.into_iter().map(|outcome| (Duration::from_millis(10), outcome)).collect(), action)
}

fn play_timed<T>(
    outcomes: Vec<(Duration, Outcome)>,
    action: impl FnOnce(&Client) -> T,
) -> (T, Vec<(Request, Timeouts)>) {
    let script = Script {
        outcomes: RefCell::new(outcomes.into()),
        requests: RefCell::new(Vec::new()),
        time: Cell::new(Duration::from_secs(1000)),
    };
    let settings = Settings::load(&Given).unwrap();
    let ports = Ports { http: &script, clock: &script, random: &script };
    let result = action(&Client::new(ports, &settings));
    assert!(script.outcomes.borrow().is_empty(), "fewer requests than scripted");
    (result, script.requests.into_inner())
}

fn run(effect: Effect, outcomes: Vec<Outcome>) -> Result<usize, Error> {
    let (result, _) = play(outcomes, |client| client.run(&Statement::new(effect, "SELECT 1")));
    result.map(|answer| answer.rows::<1>().unwrap().len())
}

fn check_kind(effect: Effect, outcomes: Vec<Outcome>, kind: ErrorKind) {
    assert_eq!(run(effect, outcomes).unwrap_err().kind, kind);
}

#[test]
fn passing_failures_are_repeated_unless_once_is_all_that_is_safe() {
    for effect in [Effect::Read, Effect::Idempotent] {
        for failure in [lost, || status(429), || status(502), || status(503), || status(504)] {
            assert_eq!(run(effect, vec![failure(), failure(), ok("1\n")]).unwrap(), 1);
        }
    }
    check_kind(Effect::Once, vec![lost()], ErrorKind::OutcomeUnknown);
    check_kind(Effect::Once, vec![status(502)], ErrorKind::OutcomeUnknown);
    check_kind(Effect::Once, vec![status(503)], ErrorKind::Unreachable);
}

#[test]
fn lasting_failures_are_not_repeated() {
    for effect in [Effect::Read, Effect::Idempotent, Effect::Once] {
        check_kind(effect, vec![Err(TransportErrorKind::NotConnected)], ErrorKind::Unreachable);
        check_kind(effect, vec![Err(TransportErrorKind::NameNotFound)], ErrorKind::Unreachable);
        check_kind(effect, vec![Err(TransportErrorKind::Tls)], ErrorKind::Tls);
        check_kind(effect, vec![exception(code::ACCESS_DENIED)], ErrorKind::PermissionDenied);
        check_kind(effect, vec![status(404)], ErrorKind::Protocol);
    }
}

#[test]
fn a_server_that_cannot_do_it_now_is_asked_again() {
    let refused_before_it_began = [
        code::TOO_MANY_SIMULTANEOUS_QUERIES,
        code::SERVER_OVERLOADED,
        code::DEADLOCK_AVOIDED,
        code::TABLE_IS_READ_ONLY,
        code::TOO_FEW_LIVE_REPLICAS,
        code::UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE,
        code::REPLICA_IS_NOT_IN_QUORUM,
    ];
    for code in refused_before_it_began {
        for effect in [Effect::Read, Effect::Idempotent, Effect::Once] {
            assert_eq!(run(effect, vec![exception(code), exception(code), ok("1\n")]).unwrap(), 1, "{code}");
        }
    }
    let failed_half_way = [
        (code::TOO_MANY_PARTS, ErrorKind::Server),
        (code::MEMORY_LIMIT_EXCEEDED, ErrorKind::Server),
        (code::KEEPER_EXCEPTION, ErrorKind::OutcomeUnknown),
        (code::ABORTED, ErrorKind::OutcomeUnknown),
        (code::UNKNOWN_STATUS_OF_INSERT, ErrorKind::OutcomeUnknown),
    ];
    for (code, kind) in failed_half_way {
        for effect in [Effect::Read, Effect::Idempotent] {
            assert_eq!(run(effect, vec![exception(code), ok("1\n")]).unwrap(), 1, "{code}");
        }
        check_kind(Effect::Once, vec![exception(code)], kind);
    }
}

#[test]
fn what_cannot_be_done_later_either_is_not_asked_again() {
    for text in ["Memory limit (for query) exceeded: x", "Query memory limit exceeded: x"] {
        let failure = exception_saying(code::MEMORY_LIMIT_EXCEEDED, text);
        check_kind(Effect::Read, vec![failure], ErrorKind::Server);
    }
    check_kind(Effect::Read, vec![exception(code::TIMEOUT_EXCEEDED)], ErrorKind::Server);
    check_kind(Effect::Read, vec![exception(code::QUOTA_EXCEEDED)], ErrorKind::Server);
}

#[test]
fn nothing_is_sent_twice_once_it_may_have_arrived() {
    let busy = || exception(code::TOO_MANY_SIMULTANEOUS_QUERIES);
    check_kind(Effect::Once, vec![busy(), lost()], ErrorKind::OutcomeUnknown);
    let outcomes = vec![busy(), exception(code::KEEPER_EXCEPTION), busy(), lost(), ok("1\n")];
    assert_eq!(run(Effect::Idempotent, outcomes).unwrap(), 1);
}

#[test]
fn a_server_that_has_answered_is_missed_for_as_long_as_connecting_may_take() {
    let absent = || Err(TransportErrorKind::NotConnected);
    for effect in [Effect::Read, Effect::Idempotent, Effect::Once] {
        let statement = Statement::new(effect, "SELECT 1");
        // The pauses before these attempts take four and a half seconds.
        let away = (0..7).map(|_| absent());
        let outcomes = [ok("1\n")].into_iter().chain(away).chain([ok("1\n")]).collect();
        let (result, _) = play(outcomes, |client| client.run(&statement).and_then(|_| client.run(&statement)));
        result.unwrap();
        let ten = Duration::from_secs(10);
        let outcomes = vec![(Duration::ZERO, ok("1\n")), (ten, absent())];
        let (result, _) = play_timed(outcomes, |client| client.run(&statement).and_then(|_| client.run(&statement)));
        assert_eq!(result.unwrap_err().kind, ErrorKind::Unreachable);
    }
    // Another web server is not the one that is missed.
    for answer in [status(200), status(503)] {
        let statement = Statement::new(Effect::Once, "INSERT");
        let (result, _) = play(vec![answer, absent()], |client| {
            client.run(&statement).unwrap_err();
            client.run(&statement)
        });
        assert_eq!(result.unwrap_err().kind, ErrorKind::Unreachable);
    }
}

#[test]
fn a_write_that_may_have_arrived_has_an_unknown_outcome() {
    use TransportErrorKind::{BadAnswer, NotConnected, TimedOut};
    check_kind(Effect::Read, vec![Err(TimedOut)], ErrorKind::TimedOut);
    check_kind(Effect::Idempotent, vec![Err(TimedOut)], ErrorKind::OutcomeUnknown);
    check_kind(Effect::Once, vec![Err(BadAnswer)], ErrorKind::OutcomeUnknown);
    check_kind(Effect::Once, vec![status(500)], ErrorKind::OutcomeUnknown);
    check_kind(Effect::Once, vec![exception(code::UNKNOWN_STATUS_OF_INSERT)], ErrorKind::OutcomeUnknown);
    // The first attempt may have arrived, whatever became of the second.
    check_kind(Effect::Idempotent, vec![lost(), Err(NotConnected)], ErrorKind::OutcomeUnknown);
}

#[test]
fn a_connection_that_is_lost_again_and_again_is_given_up() {
    check_kind(Effect::Read, (0..8).map(|_| lost()).collect(), ErrorKind::Unreachable);
    check_kind(Effect::Idempotent, (0..8).map(|_| lost()).collect(), ErrorKind::OutcomeUnknown);
    // A service that says that it is away is asked for longer.
    let outcomes = (0..7).map(|_| lost()).chain((0..5).map(|_| status(503))).chain([ok("1\n")]).collect();
    assert_eq!(run(Effect::Read, outcomes).unwrap(), 1);
}

#[test]
fn what_had_to_be_repeated_is_told_rather_than_that_the_time_ran_out() {
    check_kind(Effect::Read, vec![status(502), Err(TransportErrorKind::TimedOut)], ErrorKind::Unreachable);
    check_kind(Effect::Idempotent, vec![status(503), Err(TransportErrorKind::TimedOut)], ErrorKind::OutcomeUnknown);
    let running = exception(code::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING);
    check_kind(Effect::Read, vec![lost(), running, Err(TransportErrorKind::TimedOut)], ErrorKind::TimedOut);
}

#[test]
fn what_the_server_does_not_know_is_explained_by_its_version() {
    let unknown = || exception(code::UNKNOWN_FUNCTION);
    let error = run(Effect::Read, vec![unknown(), ok("1\t22.8.1\n")]).unwrap_err();
    assert_eq!((error.kind, error.code()), (ErrorKind::UnsupportedServer, Some(code::UNKNOWN_FUNCTION)));
    assert!(error.message.contains("22.8.1") && error.message.contains("23.3"), "{error}");
    // Another reason, or none to be had: the failure stays.
    check_kind(Effect::Read, vec![unknown(), ok("1\t26.7.1\n")], ErrorKind::Server);
    check_kind(Effect::Read, vec![unknown(), exception(code::ACCESS_DENIED)], ErrorKind::Server);
    check_kind(Effect::Read, vec![exception(code::UNKNOWN_SETTING)], ErrorKind::Server);
}

#[test]
fn an_attempt_waits_for_one_that_is_still_carried_out() {
    let running = || exception(code::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING);
    let statement = Statement::new(Effect::Idempotent, "INSERT");
    let (result, requests) = play(vec![lost(), running(), running(), ok("")], |client| client.run(&statement));
    result.unwrap();
    let ids: std::collections::HashSet<_> = requests.iter().map(|(request, _)| &request.path_and_query).collect();
    assert_eq!(ids.len(), 1, "all have the same query id: {ids:?}");
}

#[test]
fn repetitions_end_with_the_request_timeout() {
    let thirty = Duration::from_secs(30);
    let outcomes = vec![(thirty, status(503)), (thirty, status(503))];
    let (result, requests) = play_timed(outcomes, |client| client.run(&Statement::new(Effect::Read, "SELECT 1")));
    assert_eq!(result.unwrap_err().kind, ErrorKind::Unreachable);
    let totals: Vec<_> = requests.iter().map(|(_, timeouts)| timeouts.total).collect();
    assert_eq!(totals[0], Duration::from_secs(60));
    assert!(totals[1] < thirty && totals[1] > Duration::from_secs(29), "{totals:?}");
    assert_eq!(requests[0].1.connect, Duration::from_secs(10));
}

#[test]
fn a_service_may_take_a_minute_to_wake() {
    let mut outcomes: Vec<_> = (0..12).map(|_| (Duration::from_millis(10), status(503))).collect();
    outcomes.push((Duration::from_millis(10), ok("1\n")));
    let (result, _) = play_timed(outcomes, |client| client.run(&Statement::new(Effect::Read, "SELECT 1")));
    result.unwrap();
}

#[test]
fn credentials_stay_out_of_the_url_and_of_debug() {
    let (_, requests) = play(vec![ok("")], |client| client.run(&Statement::new(Effect::Read, "SELECT 1")).unwrap());
    let request = &requests[0].0;
    assert!(request.headers.contains(&("x-clickhouse-user", Header::Plain("me".to_owned()))));
    assert!(request.headers.contains(&("x-clickhouse-key", Header::Secret("s3cret".to_owned()))));
    assert!(request.path_and_query.starts_with("/?wait_end_of_query=1&query_id=01234567-89ab-4def-8123-456789abcdef"));
    assert!(!format!("{request:?}").contains("s3cret"));
}

#[test]
fn what_is_short_stands_in_the_url_and_what_is_long_in_the_body() {
    let request = |sql: &str, value: &str| {
        let statement = Statement::new(Effect::Read, sql).param("v", value);
        play(vec![ok("")], |client| client.run(&statement).unwrap()).1.remove(0).0
    };
    let short = request("SELECT {v:String}", "a\nb&c");
    let expected = "&param_v=a%5Cnb%26c&query=SELECT+%7Bv%3AString%7D";
    assert!(short.path_and_query.ends_with(expected), "{}", short.path_and_query);
    assert_eq!(short.body, b"");

    let sql = format!("SELECT {{v:String}} -- {}", "é".repeat(800));
    let long = request(&sql, "a");
    assert!(long.path_and_query.ends_with("&param_v=a"), "{}", long.path_and_query);
    assert_eq!(long.body, sql.as_bytes());

    let long = request("SELECT {v:String}", &"\t".repeat(3000));
    assert!(long.path_and_query.ends_with("&query=SELECT+%7Bv%3AString%7D"), "{}", long.path_and_query);
    let body = String::from_utf8(long.body).unwrap();
    assert!(body.contains(&format!("name=\"param_v\"\r\n\r\n{}\r\n", r"\t".repeat(3000))));
}

#[test]
fn deletes_do_without_patch_parts_where_they_cannot_be_asked_for() {
    for refused in [code::UNKNOWN_SETTING, code::SETTING_CONSTRAINT_VIOLATION, code::NOT_IMPLEMENTED] {
        let (_, requests) = play(vec![exception(refused), ok(""), ok("")], |client| {
            client.delete_by_patch(&all_of_t()).unwrap();
            client.delete_by_patch(&all_of_t()).unwrap();
        });
        let modes: Vec<_> =
            requests.iter().map(|(r, _)| r.path_and_query.contains("lightweight_delete_mode")).collect();
        assert_eq!(modes, [true, false, false]);
    }
}

#[test]
fn parts_are_written_anew_where_rows_cannot_be_marked_as_deleted() {
    let refused = || exception(code::SUPPORT_IS_DISABLED);
    let (_, requests) = play(vec![refused(), refused(), ok(""), ok("")], |client| {
        client.delete_by_patch(&all_of_t()).unwrap();
        client.delete_by_patch(&all_of_t()).unwrap();
    });
    let altered: Vec<_> =
        requests.iter().map(|(r, _)| r.path_and_query.contains("ALTER+TABLE+t+DELETE+WHERE+true")).collect();
    assert_eq!(altered, [false, false, true, true]);
    assert!(requests[3].0.path_and_query.contains("mutations_sync=2"), "it is done when it returns");
}

fn all_of_t() -> Deletion {
    Deletion::new("t", "true")
}

#[test]
fn statements_do_without_settings_that_the_user_may_not_change() {
    for forbidden in [code::SETTING_CONSTRAINT_VIOLATION, code::READONLY] {
        let statement = Statement::new(Effect::Once, "INSERT INTO t VALUES (1)").few_rows();
        let (_, requests) = play(vec![ok(""), exception(forbidden), ok(""), ok("")], |client| {
            for _ in 0..3 {
                client.run(&statement).unwrap();
            }
        });
        let tuned: Vec<_> = requests.iter().map(|(r, _)| r.path_and_query.contains("max_threads")).collect();
        assert_eq!(tuned, [true, true, false, false]);
    }
    // What is forbidden may be another setting.
    let statement = Statement::new(Effect::Once, "INSERT INTO t VALUES (1)").few_rows();
    let exceptions = vec![exception(code::SETTING_CONSTRAINT_VIOLATION), exception(code::SETTING_CONSTRAINT_VIOLATION)];
    let (result, _) = play(exceptions, |client| client.run(&statement));
    assert_eq!(result.unwrap_err().code(), Some(code::SETTING_CONSTRAINT_VIOLATION));
}

#[test]
fn where_no_table_exists_nothing_is_read_and_nothing_is_deleted() {
    for code in [code::UNKNOWN_TABLE, code::UNKNOWN_DATABASE] {
        let (answer, _) =
            play(vec![exception(code)], |client| client.run_if_exists(&Statement::new(Effect::Read, "SELECT 1")));
        assert_eq!(answer.unwrap(), None);
        let (result, _) = play(vec![exception(code)], |client| client.delete(&all_of_t()));
        result.unwrap();
    }
}
