//! The connection of each rank of `pmmpi screen` to the supervisor, the `pmmpi` process of rank 0. Each side notices if
//! the other ends.
//!
//! Not every launcher ends the other ranks if one is killed, and MPI may wait forever for it. But Linux closes the
//! connections of a killed process, and TCP's keep-alive notices a node without power.

use crate::held_signals::HeldSignals;
use crate::messages::say;
use crate::{descendants, signals};
use pmmpi::record::wire;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where the launcher of rank 0 waits for the ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WatchAddress {
    /// Its node's addresses.
    pub sockets: Vec<SocketAddr>,
    /// Only the ranks of this job know it.
    pub token: [u8; 16],
}

/// What a rank sends first, with the length of its wire form in two bytes before it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// That of the address.
    pub token: [u8; 16],
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub host: String,
}

/// The launcher's answer to the right token.
pub const WELCOME: u8 = b'w';
/// The launcher's word after the rounds: it may end now.
pub const OVER: u8 = b'o';
/// The launcher's word when the screen ends early: it tells the user why, so no rank needs to.
pub const TOLD: u8 = b't';
/// The launcher's word that ends a rank.
pub const STOP: u8 = b's';

/// Limit of each attempt to connect: a firewall may discard packets.
const PATIENCE: Duration = Duration::from_secs(5);

/// The status of a rank that ends because another has ended: see docs/screening.md.
const ENDED_EARLY: i32 = 1;
/// Some launchers kill all ranks when the first one ends. So ranks without a last message wait for the rank that has
/// one.
const TIME_TO_SAY_IT: Duration = Duration::from_millis(1500);

/// What a rank says if the launcher of rank 0 has ended.
#[derive(Debug)]
pub struct LastWords {
    /// For the user.
    pub message: String,
    /// The file that keeps it.
    pub file: Option<PathBuf>,
}

impl LastWords {
    /// Prints the message and keeps it, because some launchers pass on no output after the end of a rank. The first message
    /// of a screen counts.
    pub fn say(&self) {
        say(&self.message);
        let Some(file) = &self.file else { return };
        // The folder may be gone or full.
        if let Ok(mut file) = std::fs::File::create_new(file) {
            let _ = file.write_all(format!("{}\n", self.message).as_bytes());
        }
    }
}

/// The connection of this rank.
pub struct RankWatch {
    is_over: Arc<AtomicBool>,
}

impl RankWatch {
    /// Connects in the background. Without a connection, only the job's launcher can notice that a rank ended.
    ///
    /// If the launcher of rank 0 ends before [`RankWatch::end`], this process says its last words, if it has any, and ends
    /// with its children.
    pub fn begin(address: WatchAddress, rank: u32, host: &str, words: Option<LastWords>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let hello = Hello { token: address.token, rank, host: host.to_owned() };
        let flag = is_over.clone();
        let wait = move || {
            let Some(mut stream) = address.sockets.iter().find_map(|socket| connect(socket, &hello)) else {
                return;
            };
            let mut words = words;
            let mut is_told = false;
            loop {
                let mut word = [0];
                let word = stream.read_exact(&mut word).ok().map(|()| word[0]);
                match word {
                    Some(OVER) => return,
                    _ if flag.load(Ordering::Acquire) => return,
                    Some(TOLD) => (words, is_told) = (None, true),
                    Some(STOP) => end(None),
                    _ => {
                        if words.is_none() && !is_told {
                            std::thread::sleep(TIME_TO_SAY_IT);
                        }
                        end(words);
                    }
                }
            }
        };
        // The thread gets no signal. Without a thread, there is no connection.
        let _held = HeldSignals::back();
        let _ = std::thread::Builder::new().name("watch".to_owned()).spawn(wait);
        Self { is_over }
    }

    /// From now on, this process needs no other rank.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// A connection whose other side knows the token.
fn connect(socket: &SocketAddr, hello: &Hello) -> Option<TcpStream> {
    let mut stream = TcpStream::connect_timeout(socket, PATIENCE).ok()?;
    let bytes = wire::encode(hello).ok()?;
    let length = u16::try_from(bytes.len()).ok()?.to_le_bytes();
    stream.write_all(&[&length, &bytes[..]].concat()).ok()?;
    // The launcher may be busy: it answers when it can.
    stream.set_read_timeout(Some(PATIENCE * 6)).ok()?;
    let mut answer = [0];
    stream.read_exact(&mut answer).ok().filter(|()| answer == [WELCOME])?;
    // From now on, the end of this connection is the end of this rank.
    stream.write_all(&[WELCOME]).ok()?;
    stream.set_read_timeout(None).ok()?;
    keep_alive(&stream);
    Some(stream)
}

/// Notices a node without power, or behind a broken link, after 90 seconds (tcp(7)): a switch may start again meanwhile. A
/// failed call changes nothing else.
pub fn keep_alive(stream: &TcpStream) {
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 30),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6),
    ];
    for (level, name, value) in options {
        let value: libc::c_int = value;
        let size = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the value is a live integer of this size.
        unsafe { libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    }
}

fn end(words: Option<LastWords>) -> ! {
    // A file server may have ended, too.
    let saying = words.map(|words| std::thread::spawn(move || words.say()));
    if let Some(child) = signals::child() {
        descendants::signal(&descendants::living(child), libc::SIGKILL);
    }
    if let Some(saying) = saying {
        let deadline = Instant::now() + TIME_TO_SAY_IT;
        while !saying.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // SAFETY: ends this process at once: MPI_Finalize would wait for the rank that has ended.
    unsafe { libc::_exit(ENDED_EARLY) }
}
