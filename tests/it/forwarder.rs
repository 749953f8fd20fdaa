//! What stands before the real server: plain forwarding, and TLS with certificates of our own.

use std::net::SocketAddr;
use std::sync::LazyLock;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::authority::{Authority, Validity};
use crate::server::SERVER;

/// Serves whatever a test starts, until the test process ends.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

impl Authority {
    /// A TLS terminator before the real server, with a certificate for `name`.
    pub(crate) fn terminate(&self, name: &str, validity: Validity) -> SocketAddr {
        self.terminator(name, validity, false, server_address())
    }

    /// One that asks for a certificate of this authority.
    pub(crate) fn terminate_for_known_clients(&self, name: &str) -> SocketAddr {
        self.terminator(name, Validity::Now, true, server_address())
    }

    /// One before something else.
    pub(crate) fn terminate_before(&self, name: &str, target: SocketAddr) -> SocketAddr {
        self.terminator(name, Validity::Now, false, target)
    }

    fn terminator(&self, name: &str, validity: Validity, asks: bool, target: SocketAddr) -> SocketAddr {
        let acceptor = self.acceptor(name, validity, asks);
        listen("127.0.0.1:0", move |stream| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    forward(stream, target).await;
                }
            }
        })
    }
}

/// The address of the real server's HTTP interface.
pub(crate) fn server_address() -> SocketAddr {
    let uri = SERVER.uri();
    let host = uri.host_str().unwrap_or("127.0.0.1").replace("localhost", "127.0.0.1");
    format!("{host}:{}", uri.port().unwrap_or(8123)).parse().expect("the server has an address")
}

/// Forwards connections to `address` unchanged.
pub(crate) fn forward_from(address: &str) -> SocketAddr {
    listen(address, |stream| forward(stream, server_address()))
}

async fn forward(mut stream: impl AsyncRead + AsyncWrite + Unpin, target: SocketAddr) {
    if let Ok(mut upstream) = TcpStream::connect(target).await {
        // Either side may break off.
        let _ = copy_bidirectional(&mut stream, &mut upstream).await;
    }
}

fn listen<F: Future<Output = ()> + Send + 'static>(
    address: &str,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = std::net::TcpListener::bind(address).expect("a free port");
    listener.set_nonblocking(true).expect("a socket that does not block");
    let address = listener.local_addr().expect("it has an address");
    RUNTIME.spawn(async move {
        let listener = TcpListener::from_std(listener).expect("a listener");
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}
