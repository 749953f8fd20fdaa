//! `check` where nothing is wrong: what it costs, what it leaves behind, and how it is shown.

use std::sync::Arc;
use std::time::Duration;

use meltano_state_host::{Fault, Faults, Plugin, PooledClient, Report, Settings, Status, Surroundings};
use serde_json::Value;

use crate::cli::meltano_state;
use crate::connections::listed;
use crate::sandbox::{Sandbox, cache, state};
use crate::server::{SERVER, Server};
use crate::users::CHECKED;

/// A plugin on the sandbox, with its transport.
fn counted(uri: &str) -> (Plugin, Arc<Faults<PooledClient>>) {
    let transport = Arc::new(Faults::over(PooledClient::default()));
    let settings = Settings::new().with("state_backend.uri", uri).unwrap();
    let plugin = Plugin::builder().settings(settings).cache(cache()).transport(Arc::clone(&transport)).build().unwrap();
    (plugin, transport)
}

fn statuses(report: &Report) -> Vec<(&str, Status)> {
    report.steps.iter().map(|step| (step.name.as_str(), step.status)).collect()
}

/// All that a check could change: the tables as they are stored, their rows, and what the server does by itself.
fn everything(sandbox: &Sandbox) -> [String; 4] {
    [
        "SELECT name, uuid, create_table_query, metadata_modification_time FROM system.tables \
         WHERE database = '{}' ORDER BY name",
        "SELECT table, name, rows, modification_time FROM system.parts WHERE database = '{}' AND active ORDER BY ALL",
        "SELECT * FROM system.mutations WHERE database = '{}'",
        "SELECT name FROM system.databases ORDER BY name",
    ]
    .map(|statement| {
        let found = sandbox.sql(statement);
        // Other tests come and go.
        if statement.contains("system.databases") { found.contains(&sandbox.schema).to_string() } else { found }
    })
}

#[tokio::test]
async fn a_healthy_installation_takes_four_requests_and_stays_as_it_is() {
    let (sandbox, uri) = Sandbox::of(&CHECKED);
    let mut administrator = sandbox.instance().await;
    administrator.init().await.unwrap();
    for (id, json) in [("a", "{\"x\":1}"), ("b", "{\"y\":[2]}")] {
        administrator.set(&state(id, None, Some(json))).await.unwrap();
    }
    let before = everything(&sandbox);
    let states = sandbox.sql("SELECT * FROM {}.state FINAL ORDER BY ALL");

    let (plugin, transport) = counted(uri.as_str());
    let report = plugin.instance().await.unwrap().check().await.unwrap();
    let expected = [
        ("settings", Status::Ok),
        ("connection", Status::Ok),
        ("tls", Status::Skipped),
        ("http", Status::Ok),
        ("credentials", Status::Ok),
        ("version", Status::Ok),
        ("tables", Status::Ok),
        ("layout", Status::Ok),
        ("privileges", Status::Ok),
        ("clock", Status::Ok),
        ("profile", Status::Ok),
        ("replicas", Status::Skipped),
    ];
    assert_eq!(statuses(&report), expected, "{report:#?}");
    assert_eq!(transport.requests(), 4);
    assert_eq!(everything(&sandbox), before);
    assert_eq!(sandbox.sql("SELECT * FROM {}.state FINAL ORDER BY ALL"), states);
}

#[tokio::test]
async fn where_nothing_exists_nothing_is_created() {
    let sandbox = Sandbox::new();
    let before = everything(&sandbox);
    let (plugin, transport) = counted(sandbox.uri().as_str());
    let report = plugin.instance().await.unwrap().check().await.unwrap();
    assert!(!report.has_failed(), "{report:#?}");
    let tables = report.steps.iter().find(|step| step.name == "tables").unwrap();
    assert!(tables.found.contains("the first write creates them"), "{tables:?}");
    assert_eq!(transport.requests(), 4);
    assert_eq!(everything(&sandbox), before);
}

#[tokio::test]
async fn faulty_settings_are_all_named_and_nothing_is_sent() {
    let (plugin, transport) = counted("clickhouse://127.0.0.1:1/?secure=perhaps&connect_timeout_seconds=0");
    let mut instance = plugin.instance().await.unwrap();
    let report = instance.check().await.unwrap();
    let settings = &report.steps[0];
    assert_eq!(settings.status, Status::Failed);
    for fault in ["clickhouse.user", "clickhouse.database", "clickhouse.secure", "clickhouse.connect_timeout_seconds"] {
        assert!(settings.found.contains(fault), "{settings:?}");
    }
    assert!(report.steps[1..].iter().all(|step| step.status == Status::Skipped), "{report:#?}");
    assert!(instance.get("a").await.is_err());
    assert_eq!(transport.requests(), 0);
}

/// Servers before 24.10 do not know `CHECK GRANT`.
#[tokio::test]
async fn without_check_grant_the_grants_are_read() {
    let sandbox = Sandbox::new();
    sandbox.instance().await.init().await.unwrap();
    let (plugin, transport) = counted(sandbox.uri().as_str());
    let refusal = "Code: 62. DB::Exception: Syntax error: failed at position 1 ('CHECK'). (SYNTAX_ERROR)";
    transport.add(|request| request.contains("CHECK GRANT"), Fault::Answer { status: 400, body: refusal.into() });
    let report = plugin.instance().await.unwrap().check().await.unwrap();
    let privileges = report.steps.iter().find(|step| step.name == "privileges").unwrap();
    // The administrator has all of them.
    assert_eq!(privileges.status, Status::Ok, "{privileges:?}");
    assert!(transport.requests() < 10);
}

#[tokio::test]
async fn clocks_that_differ_are_a_warning() {
    let sandbox = Sandbox::new();
    let settings = Settings::new().with("state_backend.uri", sandbox.uri().as_str()).unwrap();
    // In 2001.
    let surroundings = Surroundings::virtual_time(Duration::from_secs(1_000_000_000), 1);
    let plugin = Plugin::builder().settings(settings).cache(cache()).surroundings(surroundings).build().unwrap();
    let report = plugin.instance().await.unwrap().check().await.unwrap();
    let clock = report.steps.iter().find(|step| step.name == "clock").unwrap();
    assert_eq!(clock.status, Status::Warning, "{clock:?}");
    assert!(clock.found.contains(listed("the server's clock is")) && clock.found.contains("ahead of"), "{clock:?}");
    assert!(clock.hint.as_deref().unwrap().contains("NTP"));
}

/// A replicated table on a server that cannot replicate.
#[tokio::test]
async fn a_replica_that_is_out_of_touch_fails() {
    if SERVER.native_port().is_none() {
        eprintln!("skipped: it takes an embedded server");
        return;
    }
    let server = Server::embedded(
        "<zookeeper><implementation>testkeeper</implementation>\
         <node><host>127.0.0.1</host><port>2181</port></node></zookeeper>",
    );
    let uri = server.uri();
    let (plugin, _) = counted(uri.as_str());
    let mut instance = plugin.instance().await.unwrap();
    instance.init().await.unwrap();
    server.sql("DROP TABLE meltano.state SYNC");
    server.sql(
        "CREATE TABLE meltano.state (state_id String, partial_state Nullable(String), \
         completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3)) \
         ENGINE = ReplicatedReplacingMergeTree('/state', 'one', updated_at) ORDER BY state_id",
    );
    let report = instance.check().await.unwrap();
    let replicas = report.steps.iter().find(|step| step.name == "replicas").unwrap();
    assert_eq!(replicas.status, Status::Failed, "{report:#?}");
    assert!(replicas.found.contains(listed("state is read-only")), "{replicas:?}");
    assert!(replicas.hint.as_deref().unwrap().contains("SYSTEM RESTORE REPLICA"));
}

#[test]
fn people_get_a_table_and_programs_json() {
    let sandbox = Sandbox::new();
    let check = |format: &str| {
        meltano_state(&[("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str())])
            .args(["check", "--format", format])
            .run()
    };
    let text = check("text");
    assert_eq!((text.code, text.stderr.as_str()), (0, ""));
    assert!(text.stdout.contains(" ok       version      ClickHouse "), "{}", text.stdout);
    assert!(text.stdout.ends_with("\n0 failed, 0 warnings\n"), "{}", text.stdout);

    let json: Value = serde_json::from_str(&check("json").stdout).unwrap();
    assert_eq!((json["ok"].as_bool(), json["steps"].as_array().unwrap().len()), (Some(true), 12));
    assert_eq!(json["steps"][5]["name"], "version");
    assert_eq!(json["steps"][5]["tried"], "SELECT version()");
}
