//! perf's raw codes of events in the tables of processors.

use super::catalogue::{CpuTable, EventSpec, Meaning};

impl EventSpec {
    /// perf_event_attr.config of an event of a core on x86, such as `cpu/event=0xc4,umask=0x08/`; `None` for other events.
    /// (Intel SDM volume 3, IA32_PERFEVTSELx; AMD64 Architecture Programmer's Manual volume 2, PERF_CTL: bits 8 to 11 of
    /// the event select are bits 32 to 35.)
    pub fn raw_code(&self) -> Option<u64> {
        raw_code(&self.encoding)
    }
}

impl CpuTable {
    /// The event of this table with this raw code, in the modes that a thread's count includes.
    pub fn event_of_code(&self, code: u64) -> Option<&EventSpec> {
        let events = self.names.values().filter_map(|meaning| match meaning {
            Meaning::Event(event) => Some(event),
            _ => None,
        });
        events.into_iter().find(|event| event.sibling.is_none() && event.raw_code() == Some(code))
    }
}

fn raw_code(encoding: &str) -> Option<u64> {
    let terms = encoding.strip_prefix("cpu/")?.strip_suffix('/')?;
    terms.split(',').try_fold(0, |code, term| {
        let (name, value) = term.split_once('=')?;
        let value = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => value.parse().ok()?,
        };
        let bits = match name {
            "event" => value & 0xff | value >> 8 << 32,
            "umask" => value << 8,
            "edge" => value << 18,
            "any" => value << 21,
            "cmask" => value << 24,
            _ => return None,
        };
        Some(code | bits)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{CpuKind, catalogue};
    use super::*;

    #[test]
    fn codes_are_those_of_the_registers() {
        assert_eq!(raw_code("cpu/event=0x18e,umask=0x1f/"), Some(0x1_0000_1f8e));
        assert_eq!(raw_code("cpu/event=0xca,umask=0x1e,cmask=1/"), Some(0x0100_1eca));
        assert_eq!(raw_code("cpu/event=0x05,umask=0x02,edge=1/"), Some(0x0004_0205));
        assert_eq!(raw_code("cpu/event=0x3c,umask=0x01,any=1/"), Some(0x0020_013c));
        assert_eq!(
            (raw_code("cpu/event=0xc0/k"), raw_code("cycles"), raw_code("cpu/x=1/")),
            (None, None, None)
        );
    }

    #[test]
    fn a_code_is_another_event_on_another_processor() {
        let name =
            |cpu: &CpuKind, code| catalogue().table(cpu)?.event_of_code(code).map(|event| event.name.clone());
        assert_eq!(name(&CpuKind::amd(0x10, 2), 0x1e42).as_deref(), Some("dc_refills_l2"));
        assert_eq!(name(&CpuKind::intel(0x55), 0x02d1).as_deref(), Some("dc_refills_l2"));
        assert_eq!(name(&CpuKind::intel(0x55), 0x1e42), None);
        // The event of siblings is no event of a thread.
        assert_eq!(name(&CpuKind::intel(0x55), 0x0020_013c), None);
    }
}
