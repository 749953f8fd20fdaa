//! Connections over which a server may answer before it has read the request, and close.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower_service::Service;

/// A connector whose connections are [`Refusable`].
#[derive(Clone, Debug)]
pub(super) struct Connector<C>(pub(super) C);

impl<C> Service<Uri> for Connector<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
{
    type Response = Refusable<C::Response>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.0.call(uri);
        Box::pin(async move { Ok(Refusable { inner: connecting.await?, refused: false }) })
    }
}

/// A connection that throws away what is written after the server has closed it. Its answer, such as a status of 413,
/// may have come before, and is read then; a failing write would hide it.
#[derive(Debug)]
pub(super) struct Refusable<T> {
    inner: T,
    refused: bool,
}

impl<T: Write + Unpin> Refusable<T> {
    fn write(
        &mut self,
        length: usize,
        write: impl FnOnce(Pin<&mut T>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.refused {
            return Poll::Ready(Ok(length));
        }
        match write(Pin::new(&mut self.inner)) {
            Poll::Ready(Err(error)) if is_closed(&error) => {
                self.refused = true;
                Poll::Ready(Ok(length))
            }
            other => other,
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

impl<T: Write + Unpin> Write for Refusable<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(bytes.len(), |inner| inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum();
        self.write(length, |inner| inner.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refused { Poll::Ready(Ok(())) } else { Pin::new(&mut self.inner).poll_flush(context) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.refused { Poll::Ready(Ok(())) } else { Pin::new(&mut self.inner).poll_shutdown(context) }
    }
}

impl<T: Read + Unpin> Read for Refusable<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: Connection> Connection for Refusable<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}
