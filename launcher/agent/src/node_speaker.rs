//! What one rank of a node says for all of them.

use crate::environment;
use pmmpi::session::launch_check::Expectation;
use std::os::unix::net::UnixListener;
use std::sync::{Mutex, PoisonError};

static SPEAKER: Mutex<Option<Speaker>> = Mutex::new(None);

struct Speaker {
    expectation: Expectation,
    /// Kept for good: no other rank of the node says the same again.
    rights: Vec<UnixListener>,
}

/// From now on this rank may speak.
pub fn prepare(expectation: Expectation) {
    *lock() = Some(Speaker { expectation, rights: Vec::new() });
}

/// Says a line about `topic`, where no other rank of the node has.
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
