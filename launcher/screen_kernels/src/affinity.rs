//! Pins threads to hardware threads.

use crate::error::Error;
use std::io;

const WORD_BITS: usize = u64::BITS as usize;
/// The Linux kernel supports 8192 hardware threads at most; a larger mask costs nothing.
const MOST_HARDWARE_THREADS: usize = 65_536;

/// Pins the calling thread to one hardware thread.
pub(crate) fn pin(hardware_thread: u32) -> Result<(), Error> {
    let place = hardware_thread as usize;
    let mut mask = vec![0u64; place / WORD_BITS + 1];
    mask[place / WORD_BITS] |= 1 << (place % WORD_BITS);
    // SAFETY: the mask is as long as stated; 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&mask[..]), mask.as_ptr().cast()) };
    if result == 0 {
        return Ok(());
    }
    Err(Error::last_os(
        format!("Cannot pin a thread to hardware thread {hardware_thread}"),
        "the hardware thread is offline or outside the cpuset of this job (`taskset -cp $$` shows the cpuset)",
    ))
}

/// The hardware threads on which the calling thread may run.
pub fn allowed_hardware_threads() -> io::Result<Vec<u32>> {
    let mut mask = vec![0u64; MOST_HARDWARE_THREADS / WORD_BITS];
    // SAFETY: the mask is as long as stated; 0 is the calling thread.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&mask[..]), mask.as_mut_ptr().cast()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let is_set = |place: &u32| mask[*place as usize / WORD_BITS] >> (*place as usize % WORD_BITS) & 1 == 1;
    Ok((0..MOST_HARDWARE_THREADS as u32).filter(is_set).collect())
}
