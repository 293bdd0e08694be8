//! Pins the thread to the hardware thread of the measurement.

use pmmpi::node::CpuSet;
use pmmpi_workload::Failure;
use std::io;

/// Words of a CPU mask: 65,536 hardware threads.
const WORDS: usize = 1024;

/// Keeps the calling thread on one hardware thread until this value is dropped.
pub struct Pinned {
    before: Box<[u64; WORDS]>,
    cpu: u32,
    another: Option<u32>,
}

impl Pinned {
    /// Pins to `cpu`, or to the current hardware thread.
    pub fn to(cpu: Option<u32>) -> Result<Self, Failure> {
        let allowed = CpuSet::allowed();
        let option = if cpu.is_some() { "--cpu: " } else { "" };
        // SAFETY: no arguments.
        let here = u32::try_from(unsafe { libc::sched_getcpu() }).ok();
        let cpu = cpu.or(here).or_else(|| allowed.0.first().map(|range| range.0)).unwrap_or(0);
        let fail = |e: io::Error| {
            Failure::usage(format_args!(
                "{option}pmmpi cannot run on hardware thread {cpu}: {e}. This process may use the hardware threads \
                 {allowed}"
            ))
        };
        let before = affinity().map_err(fail)?;
        let mut mask = Box::new([0u64; WORDS]);
        let word = mask.get_mut(cpu as usize / 64).ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
        *word |= 1 << (cpu % 64);
        set_affinity(&mask).map_err(fail)?;
        let others = allowed.0.iter().flat_map(|(first, last)| *first..=*last);
        let another = others.take(2).find(|other| *other != cpu);
        Ok(Self { before, cpu, another })
    }

    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Another hardware thread that this process may use.
    pub fn another(&self) -> Option<u32> {
        self.another
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // This fails only if the allowed hardware threads have changed meanwhile.
        let _ = set_affinity(&self.before);
    }
}

fn affinity() -> io::Result<Box<[u64; WORDS]>> {
    let mut mask = Box::new([0u64; WORDS]);
    // SAFETY: the kernel writes at most the given size.
    let bytes = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of::<[u64; WORDS]>(), mask.as_mut_ptr())
    };
    if bytes < 0 { Err(io::Error::last_os_error()) } else { Ok(mask) }
}

fn set_affinity(mask: &[u64; WORDS]) -> io::Result<()> {
    // SAFETY: the kernel reads the given size.
    let failed =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of::<[u64; WORDS]>(), mask.as_ptr()) };
    if failed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_let_go_again() {
        let before = CpuSet::allowed();
        let pinned = Pinned::to(None).unwrap();
        assert_eq!(CpuSet::allowed().to_string(), pinned.cpu().to_string());
        assert_ne!(pinned.another(), Some(pinned.cpu()));
        drop(pinned);
        assert_eq!(CpuSet::allowed(), before);
        let failure = Pinned::to(Some(70_000)).err().unwrap();
        assert_eq!(failure.code, 2);
        assert!(failure.message.contains("may use") && failure.message.starts_with("--cpu: "));
    }
}
