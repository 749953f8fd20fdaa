//! Files that are being written: they are complete, or not there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{ALL, command, ready, tell};
use crate::cli::{meltano_state, run};
use crate::gate::Gate;

/// The names of what is in a directory.
fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

fn wait_for_file(directory: &Path) {
    let start = Instant::now();
    while names(directory).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "no file appears");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_half_written_export_is_removed() {
    let sandbox = ready();
    for told in ALL {
        let gate = Gate::open();
        gate.stand_still();
        let directory = tempfile::tempdir().unwrap();
        let mut export = command(&gate.uri(&sandbox), &["export", "-o", "out"]);
        let child = export.current_dir(directory.path()).spawn().unwrap();
        gate.wait_for_request();
        let [half] = &names(directory.path())[..] else { panic!("no file is being written") };
        let mode = fs::metadata(directory.path().join(half)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let ended = tell(child, told);
        assert!(ended.by(told), "{ended:?}");
        assert!(names(directory.path()).is_empty());
    }
}

#[test]
fn an_export_is_for_its_owner_alone() {
    let sandbox = ready();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out");
    let export = || {
        let export = run(&sandbox, &["export", "-o", file.to_str().unwrap()]);
        assert_eq!(export.code, 0, "{}", export.stderr);
        fs::metadata(&file).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(export(), 0o600);
    // Who may read the file was decided before.
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    assert_eq!(export(), 0o640);
}

#[test]
fn nothing_is_printed_before_the_first_answer() {
    let sandbox = ready();
    let mut uri = sandbox.uri();
    uri.set_password(Some("wrong")).unwrap();
    for verb in [&["export"][..], &["export", "--format", "json"], &["list", "-l", "--format", "json"], &["list"]] {
        let run = meltano_state(&[("MELTANO_STATE_BACKEND_URI", uri.as_str())]).args_list(verb).run();
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{verb:?}: {}", run.stderr);
    }
}

/// What was typed is kept, and its place is named; what was only opened is removed.
#[test]
fn an_edited_text_is_kept() {
    let sandbox = ready();
    for (editor, kept) in
        [("exec sleep 60 #", 0), ("echo '{\"singer_state\":7}' > \"$1\"; touch begun; exec sleep 60 #", 1)]
    {
        let directory = tempfile::tempdir().unwrap();
        let mut edit = command(&sandbox.uri(), &["edit", "a"]);
        // The path stands after what the variable holds.
        let editor = format!("sh -c '{}' sh", editor.replace('\'', "'\\''"));
        let child =
            edit.env("EDITOR", editor).env("TMPDIR", directory.path()).current_dir(directory.path()).spawn().unwrap();
        wait_for_file(directory.path());
        let start = Instant::now();
        while kept == 1 && !directory.path().join("begun").exists() {
            assert!(start.elapsed() < Duration::from_secs(20), "the editor does not begin");
            sleep(Duration::from_millis(5));
        }
        let ended = tell(child, Signal::TERM);
        assert!(ended.by(Signal::TERM), "{ended:?}");
        let drafts: Vec<_> = names(directory.path()).into_iter().filter(|name| name.ends_with(".json")).collect();
        assert_eq!(drafts.len(), kept, "{ended:?}");
        assert!(drafts.iter().all(|draft| ended.stderr.contains(draft.as_str())), "{ended:?}");
        assert_eq!(sandbox.lock_rows(), "");
        assert_eq!(run(&sandbox, &["list"]).stdout, "");
    }
}
