//! How times grow with the number of ids, and with the number of versions of one.

use std::path::Path;

use meltano_state_backend_clickhouse::ports::{Header, Request};
use meltano_state_host::{Instance, Plugin};
use tokio::runtime::Runtime;

use crate::native::Native;
use crate::plot::{self, Curve, Point};
use crate::sides::{Setup, resolved};
use crate::states::{content, id, state};
use crate::times::{Side, in_turns, timed};

const SCHEMA: &str = "bench_growth";
const IDS: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const VERSIONS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
const ROUNDS: usize = 60;
/// How many states a page has that is read.
const PAGE: u32 = 100;

/// Measures, and draws what came out into an SVG file.
pub(crate) fn draw(setup: &Setup, file: &Path) {
    let mut tables = Tables { setup, native: Native::new(&setup.runtime) };
    let mut empty = tables.create("empty");
    let mut of_ids = [GET, SET, GET_ALL].map(|operation| Curve::new(operation.name));
    for count in IDS {
        eprintln!("{count} ids");
        let mut filled = tables.create(&format!("ids_{count}"));
        tables.fill(&format!("ids_{count}"), count, "leftPad(toString(number), 7, '0')", "now64(3)");
        for (operation, curve) in [GET, SET, GET_ALL].iter().zip(&mut of_ids) {
            curve.points.push(tables.compare(operation, count, &mut filled, &mut empty));
        }
    }
    let mut of_versions = Curve::new(GET.name);
    for count in VERSIONS {
        eprintln!("{count} versions");
        let mut filled = tables.create(&format!("versions_{count}"));
        // One statement that keeps all: merges would remove what single writes left, sooner or later.
        tables.fill(&format!("versions_{count}"), count, "'0000000'", "now64(3) - toIntervalSecond(number)");
        of_versions.points.push(tables.compare(&GET, 0, &mut filled, &mut empty).at(count));
    }
    plot::draw(file, &of_ids, &of_versions);
}

struct Tables<'a> {
    setup: &'a Setup,
    native: Native<'a>,
}

/// What is measured on a table that has `usize` ids.
struct Operation {
    name: &'static str,
    run: fn(&Runtime, &mut Instance, usize),
}

const GET: Operation = Operation {
    name: "get",
    run: |runtime, instance, count| drop(runtime.block_on(instance.get(&id(count / 2))).expect("get")),
};

const SET: Operation = Operation {
    name: "set",
    run: |runtime, instance, count| {
        let state = state(&id(count / 2), count);
        runtime.block_on(instance.set(&state)).expect("set");
    },
};

const GET_ALL: Operation = Operation {
    name: "get-all, a page of 100",
    run: |runtime, instance, count| {
        let after = id(count / 2);
        drop(runtime.block_on(instance.get_all(None, Some(&after), Some(PAGE))).expect("a page"));
    },
};

impl Tables<'_> {
    /// An instance that works on a new table.
    fn create(&mut self, table: &str) -> Instance {
        let settings = self.setup.settings(SCHEMA, &[("table", table)]);
        self.native.requests(&resolved(&settings), |store| drop(store.init(false).expect("the tables")));
        let plugin = Plugin::builder().settings(settings).build().expect("a plugin");
        self.setup.runtime.block_on(plugin.instance()).expect("an instance")
    }

    /// Writes rows with one statement, as one part with nothing merged.
    fn fill(&self, table: &str, count: usize, number: &str, updated_at: &str) {
        let before = id(0);
        let (prefix, suffix) = before.split_once("0000000").expect("a number");
        let sql = format!(
            "INSERT INTO {SCHEMA}.{table} (state_id, partial_state, updated_at) \
             SELECT concat('{prefix}', {number}, '{suffix}'), '{}', {updated_at} FROM numbers({count}) \
             SETTINGS optimize_on_insert = 0, async_insert = 0, max_insert_block_size = 2000000, \
             min_insert_block_size_rows = 2000000, max_block_size = 2000000",
            content(0)
        );
        let settings = resolved(&self.setup.settings(SCHEMA, &[]));
        let request = Request {
            secure: settings.secure,
            authority: settings.authority(),
            path_and_query: "/?wait_end_of_query=1".to_owned(),
            headers: vec![
                ("x-clickhouse-user", Header::Plain(settings.user.clone())),
                ("x-clickhouse-key", Header::Secret(settings.password.0.clone())),
            ],
            body: sql.into_bytes(),
        };
        let answer = self.setup.runtime.block_on(self.native.sender().send(&request)).expect("an answer");
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }

    fn compare(&self, operation: &Operation, count: usize, filled: &mut Instance, empty: &mut Instance) -> Point {
        let runtime = &self.setup.runtime;
        let mut sides: Vec<Side> = vec![
            Box::new(move |_| timed(|| (operation.run)(runtime, filled, count)).0),
            Box::new(move |_| timed(|| (operation.run)(runtime, empty, count)).0),
        ];
        let times = in_turns(ROUNDS, &mut sides);
        let [filled, empty] = [times[0].median(), times[1].median()];
        eprintln!("  {}: {filled:.2} ms, empty {empty:.2} ms", operation.name);
        Point { count, filled, empty }
    }
}
