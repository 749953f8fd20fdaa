//! A database of a test's own, and the plugin on it.

use std::sync::atomic::{AtomicU32, Ordering};

use meltano_state_host::{Cache, CallError, Error, Instance, Plugin, Settings, State};
use url::Url;

use crate::server::SERVER;
use crate::users::{PASSWORD, User};

/// A database that does not exist yet and is removed in the end.
pub(crate) struct Sandbox {
    pub(crate) schema: String,
    /// Removed too, where it was created with SQL.
    user: Option<String>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { schema: format!("it_{}_{count}", std::process::id()), user: None }
    }

    /// The database of a user of [`crate::users`], and the user's URI. One test may use each user.
    pub(crate) fn of(user: &User) -> (Self, Url) {
        let schema = user.schema();
        let sandbox = Self { schema: schema.clone(), user: Some(schema.clone()) };
        let uri = sandbox.with_schema(SERVER.uri_of(&schema, PASSWORD));
        (sandbox, uri)
    }

    /// The administrator's URI with this database, and with a settle time that keeps tests short.
    pub(crate) fn uri(&self) -> Url {
        self.with_schema(SERVER.uri())
    }

    fn with_schema(&self, mut uri: Url) -> Url {
        uri.query_pairs_mut().append_pair("schema", &self.schema).append_pair("lock_settle_seconds", "0.1");
        uri
    }

    /// An instance of the component on this database.
    pub(crate) async fn instance(&self) -> Instance {
        instance(&self.uri(), &[]).await
    }

    /// Runs a statement in which `{}` stands for the database's name.
    pub(crate) fn sql(&self, statement: &str) -> String {
        SERVER.sql(&statement.replace("{}", &self.schema))
    }

    /// The lock rows that are left, of all state ids.
    pub(crate) fn lock_rows(&self) -> String {
        self.sql("SELECT state_id, lock_id FROM {}.state_lock ORDER BY ALL")
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // A failing removal must not hide why a test failed.
        let _ = SERVER.try_sql(&format!("DROP DATABASE IF EXISTS {}", quote(&self.schema)));
        if let Some(user) = &self.user {
            let _ = SERVER.try_sql(&format!("DROP USER IF EXISTS {user}"));
        }
    }
}

fn quote(name: &str) -> String {
    format!("`{}`", name.replace('\\', r"\\").replace('`', r"\`"))
}

/// A plugin with a URI and further settings, by their full names.
pub(crate) fn plugin(uri: &Url, settings: &[(&str, &str)]) -> Plugin {
    let mut all = Settings::new().with("state_backend.uri", uri.as_str()).unwrap();
    for (name, value) in settings {
        all = all.with(name, *value).unwrap();
    }
    Plugin::builder().settings(all).cache(cache()).build().unwrap()
}

/// Compiled once for all tests of this run.
pub(crate) fn cache() -> Cache {
    Cache::in_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled"))
}

/// An instance of such a plugin.
pub(crate) async fn instance(uri: &Url, settings: &[(&str, &str)]) -> Instance {
    plugin(uri, settings).instance().await.unwrap()
}

/// The component's own error.
pub(crate) fn component_error<T: std::fmt::Debug>(result: Result<T, CallError>) -> Error {
    match result {
        Err(CallError::Error(error)) => error,
        other => panic!("no error of the component: {other:?}"),
    }
}

/// A state with these parts.
pub(crate) fn state(state_id: &str, partial: Option<&str>, completed: Option<&str>) -> State {
    State {
        state_id: state_id.to_owned(),
        partial_state: partial.map(str::to_owned),
        completed_state: completed.map(str::to_owned),
    }
}
