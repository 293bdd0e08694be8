//! The core crystal clock. Intel processors derive the time stamp counter from it, and some events count its
//! cycles.
//!
//! CPUID leaf 15H (Intel SDM, volume 2, CPUID; volume 3, "Time-Stamp Counter"): EBX / EAX is the number of TSC
//! cycles per crystal cycle. ECX is the crystal's nominal rate in Hz; 0 means unknown. To convert counts of one
//! clock into counts of the other, use the ratio, which is exact. The rate is nominal; if ECX is 0, it comes from a
//! frequency that is rounded to MHz.

use serde::{Deserialize, Serialize};

/// The crystal clock of a node's processor. It is unknown in virtual machines and on processors that are not
/// Intel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crystal {
    /// Its nominal rate (Hz).
    pub crystal_hz: Option<u64>,
    /// Numbers of TSC cycles and of crystal cycles in the same time.
    pub tsc_ratio: Option<[u32; 2]>,
}

/// The CPUID leaves that describe the crystal; 0 for a leaf that the processor lacks.
#[derive(Clone, Copy, Debug, Default)]
struct Leaves {
    /// Leaf 1, EAX: family and model.
    signature: u32,
    /// Leaf 15H: EAX, EBX, ECX.
    crystal: [u32; 3],
    /// Leaf 16H, EAX: the base frequency (MHz).
    base_mhz: u32,
}

impl Crystal {
    /// The crystal of the processor that runs this code.
    pub fn here() -> Self {
        here()
    }

    /// The crystal of a processor with this `cpuid`, which returns EAX, EBX, ECX and EDX of a leaf.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    fn told(cpuid: impl Fn(u32) -> [u32; 4]) -> Self {
        Leaves::read(cpuid).map_or_else(Self::default, Self::of)
    }

    /// TSC cycles per crystal cycle.
    pub fn tsc_per_crystal(&self) -> Option<f64> {
        self.tsc_ratio.map(|[tsc, crystal]| f64::from(tsc) / f64::from(crystal))
    }

    /// The rate as Linux computes it (native_calibrate_tsc of arch/x86/kernel/tsc.c): ECX; if that is 0, 25 MHz on
    /// Denverton; else the base frequency divided by the ratio.
    fn of(leaves: Leaves) -> Self {
        let [crystal, tsc, hz] = leaves.crystal;
        let tsc_ratio = (tsc > 0 && crystal > 0).then_some([tsc, crystal]);
        let told = (hz > 0).then_some(u64::from(hz));
        let denverton = (leaves.is_denverton() && tsc_ratio.is_some()).then_some(25_000_000);
        let derived = tsc_ratio.filter(|_| leaves.base_mhz > 0);
        let derived = derived.map(|[tsc, crystal]| {
            u64::from(leaves.base_mhz) * 1_000_000 * u64::from(crystal) / u64::from(tsc)
        });
        Self { crystal_hz: told.or(denverton).or(derived), tsc_ratio }
    }
}

impl Leaves {
    /// Family 6, model 5FH (extended model in bits 16 to 19).
    fn is_denverton(&self) -> bool {
        let (family, model) =
            (self.signature >> 8 & 0xf, self.signature >> 4 & 0xf | self.signature >> 12 & 0xf0);
        (family, model) == (6, 0x5f)
    }

    fn read(cpuid: impl Fn(u32) -> [u32; 4]) -> Option<Self> {
        const HYPERVISOR: u32 = 1 << 31; // leaf 1, ECX
        let [last, ebx, ecx, edx] = cpuid(0);
        let maker: Vec<u8> = [ebx, edx, ecx].iter().flat_map(|word| word.to_le_bytes()).collect();
        let [signature, _, features, _] = cpuid(1);
        // In a virtual machine the hypervisor chooses these values.
        if maker != b"GenuineIntel" || features & HYPERVISOR != 0 || last < 0x15 {
            return None;
        }
        let [eax, ebx, ecx, _] = cpuid(0x15);
        // The upper half is reserved.
        let base_mhz = if last < 0x16 { 0 } else { cpuid(0x16)[0] & 0xffff };
        Some(Self { signature, crystal: [eax, ebx, ecx], base_mhz })
    }
}

#[cfg(target_arch = "x86_64")]
fn here() -> Crystal {
    Crystal::told(|leaf| {
        let told = super::cpuid::cpuid(leaf);
        [told.eax, told.ebx, told.ecx, told.edx]
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn here() -> Crystal {
    Crystal::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(signature: u32, crystal: [u32; 3], base_mhz: u32) -> (Option<u64>, Option<[u32; 2]>) {
        let found = Crystal::of(Leaves { signature, crystal, base_mhz });
        (found.crystal_hz, found.tsc_ratio)
    }

    #[test]
    fn the_rate_is_the_kernels() {
        // Ice Lake-SP and later report the rate: 25 MHz, TSC at 2.0 GHz.
        assert_eq!(of(0x606a6, [2, 160, 25_000_000], 2000), (Some(25_000_000), Some([160, 2])));
        // Skylake-SP of 2.1 GHz does not. McCalpin finds 84 TSC cycles per crystal cycle.
        assert_eq!(of(0x50654, [2, 168, 0], 2100), (Some(25_000_000), Some([168, 2])));
        // Kaby Lake has 24 MHz, but its base frequency is rounded to 1900 MHz: the ratio is right, the derived rate
        // is not.
        assert_eq!(of(0x806e9, [2, 158, 0], 1900), (Some(24_050_632), Some([158, 2])));
        assert_eq!(of(0x506f1, [3, 275, 0], 0), (Some(25_000_000), Some([275, 3])));
        assert_eq!(of(0x506c9, [3, 171, 19_200_000], 0), (Some(19_200_000), Some([171, 3])));
    }

    #[test]
    fn what_is_not_told_is_not_known() {
        assert_eq!(of(0x606a6, [0, 0, 0], 2000), (None, None));
        assert_eq!(of(0x606a6, [2, 0, 25_000_000], 2000), (Some(25_000_000), None));
        assert_eq!(of(0x506f1, [0, 0, 0], 0), (None, None));
        assert_eq!(of(0x50654, [2, 168, 0], 0), (None, Some([168, 2])));
        assert_eq!(Crystal::default().tsc_per_crystal(), None);
    }

    /// The form in run files.
    #[test]
    fn its_form_is_kept() {
        let crystal = Crystal { crystal_hz: Some(25_000_000), tsc_ratio: Some([160, 2]) };
        let bytes = crate::record::wire::encode(&vec![(1u32, crystal)]).unwrap();
        assert_eq!(bytes, [1, 1, 1, 252, 0x40, 0x78, 0x7d, 0x01, 1, 160, 2]);
        assert_eq!(crate::record::wire::decode::<Vec<(u32, Crystal)>>(&bytes).unwrap(), [(1, crystal)]);
    }

    /// A processor's leaves 0, 1, 15H and 16H, and nothing else.
    fn processor(maker: &[u8; 12], features: u32, last: u32) -> impl Fn(u32) -> [u32; 4] {
        let word = |at: usize| u32::from_le_bytes([maker[at], maker[at + 1], maker[at + 2], maker[at + 3]]);
        let maker = [word(0), word(8), word(4)]; // EBX, ECX, EDX
        move |leaf| match leaf {
            0 => [last, maker[0], maker[1], maker[2]],
            1 => [0x606a6, 0, features, 0],
            0x15 => [2, 160, 25_000_000, 0],
            0x16 => [0xabcd_0000 | 2000, 0, 0, 0],
            _ => [0; 4],
        }
    }

    /// Covers each kind of machine, whatever the test machine is.
    #[test]
    fn who_has_a_crystal() {
        const HYPERVISOR: u32 = 1 << 31;
        let known = Crystal { crystal_hz: Some(25_000_000), tsc_ratio: Some([160, 2]) };
        assert_eq!(Crystal::told(processor(b"GenuineIntel", 0, 0x16)), known);
        assert_eq!(Crystal::told(processor(b"GenuineIntel", 0, 0x15)), known);
        for (maker, features, last) in [
            (b"GenuineIntel", HYPERVISOR, 0x16),
            (b"GenuineIntel", 0, 0x0d),
            (b"AuthenticAMD", 0, 0x16),
            (b"AuthenticAMD", HYPERVISOR, 0x0d),
            (b"HygonGenuine", 0, 0x16),
        ] {
            assert_eq!(Crystal::told(processor(maker, features, last)), Crystal::default());
        }
    }

    /// On every machine except Intel without a hypervisor, the crystal is unknown.
    #[test]
    fn this_machine_has_one_or_none() {
        let hardware = crate::node::Hardware::read(std::path::Path::new("/"));
        let may = hardware.cpu_vendor.as_deref() == Some("GenuineIntel") && !hardware.hypervisor;
        assert!(may || hardware.crystal == Crystal::default(), "{hardware:?}");
        let made_up = crate::node::Hardware::read(std::path::Path::new("/nonexistent"));
        assert_eq!(made_up.crystal, Crystal::default());
    }

    proptest! {
        #[test]
        fn no_leaf_is_too_strange(signature in any::<u32>(), crystal in any::<[u32; 3]>(), base_mhz in any::<u32>()) {
            let found = Crystal::of(Leaves { signature, crystal, base_mhz });
            prop_assert!(found.crystal_hz.is_none_or(|hz| hz > 0 || crystal[1] > base_mhz));
            prop_assert!(found.tsc_per_crystal().is_none_or(|ratio| ratio.is_finite() && ratio > 0.0));
        }
    }
}
