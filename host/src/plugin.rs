//! A compiled component, ready to make instances.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use meltano_state_backend_clickhouse::settings::{LOCK_TABLE_TTL, Settings as Resolved};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Engine, PoolingAllocationConfig, Store};
use wasmtime_wasi_config::WasiConfigVariables;
use wasmtime_wasi_http::WasiHttpCtx;

use crate::activity::Activity;
use crate::bindings::{StateBackend, StateBackendPre};
use crate::cache::Cache;
use crate::component::COMPONENT;
use crate::context::{self, Context};
use crate::egress::{Destination, Egress};
use crate::error::{BuildError, CallError};
use crate::instance::Instance;
use crate::limits::{Limits, MemoryLimit};
use crate::settings::Settings;
use crate::surroundings::Surroundings;
use crate::ticker;
use crate::transport::{PooledClient, Transport};

/// The state backend, compiled and linked. Cloning it is cheap, and all clones share connections.
#[derive(Clone)]
pub struct Plugin(Arc<Shared>);

struct Shared {
    pre: StateBackendPre<Context>,
    settings: Arc<WasiConfigVariables>,
    allowed: Option<Arc<Destination>>,
    transport: Arc<dyn Transport>,
    limits: Limits,
    surroundings: Surroundings,
    lock_stale: Duration,
    lock_renewal: Duration,
}

/// Collects what a [`Plugin`] consists of.
#[must_use]
pub struct Builder {
    settings: Settings,
    limits: Option<Limits>,
    transport: Option<Arc<dyn Transport>>,
    surroundings: Surroundings,
    cache: Option<Cache>,
    /// How many instances to set memory aside for, if any.
    pool: Option<u32>,
    component: Vec<u8>,
}

impl Plugin {
    /// A plugin with the embedded component, no settings, the default limits and a [`PooledClient`].
    pub fn builder() -> Builder {
        Builder {
            settings: Settings::default(),
            limits: None,
            transport: None,
            surroundings: Surroundings::system(),
            cache: None,
            pool: None,
            component: Vec::new(),
        }
    }

    /// A new instance. Instances share nothing but connections, so each may serve another task.
    ///
    /// # Errors
    /// [`CallError::Trap`] if the component cannot start, as when the limits leave it too little memory.
    pub async fn instance(&self) -> Result<Instance, CallError> {
        Instance::new(self.clone()).await
    }

    /// `host:port` of the server that instances may reach. None if the settings name no server, because they are
    /// missing or invalid: then every call fails with the component's own explanation.
    #[must_use]
    pub fn destination(&self) -> Option<String> {
        self.0.allowed.as_ref().map(ToString::to_string)
    }

    /// The age at which a lock counts as abandoned.
    #[must_use]
    pub fn lock_stale(&self) -> Duration {
        self.0.lock_stale
    }

    /// How often to renew a lock that is held for long.
    #[must_use]
    pub fn lock_renewal(&self) -> Duration {
        self.0.lock_renewal
    }

    pub(crate) fn limits(&self) -> Limits {
        self.0.limits
    }

    pub(crate) async fn start(&self, activity: &Arc<Activity>) -> wasmtime::Result<(Store<Context>, StateBackend)> {
        let shared = &*self.0;
        let mut table = ResourceTable::new();
        table.set_max_capacity(shared.limits.resources);
        let context = Context {
            table,
            wasi: shared.surroundings.wasi(),
            http: WasiHttpCtx::new(),
            egress: Egress {
                allowed: shared.allowed.clone(),
                transport: Arc::clone(&shared.transport),
                response_limit: shared.limits.response,
                activity: Arc::clone(activity),
            },
            settings: Arc::clone(&shared.settings),
            memory: MemoryLimit { bytes: shared.limits.memory, exceeded: false },
        };
        let mut store = Store::new(shared.pre.engine(), context);
        store.limiter(|context| &mut context.memory);
        // What one call hands over to the host; without this 128 MiB, whatever the limits say.
        store.set_hostcall_fuel(shared.limits.memory);
        store.set_epoch_deadline(shared.surroundings.ticks_before_yielding());
        store.epoch_deadline_async_yield_and_update(1);
        let exports = shared.pre.instantiate_async(&mut store).await?;
        Ok((store, exports))
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("destination", &self.destination())
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// The settings of the component.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// What each instance may use.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// The way to the server, for all instances.
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// The time and the randomness that the component sees.
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// Where to keep the compiled component. Without this it is compiled each time, which takes about 0.1 s.
    pub fn cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets address space aside for this many instances, so that making and ending one takes a third of the time and no
    /// call of the system. For hosts that make an instance for each task; setting it aside takes some milliseconds.
    ///
    /// When so many exist, [`Plugin::instance`] fails with [`Limit::Instances`](crate::Limit::Instances).
    pub fn pool(mut self, instances: u32) -> Self {
        self.pool = Some(instances);
        self
    }

    /// Another component with the same exports, in place of the embedded one.
    pub fn component(mut self, wasm: impl Into<Vec<u8>>) -> Self {
        self.component = wasm.into();
        self
    }

    /// Compiles and links the component.
    ///
    /// Settings that are missing or invalid are no error here: the calls of an instance report them.
    ///
    /// # Errors
    /// When the component cannot be compiled or does not fit this host.
    pub fn build(self) -> Result<Plugin, BuildError> {
        let resolved = Resolved::load(&self.settings).ok();
        let limits = self.limits.unwrap_or_else(|| {
            let mut limits = Limits::default();
            if let Some(settings) = &resolved {
                // A call may wait for a lock as long as the settings say, and still has requests to send.
                limits.call = limits.call.max(settings.lock.wait + settings.request_timeout * 4);
            }
            limits
        });
        let engine = engine(self.pool)?;
        tracing::debug!("the engine is made");
        let wasm = if self.component.is_empty() { COMPONENT } else { &self.component };
        let component = match &self.cache {
            Some(cache) => cache.component(&engine, wasm),
            None => Component::new(&engine, wasm),
        };
        let component = component.map_err(|error| BuildError::Compile(format!("{error:#}")))?;
        tracing::debug!("the component is loaded");
        let mut linker = Linker::new(&engine);
        let pre = context::link(&mut linker)
            .and_then(|()| linker.instantiate_pre(&component))
            .and_then(StateBackendPre::new)
            .map_err(|error| BuildError::Link(format!("{error:#}")))?;
        tracing::debug!("the component is linked");
        let allowed = resolved.as_ref().map(Destination::new);
        Ok(Plugin(Arc::new(Shared {
            pre,
            settings: Arc::new(self.settings.to_wasi_config()),
            allowed: allowed.map(Arc::new),
            transport: self.transport.unwrap_or_else(|| Arc::new(PooledClient::default())),
            limits,
            surroundings: self.surroundings,
            lock_stale: resolved.as_ref().map_or(LOCK_TABLE_TTL, |settings| settings.lock.stale),
            lock_renewal: resolved.map_or(LOCK_TABLE_TTL / 3, |settings| settings.renew_interval()),
        })))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("settings", &self.settings)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

fn engine(pool: Option<u32>) -> Result<Engine, BuildError> {
    let mut config = Config::new();
    config.epoch_interruption(true);
    if let Some(instances) = pool {
        config.allocation_strategy(pooled(instances));
    }
    // Positions in the WebAssembly for backtraces, which this host does not print.
    config.generate_address_map(false);
    let engine = Engine::new(&config).map_err(|error| BuildError::Engine(format!("{error:#}")))?;
    ticker::start(&engine).map_err(|error| BuildError::Engine(format!("no thread for its timer: {error}")))?;
    Ok(engine)
}

/// Room for so many instances.
fn pooled(instances: u32) -> PoolingAllocationConfig {
    /// The module and the two that connect it to its imports, with two tables among them.
    const MODULES: u32 = 3;
    const TABLES: u32 = 2;
    /// How many bytes of an instance that ended are zeroed for the next one instead of given back to the system.
    const ZEROED: usize = 256 << 10;
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(MODULES))
        .total_tables(instances.saturating_mul(TABLES))
        .total_memories(instances)
        .total_stacks(instances)
        .linear_memory_keep_resident(ZEROED)
        .table_keep_resident(ZEROED);
    pool
}
