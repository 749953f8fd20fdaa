//! From a statement to the HTTP request that carries it.

use url::form_urlencoded;

use crate::clickhouse::tsv;
use crate::ports::{Header, Request};
use crate::settings::Settings;

/// What carrying a statement out twice does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the statement only reads.
    Read,
    /// The same as carrying it out once.
    Idempotent,
    /// Possibly something else than carrying it out once.
    Once,
}

/// One SQL statement with everything it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text. Values stand in it as `{name:Type}` and are never spliced in.
    pub sql: String,
    /// The values of the parameters.
    pub params: Vec<(&'static str, String)>,
    /// Rows that the statement reads as the table `rows`.
    pub rows: Option<Rows>,
    /// Settings for this statement.
    pub settings: Vec<(&'static str, String)>,
    /// What decides whether it may be repeated.
    pub effect: Effect,
    /// Whether it touches only the rows of one state or lock, and a user who may write carries it out.
    pub few_rows: bool,
    /// Its query id, if that is not drawn at random. The server carries out one statement of an id at a time.
    pub query_id: Option<String>,
}

/// Rows that travel with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Names and types of the columns.
    pub structure: &'static str,
    /// The rows as TabSeparated.
    pub data: String,
}

impl Statement {
    /// A statement without parameters and rows.
    pub(crate) fn new(effect: Effect, sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            params: Vec::new(),
            rows: None,
            settings: Vec::new(),
            effect,
            few_rows: false,
            query_id: None,
        }
    }

    /// Adds the value of a parameter.
    #[must_use]
    pub(crate) fn param(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.params.push((name, value.into()));
        self
    }

    /// Adds a setting.
    #[must_use]
    pub(crate) fn setting(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    /// Says that it touches few rows.
    #[must_use]
    pub(crate) fn few_rows(mut self) -> Self {
        self.few_rows = true;
        self
    }

    /// Has it carried out after every other statement of this query id.
    #[must_use]
    pub(crate) fn query_id(mut self, query_id: &str) -> Self {
        self.query_id = Some(query_id.to_owned());
        self
    }

    /// Its query id: one that was drawn at random, unless it has its own.
    pub(crate) fn query_id_or<'a>(&'a self, random_id: &'a str) -> &'a str {
        self.query_id.as_deref().unwrap_or(random_id)
    }

    /// Gives the statement its rows.
    #[must_use]
    pub(crate) fn rows(mut self, structure: &'static str, data: String) -> Self {
        self.rows = Some(Rows { structure, data });
        self
    }
}

/// Longer parameters, and a statement with which the URL would be longer, leave it for the body: proxies commonly limit it to
/// 8 KiB. What has no body is one packet, and fewer calls into the host.
const LONGEST_IN_URL: usize = 4096;

/// The request for `statement`, with the settings of `tuning` besides its own. `random_id` must be drawn at random after the
/// statement's values, so that it cannot occur in them: it is the boundary of a multipart body too.
pub(crate) fn build(statement: &Statement, tuning: &[(&str, &str)], settings: &Settings, random_id: &str) -> Request {
    let params: Vec<(String, String)> = statement
        .params
        .iter()
        .map(|(name, value)| {
            let mut escaped = String::with_capacity(value.len());
            tsv::escape_into(value, &mut escaped);
            (format!("param_{name}"), escaped)
        })
        .collect();
    let params_length: usize = params.iter().map(|(_, value)| value.len()).sum();
    let multipart = statement.rows.is_some() || params_length > LONGEST_IN_URL;

    let mut query = form_urlencoded::Serializer::for_suffix(String::from("/?"), 2);
    // The answer begins when the statement has ended, so that its status is the statement's own.
    query.append_pair("wait_end_of_query", "1");
    query.append_pair("query_id", statement.query_id_or(random_id));
    query.extend_pairs(tuning).extend_pairs(&statement.settings);
    if let Some(rows) = &statement.rows {
        query.append_pair("rows_format", "TabSeparated");
        query.append_pair("rows_structure", rows.structure);
    }
    if !multipart {
        query.extend_pairs(&params);
    }
    let mut path_and_query = query.finish();
    let before_statement = path_and_query.len();
    path_and_query =
        form_urlencoded::Serializer::for_suffix(path_and_query, 2).append_pair("query", &statement.sql).finish();

    let (content_type, body) = if multipart {
        let parts = params.iter().map(|(name, value)| (format!("name=\"{name}\""), value.as_str())).chain(
            statement.rows.iter().map(|rows| ("name=\"rows\"; filename=\"rows\"".to_owned(), rows.data.as_str())),
        );
        (format!("multipart/form-data; boundary={random_id}"), form_data(parts, random_id))
    } else {
        let mut body = String::new();
        if path_and_query.len() > LONGEST_IN_URL {
            path_and_query.truncate(before_statement);
            body.clone_from(&statement.sql);
        }
        ("text/plain; charset=UTF-8".to_owned(), body)
    };
    Request {
        secure: settings.secure,
        authority: settings.authority(),
        path_and_query,
        headers: vec![
            ("x-clickhouse-user", Header::Plain(settings.user.clone())),
            ("x-clickhouse-key", Header::Secret(settings.password.0.clone())),
            ("user-agent", Header::Plain(USER_AGENT.to_owned())),
            ("content-type", Header::Plain(content_type)),
            ("content-length", Header::Plain(body.len().to_string())),
        ],
        body: body.into_bytes(),
    }
}

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// A multipart/form-data body (RFC 7578).
fn form_data<'a>(parts: impl Iterator<Item = (String, &'a str)>, boundary: &str) -> String {
    let mut body = String::new();
    for (disposition, value) in parts {
        body.push_str(&format!("--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"));
        body.push_str(value);
        body.push_str("\r\n");
    }
    body.push_str(&format!("--{boundary}--\r\n"));
    body
}
