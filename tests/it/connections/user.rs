//! The user: credentials, privileges, profile.

use super::expect::{assert_words, check, check_error, check_step, command, json, listed, step};
use crate::sandbox::Sandbox;
use crate::server::SERVER;
use crate::users::{CACHED, CHECKED_READER, CHECKED_STRANGER, HINDERED, WITHOUT_DDL, WITHOUT_DELETE};

#[test]
fn a_wrong_password_and_an_unknown_user() {
    for uri in [SERVER.uri_of(SERVER.uri().username(), "wrong"), SERVER.uri_of("nobody", "x")] {
        check(
            uri.as_str(),
            &[],
            "credentials",
            "authentication",
            &[listed("Authentication failed"), "clickhouse.user", "clickhouse.password", "%40"],
        );
    }
}

#[test]
fn a_missing_grant_is_named() {
    let (sandbox, uri) = Sandbox::of(&WITHOUT_DELETE);
    let schema = &sandbox.schema;
    command(sandbox.uri().as_str(), &[]).arg("init").run();
    check_step(
        uri.as_str(),
        &[],
        "privileges",
        &[listed("the user lacks"), &format!("GRANT ALTER DELETE ON {schema}.state TO {schema}")],
    );
    let clear = ["clear", "a", "--force"];
    command(sandbox.uri().as_str(), &[]).args(["set", "a", "{\"singer_state\":{}}"]).run();
    check_error(
        uri.as_str(),
        &[],
        &clear,
        "permission-denied",
        &[listed("Not enough privileges"), &format!("GRANT ALTER DELETE ON {schema}.state TO {schema}")],
    );
}

#[test]
fn a_read_only_profile() {
    let (sandbox, uri) = Sandbox::of(&CHECKED_READER);
    command(sandbox.uri().as_str(), &[]).arg("init").run();
    check_step(uri.as_str(), &[], "profile", &[listed("readonly = 1"), "only get and list", &sandbox.schema]);
    let report = json(&command(uri.as_str(), &[]).arg("check").run().stdout);
    assert_eq!(step(&report, "privileges")["status"], "ok", "{report:#}");
    assert_eq!(step(&report, "tables")["status"], "ok", "{report:#}");
    let set = ["set", "a", "{\"singer_state\":{}}"];
    check_error(uri.as_str(), &[], &set, "permission-denied", &[listed("in readonly mode"), "readonly"]);
}

#[test]
fn settings_of_the_profile_that_interfere() {
    let (sandbox, uri) = Sandbox::of(&HINDERED);
    command(sandbox.uri().as_str(), &[]).arg("init").run();
    let words =
        [listed("states and locks are removed slowly"), listed("may still be seen after it was removed"), "profile"];
    let report = json(&command(uri.as_str(), &[]).arg("check").run().stdout);
    assert_eq!(step(&report, "profile")["status"], "warning", "{report:#}");
    assert_words(step(&report, "profile"), &words);
    let (sandbox, uri) = Sandbox::of(&WITHOUT_DDL);
    command(sandbox.uri().as_str(), &[]).args(["set", "a", "{\"singer_state\":{}}"]).run();
    check_step(uri.as_str(), &[], "profile", &["allow_ddl = 0", listed("no state and no lock can be removed")]);
    assert_eq!(command(uri.as_str(), &[]).args(["clear", "a", "--force"]).run().code, 1);
    let (_sandbox, uri) = Sandbox::of(&CACHED);
    check_step(uri.as_str(), &[], "credentials", &[listed("The query result was not cached"), "use_query_cache to 0"]);
}

#[test]
fn a_database_that_does_not_exist() {
    let (sandbox, uri) = Sandbox::of(&CHECKED_STRANGER);
    let schema = &sandbox.schema;
    let grant = format!("GRANT CREATE DATABASE, CREATE TABLE ON {schema}.* TO {schema}");
    let words = [listed("absent, or hidden from this user"), &grant, "meltano-state init", "clickhouse.schema"];
    check_step(uri.as_str(), &[], "tables", &words);
    let set = ["set", "a", "{\"singer_state\":{}}"];
    check_error(uri.as_str(), &[], &set, "permission-denied", &["GRANT "]);
}
