//! The connections of all ranks to the `pmmpi` process that supervises the screen: see [`pmmpi_workload::rank_watch`].

use libc::{POLLIN, pollfd};
use pmmpi::record::wire;
use pmmpi_workload::rank_watch::{Hello, WELCOME, WatchAddress, keep_alive};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// Connections that wait until this process accepts them; the system may allow fewer (net.core.somaxconn).
const LONGEST_QUEUE: libc::c_int = 4096;
/// Most bytes of a rank's first message.
const HELLO_BYTES: usize = 1024;

pub struct RankConnections {
    listener: TcpListener,
    address: WatchAddress,
    connections: Vec<Connection>,
    /// True if no descriptor is left for more connections.
    is_full: bool,
}

struct Connection {
    stream: TcpStream,
    /// What came before the rank was known.
    bytes: Vec<u8>,
    /// The rank; `None` until its first message is complete.
    of: Option<Hello>,
    /// True if the rank knows that the connection counts.
    is_confirmed: bool,
}

/// What a look at a connection shows.
enum News {
    None,
    /// The other side has ended, or is no rank of this job.
    Ended,
}

impl RankConnections {
    /// Waits for connections at the addresses of this node.
    pub fn listen() -> io::Result<Self> {
        let mut token = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut token)?;
        let addresses = addresses()?;
        // For both families, if there is IPv6.
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0));
        let listener = listener.or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        listener.set_nonblocking(true)?;
        // All ranks connect at the same time.
        // SAFETY: the call accesses no memory, and a socket that listens may listen again with a longer queue.
        unsafe { libc::listen(listener.as_raw_fd(), LONGEST_QUEUE) };
        let port = listener.local_addr()?.port();
        let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
        let address = WatchAddress { sockets, token };
        Ok(Self { listener, address, connections: Vec::new(), is_full: false })
    }

    /// Where the ranks connect.
    pub fn address(&self) -> &WatchAddress {
        &self.address
    }

    /// What to wait for with poll(2).
    pub fn polls(&self) -> Vec<pollfd> {
        let connections = self.connections.iter().map(|of| of.stream.as_raw_fd());
        [if self.is_full { -1 } else { self.listener.as_raw_fd() }]
            .into_iter()
            .chain(connections)
            .map(|fd| pollfd { fd, events: POLLIN, revents: 0 })
            .collect()
    }

    /// Accepts and reads what poll(2) found in [`Self::polls`]. Gives the ranks that have ended.
    pub fn settle(&mut self, polled: &[pollfd]) -> Vec<Hello> {
        let mut lost = Vec::new();
        let mut kept = Vec::with_capacity(self.connections.len());
        for (mut connection, polled) in self.connections.drain(..).zip(&polled[1..]) {
            let news = if polled.revents == 0 { News::None } else { connection.read(&self.address.token) };
            match news {
                News::None => kept.push(connection),
                News::Ended => lost.extend(connection.of.filter(|_| connection.is_confirmed)),
            }
        }
        self.connections = kept;
        if polled[0].revents != 0 {
            loop {
                match self.listener.accept() {
                    Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                        keep_alive(&stream);
                        let (bytes, of, is_confirmed) = (Vec::new(), None, false);
                        self.connections.push(Connection { stream, bytes, of, is_confirmed });
                    }
                    Ok(_) => {}
                    Err(e) => {
                        self.is_full = matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
                        break;
                    }
                }
            }
        }
        lost
    }

    /// Says this word to all ranks.
    pub fn say(&mut self, word: u8) {
        for connection in self.connections.iter_mut().filter(|connection| connection.of.is_some()) {
            // A rank that does not read has ended.
            let _ = connection.stream.write_all(&[word]);
        }
    }
}

impl Connection {
    fn read(&mut self, token: &[u8; 16]) -> News {
        let mut part = [0; 256];
        match self.stream.read(&mut part) {
            Ok(0) => return News::Ended,
            Ok(_) if self.of.is_some() => {
                self.is_confirmed = true;
                return News::None;
            }
            Ok(read) => self.bytes.extend_from_slice(&part[..read]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return News::None;
            }
            Err(_) => return News::Ended,
        }
        let Some((length, rest)) = self.bytes.split_first_chunk() else { return News::None };
        let length = usize::from(u16::from_le_bytes(*length));
        if length > HELLO_BYTES {
            return News::Ended;
        }
        if rest.len() < length {
            return News::None;
        }
        let hello = wire::decode(rest).ok().filter(|hello: &Hello| hello.token == *token);
        if hello.is_none() || self.stream.write_all(&[WELCOME]).is_err() {
            return News::Ended;
        }
        self.of = hello;
        News::None
    }
}

/// The addresses of this node: IPv4 before IPv6, and those that other nodes cannot reach at the end.
fn addresses() -> io::Result<Vec<IpAddr>> {
    let interfaces = if_addrs::get_if_addrs()?;
    let mut addresses: Vec<IpAddr> =
        interfaces.iter().filter(|of| !of.is_link_local()).map(if_addrs::Interface::ip).collect();
    addresses.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    Ok(addresses)
}
