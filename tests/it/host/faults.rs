//! Each fault does what its name says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use meltano_state_host::wasi_http::{Error, RequestOptions, WasiBody};
use meltano_state_host::{Fault, Faults, Sending, Transport};
use tokio::time::Instant;

use super::transport::request;

/// Answers `12345` and counts what it sees.
#[derive(Default)]
struct Peer(AtomicUsize);

impl Transport for Peer {
    fn send(&self, _request: Request<WasiBody>, _options: RequestOptions) -> Sending<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let body = Full::new(Bytes::from_static(b"12345")).map_err(|never| match never {});
        Box::pin(std::future::ready(Ok(Response::new(body.boxed_unsync()))))
    }
}

/// The status and the body of an answer (`Err` for a failure), and how many requests the peer saw.
async fn with(fault: Fault) -> (Result<(u16, Bytes), Error>, usize) {
    let peer = Arc::new(Peer::default());
    let faults = Faults::over(Arc::clone(&peer)).at(0, fault);
    let options = RequestOptions { first_byte_timeout: Some(Duration::from_secs(60)), ..RequestOptions::default() };
    let result = async {
        let answer = faults.send(request("http://h/?query=SELECT%201"), options).await?;
        Ok((answer.status().as_u16(), answer.into_body().collect().await?.to_bytes()))
    };
    let result = result.await;
    (result, peer.0.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn each_fault() {
    let answer = |text: &'static str| (200, Bytes::from_static(text.as_bytes()));

    let (result, seen) = with(Fault::Pass).await;
    assert_eq!((result.unwrap(), seen), (answer("12345"), 1));

    let start = Instant::now();
    let (result, seen) = with(Fault::Delay(Duration::from_secs(5))).await;
    assert_eq!((result.unwrap(), seen, start.elapsed().as_secs()), (answer("12345"), 1, 5));

    let start = Instant::now();
    let (result, seen) = with(Fault::Delay(Duration::from_secs(3600))).await;
    assert!(matches!(result, Err(Error::ConnectionReadTimeout)));
    assert_eq!((seen, start.elapsed().as_secs()), (0, 60));

    let (result, seen) = with(Fault::FailBefore).await;
    assert!(matches!(result, Err(Error::ConnectionTerminated)));
    assert_eq!(seen, 0);

    let (result, seen) = with(Fault::FailAfter).await;
    assert!(matches!(result, Err(Error::ConnectionTerminated)));
    assert_eq!(seen, 1);

    let (result, seen) = with(Fault::CutBody(3)).await;
    assert!(matches!(result, Err(Error::HttpResponseIncomplete)));
    assert_eq!(seen, 1);

    let body = Bytes::from_static(b"<html>");
    let (result, seen) = with(Fault::Answer { status: 502, body: body.clone() }).await;
    assert_eq!((result.unwrap(), seen), ((502, body), 0));
}

#[tokio::test]
async fn rules_see_the_request_and_the_first_that_matches_counts() {
    let faults = Faults::over(Peer::default())
        .when(|seen| seen.contains("INSERT"), Fault::FailAfter)
        .when(|seen| seen.contains("SELECT 1") && seen.body == b"SELECT 1", Fault::FailBefore)
        .at(1, Fault::Pass);
    let send = async |uri: &str| faults.send(request(uri), RequestOptions::default()).await.is_ok();
    assert!(!send("http://h/?query=SELECT%201").await);
    assert!(!send("http://h/?query=INSERT").await);
    faults.clear();
    assert!(send("http://h/?query=INSERT").await);
    assert_eq!(faults.requests(), 3);
}
