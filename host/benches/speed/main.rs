//! The component in the host beside the same statements from a native client, and beside the Python add-on's workflow.
//!
//! `cargo xtask bench` runs this against an embedded ClickHouse. All sides take turns on one server; what is printed are
//! medians and ratios. Times depend on the machine, ratios hardly.

mod addon;
mod bulk;
mod cold;
mod crowd;
mod growth;
mod instances;
mod native;
mod phases;
mod plot;
mod report;
mod sides;
mod single;
mod states;
mod times;

use addon::Addon;
use report::Report;
use sides::Setup;

fn main() {
    if phases::is_child() {
        return phases::child();
    }
    // `cargo test --benches` only wants to know whether it builds.
    let Ok(uri) = std::env::var(sides::URI) else {
        println!("skipped: run cargo xtask bench");
        return;
    };
    let setup = Setup::new(uri);
    if let Some(file) = std::env::var_os("BENCH_GROWTH") {
        return growth::draw(&setup, file.as_ref());
    }
    let mut addon = std::env::var_os("PEERS_PYTHON").map(|python| Addon::start(&python, &setup.uri));
    let mut report = Report::default();
    for protocol in ["ticket", "settle"] {
        single::measure(&setup, protocol, addon.as_mut(), &mut report);
    }
    bulk::measure(&setup, addon.as_mut(), &mut report);
    crowd::measure(&setup, &mut report);
    cold::measure(&setup, &mut report);
    phases::measure(&setup, &mut report);
    instances::measure(&setup, &mut report);
    report.print();
    report.write(std::env::var_os("BENCH_JSON").map(Into::into));
}
