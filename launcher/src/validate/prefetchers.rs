//! Switches the prefetchers of a core off for a while: Linux's /dev/cpu/N/msr (as root, module `msr`).
//!
//! Only with `--prefetchers-off`, because the setting also applies to another program on the core's other
//! hardware thread.

use pmmpi::node::Hardware;
use pmmpi_events::metrics::{CpuKind, catalogue};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// The reason if the user did not ask for it.
pub const NOT_ASKED: &str =
    "this test loop needs --prefetchers-off (as root): the option changes a setting of the core for a moment";

/// A model-specific register, and those of its bits that switch a prefetcher off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Register {
    address: u64,
    off_bits: u64,
}

/// L2 stream, L2 adjacent line, L1 next line, L1 by instruction pointer (Vish Viswanathan: Disclosure of Hardware
/// Prefetcher Control on Some Intel Processors, 2014; Intel SDM volume 4, MSR_MISC_FEATURE_CONTROL).
const INTEL: Register = Register { address: 0x1a4, off_bits: 0xf };
/// As above, and the L2 AMP prefetcher (Intel SDM volume 4, MSR_PREFETCH_CONTROL).
const INTEL_AMP: Register = Register { address: 0x1a4, off_bits: 0x2f };
/// L1 stream, stride and region; L2 stream and up/down (AMD64 Architecture Programmer's Manual volume 2, PrefetchControl).
const AMD: Register = Register { address: 0xc000_0108, off_bits: 0x2f };

impl Register {
    /// That of a processor, by the name of its event table.
    fn of(table: &str) -> Option<Self> {
        match table {
            "intel-sapphire-rapids" | "intel-granite-rapids" => Some(INTEL_AMP),
            // Knights Landing has other prefetchers.
            "intel-knights-landing" => None,
            _ if table.starts_with("intel-") => Some(INTEL),
            "amd-zen4" | "amd-zen5" => Some(AMD),
            _ => None,
        }
    }
}

/// The prefetchers of a core, which this process may switch off.
#[derive(Debug)]
pub struct Prefetchers {
    register: Register,
    file: File,
    path: PathBuf,
}

/// The prefetchers are off until this value is dropped. Until then, signals that end the process wait.
#[derive(Debug)]
pub struct Off<'a> {
    prefetchers: &'a Prefetchers,
    before: u64,
    signals: libc::sigset_t,
}

impl Prefetchers {
    /// Those of hardware thread `cpu` of the machine whose files are below `root`. The error says why not.
    pub fn of(root: &Path, hardware: &Hardware, cpu: u32) -> Result<Self, String> {
        let table = catalogue().table(&CpuKind::of_node(hardware));
        let register = table
            .and_then(|table| Register::of(&table.name))
            .ok_or("pmmpi does not know how to switch off the prefetchers of this processor")?;
        let path = root.join(format!("dev/cpu/{cpu}/msr"));
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| {
            format!("pmmpi cannot open {}: {error}; this needs root and Linux's module msr", path.display())
        })?;
        Ok(Self { register, file, path })
    }

    /// Switches them off.
    pub fn off(&self) -> Result<Off<'_>, String> {
        let failed = |what: &str, error: io::Error| {
            let address = self.register.address;
            format!("pmmpi cannot {what} register {address:#x} in {}: {error}", self.path.display())
        };
        let before = self.read().map_err(|error| failed("read", error))?;
        let signals = block_signals();
        let off = Off { prefetchers: self, before, signals };
        self.write(before | self.register.off_bits).map_err(|error| failed("write", error))?;
        // A hypervisor may ignore the write.
        match self.read() {
            Ok(now) if now & self.register.off_bits == self.register.off_bits => Ok(off),
            Ok(_) => {
                Err("this machine ignores the register of the prefetchers (a virtual machine?)".to_owned())
            }
            Err(error) => Err(failed("read", error)),
        }
    }

    fn read(&self) -> io::Result<u64> {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, self.register.address)?;
        Ok(u64::from_ne_bytes(word))
    }

    fn write(&self, value: u64) -> io::Result<()> {
        self.file.write_all_at(&value.to_ne_bytes(), self.register.address)
    }
}

impl Drop for Off<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.prefetchers.write(self.before) {
            pmmpi_workload::console::warn(format_args!(
                "the prefetchers of the core may stay off until the next boot: pmmpi cannot write {:#x} to \
                 register {:#x} in {}: {error}",
                self.before,
                self.prefetchers.register.address,
                self.prefetchers.path.display()
            ));
        }
        // SAFETY: the mask was filled in by the call that blocked the signals.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.signals, ptr::null_mut()) };
    }
}

/// Blocks all signals that can be blocked; gives the mask before.
fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the calls fill in both live locals; zeros are a valid mask.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::tests::Root;
    use super::*;

    fn hardware(vendor: &str, family: u32, model: u32) -> Hardware {
        Hardware {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(family),
            cpu_model: Some(model),
            ..Hardware::default()
        }
    }

    /// A file in place of the registers: a register is 8 bytes at its address.
    fn machine(value: u64) -> Root {
        let root = Root::new();
        root.put("dev/cpu/3/msr", "");
        let file = File::options().write(true).open(root.path().join("dev/cpu/3/msr")).unwrap();
        file.write_all_at(&value.to_ne_bytes(), 0x1a4).unwrap();
        root
    }

    fn value(root: &Root) -> u64 {
        let mut word = [0; 8];
        let file = File::open(root.path().join("dev/cpu/3/msr")).unwrap();
        file.read_exact_at(&mut word, 0x1a4).unwrap();
        u64::from_ne_bytes(word)
    }

    fn is_blocked(signal: libc::c_int) -> bool {
        let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the call fills in a live local.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr());
            libc::sigismember(mask.as_ptr(), signal) == 1
        }
    }

    #[test]
    fn prefetchers_are_off_for_a_while_and_then_as_before() {
        let root = machine(0x1_0002);
        let skylake = Prefetchers::of(root.path(), &hardware("GenuineIntel", 6, 0x55), 3).unwrap();
        let off = skylake.off().unwrap();
        assert_eq!(value(&root), 0x1_000f);
        assert!(is_blocked(libc::SIGINT) && is_blocked(libc::SIGTERM));
        drop(off);
        assert_eq!(value(&root), 0x1_0002);
        assert!(!is_blocked(libc::SIGINT));
        // Sapphire Rapids has one more.
        let rapids = Prefetchers::of(root.path(), &hardware("GenuineIntel", 6, 0x8f), 3).unwrap();
        let off = rapids.off().unwrap();
        assert_eq!(value(&root), 0x1_002f);
        drop(off);
        assert_eq!(value(&root), 0x1_0002);
    }

    #[test]
    fn what_cannot_be_switched_off_has_a_reason() {
        let root = machine(0);
        let why = |vendor, family, model, cpu| {
            Prefetchers::of(root.path(), &hardware(vendor, family, model), cpu).unwrap_err()
        };
        assert!(why("AuthenticAMD", 0x19, 0x01, 3).contains("does not know"));
        assert!(why("GenuineIntel", 6, 0x57, 3).contains("does not know"));
        assert!(why("GenuineIntel", 6, 0x55, 4).contains("needs root"));
        // Zen 4's register is beyond the end of this file.
        let zen4 = Prefetchers::of(root.path(), &hardware("AuthenticAMD", 0x19, 0x11), 3).unwrap();
        assert!(zen4.off().unwrap_err().contains("cannot read register 0xc0000108"));
        assert!(!is_blocked(libc::SIGINT));
    }
}
