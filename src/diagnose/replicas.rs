//! Copies of the tables on other servers.

use super::names::Names;
use super::needs::{Job, wanted};
use super::privileges::grants;
use super::report::Finding;
use crate::clickhouse::existing::Table;
use crate::clickhouse::{Client, Effect, Existing, Statement};
use crate::error::{Error, ErrorKind};

/// Whether a table has copies that this server has to agree with.
pub(super) fn exist(existing: &Existing) -> bool {
    let tables = existing.state.iter().chain(&existing.lock);
    tables.into_iter().any(Table::is_replicated)
}

/// Asks the server how the copies are.
pub(super) fn inspect(client: &Client, names: &Names) -> Finding {
    match read(client) {
        Ok(finding) => finding,
        Err(error) if error.kind == ErrorKind::PermissionDenied => Finding::warning(
            "the tables are replicated, and the user may not see how the replicas are",
            grants(&wanted(names, &|job| job == Job::SeeReplicas), &names.user),
        ),
        Err(error) => error.into(),
    }
}

fn read(client: &Client) -> Result<Finding, Error> {
    let (state, lock) = client.table_names();
    let statement = Statement::new(
        Effect::Read,
        "SELECT is_readonly, table, active_replicas, total_replicas, absolute_delay \
         FROM system.replicas WHERE database = {database:String} AND table IN ({state:String}, {lock:String}) \
         FORMAT TabSeparated",
    )
    .param("database", client.schema())
    .param("state", state)
    .param("lock", lock);
    let mut broken = false;
    let mut found = Vec::new();
    for row in client.run(&statement)?.texts()? {
        let [readonly, table, active, total, delay] = row.as_slice() else { continue };
        // The delay of a replica that is not in touch with the others says nothing.
        let (is_broken, state) = match readonly.as_str() {
            "0" => (false, format!("{delay} s behind")),
            _ => (true, "read-only".to_owned()),
        };
        broken |= is_broken;
        found.push(format!("{table} is {state}, with {active} of {total} replicas active"));
    }
    let found = found.join("; ");
    Ok(if broken {
        Finding::failed(
            found,
            "the server is out of touch with Keeper or its metadata there: see system.replicas and SYSTEM RESTORE REPLICA",
        )
    } else {
        Finding::warning(
            found,
            "let all processes use one and the same replica: name it in state_backend.clickhouse.host, not a balancer",
        )
    })
}
