//! What wit-bindgen generates from `wit/`. The interfaces of WASI are waki's and the `wasi` crate's.

#![allow(unsafe_code, missing_docs, unused_qualifications, unreachable_pub, clippy::all, reason = "generated")]

wit_bindgen::generate!({
    path: "wit",
    world: "component",
    with: {
        "wasi:config/store@0.2.0-rc.1": generate,
        "wasi:clocks/monotonic-clock@0.2.2": ::waki::bindings::wasi::clocks::monotonic_clock,
        "wasi:clocks/wall-clock@0.2.2": ::wasi::clocks::wall_clock,
        "wasi:http/outgoing-handler@0.2.2": ::waki::bindings::wasi::http::outgoing_handler,
        "wasi:http/types@0.2.2": ::waki::bindings::wasi::http::types,
        "wasi:io/error@0.2.2": ::waki::bindings::wasi::io::error,
        "wasi:io/poll@0.2.2": ::waki::bindings::wasi::io::poll,
        "wasi:io/streams@0.2.2": ::waki::bindings::wasi::io::streams,
        "wasi:random/random@0.2.2": ::wasi::random::random,
        "meltano:state-backend/types@0.1.0": generate,
    },
});
