//! What an instance of the component holds on the host's side.

use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::{clocks, random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_config::{WasiConfig, WasiConfigVariables};
use wasmtime_wasi_http::p2::bindings::http;
use wasmtime_wasi_http::{WasiHttp, WasiHttpCtx, WasiHttpCtxView, WasiHttpView};
use wasmtime_wasi_io::bindings::wasi::io;

use crate::clock;
use crate::egress::Egress;
use crate::limits::MemoryLimit;
use crate::outgoing_handler;

/// The data of a store.
pub(crate) struct Context {
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) http: WasiHttpCtx,
    pub(crate) egress: Egress,
    pub(crate) settings: Arc<WasiConfigVariables>,
    pub(crate) memory: MemoryLimit,
}

impl WasiView for Context {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Context {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.egress, table: &mut self.table, ctx: &mut self.http }
    }
}

/// Offers the component what its world imports and nothing else: no files, sockets, environment or standard streams.
pub(crate) fn link(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    io::error::add_to_linker::<Context, HasTable>(linker, |context| &mut context.table)?;
    io::poll::add_to_linker::<Context, HasTable>(linker, |context| &mut context.table)?;
    io::streams::add_to_linker::<Context, HasTable>(linker, |context| &mut context.table)?;
    clock::add_to_linker(linker)?;
    clocks::wall_clock::add_to_linker::<Context, WasiClocks>(linker, Context::clocks)?;
    random::random::add_to_linker::<Context, WasiRandom>(linker, |context| context.wasi.random())?;
    let no_extras = http::types::LinkOptions::default();
    http::types::add_to_linker::<Context, WasiHttp>(linker, &no_extras, Context::http)?;
    outgoing_handler::add_to_linker(linker)?;
    wasmtime_wasi_config::add_to_linker(linker, |context: &mut Context| WasiConfig::from(&*context.settings))
}

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}
