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
