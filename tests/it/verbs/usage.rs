//! What holds for all verbs: usage errors, empty variables, limits.

use serde_json::Value;

use super::{insert, ok, ready, set};
use crate::cli::{check_fails, meltano_state, run};
use crate::sandbox::Sandbox;

#[test]
fn errors_of_the_command_line_are_json_too() {
    for arguments in
        [&["nonsense", "--format", "json"][..], &["--format=json", "get"], &["set", "a", "--format", "json"]]
    {
        let run = meltano_state(&[]).args_list(arguments).run();
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        let error: Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(error["error"]["kind"], "usage", "{error}");
        assert!(error["error"]["hint"].as_str().unwrap().contains("Usage:"), "{error}");
    }
    let help = meltano_state(&[]).args(["--format", "json", "--help"]).run();
    assert!(help.code == 0 && help.stdout.contains("Usage:"), "{}", help.stderr);
}

#[test]
fn empty_variables_are_not_set() {
    let sandbox = ready();
    let uri = sandbox.uri();
    let list = |variables: &[(&str, &str)]| {
        let mut cli = meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri.as_str())]);
        for (name, value) in variables {
            cli = cli.env(name, value);
        }
        cli.arg("list").run()
    };
    let names = ["MELTANO_STATE_CA_FILE", "MELTANO_STATE_CLIENT_CERT", "MELTANO_STATE_CLIENT_KEY"];
    let empty = list(&names.map(|name| (name, "")));
    assert_eq!(empty.code, 0, "{}", empty.stderr);
    let half = list(&[("MELTANO_STATE_CLIENT_CERT", "c.pem"), ("MELTANO_STATE_CLIENT_KEY", "")]);
    assert_eq!(half.code, 2);
    assert!(half.stderr.contains("--client-key"), "{}", half.stderr);
}

#[test]
fn limits_are_raised_by_what_their_errors_name() {
    let sandbox = ready();
    let xs = "repeat('x', 1000000)";
    insert(&sandbox, "large", &format!("'{{\"singer_state\":\"' || {xs} || {xs} || {xs} || '\"}}'"), "NULL");
    let get = |flags: &[&str]| run(&sandbox, &[flags, &["get", "large"]].concat());
    let response = get(&["--max-response-mib", "2"]);
    assert_eq!(response.code, 1);
    for word in ["2097152 bytes", "--max-response-mib", "MELTANO_STATE_MAX_RESPONSE_MIB"] {
        assert!(response.stderr.contains(word), "{}", response.stderr);
    }
    let memory = get(&["--max-memory-mib", "4"]);
    assert_eq!(memory.code, 1);
    for word in ["4194304 bytes", "--max-memory-mib", "MELTANO_STATE_MAX_MEMORY_MIB"] {
        assert!(memory.stderr.contains(word), "{}", memory.stderr);
    }
    assert_eq!(get(&["--max-response-mib", "4", "--max-memory-mib", "64"]).code, 0);
    let uri = sandbox.uri();
    let environment = [("MELTANO_STATE_BACKEND_URI", uri.as_str()), ("MELTANO_STATE_MAX_RESPONSE_MIB", "2")];
    assert_eq!(meltano_state(&environment).args(["get", "large"]).run().code, 1);
}

#[test]
fn ids_and_commands_that_begin_with_a_dash() {
    let sandbox = ready();
    let held = run(&sandbox, &["lock", "run", "-a", "--", "sh", "-c", "exit 7"]);
    assert_eq!(held.code, 7, "{}", held.stderr);
    check_fails(&sandbox, &["lock", "run", "a", "--", "-x", "--force"], 1, &["-x does not start"]);
    ok(&sandbox, &["set", "--force", "--", "-a", "{\"singer_state\":{}}"]);
    assert_eq!(ok(&sandbox, &["get", "--", "-a"]).stdout, "{\"singer_state\":{}}\n");
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let sandbox: Sandbox = ready();
    for n in 0..3 {
        set(&sandbox, &format!("{n}{}", "x".repeat(60_000)), n);
    }
    for verb in ["list", "list -l", "export", "clear --all -n"] {
        let script = format!("{{ \"$MELTANO_STATE\" {verb}; echo $? >&2; }} | head -c 1 >/dev/null");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .env("MELTANO_STATE", env!("CARGO_BIN_EXE_meltano-state"))
            .env("MELTANO_STATE_BACKEND_URI", sandbox.uri().as_str())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n", "{verb}");
    }
}
