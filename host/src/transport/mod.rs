//! How requests reach the server.

mod failure;
mod faults;
mod pooled;
mod refusable;
mod tls;
mod tls_failure;
mod unverified;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

pub use faults::{Fault, Faults, Seen};
pub use pooled::PooledClient;
pub use tls::{Tls, TlsError};
pub(crate) use tls_failure::TlsFailure;

/// The time limit of WASI HTTP hosts for each of the three waits where a component sets none: 600 s, as in
/// `wasmtime_wasi_http`.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// What a [`Transport`] promises: the answer up to its headers, the body still being received.
pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<WasiBody>, Error>> + Send + 'a>>;

/// Carries requests to the server and answers back.
///
/// The request's URI is absolute and its `Host` header set. An implementation applies the limits for connecting and
/// for the first byte, [`DEFAULT_TIMEOUT`] where they are absent; the host applies the one between bytes. It says
/// [`Error::ConnectionRefused`], [`Error::ConnectionTimeout`], `Dns…`, `Destination…` or `Tls…` only if the server has
/// not seen the request: the component repeats a write after these.
pub trait Transport: Send + Sync {
    /// Sends one request.
    fn send(&self, request: Request<WasiBody>, options: RequestOptions) -> Sending<'_>;
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn send(&self, request: Request<WasiBody>, options: RequestOptions) -> Sending<'_> {
        (**self).send(request, options)
    }
}
