//! What an instance costs: the time to make one, and memory.

use meltano_state_host::{Instance, Plugin};

use crate::report::{Report, Row};
use crate::sides::Setup;
use crate::states::ID;
use crate::times::{Times, timed};

const ROUNDS: usize = 2_000;
/// How many are alive at once where their memory is measured.
const CROWD: u32 = 200;

pub(crate) fn measure(setup: &Setup, report: &mut Report) {
    let builder = || Plugin::builder().settings(setup.settings("bench_cold", &[]));
    let plugin = builder().build().expect("a plugin");
    let pooled = builder().pool(CROWD).build().expect("a plugin");
    let make = |plugin: &Plugin| setup.runtime.block_on(plugin.instance()).expect("an instance");
    for (kind, plugin) in [("", &plugin), (", pooled", &pooled)] {
        eprintln!("new instance{kind}: {ROUNDS} rounds");
        let (mut made, mut dropped) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (time, instance) = timed(|| make(plugin));
            made.push(time);
            dropped.push(timed(|| drop(instance)).0);
        }
        report.add(Row::new(format!("new instance{kind}"), vec![Times::new(made)]));
        report.add(Row::new(format!("end of an instance{kind}"), vec![Times::new(dropped)]));
    }

    let working = || {
        let mut instance = make(&plugin);
        setup.runtime.block_on(instance.get(ID)).expect("get");
        instance
    };
    // What the first ones need is needed once.
    drop([working(), working()]);
    let before = resident();
    let instances: Vec<Instance> = (0..CROWD).map(|_| working()).collect();
    if let (Some(before), Some(after)) = (before, resident()) {
        report.fact("memory of an instance after a get", (after - before) / f64::from(CROWD), "MiB");
        report.fact("memory of the process with 200", after, "MiB");
    }
    drop(instances);
}

/// The memory of this process that is in use, in MiB, where the system says it as Linux does.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}
