//! A server of a few lines, which says what a test wants to hear.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// An answer of ClickHouse where no table exists: reading finds nothing.
pub(crate) const NO_TABLE: &str = "HTTP/1.1 404 Not Found\r\nX-ClickHouse-Exception-Code: 60\r\nContent-Length: 66\r\n\r\n\
                            Code: 60. DB::Exception: Unknown table meltano.state. (UNKNOWN_TABLE)";

/// Listens on a free port of this machine until the test ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Serves every connection, each in a thread of its own.
    pub(crate) fn start(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let serve = serve.clone();
                thread::spawn(move || serve(stream));
            }
        });
        Self { address, connections }
    }

    /// Gives every request the same answer.
    pub(crate) fn answering(answer: &'static str) -> Self {
        Self::start(move |mut stream| {
            while read_request(&mut stream).is_some() {
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        })
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Reads one request, its body included, and returns its text; none at the end of the connection.
pub(crate) fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if is_complete(&text) {
            return Some(String::from_utf8_lossy(&text).into_owned());
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(length) => text.extend_from_slice(&buffer[..length]),
        }
    }
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}
