//! An instance of the component and its calls.

use std::fmt;
use std::sync::Arc;

use meltano_state_backend_clickhouse::Warning;
use meltano_state_backend_clickhouse::diagnose::Report;
use meltano_state_backend_clickhouse::prepare::Prepared;
use meltano_state_backend_clickhouse::state::{Entry, RawState, State};
use meltano_state_backend_clickhouse::store::Keeping;
use tokio::time::error::Elapsed;
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Store};

use crate::activity::Activity;
use crate::bindings::{ComponentError, StateBackend};
use crate::context::Context;
use crate::error::CallError;
use crate::explained;
use crate::limits::Limit;
use crate::plugin::Plugin;

/// One instance of the component: one call at a time.
///
/// A call that trapped, ran out of time or was cancelled (its future dropped) leaves the component's memory in the
/// middle of something, so the next call starts afresh.
///
/// Each call fails with [`CallError::Error`] as the WIT package describes it, and with the other kinds as
/// [`CallError`] does.
///
/// A call that takes a lock itself returns what it left behind although it was carried out: a lock that could not be removed.
pub struct Instance {
    pub(crate) plugin: Plugin,
    activity: Arc<Activity>,
    running: Option<Running>,
    /// Which of the instance's stores is running: resources of an earlier one are gone.
    generation: u64,
}

pub(crate) struct Running {
    pub(crate) store: Store<Context>,
    pub(crate) exports: StateBackend,
}

pub(crate) type Outcome<T> = Result<wasmtime::Result<Result<T, ComponentError>>, Elapsed>;

/// Runs one export within the deadline.
macro_rules! call {
    ($instance:ident, |$exports:ident, $store:ident| $call:expr) => {{
        let mut running = $instance.begin().await?;
        let limit = $instance.plugin.limits().call;
        let outcome = {
            let ($exports, $store) = (&running.exports, &mut running.store);
            tokio::time::timeout(limit, $call).await
        };
        $instance.finish(running, outcome)
    }};
}
pub(crate) use call;

impl Instance {
    pub(crate) async fn new(plugin: Plugin) -> Result<Self, CallError> {
        let mut instance = Self { plugin, activity: Arc::default(), running: None, generation: 0 };
        instance.running = Some(instance.begin().await?);
        Ok(instance)
    }

    /// What the instance's requests are doing, to watch a call from another task.
    #[must_use]
    pub fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }

    /// Creates the database and the tables where they do not exist, upgrades a lock table of the Python add-on, and begins,
    /// changes or ends the history. Says what was done about each of them.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn init(&mut self) -> Result<Vec<Prepared>, CallError> {
        self.prepare(false).await
    }

    /// What [`Instance::init`] would do. Changes nothing.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn preview_init(&mut self) -> Result<Vec<Prepared>, CallError> {
        self.prepare(true).await
    }

    async fn prepare(&mut self, dry_run: bool) -> Result<Vec<Prepared>, CallError> {
        let prepared = call!(self, |exports, store| exports.meltano_state_backend_store().call_init(store, dry_run))?;
        Ok(prepared.into_iter().map(Into::into).collect())
    }

    /// The state of `state_id`, or none if there is none.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn get(&mut self, state_id: &str) -> Result<Option<State>, CallError> {
        let state = call!(self, |exports, store| exports.meltano_state_backend_store().call_get(store, state_id))?;
        Ok(state.map(Into::into))
    }

    /// What the next run of `state_id` starts from: its partial part laid over its completed part; none if that is nothing.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn get_merged(&mut self, state_id: &str) -> Result<Option<String>, CallError> {
        call!(self, |exports, store| exports.meltano_state_backend_store().call_get_merged(store, state_id))
    }

    /// What is stored of the state of `state_id`, even if it is no state.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn get_raw(&mut self, state_id: &str) -> Result<Option<RawState>, CallError> {
        let state = call!(self, |exports, store| exports.meltano_state_backend_store().call_get_raw(store, state_id))?;
        Ok(state.map(Into::into))
    }

    /// The next states that match a shell glob (no pattern: of all states), sorted by the bytes of their ids: those after
    /// the id `after`, or the first ones. A page has at most `limit` states, 10,000 if that is none, and about 8 MiB; the
    /// last page was reached when one is empty.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn get_all(
        &mut self,
        pattern: Option<&str>,
        after: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Vec<Entry>, CallError> {
        let page = call!(self, |exports, store| exports
            .meltano_state_backend_store()
            .call_get_all(store, pattern, after, limit))?;
        Ok(page.into_iter().map(Into::into).collect())
    }

    /// The ids of all states that match a shell glob (no pattern: of all states), sorted by their bytes.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn get_state_ids(&mut self, pattern: Option<&str>) -> Result<Vec<String>, CallError> {
        call!(self, |exports, store| exports.meltano_state_backend_store().call_get_state_ids(store, pattern))
    }

    /// Stores a state in place of any that its id has. Takes no lock.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn set(&mut self, state: &State) -> Result<(), CallError> {
        let state = state.into();
        call!(self, |exports, store| exports.meltano_state_backend_store().call_set(store, &state))
    }

    /// Stores many states as [`Instance::set`] does, with few statements, and says how many. Of several with one id the
    /// last is stored.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn set_all(&mut self, states: &[State]) -> Result<u64, CallError> {
        let states: Vec<_> = states.iter().map(Into::into).collect();
        call!(self, |exports, store| exports.meltano_state_backend_store().call_set_all(store, &states))
    }

    /// Records what a pipeline has reached, under the lock of the state id: a partial state is laid over the stored
    /// partial state, a completed one replaces all.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn update(&mut self, state: &State) -> Result<Vec<Warning>, CallError> {
        let state = state.into();
        let left = call!(self, |exports, store| exports.meltano_state_backend_store().call_update(store, &state))?;
        Ok(warnings(left))
    }

    /// Removes the state of `state_id`, if there is one. Takes no lock.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn delete(&mut self, state_id: &str) -> Result<(), CallError> {
        call!(self, |exports, store| exports.meltano_state_backend_store().call_delete(store, state_id))
    }

    /// Removes the state of `state_id`, if there is one, under its lock.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn clear(&mut self, state_id: &str) -> Result<Vec<Warning>, CallError> {
        let left = call!(self, |exports, store| exports.meltano_state_backend_store().call_clear(store, state_id))?;
        Ok(warnings(left))
    }

    /// Stores the state of `source` as that of `destination` too, under the lock of `destination`: the partial part laid
    /// over the completed one as the completed part, or with `keep_parts` both parts as they are.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn copy(&mut self, source: &str, destination: &str, keep_parts: bool) -> Result<Vec<Warning>, CallError> {
        let left = call!(self, |exports, store| exports.meltano_state_backend_store().call_copy(
            store,
            source,
            destination,
            keep_parts
        ))?;
        Ok(warnings(left))
    }

    /// Copies the state of `source` as [`Instance::copy`] does and then removes it, under the locks of both.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn move_state(
        &mut self,
        source: &str,
        destination: &str,
        keep_parts: bool,
    ) -> Result<Vec<Warning>, CallError> {
        let left = call!(self, |exports, store| exports.meltano_state_backend_store().call_move_state(
            store,
            source,
            destination,
            keep_parts
        ))?;
        Ok(warnings(left))
    }

    /// What is kept of earlier versions, of all states; none if nothing is, as far as the user may see.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn kept(&mut self) -> Result<Option<Keeping>, CallError> {
        let kept = call!(self, |exports, store| exports.meltano_state_backend_history().call_kept(store))?;
        Ok(kept.map(Into::into))
    }

    /// The versions of a state, newest first: those before the version `before`, or the newest ones. A page has at most
    /// `limit` versions, 1,000 if that is none, and about 8 MiB; the last page was reached when one is empty.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn versions(
        &mut self,
        state_id: &str,
        before: Option<i64>,
        limit: Option<u32>,
    ) -> Result<Vec<Entry>, CallError> {
        let page = call!(self, |exports, store| exports
            .meltano_state_backend_history()
            .call_versions(store, state_id, before, limit))?;
        Ok(page.into_iter().map(Into::into).collect())
    }

    /// Stores a version of [`Instance::versions`] again, as the newest one, under the lock.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn restore(&mut self, state_id: &str, version: i64) -> Result<Vec<Warning>, CallError> {
        let left = call!(self, |exports, store| exports
            .meltano_state_backend_history()
            .call_restore(store, state_id, version))?;
        Ok(warnings(left))
    }

    /// Removes all states and returns how many there were. Takes no lock.
    ///
    /// # Errors
    /// See [`Instance`].
    pub async fn clear_all(&mut self) -> Result<u64, CallError> {
        call!(self, |exports, store| exports.meltano_state_backend_store().call_clear_all(store))
    }

    /// Checks all that the backend needs, and changes nothing. What fails is in the report.
    ///
    /// # Errors
    /// As [`CallError`], without [`CallError::Error`].
    pub async fn check(&mut self) -> Result<Report, CallError> {
        let mut running = self.begin().await?;
        let call = running.exports.meltano_state_backend_diagnostics().call_check(&mut running.store);
        let outcome = tokio::time::timeout(self.plugin.limits().call, call).await;
        let report = self.finish(running, outcome.map(|report| report.map(Ok)))?;
        Ok(explained::report(report.into(), &self.activity))
    }

    /// Takes what is running, or starts it. It is put back only by a call that ended well, so a call that is dropped
    /// half-way takes its store with it.
    pub(crate) async fn begin(&mut self) -> Result<Running, CallError> {
        self.activity.take_large_response();
        if let Some(running) = self.running.take() {
            return Ok(running);
        }
        self.generation += 1;
        match self.plugin.start(&self.activity).await {
            Ok((store, exports)) => Ok(Running { store, exports }),
            Err(error) if error.is::<PoolConcurrencyLimitError>() => Err(CallError::Limit(Limit::Instances)),
            Err(error) => Err(CallError::Trap(format!("{error:#}"))),
        }
    }

    /// Starts a new store if a call has cost the last one.
    pub(crate) async fn ensure_running(&mut self) -> Result<(), CallError> {
        let running = self.begin().await?;
        self.running = Some(running);
        Ok(())
    }

    /// Which store is running, counted from 1.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn finish<T>(&mut self, running: Running, outcome: Outcome<T>) -> Result<T, CallError> {
        let limits = self.plugin.limits();
        match outcome {
            Err(_elapsed) => Err(CallError::TimedOut(limits.call)),
            Ok(Err(_)) if running.store.data().memory.exceeded => Err(CallError::Limit(Limit::Memory(limits.memory))),
            Ok(Err(trap)) if is_full_table(&trap) => Err(CallError::Limit(Limit::Resources(limits.resources))),
            Ok(Err(trap)) => Err(CallError::Trap(format!("{trap:#}"))),
            Ok(Ok(result)) => {
                self.running = Some(running);
                result.map_err(|error| {
                    // The component cannot know why its reading failed.
                    if self.activity.take_large_response() {
                        CallError::Limit(Limit::Response(limits.response))
                    } else {
                        CallError::Error(explained::error(error.into(), &self.activity))
                    }
                })
            }
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}

fn warnings(warnings: Vec<impl Into<Warning>>) -> Vec<Warning> {
    warnings.into_iter().map(Into::into).collect()
}

fn is_full_table(trap: &wasmtime::Error) -> bool {
    matches!(trap.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full))
}
