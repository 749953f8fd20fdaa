//! No output of any command holds the password, with logging at its loudest.

use crate::cli::{Run, meltano_state};
use crate::sandbox::Sandbox;
use crate::users::{PASSWORD, SECRETIVE};

const ENCODED: &str = "hunter2%2Fhunter2";

fn check(run: &Run) {
    for output in [&run.stdout, &run.stderr] {
        assert!(!output.contains(PASSWORD) && !output.contains(ENCODED), "{output}");
    }
}

#[test]
fn no_output_holds_the_password() {
    let (_sandbox, uri) = Sandbox::of(&SECRETIVE);
    let right = uri.to_string();
    assert!(right.contains(&format!(":{ENCODED}@")), "{right}");
    let with_password = |password: &str| right.replacen(&format!(":{ENCODED}@"), &format!(":{password}@"), 1);
    let uris = [
        right.clone(),
        // Wrong in every place that an error may quote.
        with_password(PASSWORD),
        with_password(&format!("{ENCODED}x")),
        with_password(&format!("{ENCODED}%zz")),
        with_password(&format!("{ENCODED}#")),
        right.replacen("clickhouse:", "postgres:", 1),
        right.replacen("clickhouse://", "", 1),
        right.replacen("127.0.0.1", "no host", 1),
        right.replacen("127.0.0.1:", "127.0.0.1:9", 1),
        format!("{right}&unknown={ENCODED}"),
        format!("{right}&port={ENCODED}"),
        format!("{right}&connect_timeout_seconds={ENCODED}"),
    ];
    for uri in &uris {
        for arguments in [
            &["init"][..],
            &["set", "a", "{\"singer_state\":{}}"],
            &["merge", "a", "{\"singer_state\":{\"x\":1}}"],
            &["get", "a"],
            &["list"],
            &["get", "a", "--format", "json"],
            &["list", "--long"],
            &["copy", "a", "b", "--force"],
            &["export"],
            &["history", "a"],
            &["clear", "a", "--dry-run"],
            &["clear", "a", "--force"],
            &["config"],
            &["config", "--format", "json"],
            &["check"],
            &["check", "--format", "json"],
        ] {
            check(&meltano_state(&[]).args(["-vvv", "--uri", uri]).args_list(arguments).env("RUST_LOG", "trace").run());
            check(&meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri)]).arg("-vvv").args_list(arguments).run());
        }
    }
    // The right one has worked, so that more than errors were looked at.
    let ok = meltano_state(&[]).args(["-vvv", "--uri", &right, "list"]).run();
    assert_eq!(ok.code, 0, "{}", ok.stderr);
    assert!(ok.stderr.contains("200"), "requests are logged: {}", ok.stderr);
}

/// In no way alike any other text.
const SECRET: &str = "Zq7vXw9k";

/// URIs that are cut off, split in the wrong place, or not encoded, each with the secret in it.
fn broken_uris() -> Vec<String> {
    let mut uris = Vec::new();
    for scheme in ["clickhouse", "clickhouse+https", "CLICKHOUSE", "postgres", "click house"] {
        for rest in [
            "me:{}",
            "me:{}@",
            "me:{}@h",
            "me:{}@h:1",
            "me:{}@h:x/d",
            "{}",
            "{}@h/d",
            "me:a/{}@h/d",
            "me:a?{}@h/d",
            "me:a#{}@h/d",
            "me:a #{}@h/d",
            "me:%zz{}@h/d",
            "me:a@{}@h/d",
            "me@{}:1/d/e",
            "h/d?user=me;password={}",
            "h/d?user=me&password={}&x={}",
            "h/d?user=me,password={}",
            "h/d?USER=me&PASSWORD={}",
            "h/d?password={}",
            "h/d;{}",
            "h:{}/d?user=me",
            "h/{}/d?user=me",
            "me:a&{}@h/d?b&{}=c",
            "me:\n{}@h/d",
            "me:a{}",
            "[{}]/d?user=me",
            "me:a\\{}@h/d",
        ] {
            uris.push(format!("{scheme}://{}", rest.replace("{}", SECRET)));
        }
    }
    uris.extend([format!("me:{SECRET}@h/d"), format!("clickhouse:me:{SECRET}@h/d"), format!("//me:{SECRET}@h/d")]);
    uris
}

/// Whether a text holds four characters of the secret that stand together.
fn shows(text: &str) -> bool {
    (0..=SECRET.len() - 4).any(|start| text.contains(&SECRET[start..start + 4]))
}

#[test]
fn no_piece_of_a_broken_uri_is_shown() {
    for uri in broken_uris() {
        // As a user, or a host or database of a whole URI, the name is shown as what it is taken for: with no server there.
        let is_name = uri.contains(&format!("://{SECRET}@h/d")) || uri.contains(&format!("@{SECRET}:1"));
        for arguments in
            [&["config"][..], &["config", "--format", "json"], &["list"], &["--format", "json", "get", "a"]]
        {
            let by_flag = meltano_state(&[]).args(["-vvv", "--uri", &uri]).args_list(arguments).run();
            let by_variable =
                meltano_state(&[("MELTANO_STATE_BACKEND_URI", &uri)]).arg("-vvv").args_list(arguments).run();
            for run in [by_flag, by_variable] {
                let output = format!("{}{}", run.stdout, run.stderr);
                assert!(is_name || !shows(&output), "{uri} {arguments:?}: {output}");
            }
        }
    }
}

#[test]
fn no_piece_of_a_uri_in_a_file_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text).unwrap();
    let check = || {
        let run =
            meltano_state(&[]).args(["-vvv", "config", "--project"]).arg(directory.path().to_str().unwrap()).run();
        assert!(!shows(&format!("{}{}", run.stdout, run.stderr)), "{run:?}");
    };
    for uri in [
        // The comment cuts it off.
        format!("clickhouse://me:{SECRET} #ss@h/d"),
        format!("clickhouse://me:{SECRET}"),
        format!("'clickhouse://me:{SECRET}"),
        format!("[clickhouse://me:{SECRET}@h/d]"),
        format!("{{a: clickhouse://me:{SECRET}@h/d}}"),
    ] {
        write("meltano.yml", format!("state_backend:\n  uri: {uri}\n"));
        check();
    }
    write("meltano.yml", "state_backend: {}\n".to_owned());
    for value in
        [format!("\"clickhouse://me:{SECRET}"), format!("clickhouse://me:{SECRET} #x@h/d"), format!("'a' {SECRET}")]
    {
        write(".env", format!("MELTANO_STATE_BACKEND_URI={value}\n"));
        check();
    }
}
