//! `edit`, with scripts for editors.

use std::fs;
use std::path::{Path, PathBuf};

use super::{insert, merge, ok, ready, set, stored};
use crate::cli::{Run, check, meltano_state};
use crate::sandbox::Sandbox;

/// A directory with an editor in it, in which edited texts are kept.
struct Desk {
    directory: tempfile::TempDir,
}

impl Desk {
    /// The script gets the path of the text as `$1`, and the command as `$MELTANO_STATE`.
    fn with(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("editor"), script).unwrap();
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn edit(&self, sandbox: &Sandbox, arguments: &[&str]) -> Run {
        let uri = sandbox.uri();
        meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri.as_str())])
            .dir(self.path())
            .env("TMPDIR", self.path().to_str().unwrap())
            .env("MELTANO_STATE", env!("CARGO_BIN_EXE_meltano-state"))
            .env("EDITOR", "sh editor")
            .args_list(arguments)
            .run()
    }

    /// The texts that were kept.
    fn kept(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path()).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
    }
}

/// Edits `a`, which has to fail, change nothing and leave that text in a file that is named.
fn check_refused(sandbox: &Sandbox, script: &str, code: i32, words: &[&str], kept: Option<&str>) {
    let before = stored(sandbox);
    let desk = Desk::with(script);
    let run = desk.edit(sandbox, &["edit", "a"]);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{script}: {}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "{script}: {}", run.stderr);
    }
    assert_eq!(stored(sandbox), before, "{script}");
    assert_eq!(sandbox.lock_rows(), "", "{script}");
    let files = desk.kept();
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    assert_eq!(texts.first().map(|text| text.trim()), kept, "{script}");
    for file in files {
        assert!(run.stderr.contains(file.to_str().unwrap()), "{script}: {}", run.stderr);
    }
}

/// Both parts, with numbers that only text holds.
fn with_state() -> Sandbox {
    let sandbox = ready();
    ok(&sandbox, &["set", "a", "{\"singer_state\": {\"z\":1.10,  \"big\":12345678901234567890123}}"]);
    merge(&sandbox, "a", "\"p\":\"\\u00e9 {\"");
    sandbox
}

#[test]
fn the_merged_state_is_edited_and_becomes_the_completed_one() {
    let sandbox = with_state();
    let desk = Desk::with("cp \"$1\" seen; sed -i 's/1.10/1.1/' \"$1\"");
    let run = desk.edit(&sandbox, &["edit", "a"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, "the state of a is changed\n"));
    let indented = "{\n  \"singer_state\": {\n    \"z\": 1.10,\n    \"big\": 12345678901234567890123,\n    \"p\": \"\\u00e9 {\"\n  }\n}\n";
    assert_eq!(fs::read_to_string(desk.path().join("seen")).unwrap(), indented);
    let edited = "{\"singer_state\":{\"z\":1.1,\"big\":12345678901234567890123,\"p\":\"\\u00e9 {\"}}";
    check(&sandbox, &["get", "a"], &format!("{edited}\n"));
    let parts = sandbox.sql("SELECT completed_state, partial_state FROM {}.state FINAL FORMAT TSVRaw");
    assert_eq!(parts, format!("{edited}\t\\N\n"));
    assert_eq!((sandbox.lock_rows().as_str(), desk.kept().len()), ("", 0));
}

#[test]
fn what_is_not_changed_is_not_written() {
    let sandbox = with_state();
    let before = stored(&sandbox);
    for script in ["true", "printf '  ' | cat - \"$1\" > new; cp new \"$1\"", ": > \"$1\"", "rm \"$1\"; echo > \"$1\""]
    {
        let desk = Desk::with(script);
        let run = desk.edit(&sandbox, &["edit", "a"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, "nothing was changed\n"), "{script}");
        assert_eq!((stored(&sandbox).as_str(), sandbox.lock_rows().as_str()), (before.as_str(), ""), "{script}");
        assert!(desk.kept().is_empty(), "{script}");
    }
}

#[test]
fn a_text_that_cannot_be_stored_is_kept() {
    let sandbox = with_state();
    check_refused(&sandbox, "echo '{\"singer_state\":' > \"$1\"", 2, &["line 1"], Some("{\"singer_state\":"));
    check_refused(&sandbox, "echo '{\"x\":1}' > \"$1\"", 2, &["singer_state", "\"x\""], Some("{\"x\":1}"));
    check_refused(&sandbox, "echo '{\"x\":1}' > \"$1\"; exit 3", 1, &["exit status: 3"], Some("{\"x\":1}"));
    check_refused(&sandbox, "exit 3", 1, &["exit status: 3", "EDITOR"], None);

    insert(&sandbox, "a", "'garbage'", "NULL");
    check_refused(&sandbox, "echo '{\"singer_state\":1}' > \"$1\"", 1, &["hint:"], None);
}

#[test]
fn a_lock_that_is_lost_while_editing_is_noticed() {
    let sandbox = with_state();
    let change = "\"$MELTANO_STATE\" unlock a --force; echo '{\"singer_state\":7}' > \"$1\"";
    let before = stored(&sandbox);
    let desk = Desk::with(change);
    let run = desk.edit(&sandbox, &["edit", "a"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("lost"), "{}", run.stderr);
    assert_eq!(stored(&sandbox), before);
    assert_eq!(fs::read_to_string(&desk.kept()[0]).unwrap(), "{\"singer_state\":7}\n");
}

#[test]
fn a_write_that_took_no_lock_is_not_overwritten() {
    let sandbox = with_state();
    // Import takes no lock.
    let script = "echo '{\"a\":{\"completed\":{\"by\":\"another\"}}}' | \"$MELTANO_STATE\" import --force
                  echo '{\"singer_state\":7}' > \"$1\"";
    let desk = Desk::with(script);
    let run = desk.edit(&sandbox, &["edit", "a"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("has changed meanwhile"), "{}", run.stderr);
    check(&sandbox, &["get", "a"], "{\"by\":\"another\"}\n");
    assert_eq!((desk.kept().len(), sandbox.lock_rows().as_str()), (1, ""));
}

#[test]
fn the_lock_is_renewed_while_the_editor_is_open() {
    let sandbox = with_state();
    let settings = ["--set", "clickhouse.lock_stale_seconds=3", "--set", "clickhouse.request_timeout_seconds=1"];
    let script = format!(
        "sleep 4
         \"$MELTANO_STATE\" {} --set clickhouse.lock_wait_seconds=0 merge a '{{\"singer_state\":{{}}}}'
         echo $? > code
         echo '{{\"singer_state\":7}}' > \"$1\"",
        settings.join(" ")
    );
    let desk = Desk::with(&script);
    let run = desk.edit(&sandbox, &[&settings[..], &["edit", "a"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("which runs an editor"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(desk.path().join("code")).unwrap(), "3\n");
    check(&sandbox, &["get", "a"], "{\"singer_state\":7}\n");
}

#[test]
fn a_new_state_begins_with_a_template() {
    let sandbox = Sandbox::new();
    let desk = Desk::with("sed -i 's/{}/{\"t\": 1.0}/' \"$1\"");
    let run = desk.edit(&sandbox, &["edit", "new"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    check(&sandbox, &["get", "new"], "{\"singer_state\":{\"bookmarks\":{\"t\":1.0}}}\n");
    assert_eq!(Desk::with("true").edit(&sandbox, &["edit", ""]).code, 2);
}

#[test]
fn a_dry_run_takes_no_lock_and_shows_what_was_edited() {
    let sandbox = ready();
    set(&sandbox, "a", 1);
    sandbox.sql("INSERT INTO {}.state_lock (state_id, lock_id) VALUES ('a', 'rival')");
    let before = stored(&sandbox);
    let desk = Desk::with("sed -i 's/1/2/' \"$1\"");
    let run = desk.edit(&sandbox, &["edit", "a", "--dry-run"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("  ~ .completed.singer_state.n: 1 → 2\n"), "{}", run.stdout);
    assert_eq!(stored(&sandbox), before);
}
