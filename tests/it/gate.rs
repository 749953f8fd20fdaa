//! A gate before the real server: it lets through, stands still, or slams.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use url::Url;

use crate::forwarder::server_address;
use crate::host::server::Server;
use crate::sandbox::Sandbox;

const OPEN: u8 = 0;
const STILL: u8 = 1;
const SLAMMED: u8 = 2;

/// A way to the real server that can be shut.
pub(crate) struct Gate {
    server: Server,
    way: Arc<AtomicU8>,
    /// How many requests stand before it.
    held_up: Arc<AtomicUsize>,
}

impl Gate {
    pub(crate) fn open() -> Self {
        let way = Arc::new(AtomicU8::new(OPEN));
        let held_up = Arc::new(AtomicUsize::new(0));
        let seen = (Arc::clone(&way), Arc::clone(&held_up));
        Self { server: Server::start(move |client| forward(client, &seen.0, &seen.1)), way, held_up }
    }

    /// From now on no request comes through, and none is answered: as a server that was stopped.
    pub(crate) fn stand_still(&self) {
        self.way.store(STILL, Ordering::SeqCst);
    }

    /// Lets new connections through again.
    pub(crate) fn let_through(&self) {
        self.held_up.store(0, Ordering::SeqCst);
        self.way.store(OPEN, Ordering::SeqCst);
    }

    /// From now on each connection is closed when something is sent.
    pub(crate) fn slam(&self) {
        self.way.store(SLAMMED, Ordering::SeqCst);
    }

    /// Waits until a request stands before it.
    pub(crate) fn wait_for_request(&self) {
        let start = Instant::now();
        while self.held_up.load(Ordering::SeqCst) == 0 {
            assert!(start.elapsed() < Duration::from_secs(20), "no request comes");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The sandbox's URI by way of the gate.
    pub(crate) fn uri(&self, sandbox: &Sandbox) -> Url {
        let mut uri = sandbox.uri();
        uri.set_host(Some("127.0.0.1")).unwrap();
        uri.set_port(Some(self.server.address.port())).unwrap();
        uri
    }
}

fn forward(mut client: TcpStream, way: &AtomicU8, held_up: &AtomicUsize) {
    let mut server = TcpStream::connect(server_address()).unwrap();
    let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut buffer = [0; 1 << 16];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        match way.load(Ordering::SeqCst) {
            OPEN if server.write_all(&buffer[..length]).is_ok() => continue,
            STILL => {
                held_up.fetch_add(1, Ordering::SeqCst);
                // Until the other side has gone.
                let _ = std::io::copy(&mut client, &mut std::io::sink());
            }
            _ => {}
        }
        break;
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}
