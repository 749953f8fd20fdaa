//! Calls of the embedded component over servers that exist only in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use meltano_state_host::wasi_http::{Error, RequestOptions, WasiBody};
use meltano_state_host::{
    Builder, CallError, ErrorKind, Fault, Faults, Instance, Limit, Limits, Plugin, Sending, Settings, Surroundings,
    Transport,
};
use tokio::time::Instant;

use super::server::NO_TABLE;
use crate::sandbox::component_error;

/// A server without tables: reading finds nothing.
struct NoTable;

impl Transport for NoTable {
    fn send(&self, _request: Request<WasiBody>, _options: RequestOptions) -> Sending<'_> {
        let (_, text) = NO_TABLE.split_once("\r\n\r\n").unwrap();
        let body = Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {});
        let answer = Response::builder()
            .status(404)
            .header("X-ClickHouse-Exception-Code", "60")
            .body(body.boxed_unsync())
            .unwrap();
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// A server that never answers.
struct Silent;

impl Transport for Silent {
    fn send(&self, _request: Request<WasiBody>, _options: RequestOptions) -> Sending<'_> {
        Box::pin(std::future::pending())
    }
}

/// A server whose answers are too large every other time: the first says so, the third shows it only by going on.
struct Large(AtomicUsize);

impl Transport for Large {
    fn send(&self, request: Request<WasiBody>, options: RequestOptions) -> Sending<'_> {
        let body = Full::new(Bytes::from_static(&[b' '; 5000])).map_err(|never| match never {});
        let body = match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => body.boxed_unsync(),
            2 => body.map_frame(|frame| frame).boxed_unsync(),
            _ => return NoTable.send(request, options),
        };
        Box::pin(std::future::ready(Ok(Response::new(body))))
    }
}

/// A server whose answer does not end.
struct Endless;

impl Transport for Endless {
    fn send(&self, _request: Request<WasiBody>, _options: RequestOptions) -> Sending<'_> {
        Box::pin(std::future::ready(Ok(Response::new(Zeros.boxed_unsync()))))
    }
}

struct Zeros;

impl Body for Zeros {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 1 << 16])))))
    }
}

fn builder(transport: impl Transport + 'static) -> Builder {
    let settings = Settings::new().with("uri", "clickhouse://me:s3cret@db.example/d").unwrap();
    Plugin::builder().settings(settings).transport(transport)
}

async fn instance(builder: Builder) -> Instance {
    builder.build().unwrap().instance().await.unwrap()
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up_and_the_next_one_works() {
    let deadline = Duration::from_millis(100);
    let slow_once = Faults::over(NoTable).at(0, Fault::Delay(Duration::from_secs(30)));
    let mut instance = instance(builder(slow_once).limits(limits(|limits| limits.call = deadline))).await;
    assert_eq!(instance.get("dev:a").await, Err(CallError::TimedOut(deadline)));
    assert_eq!(instance.get("dev:a").await, Ok(None));
}

#[tokio::test]
async fn a_call_may_be_dropped_and_the_next_one_works() {
    let slow_once = Faults::over(NoTable).at(0, Fault::Delay(Duration::from_secs(30)));
    let mut instance = instance(builder(slow_once)).await;
    let dropped = tokio::time::timeout(Duration::from_millis(50), instance.get("dev:a")).await;
    assert!(dropped.is_err());
    assert_eq!(instance.get("dev:a").await, Ok(None));
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_named() {
    let transport = Arc::new(Large(AtomicUsize::new(0)));
    let limits = limits(|limits| limits.response = 1000);
    let mut instance = instance(builder(Arc::clone(&transport)).limits(limits)).await;
    for _ in 0..2 {
        assert_eq!(instance.get("dev:a").await, Err(CallError::Limit(Limit::Response(1000))));
        assert_eq!(instance.get("dev:a").await, Ok(None));
    }
    assert_eq!(transport.0.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_host_without_limits_is_not_exhausted_either() {
    let limits = limits(|limits| (limits.response, limits.memory) = (usize::MAX, 1 << 30));
    let mut instance = instance(builder(Endless).limits(limits)).await;
    let error = component_error(instance.get("dev:a").await);
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert!(error.message.contains("too large: more than 128 MiB"), "{error}");
}

#[tokio::test]
async fn memory_is_limited() {
    let megabytes = 3 << 20;
    let large = Fault::Answer { status: 200, body: vec![b' '; 2 * megabytes].into() };
    let faults = Faults::over(NoTable).at(0, large);
    let mut instance = instance(builder(faults).limits(limits(|limits| limits.memory = megabytes))).await;
    assert_eq!(instance.get("dev:a").await, Err(CallError::Limit(Limit::Memory(megabytes))));
    assert_eq!(instance.get("dev:a").await, Ok(None));
}

#[tokio::test]
async fn handles_are_limited_and_none_is_left_behind() {
    let mut starved = instance(builder(NoTable).limits(limits(|limits| limits.resources = 2))).await;
    assert_eq!(starved.get("dev:a").await, Err(CallError::Limit(Limit::Resources(2))));
    let mut instance = instance(builder(NoTable).limits(limits(|limits| limits.resources = 20))).await;
    for _ in 0..100 {
        assert_eq!(instance.get("dev:a").await, Ok(None));
    }
}

#[tokio::test(start_paused = true)]
async fn in_virtual_time_waiting_takes_no_time() {
    let real = std::time::Instant::now();
    let start = Instant::now();
    let surroundings = Surroundings::virtual_time(Duration::from_secs(1_800_000_000), 1);
    let mut instance = instance(builder(Silent).surroundings(surroundings)).await;
    let Err(CallError::Error(error)) = instance.get("dev:a").await else { panic!("the server is silent") };
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert!(start.elapsed() >= Duration::from_secs(59), "{:?}", start.elapsed());
    assert!(real.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn activity_shows_a_waiting_request() {
    let plugin = builder(Silent).build().unwrap();
    assert_eq!(plugin.destination().as_deref(), Some("db.example:8123"));
    let mut instance = plugin.instance().await.unwrap();
    let activity = instance.activity();
    let call = tokio::time::timeout(Duration::from_millis(200), instance.get("dev:a"));
    let (call, ()) = tokio::join!(call, async {
        while activity.in_flight() == 0 {
            tokio::task::yield_now().await;
        }
    });
    assert!(call.is_err());
    assert_eq!(activity.requests(), 1);
}

#[tokio::test]
async fn without_settings_the_component_explains_itself() {
    let transport = Arc::new(Faults::over(NoTable));
    let mut instance = instance(Plugin::builder().transport(Arc::clone(&transport))).await;
    let Err(CallError::Error(error)) = instance.get("dev:a").await else { panic!("nothing is set") };
    assert_eq!(error.kind, ErrorKind::MissingSetting);
    assert_eq!(transport.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_password_is_shown() {
    let builder = builder(Faults::over(NoTable).when(|_| true, Fault::FailBefore));
    let plugin = builder.surroundings(Surroundings::virtual_time(Duration::ZERO, 1)).build().unwrap();
    let mut instance = plugin.instance().await.unwrap();
    let error = instance.get("dev:a").await.unwrap_err();
    let shown = format!("{plugin:?} {instance:?} {error:?} {error}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn what_a_multi_threaded_program_needs() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Plugin>();
    // Never run: it only has to compile.
    let _ = async |instance: &mut Instance| {
        send(instance.get("dev:a")).await.unwrap();
        send(instance.clear_all()).await.unwrap();
    };
}

#[tokio::test]
async fn pooled_instances_are_limited_and_leave_their_room_behind() {
    let plugin = builder(NoTable).pool(2).build().unwrap();
    for _ in 0..3 {
        let mut instances = [plugin.instance().await.unwrap(), plugin.instance().await.unwrap()];
        for instance in &mut instances {
            assert_eq!(instance.get("dev:a").await, Ok(None));
        }
        assert_eq!(plugin.instance().await.err(), Some(CallError::Limit(Limit::Instances)));
    }
}

#[tokio::test]
async fn a_pooled_instance_starts_afresh_after_a_call_that_was_given_up() {
    let deadline = Duration::from_millis(100);
    let slow_once = Faults::over(NoTable).at(0, Fault::Delay(Duration::from_secs(30)));
    let builder = builder(slow_once).limits(limits(|limits| limits.call = deadline)).pool(1);
    let mut instance = instance(builder).await;
    assert_eq!(instance.get("dev:a").await, Err(CallError::TimedOut(deadline)));
    assert_eq!(instance.get("dev:a").await, Ok(None));
}
