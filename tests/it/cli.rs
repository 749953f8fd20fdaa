//! The command `meltano-state`, as a person or a script uses it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::sandbox::Sandbox;

/// A command that has not run yet.
pub(crate) struct Cli {
    command: Command,
    input: Option<String>,
}

/// What it did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `meltano-state` with nothing of this process's environment but `environment`, in an empty directory.
pub(crate) fn meltano_state(environment: &[(&str, &str)]) -> Cli {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meltano-state"));
    command
        .env_clear()
        .envs(std::env::vars().filter(|(name, _)| matches!(name.as_str(), "PATH" | "HOME" | "XDG_CACHE_HOME")))
        .envs(environment.iter().copied())
        .current_dir(std::env::temp_dir());
    Cli { command, input: None }
}

impl Cli {
    pub(crate) fn arg(self, argument: &str) -> Self {
        self.args([argument])
    }

    pub(crate) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn args_list(self, arguments: &[&str]) -> Self {
        self.args(arguments.iter().copied())
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn dir(mut self, directory: &std::path::Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    pub(crate) fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    pub(crate) fn run(mut self) -> Run {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("meltano-state starts");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        if let Some(text) = &self.input {
            stdin.write_all(text.as_bytes()).expect("it reads its input");
        }
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
        Run {
            code: output.status.code().expect("it ends by itself"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Runs a command on the sandbox.
pub(crate) fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    meltano_state(&[("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str())]).args_list(arguments).run()
}

/// Runs a command that has to succeed and to print exactly this.
pub(crate) fn check(sandbox: &Sandbox, arguments: &[&str], stdout: &str) {
    let run = run(sandbox, arguments);
    assert_eq!((run.code, run.stdout.as_str()), (0, stdout), "{arguments:?}: {}", run.stderr);
}

/// Runs a command that has to fail, print nothing, and say these words.
pub(crate) fn check_fails(sandbox: &Sandbox, arguments: &[&str], code: i32, words: &[&str]) {
    let run = run(sandbox, arguments);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{arguments:?}: {}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn the_verbs() {
    let sandbox = Sandbox::new();
    check(&sandbox, &["list"], "");
    check(&sandbox, &["list", "--format", "json"], "[]\n");
    check(&sandbox, &["get", "a"], "{}\n");
    let init = run(&sandbox, &["init"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    check(&sandbox, &["get", "a"], "{}\n");

    let set = run(&sandbox, &["set", "dev:a", "{\"singer_state\":{\"bookmarks\":{\"users\":{\"id\":1}}}}"]);
    assert_eq!(set.code, 0, "{}", set.stderr);
    let merge = run(&sandbox, &["merge", "dev:a", "{\"singer_state\":{\"bookmarks\":{\"orders\":{\"id\":2}}}}"]);
    assert_eq!(merge.code, 0, "{}", merge.stderr);
    let merged = "{\"singer_state\":{\"bookmarks\":{\"users\":{\"id\":1},\"orders\":{\"id\":2}}}}\n";
    check(&sandbox, &["get", "dev:a"], merged);
    let set = run(&sandbox, &["set", "prod:a", "{\"singer_state\":{}}"]);
    assert_eq!(set.code, 0, "{}", set.stderr);
    check(&sandbox, &["list"], "dev:a\nprod:a\n");
    check(&sandbox, &["list", "--pattern", "dev:*"], "dev:a\n");
    let json = run(&sandbox, &["list", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Vec<String>>(&json.stdout).unwrap(), ["dev:a", "prod:a"]);

    let clear = run(&sandbox, &["clear", "dev:a", "--force"]);
    assert_eq!(clear.code, 0, "{}", clear.stderr);
    check(&sandbox, &["list"], "prod:a\n");
    let clear = run(&sandbox, &["clear", "--all", "--force"]);
    assert_eq!(clear.code, 0, "{}", clear.stderr);
    check(&sandbox, &["list"], "");
}

#[test]
fn what_get_prints_set_accepts() {
    let sandbox = Sandbox::new();
    let text = "{\"singer_state\":{\"n\":12345678901234567890123,\"f\":1.10,\"s\":\"\\\"\\\\\\n\"}}";
    let environment = sandbox.uri();
    let environment = [("MELTANO_STATE_BACKEND_URI", environment.as_str())];
    let set = meltano_state(&environment).args(["set", "a", "--input-file", "-"]).input(text).run();
    assert_eq!(set.code, 0, "{}", set.stderr);
    let got = meltano_state(&environment).args(["get", "a"]).run().stdout;
    assert_eq!(got, format!("{text}\n"));
    let set = meltano_state(&environment).args(["set", "b", "--input-file", "-"]).input(&got).run();
    assert_eq!(set.code, 0, "{}", set.stderr);
    assert_eq!(meltano_state(&environment).args(["get", "b"]).run().stdout, got);
}

#[test]
fn failures_have_codes_and_hints_and_leave_stdout_clean() {
    let sandbox = Sandbox::new();
    for payload in ["[]", "null", "\"x\"", "{}", "{\"bookmarks\":{}}", "{\"singer_state\":", "{\"singer_state\":NaN}"] {
        check_fails(&sandbox, &["set", "a", payload], 2, &["error:", "hint:"]);
        check_fails(&sandbox, &["merge", "a", payload], 2, &["error:", "hint:"]);
    }
    check_fails(&sandbox, &["set", "a", "--input-file", "/no/such/file"], 2, &["error:", "/no/such/file"]);
    check_fails(&sandbox, &["nonsense"], 2, &["error:"]);
    check_fails(&sandbox, &["--uri", "clickhouse://u:p@127.0.0.1:1/d", "list"], 1, &["error:", "127.0.0.1:1", "hint:"]);
    check_fails(
        &sandbox,
        &["--uri", "clickhouse://127.0.0.1:1/", "list"],
        2,
        &["clickhouse.user", "clickhouse.database", "hint:"],
    );

    let init = run(&sandbox, &["init"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    sandbox.sql("INSERT INTO {}.state_lock (state_id, lock_id) VALUES ('a', 'rival')");
    let merge = ["--set", "clickhouse.lock_wait_seconds=0", "merge", "a", "{\"singer_state\":{}}"];
    check_fails(&sandbox, &merge, 3, &["error:", "rival", "hint:"]);
    let json = run(&sandbox, &[&merge[..], &["--format", "json"]].concat());
    assert_eq!(json.code, 3);
    let error: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "locked");
}

#[test]
fn settings_come_from_flags_environment_dotenv_and_meltano_yml() {
    let sandbox = Sandbox::new();
    let project = tempfile::tempdir().unwrap();
    let nested = project.path().join("deep/er");
    std::fs::create_dir_all(&nested).unwrap();
    let uri = sandbox.uri();
    let list = |environment: &[(&str, &str)], flags: &[&str]| {
        meltano_state(environment).dir(&nested).args_list(flags).arg("list").run()
    };
    let write = |file: &str, text: &str| std::fs::write(project.path().join(file), text).unwrap();

    write("meltano.yml", "version: 1\n");
    assert_eq!(list(&[], &[]).code, 2);
    write("meltano.yml", &format!("version: 1\nstate_backend:\n  uri: \"{uri}\"\n  clickhouse:\n    port: 1\n"));
    assert!(list(&[], &[]).stderr.contains(":1"));
    let port = uri.port().unwrap_or(8123).to_string();
    write(".env", &format!("MELTANO_STATE_BACKEND_CLICKHOUSE_PORT={port}\n"));
    assert_eq!(list(&[], &[]).code, 0);
    assert_ne!(list(&[("MELTANO_STATE_BACKEND_CLICKHOUSE_PORT", "1")], &[]).code, 0);
    let flag = format!("clickhouse.port={port}");
    assert_eq!(list(&[("MELTANO_STATE_BACKEND_CLICKHOUSE_PORT", "1")], &["--set", &flag]).code, 0);
}
