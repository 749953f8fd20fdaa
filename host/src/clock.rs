//! `wasi:clocks/monotonic-clock`, with waits that the host can end.
//!
//! A wait until a moment ends early when the call is called off; the component then gives up what it holds and returns an
//! error. A wait for a duration, by which it bounds its requests, takes its time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::clocks::{WasiClocksCtxView, WasiClocksView as _};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::{self, Host};
use wasmtime_wasi_io::async_trait;
use wasmtime_wasi_io::poll::{Pollable, subscribe};

use crate::activity::Activity;
use crate::context::Context;

pub(crate) fn add_to_linker(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    monotonic_clock::add_to_linker::<Context, Clock<'static>>(linker, |context| {
        let activity = Arc::clone(&context.egress.activity);
        Clock { clocks: context.clocks(), activity }
    })
}

struct Clock<'a> {
    clocks: WasiClocksCtxView<'a>,
    activity: Arc<Activity>,
}

impl HasData for Clock<'static> {
    type Data<'a> = Clock<'a>;
}

impl Host for Clock<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.clocks.now()
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        self.clocks.resolution()
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let wait = Duration::from_nanos(when.saturating_sub(self.now()?));
        // None is so far away that it never comes.
        let until = Instant::now().checked_add(wait);
        let wait = self.clocks.table.push(Wait { until, activity: Arc::clone(&self.activity) })?;
        subscribe(self.clocks.table, wait)
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.clocks.subscribe_duration(duration)
    }
}

struct Wait {
    until: Option<Instant>,
    activity: Arc<Activity>,
}

#[async_trait]
impl Pollable for Wait {
    async fn ready(&mut self) {
        let until = self.until;
        let come = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = pin!(come) => {}
            () = self.activity.called_off() => {}
        }
    }
}
