//! What `xtask demo` plays: two pipelines, as Meltano would run them.

/// One step of the demo.
pub(crate) enum Step {
    /// A comment.
    Say(&'static str),
    /// `meltano-state` with these arguments; it has to succeed.
    Run(&'static [&'static str]),
    /// Two at once on one state id: the second finds the lock held.
    Contend { first: &'static [&'static str], second: &'static [&'static str] },
}

use Step::{Contend, Run, Say};

const GITLAB: &str = "prod:tap-gitlab-to-target-jsonl";
const POSTGRES: &str = "prod:tap-postgres-to-target-snowflake:eu";

/// The steps in order.
pub(crate) const STORY: &[Step] = &[
    Say("The first command creates the tables; any first write would."),
    Run(&["init"]),
    Say("tap-gitlab runs. On each STATE line Meltano lays what was reached over the stored state …"),
    Run(&["merge", GITLAB, r#"{"singer_state":{"bookmarks":{"projects":{"updated_at":"2026-01-01T08:00:00Z"}}}}"#]),
    Run(&[
        "merge",
        GITLAB,
        r#"{"singer_state":{"bookmarks":{"issues":{"updated_at":"2026-01-01T09:30:00Z","page":7}}}}"#,
    ]),
    Say("… and when the run has finished, its final state replaces all of that."),
    Run(&[
        "set",
        "--force",
        GITLAB,
        r#"{"singer_state":{"bookmarks":{"projects":{"updated_at":"2026-01-01T08:00:00Z"},"issues":{"updated_at":"2026-01-01T09:59:00Z"}}}}"#,
    ]),
    Say("tap-postgres finished yesterday; today it breaks off after one table."),
    Run(&[
        "set",
        POSTGRES,
        r#"{"singer_state":{"bookmarks":{"public-users":{"lsn":880012},"public-orders":{"lsn":880012}}}}"#,
    ]),
    Run(&["merge", POSTGRES, r#"{"singer_state":{"bookmarks":{"public-users":{"lsn":991337}}}}"#]),
    Run(&["list"]),
    Say("The second run resumes from the finished state with the unfinished one laid over it."),
    Run(&["get", POSTGRES]),
    Run(&[
        "set",
        "--force",
        POSTGRES,
        r#"{"singer_state":{"bookmarks":{"public-users":{"lsn":991999},"public-orders":{"lsn":991999}}}}"#,
    ]),
    Run(&["get", POSTGRES, "--format", "json"]),
    Say("A job holds the lock while it runs. Another asks for it, does not want to wait, and hears who holds it."),
    Contend {
        first: &["lock", "run", GITLAB, "--", "sleep", "2"],
        second: &[
            "--set",
            "clickhouse.lock_wait_seconds=0",
            "merge",
            GITLAB,
            r#"{"singer_state":{"bookmarks":{"issues":{"page":1}}}}"#,
        ],
    },
    Say("Released, the lock is free at once."),
    Run(&["lock", "list"]),
    Run(&["merge", GITLAB, r#"{"singer_state":{"bookmarks":{"issues":{"page":1}}}}"#]),
    Run(&["get", GITLAB]),
    Say("People see what there is, and what a change would do, before it is made."),
    Run(&["list", "--long"]),
    Run(&["set", "--dry-run", GITLAB, r#"{"singer_state":{"bookmarks":{"issues":{"page":2}}}}"#]),
    Say("Where a history is kept, each version tells what changed, and can be restored."),
    Run(&["--set", "clickhouse.history_days=30", "init"]),
    Run(&["merge", GITLAB, r#"{"singer_state":{"bookmarks":{"issues":{"page":2}}}}"#]),
    Run(&["merge", GITLAB, r#"{"singer_state":{"bookmarks":{"issues":{"page":3}}}}"#]),
    Run(&["history", "--diff", GITLAB]),
    Say("All states go into one file, byte for byte, and come back from it."),
    Run(&["export", "--output", "states.json"]),
    Run(&["clear", "--all", "--force"]),
    Run(&["import", "states.json"]),
    Run(&["export"]),
];
