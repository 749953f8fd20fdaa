//! What the requests of an instance are doing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::transport::TlsFailure;

/// What the requests of an instance are doing: shared between an instance, its requests, and who watches a call.
#[derive(Debug, Default)]
pub struct Activity {
    in_flight: AtomicUsize,
    requests: AtomicUsize,
    /// An answer of this call was too large.
    large_response: AtomicBool,
    /// And the component has not been told yet.
    refuse_next: AtomicBool,
    /// Why the last handshake failed.
    tls_failure: Mutex<Option<TlsFailure>>,
    /// A certificate was accepted unseen.
    unverified: AtomicBool,
    /// Whether calls are to end.
    called_off: watch::Sender<bool>,
}

impl Activity {
    /// How many requests wait for their answer now. None during a call means that the component waits by itself, as it
    /// does for a lock that another process holds.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// How many requests were sent so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Tells the call that is under way, and all later ones, to end: nothing is waited for any more, neither a lock that
    /// another holds nor the time to ask the server again. A call that waits gives up what it holds and fails; one that does
    /// not goes on to its end. Requests take the time they take, so whoever wants an end by all means drops the call's
    /// future after a while.
    pub fn call_off(&self) {
        self.called_off.send_replace(true);
    }

    /// Waits until the calls are to end.
    pub(crate) async fn called_off(&self) {
        // The sender lives as long as this.
        let _ = self.called_off.subscribe().wait_for(|off| *off).await;
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Notes an answer that was larger than allowed, and whether the component knows.
    pub(crate) fn note_large_response(&self, component_knows: bool) {
        self.large_response.store(true, Ordering::Relaxed);
        self.refuse_next.store(!component_knows, Ordering::Relaxed);
    }

    /// Whether the next request is to be refused for the size of the last answer. A component cannot learn why reading
    /// an answer failed; it takes the connection for lost and asks again, and to a request it can be told.
    pub(crate) fn take_refuse_next(&self) -> bool {
        self.refuse_next.swap(false, Ordering::Relaxed)
    }

    /// Notes why there is no TLS session. The component learns the kind of failure alone.
    pub(crate) fn note_tls_failure(&self, failure: TlsFailure) {
        *self.tls_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    /// Why the last handshake failed, once.
    pub(crate) fn take_tls_failure(&self) -> Option<TlsFailure> {
        self.tls_failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes that a request goes to whoever answers.
    pub(crate) fn note_unverified(&self) {
        self.unverified.store(true, Ordering::Relaxed);
    }

    /// Whether a request went to whoever answered.
    pub(crate) fn unverified(&self) -> bool {
        self.unverified.load(Ordering::Relaxed)
    }

    /// Whether an answer since the last call of this was too large.
    pub(crate) fn take_large_response(&self) -> bool {
        self.refuse_next.store(false, Ordering::Relaxed);
        self.large_response.swap(false, Ordering::Relaxed)
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
