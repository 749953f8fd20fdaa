//! The body of an answer, with the limits that hold while it is read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::activity::{Activity, InFlight};

/// Passes a body on, until it is larger than allowed or its next part takes too long.
pub(crate) struct ResponseBody {
    body: WasiBody,
    /// In bytes.
    limit: usize,
    received: usize,
    between_bytes: Duration,
    /// Runs only while nothing is there to read.
    timer: Option<Pin<Box<Sleep>>>,
    activity: Arc<Activity>,
    /// The request counts as waiting until its answer is complete.
    _in_flight: InFlight,
}

impl ResponseBody {
    /// # Errors
    /// If the answer says by itself that it is larger than `limit` bytes.
    pub(crate) fn new(
        body: WasiBody,
        limit: usize,
        between_bytes: Duration,
        activity: Arc<Activity>,
        in_flight: InFlight,
    ) -> Result<Self, Error> {
        if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
            activity.note_large_response(true);
            return Err(too_large(limit));
        }
        Ok(Self { body, limit, received: 0, between_bytes, timer: None, activity, _in_flight: in_flight })
    }
}

pub(crate) fn too_large(limit: usize) -> Error {
    Error::HttpResponseBodySize(u64::try_from(limit).ok())
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.timer = None;
            if let Some(Ok(frame)) = &frame {
                this.received = this.received.saturating_add(frame.data_ref().map_or(0, Bytes::len));
                if this.received > this.limit {
                    this.activity.note_large_response(false);
                    return Poll::Ready(Some(Err(too_large(this.limit))));
                }
            }
            return Poll::Ready(frame);
        }
        let between_bytes = this.between_bytes;
        let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(between_bytes)));
        timer.as_mut().poll(context).map(|()| Some(Err(Error::ConnectionReadTimeout)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    const BETWEEN_BYTES: Duration = Duration::from_secs(60);

    fn limited(body: WasiBody, limit: usize) -> (ResponseBody, Arc<Activity>) {
        let activity = Arc::new(Activity::default());
        let in_flight = activity.begin();
        let body = ResponseBody::new(body, limit, BETWEEN_BYTES, Arc::clone(&activity), in_flight);
        (body.unwrap(), activity)
    }

    fn whole(text: &'static str) -> WasiBody {
        Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed_unsync()
    }

    #[tokio::test]
    async fn a_body_up_to_the_limit_passes() {
        let (body, activity) = limited(whole("1234"), 4);
        assert_eq!(activity.in_flight(), 1);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "1234");
        assert_eq!(activity.in_flight(), 0);
        assert!(!activity.take_large_response());
    }

    #[tokio::test]
    async fn a_larger_body_ends_with_an_error_that_the_host_remembers() {
        let unsized_body = whole("12345").map_frame(|frame| frame).boxed_unsync();
        let (body, activity) = limited(unsized_body, 4);
        assert!(matches!(body.collect().await, Err(Error::HttpResponseBodySize(Some(4)))));
        assert!(activity.take_refuse_next() && activity.take_large_response());
    }

    #[tokio::test]
    async fn a_body_that_names_a_larger_size_is_not_read() {
        let activity = Arc::new(Activity::default());
        let result = ResponseBody::new(whole("12345"), 4, BETWEEN_BYTES, Arc::clone(&activity), activity.begin());
        assert!(matches!(result, Err(Error::HttpResponseBodySize(Some(4)))));
        assert!(!activity.take_refuse_next() && activity.take_large_response());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_ends_with_a_timeout() {
        let stalled = whole("1").with_trailers(std::future::pending()).boxed_unsync();
        let (body, _) = limited(stalled, 4);
        let start = tokio::time::Instant::now();
        assert!(matches!(body.collect().await, Err(Error::ConnectionReadTimeout)));
        assert_eq!(start.elapsed().as_secs(), BETWEEN_BYTES.as_secs());
    }
}
