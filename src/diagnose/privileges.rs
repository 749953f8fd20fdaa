//! Which privileges the user has, without using them.

use super::needs::{TABLE_ENGINE, Wanted};
use crate::clickhouse::{Client, Effect, Statement, code};
use crate::error::Error;

/// What is known about privileges.
pub(crate) enum Known {
    /// The user lacks these, and no others.
    Missing(Vec<Wanted>),
    /// The server is too old to tell; these were not found among what is granted to the user directly.
    NotFound(Vec<Wanted>),
}

/// Finds out which of `wanted` the user lacks. One request if none.
pub(crate) fn find_missing(client: &Client, wanted: Vec<Wanted>) -> Result<Known, Error> {
    match has_all(client, &wanted) {
        Ok(true) => return Ok(Known::Missing(Vec::new())),
        Ok(false) => {}
        // Servers before 24.10 do not know the statement. Few of them ask for a grant of engines, and none tells.
        Err(error) if error.code() == Some(code::SYNTAX_ERROR) => {
            let granted = granted(client)?;
            let is_missing = |wanted: &Wanted| wanted.privilege != TABLE_ENGINE && !is_among(&granted, wanted);
            return Ok(Known::NotFound(wanted.into_iter().filter(is_missing).collect()));
        }
        Err(error) => return Err(error),
    }
    let mut missing = Vec::new();
    for wanted in wanted {
        if !has_all(client, std::slice::from_ref(&wanted))? {
            missing.push(wanted);
        }
    }
    Ok(Known::Missing(missing))
}

/// `SELECT, INSERT ON a, INSERT ON b`, for each target of `wanted` with `begin` before it and `end` after it.
pub(crate) fn list<'a>(wanted: impl IntoIterator<Item = &'a Wanted>, begin: &str, end: &str) -> String {
    let mut by_target: Vec<(&str, String)> = Vec::new();
    for Wanted { privilege, on, .. } in wanted {
        match by_target.iter_mut().find(|(target, _)| target == on) {
            Some((_, privileges)) => {
                privileges.push_str(", ");
                privileges.push_str(privilege);
            }
            None => by_target.push((on, (*privilege).to_owned())),
        }
    }
    let parts: Vec<_> =
        by_target.into_iter().map(|(on, privileges)| format!("{begin}{privileges} ON {on}{end}")).collect();
    parts.join(if end.is_empty() { ", " } else { "; " })
}

/// The statements that grant privileges to a user.
pub(crate) fn grants<'a>(wanted: impl IntoIterator<Item = &'a Wanted>, user: &str) -> String {
    list(wanted, "GRANT ", &format!(" TO {user}"))
}

fn has_all(client: &Client, wanted: &[Wanted]) -> Result<bool, Error> {
    let statement = Statement::new(Effect::Read, format!("CHECK GRANT {}", list(wanted, "", "")));
    Ok(client.run(&statement)?.texts()?.into_iter().flatten().eq(["1"]))
}

/// The lines of `SHOW GRANTS`.
fn granted(client: &Client) -> Result<Vec<String>, Error> {
    let rows = client.run(&Statement::new(Effect::Read, "SHOW GRANTS FORMAT TabSeparated"))?.texts()?;
    Ok(rows.into_iter().flatten().collect())
}

/// Whether one of the lines, `GRANT SELECT, INSERT ON meltano.* TO me`, grants the privilege.
fn is_among(lines: &[String], Wanted { privilege, on: target, .. }: &Wanted) -> bool {
    let target = target.replace('`', "");
    let database = target.split('.').next().unwrap_or_default();
    lines.iter().any(|line| {
        let Some((granted, rest)) = line.strip_prefix("GRANT ").and_then(|line| line.split_once(" ON ")) else {
            return false;
        };
        let on = rest.split_once(" TO ").map_or(rest, |(on, _)| on).replace('`', "");
        let covers = on == "*.*" || on == target || on.strip_suffix(".*") == Some(database);
        let parent = privilege.split(' ').next();
        let names = |name: &str| name == *privilege || name == "ALL" || Some(name) == parent || name == "ALTER TABLE";
        covers && granted.split(", ").any(|name| names(name) && (name != "ALTER TABLE" || parent == Some("ALTER")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Job;

    fn wanted(privilege: &'static str, on: &str) -> Wanted {
        Wanted { job: Job::Read, privilege, on: on.to_owned() }
    }

    fn check(line: &str, privilege: &'static str, target: &str, granted: bool) {
        assert_eq!(is_among(&[line.to_owned()], &wanted(privilege, target)), granted, "{line}");
    }

    #[test]
    fn lists_name_each_target_once() {
        let wanted = [wanted("SELECT", "a"), wanted("SELECT", "b"), wanted("INSERT", "a")];
        assert_eq!(list(&wanted, "", ""), "SELECT, INSERT ON a, SELECT ON b");
        assert_eq!(grants(&wanted, "me"), "GRANT SELECT, INSERT ON a TO me; GRANT SELECT ON b TO me");
        assert_eq!(grants(&[], "me"), "");
    }

    #[test]
    fn grants_as_the_server_lists_them() {
        check("GRANT SELECT, INSERT ON m.state TO me", "INSERT", "`m`.`state`", true);
        check("GRANT SELECT, INSERT ON m.state TO me", "ALTER DELETE", "m.state", false);
        check("GRANT SELECT ON m.other TO me", "SELECT", "m.state", false);
        check("GRANT SELECT ON m.* TO me WITH GRANT OPTION", "SELECT", "m.state", true);
        check("GRANT ALL ON *.* TO me", "ALTER DELETE", "m.state", true);
        check("GRANT ALTER ON m.* TO me", "ALTER DELETE", "m.state", true);
        check("GRANT ALTER TABLE ON m.* TO me", "ALTER DELETE", "m.state", true);
        check("GRANT ALTER TABLE ON m.* TO me", "SELECT", "m.state", false);
        check("GRANT CREATE ON m.* TO me", "CREATE TABLE", "m.*", true);
        check("GRANT SELECT(state_id) ON m.state TO me", "SELECT", "m.state", false);
        check("GRANT role TO me", "SELECT", "m.state", false);
        check("REVOKE SELECT ON m.* FROM me", "SELECT", "m.state", false);
    }
}
