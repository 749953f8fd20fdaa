//! Who is compared: the component in the host, and the same logic on native ports.

use meltano_state_backend_clickhouse::clickhouse::Client;
use meltano_state_backend_clickhouse::ports::Ports;
use meltano_state_backend_clickhouse::settings::Settings as Resolved;
use meltano_state_backend_clickhouse::store::Store;
use meltano_state_host::{Instance, Plugin, Settings};
use tokio::runtime::Runtime;

use crate::addon::Addon;
use crate::native::Native;
use crate::report::Row;
use crate::times::{Side, in_turns, timed};

pub(crate) const URI: &str = "MELTANO_STATE_BACKEND_URI";

/// What all comparisons need.
pub(crate) struct Setup {
    pub(crate) uri: String,
    pub(crate) runtime: Runtime,
}

impl Setup {
    pub(crate) fn new(uri: String) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { uri, runtime }
    }

    /// Settings for tables in a database of their own.
    pub(crate) fn settings(&self, schema: &str, more: &[(&str, &str)]) -> Settings {
        let settings = Settings::new().with("uri", &self.uri);
        let settings = settings.and_then(|settings| settings.with("schema", schema)).expect("settings");
        more.iter().fold(settings, |settings, (name, value)| settings.with(name, *value).expect("a setting"))
    }
}

/// The tables of some settings, from both sides.
pub(crate) struct Sides<'a> {
    setup: &'a Setup,
    pub(crate) component: Instance,
    pub(crate) native: Store<'a>,
}

/// Something to do, by each side, in a round that has a number.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) component: fn(&Runtime, &mut Instance, usize),
    pub(crate) native: fn(&Store, usize),
    /// What the add-on is told, and by what its time is multiplied, since it does less.
    pub(crate) addon: Option<(&'static str, u32)>,
}

impl<'a> Sides<'a> {
    /// Creates the tables.
    pub(crate) fn new(setup: &'a Setup, settings: &Settings, resolved: &'a Resolved, native: &'a Native) -> Self {
        let plugin = Plugin::builder().settings(settings.clone()).build().expect("a plugin");
        let ports = Ports { http: native, clock: native, random: native };
        let native = Store::new(Client::new(ports, resolved));
        native.init(false).expect("the tables");
        Self { setup, component: setup.runtime.block_on(plugin.instance()).expect("an instance"), native }
    }

    pub(crate) fn compare(&mut self, name: String, rounds: usize, task: &Task, addon: Option<&mut Addon>) -> Row {
        eprintln!("{name}: {rounds} rounds");
        let (setup, component, native) = (self.setup, &mut self.component, &self.native);
        let mut sides: Vec<Side> = vec![
            Box::new(move |round| timed(|| (task.component)(&setup.runtime, component, round)).0),
            Box::new(move |round| timed(|| (task.native)(native, round)).0),
        ];
        if let (Some(addon), Some((operation, factor))) = (addon, task.addon) {
            sides.push(Box::new(move |_| addon.run(operation) * factor));
        }
        Row::new(name, in_turns(rounds, &mut sides))
    }
}

/// The settings as the backend itself reads them.
pub(crate) fn resolved(settings: &Settings) -> Resolved {
    Resolved::load(settings).expect("settings")
}
