//! The port that an embedded server listens on.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};

/// A port on 127.0.0.1.
pub(super) struct Port {
    pub(super) number: u16,
    /// Set when the system chose the number. The socket is bound and does not listen: the number is then given
    /// to nobody else, while a socket of this user with SO_REUSEPORT can still be bound to it.
    pub(super) reservation: Option<Socket>,
}

impl Port {
    /// The port called `number`, which may turn out to be in use; with 0 a free one, which will not.
    pub(super) fn new(number: u16) -> Result<Self> {
        if number != 0 {
            return Ok(Self { number, reservation: None });
        }
        let reserve = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_reuse_port(true)?;
            socket.bind(&SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).into())?;
            let number = socket.local_addr()?.as_socket().map(|address| address.port());
            std::io::Result::Ok((socket, number))
        };
        let (socket, number) = reserve().context("cannot bind a port of 127.0.0.1")?;
        let number = number.context("the bound socket has no port")?;
        Ok(Self { number, reservation: Some(socket) })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reserved_port_can_be_bound_only_by_those_who_share_it() {
        let port = Port::new(0).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number));
        assert!(TcpListener::bind(address).is_err());

        let sharing = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        sharing.set_reuse_port(true).unwrap();
        sharing.bind(&address.into()).unwrap();
        sharing.listen(1).unwrap();
        std::net::TcpStream::connect(address).unwrap();
    }
}
