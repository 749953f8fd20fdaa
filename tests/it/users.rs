//! Users with fewer privileges than the administrator, each with a database of its own.
//!
//! The embedded server reads them from a file when it starts; on another server they are created with SQL.

use std::sync::LazyLock;

use meltano_state_backend_clickhouse::diagnose::{Job, NEEDS, On};

use crate::server::Server;

/// A user, and what it may do; `{}` stands for the database that is its own.
pub(crate) struct User {
    pub(crate) name: &'static str,
    readonly: u8,
    /// Settings of its profile besides, each with its value.
    settings: &'static [(&'static str, &'static str)],
    /// Settings that it may not change.
    fixed: &'static [&'static str],
    grants: &'static [&'static str],
}

/// The README's list.
pub(crate) const MINIMAL: &[&str] =
    &["SELECT, INSERT, ALTER DELETE ON {}.state", "SELECT, INSERT, ALTER DELETE ON {}.state_lock"];

/// Needed where the server is configured with `table_engines_require_grant`.
const ENGINE: &str = "TABLE ENGINE ON ReplacingMergeTree";

pub(crate) const LIMITED: User = User { name: "limited", readonly: 0, settings: &[], fixed: &[], grants: MINIMAL };
pub(crate) const READER: User =
    User { name: "reader", readonly: 1, settings: &[], fixed: &[], grants: &["SELECT ON {}.state"] };
pub(crate) const READER_WITH_SETTINGS: User =
    User { name: "reader2", readonly: 2, settings: &[], fixed: &[], grants: &["SELECT ON {}.state"] };
pub(crate) const STRANGER: User = User { name: "stranger", readonly: 0, settings: &[], fixed: &[], grants: &[] };
pub(crate) const CREATOR: User = User {
    name: "creator",
    readonly: 0,
    settings: &[],
    fixed: &[],
    grants: &["SELECT, INSERT, ALTER DELETE, CREATE TABLE ON {}.*", ENGINE],
};
pub(crate) const SECRETIVE: User = User {
    name: "secretive",
    readonly: 0,
    settings: &[],
    fixed: &[],
    grants: &["SELECT, INSERT, ALTER DELETE, CREATE TABLE, CREATE DATABASE ON {}.*", ENGINE],
};

/// The README's list for who keeps a history.
pub(crate) const HISTORY: &str =
    "CREATE TABLE, CREATE VIEW, DROP VIEW, SELECT, INSERT, ALTER DELETE, ALTER TTL ON {}.*";
/// And for who looks into it.
pub(crate) const HISTORY_READER: &str = "SELECT ON {}.state_history";

pub(crate) const HISTORIAN: User = User {
    name: "historian",
    readonly: 0,
    settings: &[],
    fixed: &[],
    grants: &[HISTORY, ENGINE, "TABLE ENGINE ON MergeTree"],
};
pub(crate) const REMEMBERER: User = User {
    name: "rememberer",
    readonly: 0,
    settings: &[],
    fixed: &[],
    grants: &[MINIMAL[0], MINIMAL[1], HISTORY_READER],
};
/// Knows nothing of a history that is kept.
pub(crate) const UNAWARE: User = User { name: "unaware", readonly: 0, settings: &[], fixed: &[], grants: MINIMAL };

/// For the checks of connections, each with something that is not as it should be.
pub(crate) const CHECKED: User = User { name: "checked", readonly: 0, settings: &[], fixed: &[], grants: MINIMAL };
pub(crate) const CHECKED_READER: User =
    User { name: "checked_reader", readonly: 1, settings: &[], fixed: &[], grants: &["SELECT ON {}.state"] };
pub(crate) const CHECKED_STRANGER: User =
    User { name: "checked_stranger", readonly: 0, settings: &[], fixed: &[], grants: &[] };
pub(crate) const WITHOUT_DELETE: User = User {
    name: "without_delete",
    readonly: 0,
    settings: &[],
    fixed: &[],
    grants: &["SELECT, INSERT ON {}.state", "SELECT, INSERT, ALTER DELETE ON {}.state_lock"],
};
pub(crate) const HINDERED: User = User {
    name: "hindered",
    readonly: 0,
    settings: &[("enable_lightweight_delete", "0"), ("lightweight_deletes_sync", "0")],
    fixed: &[],
    grants: MINIMAL,
};

pub(crate) const CACHED: User =
    User { name: "cached", readonly: 0, settings: &[("use_query_cache", "1")], fixed: &[], grants: MINIMAL };

/// Runs statements as servers before 24.3 did.
pub(crate) const CLASSIC: User =
    User { name: "classic", readonly: 0, settings: &[("enable_analyzer", "0")], fixed: &[], grants: MINIMAL };
pub(crate) const TIED: User = User {
    name: "tied",
    readonly: 0,
    settings: &[("max_threads", "4")],
    fixed: &["max_threads", "local_filesystem_read_method"],
    grants: MINIMAL,
};
pub(crate) const UNPATCHED: User = User {
    name: "unpatched",
    readonly: 0,
    settings: &[("lightweight_delete_mode", "alter_update")],
    fixed: &["lightweight_delete_mode"],
    grants: MINIMAL,
};
pub(crate) const SKIPPING: User = User {
    name: "skipping",
    readonly: 0,
    settings: &[("input_format_tsv_skip_first_lines", "1")],
    fixed: &[],
    grants: MINIMAL,
};

/// May take locks and not give them up.
pub(crate) const TAKER: User = User {
    name: "taker",
    readonly: 0,
    settings: &[],
    fixed: &[],
    grants: &["SELECT, INSERT, ALTER DELETE ON {}.state", "SELECT, INSERT ON {}.state_lock"],
};
/// One statement at a time.
pub(crate) const SINGLE: User = User {
    name: "single",
    readonly: 0,
    settings: &[("max_concurrent_queries_for_user", "1")],
    fixed: &[],
    grants: MINIMAL,
};

static ALL: [User; 22] = [
    LIMITED,
    READER,
    READER_WITH_SETTINGS,
    STRANGER,
    CREATOR,
    SECRETIVE,
    CHECKED,
    CHECKED_READER,
    CHECKED_STRANGER,
    WITHOUT_DELETE,
    HINDERED,
    CACHED,
    HISTORIAN,
    REMEMBERER,
    UNAWARE,
    CLASSIC,
    TIED,
    UNPATCHED,
    SKIPPING,
    TAKER,
    WITHOUT_DDL,
    SINGLE,
];

/// Without DDL a user cannot delete either.
pub(crate) const WITHOUT_DDL: User =
    User { name: "without_ddl", readonly: 0, settings: &[("allow_ddl", "0")], fixed: &[], grants: MINIMAL };

/// A user who wants to do something, and lacks one privilege of those that it takes.
pub(crate) struct Lacking {
    pub(crate) user: User,
    pub(crate) job: Job,
    /// What is lacking: the privilege, and on what. None: nothing is.
    pub(crate) lacks: Option<(&'static str, &'static str)>,
}

/// For each job one who has all that it takes, and one for each privilege who has all but that.
pub(crate) static LACKING: LazyLock<Vec<Lacking>> = LazyLock::new(|| {
    let mut users: Vec<Lacking> = Vec::new();
    let optional = [Job::SeeMutations, Job::SeeReplicas];
    for (job, ..) in NEEDS.iter().filter(|(job, ..)| !optional.contains(job)) {
        if users.last().is_some_and(|last| last.job == *job) {
            continue;
        }
        let jobs: &[Job] = match job {
            Job::Read | Job::Write => &[Job::Read, Job::Write],
            Job::CreateDatabase | Job::CreateState | Job::CreateLock => {
                &[Job::Read, Job::Write, Job::CreateDatabase, Job::CreateState, Job::CreateLock]
            }
            Job::CreateHistory => &[Job::Read, Job::Write, Job::CreateHistory, Job::BeginHistory],
            // Who may not see the table cannot know for how long it keeps versions.
            Job::ChangeHistory => &[Job::Read, Job::Write, Job::LookBack, Job::ChangeHistory],
            job => &[Job::Read, Job::Write, *job],
        };
        let all = privileges(jobs);
        let lacking = privileges(&[*job]).into_iter().map(Some);
        users.extend(std::iter::once(None).chain(lacking).enumerate().map(|(number, lacks)| {
            let grants = all.iter().filter(|granted| Some(**granted) != lacks);
            let grants: Vec<&str> = grants.map(|(privilege, on)| &*format!("{privilege} ON {on}").leak()).collect();
            let name = format!("{job:?}_{number}").to_lowercase().leak();
            let user = User { name, readonly: 0, settings: &[], fixed: &[], grants: grants.leak() };
            Lacking { user, job: *job, lacks }
        }));
    }
    users
});

/// What jobs take, each privilege once.
fn privileges(jobs: &[Job]) -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    for (_, privileges, on) in NEEDS.iter().filter(|(job, ..)| jobs.contains(job)) {
        let on = match on {
            On::State => "{}.state",
            On::Lock => "{}.state_lock",
            On::History => "{}.state_history",
            On::Feed => "{}.state_history_feed",
            On::Database => "{}.*",
            On::Other(name) => name,
        };
        all.extend(
            privileges.iter().map(|privilege| (*privilege, on)).filter(|pair| !all.contains(pair)).collect::<Vec<_>>(),
        );
    }
    all
}

fn all() -> impl Iterator<Item = &'static User> {
    ALL.iter().chain(LACKING.iter().map(|lacking| &lacking.user))
}

/// The password of all of them; unlike any other text, and in need of encoding in a URI.
pub(crate) const PASSWORD: &str = "hunter2/hunter2";

impl User {
    /// The database of this user in this run, which is the user's name on the server too.
    pub(crate) fn schema(&self) -> String {
        format!("it_{}_{}", std::process::id(), self.name)
    }

    fn profile(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings.iter().map(|(name, value)| (*name, (*value).to_owned()));
        std::iter::once(("readonly", self.readonly.to_string())).chain(settings).collect()
    }

    fn grants(&self) -> impl Iterator<Item = String> {
        let schema = self.schema();
        self.grants.iter().map(move |grant| format!("GRANT {} TO {schema}", grant.replace("{}", &schema)))
    }
}

/// The users as a ClickHouse configuration file.
pub(crate) fn xml() -> String {
    let users: String = all()
        .map(|user| {
            let name = user.schema();
            // In a file the user that is granted to is the one that the grant stands in.
            let grants: String = user
                .grants()
                .map(|grant| format!("<query>{}</query>", grant.trim_end_matches(&format!(" TO {name}"))))
                .collect();
            // No grant at all would mean every privilege.
            let grants = if grants.is_empty() { "<query>GRANT SELECT ON none.none</query>".to_owned() } else { grants };
            format!(
                "<{name}><password>{PASSWORD}</password><networks><ip>::/0</ip></networks>\
                 <profile>{name}</profile><grants>{grants}</grants></{name}>"
            )
        })
        .collect();
    let profile = |user: &User| {
        let settings: String = user.profile().iter().map(|(name, value)| format!("<{name}>{value}</{name}>")).collect();
        let fixed: String = user.fixed.iter().map(|name| format!("<{name}><readonly/></{name}>")).collect();
        let name = user.schema();
        format!("<{name}>{settings}<constraints>{fixed}</constraints></{name}>")
    };
    let profiles: String = all().map(profile).collect();
    format!("<clickhouse><profiles>{profiles}</profiles><users>{users}</users></clickhouse>")
}

/// Creates the users with SQL.
pub(crate) fn create(server: &Server) {
    for user in all() {
        let name = user.schema();
        let settings = user.profile().into_iter().map(|(name, value)| format!("{name} = {value}"));
        let fixed = user.fixed.iter().map(|name| format!("{name} READONLY"));
        let settings = settings.chain(fixed).collect::<Vec<_>>().join(", ");
        server.sql(&format!("CREATE USER {name} IDENTIFIED BY '{PASSWORD}' SETTINGS {settings}"));
        for grant in user.grants() {
            server.sql(&grant);
        }
    }
}
