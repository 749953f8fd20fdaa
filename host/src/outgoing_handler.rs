//! `wasi:http/outgoing-handler`, without the leak that the library's version has.
//!
//! `wasmtime-wasi-http` 48 leaves the options of every request in the resource table, where nobody can remove them
//! any more. An instance that lives long would run into the limit of its table.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler::Host as _;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::{RequestOptions, WasiHttpView as _};

use crate::context::Context;

/// Every 0.2 release of the interface matches this name.
const INTERFACE: &str = "wasi:http/outgoing-handler@0.2.2";

type Arguments = (Resource<HostOutgoingRequest>, Option<Resource<RequestOptions>>);
type Answer = Result<Resource<HostFutureIncomingResponse>, ErrorCode>;

pub(crate) fn add_to_linker(linker: &mut Linker<Context>) -> wasmtime::Result<()> {
    linker.instance(INTERFACE)?.func_wrap("handle", handle)
}

fn handle(mut store: StoreContextMut<'_, Context>, (request, options): Arguments) -> wasmtime::Result<(Answer,)> {
    let mut http = store.data_mut().http();
    let copy = options.as_ref().map(|options| Resource::new_own(options.rep()));
    let answer = http.handle(request, copy);
    if let Some(options) = options {
        http.table.delete(options)?;
    }
    match answer {
        Ok(response) => Ok((Ok(response),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}
