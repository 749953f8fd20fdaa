//! The merge beside Python's own, on random documents.

use std::io::Write as _;
use std::process::{Command, Stdio};

use meltano_state_backend_clickhouse::state::merge;

use crate::peers::peer;
use crate::rng::Rng;

const PAIRS: usize = 20_000;
const KEYS: [&str; 8] = ["a", "b", "singer_state", "bookmarks", "é", "\"\\\n\u{1}", "", "🦀"];
const SCALARS: [&str; 12] = [
    "null",
    "true",
    "false",
    "0",
    "-0.0",
    "1.10",
    "1E400",
    "12345678901234567890123",
    "\"\"",
    "\"é\"",
    "\"\\n\\\\\"",
    "[]",
];

/// An object in the form that Python prints.
fn object(rng: &mut Rng, levels: u64) -> String {
    let mut keys = KEYS.to_vec();
    let members: Vec<String> = (0..rng.below(5))
        .map(|_| {
            let key = keys.swap_remove(usize::try_from(rng.below(keys.len() as u64)).unwrap());
            format!("{}:{}", serde_json::to_string(key).unwrap(), value(rng, levels))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn value(rng: &mut Rng, levels: u64) -> String {
    match rng.below(10) {
        0..6 if levels > 0 => object(rng, levels - 1),
        6 if levels > 0 => format!("[{},{}]", value(rng, levels - 1), value(rng, levels - 1)),
        _ => rng.pick(&SCALARS).to_owned(),
    }
}

#[test]
fn merges_as_python_does() {
    let Some(python) = peer("PEERS_PYTHON") else { return };
    let mut rng = Rng::new(7);
    let pairs: Vec<[String; 2]> = (0..PAIRS).map(|_| [object(&mut rng, 4), object(&mut rng, 4)]).collect();
    let mut process = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/merge.py"))
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let lines: String = pairs.iter().map(|[source, destination]| format!("{source}\t{destination}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = process.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();

    let printed = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<&str> = printed.lines().collect();
    assert_eq!(expected.len(), PAIRS);
    let mut compared = 0;
    for ([source, destination], expected) in pairs.iter().zip(expected) {
        let merged = merge(source, destination).unwrap();
        // Where Meltano crashes, an object meets what is none; ours replaces it: see the cases.
        if expected != "crash" {
            assert_eq!(merged, expected, "{source} over {destination}");
            compared += 1;
        }
    }
    assert!(compared > PAIRS / 2, "{compared} of {PAIRS} compared");
}
