//! Each privilege taken away in turn: what `check` says of it, and what then fails.

use meltano_state_backend_clickhouse::diagnose::Job;
use meltano_state_host::{Acquire, CallError, Deed, ErrorKind, Instance, Status, Step, Thing};

use crate::sandbox::{Sandbox, instance, state};
use crate::users::{LACKING, Lacking};

const DAYS: &str = "state_backend.clickhouse.history_days";

/// What the job finds, made by the administrator.
async fn prepare(sandbox: &Sandbox, job: Job) {
    let keep = async |days: &str| {
        instance(&sandbox.uri(), &[(DAYS, days)]).await.init().await.unwrap();
    };
    match job {
        Job::CreateDatabase => {}
        Job::CreateState | Job::CreateLock => drop(sandbox.sql("CREATE DATABASE {}")),
        Job::CreateHistory => keep("0").await,
        Job::BeginHistory => {
            keep("7").await;
            keep("0").await;
        }
        Job::ChangeHistory => keep("30").await,
        Job::EndHistory | Job::LookBack => keep("7").await,
        _ => {
            keep("0").await;
            if job == Job::Upgrade {
                sandbox.sql("DROP TABLE {}.state_lock SYNC");
                sandbox.sql(
                    "CREATE TABLE {}.state_lock (state_id String, lock_id String, locked_at DateTime DEFAULT now()) \
                     ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id",
                );
            }
        }
    }
}

/// The value of the setting with which the job is to be done.
const fn days(job: Job) -> &'static str {
    match job {
        Job::CreateHistory | Job::BeginHistory | Job::ChangeHistory | Job::LookBack => "7",
        _ => "0",
    }
}

/// Does the job, and says whether it was done: nothing but a privilege may have stood in the way.
async fn carry_out(store: &mut Instance, job: Job) -> bool {
    let written = state("a", None, Some("{\"x\":1}"));
    match job {
        Job::Read => done(store.get("a").await),
        Job::Write => {
            let mut all = done(store.set(&written).await) && done(store.delete("a").await);
            match store.acquire("a", &Acquire::default()).await {
                Ok(lock) => all &= done(store.release(lock).await),
                error => all &= done(error),
            }
            all
        }
        Job::LookBack => done(store.versions("a", None, None).await),
        Job::Upgrade => {
            let prepared = store.init().await.unwrap();
            let lock = prepared.iter().find(|prepared| prepared.thing == Thing::LockTable).unwrap();
            assert_eq!(lock.deed == Deed::Left, lock.hint.is_some(), "{lock:?}");
            lock.deed == Deed::Upgraded
        }
        _ => done(store.init().await),
    }
}

fn done<T>(result: Result<T, CallError>) -> bool {
    match result {
        Ok(_) => true,
        Err(CallError::Error(error)) if error.kind == ErrorKind::PermissionDenied => false,
        Err(error) => panic!("{error}"),
    }
}

async fn privileges(store: &mut Instance) -> Step {
    let report = store.check().await.unwrap();
    report.steps.into_iter().find(|step| step.name == "privileges").unwrap()
}

#[tokio::test]
async fn what_check_finds_missing_is_what_fails() {
    for Lacking { user, job, lacks } in LACKING.iter() {
        let (sandbox, uri) = Sandbox::of(user);
        prepare(&sandbox, *job).await;
        let mut store = instance(&uri, &[(DAYS, days(*job))]).await;
        let step = privileges(&mut store).await;
        let preview = store.preview_init().await;
        let tables = "SELECT groupArray((name, create_table_query)) FROM (SELECT * FROM system.tables WHERE database = '{}' ORDER BY name)";
        let before = sandbox.sql(tables);
        let is_done = carry_out(&mut store, *job).await;
        let context = format!("{job:?} without {lacks:?}: {step:?}");
        let Some((privilege, on)) = lacks else {
            assert!(is_done, "{context}");
            assert_ne!(step.status, Status::Failed, "{context}");
            assert!(preview.is_ok(), "{context}: {preview:?}");
            continue;
        };
        assert!(!is_done, "{context}");
        let optional = matches!(job, Job::Upgrade | Job::LookBack);
        assert_eq!(step.status, if optional { Status::Warning } else { Status::Failed }, "{context}");
        let grant = format!("GRANT {privilege} ON {} TO {}", on.replace("{}", &sandbox.schema), sandbox.schema);
        assert!(step.hint.as_ref().is_some_and(|hint| hint.contains(&grant)), "{context} {grant}");
        match job {
            Job::Read | Job::Write | Job::LookBack => {}
            Job::Upgrade => {
                let prepared = preview.unwrap();
                assert_eq!(prepared[2].deed, Deed::Left, "{context}");
                assert!(prepared[2].hint.as_ref().is_some_and(|hint| hint.contains(&grant)), "{prepared:?}");
                assert_eq!(sandbox.sql(tables), before, "nothing is left behind: {context}");
            }
            _ => assert!(!done(preview), "{context}"),
        }
    }
}
