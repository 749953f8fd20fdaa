//! The ClickHouse server of this run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use url::Url;

use crate::users;

/// A server, and a user of it who may create databases and users.
pub(crate) struct Server {
    uri: Url,
    /// The port of the native protocol, of the embedded server.
    native_port: Option<u16>,
    /// The embedded server ends when its stdin does, at the latest with this process.
    process: Option<Child>,
}

/// The server that all tests share.
pub(crate) static SERVER: LazyLock<Server> = LazyLock::new(|| match std::env::var("MELTANO_STATE_BACKEND_URI") {
    Ok(uri) if !uri.is_empty() => {
        let server = Server {
            uri: Url::parse(&uri).expect("MELTANO_STATE_BACKEND_URI is a URI"),
            native_port: None,
            process: None,
        };
        users::create(&server);
        server
    }
    _ => {
        let native_port = unused_port();
        let native = format!("<tcp_port>{native_port}</tcp_port>");
        Server { native_port: Some(native_port), ..Server::embedded(&native) }
    }
});

/// The project's tasks.
pub(crate) fn xtask() -> Command {
    let Some(xtask) = std::env::var_os("XTASK") else {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--quiet", "--package", "xtask", "--"]);
        return cargo;
    };
    Command::new(xtask)
}

fn start(users: &Path, config: &Path, more: &[&str]) -> (Child, String) {
    let mut process = xtask()
        .args(["clickhouse", "--until-stdin-closes"])
        .args(more)
        .arg("--users")
        .arg(users)
        .arg("--config")
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("xtask starts");
    let stdout = process.stdout.take().expect("stdout is a pipe");
    let ready = BufReader::new(stdout).lines().next().expect("xtask clickhouse says that it is ready");
    let ready = ready.expect("its output is text");
    let port = ready.rsplit(':').next().expect("it names its address").to_owned();
    (process, port)
}

/// A port that was free a moment ago.
pub(crate) fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

impl Server {
    /// An embedded server with this much more in its configuration.
    pub(crate) fn embedded(config: &str) -> Self {
        Self::started(config, &["--port", "0"])
    }

    /// An embedded server on this port and these data.
    pub(crate) fn embedded_at(port: u16, data: &Path) -> Self {
        let data = data.to_str().expect("a path in UTF-8");
        Self::started("", &["--port", &port.to_string(), "--path", data])
    }

    /// Kills it, without giving it time for anything.
    pub(crate) fn kill(self) {
        let mut process = self.process.expect("an embedded server");
        process.kill().expect("it runs");
        process.wait().expect("it ends");
    }

    fn started(config: &str, more: &[&str]) -> Self {
        let file = |text: String| {
            let mut file = tempfile::Builder::new().suffix(".xml").tempfile().expect("a temporary file");
            file.write_all(text.as_bytes()).expect("it can be written");
            file
        };
        let users = file(users::xml());
        let config = file(format!("<clickhouse>{config}</clickhouse>"));
        let (process, port) = start(users.path(), config.path(), more);
        let uri = Url::parse(&format!("clickhouse://meltano:s3cret@127.0.0.1:{port}/default")).expect("a URI");
        Self { uri, native_port: None, process: Some(process) }
    }

    /// The server's URI for its administrator.
    pub(crate) fn uri(&self) -> Url {
        self.uri.clone()
    }

    /// The port of the native protocol, which the server opens now. None on a server that is not the embedded one.
    pub(crate) fn native_port(&self) -> Option<u16> {
        let port = self.native_port?;
        self.sql("SYSTEM START LISTEN TCP");
        Some(port)
    }

    /// The URI for another user of the same server.
    pub(crate) fn uri_of(&self, user: &str, password: &str) -> Url {
        let mut uri = self.uri();
        uri.set_username(user).expect("a user name");
        uri.set_password(Some(password)).expect("a password");
        uri
    }

    /// Runs a statement as the administrator and returns what it prints.
    pub(crate) fn sql(&self, statement: &str) -> String {
        self.try_sql(statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Runs a statement as the administrator; what it prints, or the server's error.
    pub(crate) fn try_sql(&self, statement: &str) -> Result<String, String> {
        self.try_sql_with("", statement)
    }

    /// The same with a setting as it stands in a URL, `&name=value`.
    pub(crate) fn try_sql_with(&self, setting: &str, statement: &str) -> Result<String, String> {
        let scheme = if self.uri.query().is_some_and(|query| query.contains("secure=true")) { "https" } else { "http" };
        let host = self.uri.host_str().unwrap_or("localhost");
        let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let mut answer =
            ureq::post(format!("{scheme}://{host}:{}/?wait_end_of_query=1{setting}", self.uri.port().unwrap_or(8123)))
                .header("X-ClickHouse-User", decode(self.uri.username()))
                .header("X-ClickHouse-Key", decode(self.uri.password().unwrap_or_default()))
                .config()
                .http_status_as_error(false)
                .build()
                .send(statement)
                .map_err(|error| error.to_string())?;
        let text = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
        if answer.status().is_success() { Ok(text) } else { Err(text) }
    }
}
