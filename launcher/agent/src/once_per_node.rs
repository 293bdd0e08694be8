//! Messages that only one rank per node prints.

use crate::environment;
use pmmpi::session::launch_check::Expectation;
use std::os::unix::net::UnixListener;
use std::sync::{Mutex, PoisonError};

static SPEAKER: Mutex<Option<Speaker>> = Mutex::new(None);

struct Speaker {
    expectation: Expectation,
    /// Never dropped, so that no other rank of the node prints the same again.
    rights: Vec<UnixListener>,
}

/// Lets this rank print messages from now on.
pub fn prepare(expectation: Expectation) {
    *lock() = Some(Speaker { expectation, rights: Vec::new() });
}

/// Prints a line about `topic`, if no other rank of the node has printed one.
pub fn say(topic: &str, text: impl FnOnce(&Expectation) -> String) {
    if let Some(Speaker { expectation, rights }) = lock().as_mut()
        && let Some(right) = expectation.speak_for_node(topic)
    {
        rights.push(right);
        environment::say(&text(expectation));
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Speaker>> {
    SPEAKER.lock().unwrap_or_else(PoisonError::into_inner)
}
