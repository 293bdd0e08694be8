//! Machines as their kernels describe them: small copies of /sys/bus/event_source/devices.
//!
//! The layout follows the kernel's Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}. The
//! files' texts are those of the drivers in Linux 6.8: arch/x86/events/intel/{core,uncore_snbep,uncore_snb,cstate}.c,
//! arch/x86/events/{rapl,msr}.c, arch/x86/events/amd/{core,uncore}.c, drivers/perf/{arm_pmuv3,arm_dsu_pmu,arm-cmn}.c.
//! Not all events and instances are here. PMU numbers from 8 on depend on the order in which drivers are loaded.

use crate::tool::Folder;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A machine's files, removed at the end.
pub struct Machine(Folder);

/// Files of a folder, each with its text.
type Files<'a> = &'a [(&'a str, &'a str)];

const X86_CORE: Files = &[
    ("event", "config:0-7"),
    ("umask", "config:8-15"),
    ("edge", "config:18"),
    ("pc", "config:19"),
    ("inv", "config:23"),
    ("cmask", "config:24-31"),
    ("ldlat", "config1:0-15"),
    ("offcore_rsp", "config1:0-63"),
    ("frontend", "config1:0-23"),
];
const INTEL_EVENTS: Files = &[
    ("branch-instructions", "event=0xc4"),
    ("branch-misses", "event=0xc5"),
    ("bus-cycles", "event=0x3c,umask=0x01"),
    ("cache-misses", "event=0x2e,umask=0x41"),
    ("cache-references", "event=0x2e,umask=0x4f"),
    ("cpu-cycles", "event=0x3c"),
    ("instructions", "event=0xc0"),
    ("ref-cycles", "event=0x00,umask=0x03"),
];
const MEMORY_EVENTS: Files =
    &[("mem-loads", "event=0xcd,umask=0x1,ldlat=3"), ("mem-stores", "event=0xd0,umask=0x82")];
const RAPL_SCALE: &str = "2.3283064365386962890625e-10";
const MIB_A_LINE: &str = "6.103515625e-5";

impl Machine {
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// A machine without PMUs and without the folder for them.
    pub fn bare() -> Self {
        Self(Folder::new("sys"))
    }

    /// Puts a file below the root.
    pub fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder of /sys");
        fs::write(path, text).expect("a file of /sys");
    }

    /// The path of a file in the folder of an existing PMU.
    pub fn pmu_file(&self, pmu: &str, file: &str) -> String {
        format!("sys/devices/{pmu}/{file}")
    }

    /// Adds a PMU: its folder, and the link to it in the bus's folder.
    pub fn pmu(&self, name: &str, number: u32, more: Files, format: Files, events: Files) {
        let file = |file: &str, text: &str| self.put(&self.pmu_file(name, file), format!("{text}\n"));
        file("type", &number.to_string());
        file("perf_event_mux_interval_ms", "4");
        more.iter().for_each(|(name, text)| file(name, text));
        format.iter().for_each(|(name, text)| file(&format!("format/{name}"), text));
        events.iter().for_each(|(name, text)| file(&format!("events/{name}"), text));
        let bus = self.root().join("sys/bus/event_source/devices");
        fs::create_dir_all(&bus).expect("a folder of /sys");
        symlink(format!("../../../devices/{name}"), bus.join(name)).expect("a link of /sys");
    }

    /// Runs a command with this machine's files for processor and PMUs. The counts themselves come from the real
    /// machine. Needs root; uses a mount namespace of its own.
    pub fn run_here(&self, program: &Path) -> Command {
        let root = self.root().display();
        let script = format!(
            "set -e; devices=$(mktemp -d {root}/here.XXXXXX); cd {root}
             if [ -d sys/bus ]; then cp -rL sys/bus/event_source/devices/. $devices; fi
             mount --bind $devices /sys/bus/event_source/devices
             if [ -e proc/cpuinfo ]; then mount --bind proc/cpuinfo /proc/cpuinfo; fi
             cd /; exec \"$@\""
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(program);
        command
    }

    fn everywhere(&self, online: &str) {
        self.put("sys/devices/system/cpu/online", format!("{online}\n"));
        self.pmu("software", 1, &[], &[], &[]);
        self.pmu("tracepoint", 2, &[], &[], &[]);
        self.pmu("breakpoint", 5, &[], &[], &[]);
    }

    fn msr(&self, number: u32) {
        let events = [("tsc", "event=0x00"), ("aperf", "event=0x01"), ("mperf", "event=0x02")];
        self.pmu("msr", number, &[], &[("event", "config:0-63")], &events);
    }

    /// Two sockets of Skylake-SP with 18 cores each and two threads per core.
    pub fn intel_server() -> Self {
        let machine = Self::bare();
        machine.put(
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n",
        );
        machine.everywhere("0-71");
        machine.pmu("cpu", 4, &[], X86_CORE, &[INTEL_EVENTS, MEMORY_EVENTS].concat());
        machine.msr(8);
        let mask = [("cpumask", "0,18")];
        let energy = [
            ("energy-pkg", "event=0x02"),
            ("energy-pkg.scale", RAPL_SCALE),
            ("energy-pkg.unit", "Joules"),
            ("energy-ram", "event=0x03"),
            ("energy-ram.scale", "1.53e-5"),
            ("energy-ram.unit", "Joules"),
        ];
        machine.pmu("power", 9, &mask, &[("event", "config:0-7")], &energy);
        let uncore = [
            ("event", "config:0-7"),
            ("umask", "config:8-15"),
            ("edge", "config:18"),
            ("inv", "config:23"),
            ("thresh", "config:24-31"),
        ];
        let memory = [
            ("clockticks", "event=0x00,umask=0x00"),
            ("cas_count_read", "event=0x04,umask=0x03"),
            ("cas_count_read.scale", MIB_A_LINE),
            ("cas_count_read.unit", "MiB"),
            ("cas_count_write", "event=0x04,umask=0x0c"),
            ("cas_count_write.scale", MIB_A_LINE),
            ("cas_count_write.unit", "MiB"),
        ];
        for channel in 0..6 {
            machine.pmu(&format!("uncore_imc_{channel}"), 20 + channel, &mask, &uncore, &memory);
        }
        for slice in 0..12 {
            let filters =
                [("filter_tid", "config1:0-8"), ("filter_link", "config1:9-12"), ("tid_en", "config:19")];
            let format = [&uncore[..], &filters].concat();
            machine.pmu(&format!("uncore_cha_{slice}"), 30 + slice, &mask, &format, &[]);
        }
        for link in 0..2 {
            let mut format = uncore;
            format[1].1 = "config:8-15,32-43,45-55";
            let events = [("clockticks", "event=0x1"), ("txl_flits_all_data", "event=0x2,umask=0xf")];
            machine.pmu(&format!("uncore_upi_{link}"), 50 + link, &mask, &format, &events);
        }
        machine.pmu(
            "uncore_iio_free_running_0",
            60,
            &mask,
            &uncore[..2],
            &[("ioclk", "event=0xff,umask=0x10")],
        );
        machine
    }

    /// Alder Lake: eight cores of one kind with two threads each, eight of another.
    pub fn hybrid_client() -> Self {
        let machine = Self::bare();
        machine.put(
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\n",
        );
        machine.everywhere("0-23");
        let slots = [("slots", "event=0x00,umask=0x4"), ("mem-loads", "event=0xcd,umask=0x1,ldlat=3")];
        machine.pmu("cpu_core", 4, &[("cpus", "0-15")], X86_CORE, &[INTEL_EVENTS, &slots].concat());
        let loads = [("mem-loads", "event=0xd0,umask=0x5,ldlat=3")];
        machine.pmu("cpu_atom", 10, &[("cpus", "16-23")], &X86_CORE[..8], &[INTEL_EVENTS, &loads].concat());
        machine.msr(12);
        let mask = [("cpumask", "0")];
        let energy = [
            ("energy-pkg", "event=0x02"),
            ("energy-pkg.scale", RAPL_SCALE),
            ("energy-pkg.unit", "Joules"),
            ("energy-cores", "event=0x01"),
            ("energy-cores.scale", RAPL_SCALE),
            ("energy-cores.unit", "Joules"),
        ];
        machine.pmu("power", 11, &mask, &[("event", "config:0-7")], &energy);
        machine.pmu("uncore_clock", 13, &mask, &[("event", "config:0-7")], &[("clockticks", "event=0xff")]);
        for channel in 0..2 {
            let events = [
                ("data_read", "event=0xff,umask=0x20"),
                ("data_read.scale", MIB_A_LINE),
                ("data_read.unit", "MiB"),
            ];
            let format = [("event", "config:0-7"), ("umask", "config:8-15")];
            machine.pmu(&format!("uncore_imc_free_running_{channel}"), 14 + channel, &mask, &format, &events);
        }
        machine
    }

    /// RK3399: two Cortex-A72 and four Cortex-A53, described by a device tree.
    pub fn big_little() -> Self {
        let machine = Self::bare();
        machine.put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
        machine.everywhere("0-5");
        let format = [("event", "config:0-15"), ("long", "config1:0"), ("rdpmc", "config1:1")];
        let big = [
            ("cpu_cycles", "event=0x0011"),
            ("inst_retired", "event=0x0008"),
            ("br_mis_pred", "event=0x0010"),
            ("bus_cycles", "event=0x001d"),
        ];
        machine.pmu("armv8_cortex_a72", 8, &[("cpus", "4-5")], &format, &big);
        let little = [big[0], big[1], big[3], ("l1d_cache_wb", "event=0x0015")];
        machine.pmu("armv8_cortex_a53", 7, &[("cpus", "0-3")], &format, &little);
        machine
    }

    /// Two sockets of Zen 4 with eight cores and two memory channels each.
    pub fn amd_server() -> Self {
        let machine = Self::bare();
        machine.put(
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n",
        );
        machine.everywhere("0-15");
        let format = [
            ("event", "config:0-7,32-35"),
            ("umask", "config:8-15"),
            ("edge", "config:18"),
            ("inv", "config:23"),
            ("cmask", "config:24-31"),
        ];
        let events = [
            ("branch-instructions", "event=0xc2"),
            ("branch-misses", "event=0xc3"),
            ("cache-misses", "event=0x64,umask=0x9"),
            ("cache-references", "event=0x60,umask=0xff"),
            ("cpu-cycles", "event=0x76"),
            ("instructions", "event=0xc0"),
            ("ref-cycles", "event=0x120,umask=0x1"),
        ];
        machine.pmu("cpu", 4, &[], &format, &events);
        machine.msr(11);
        let energy =
            [("energy-pkg", "event=0x02"), ("energy-pkg.scale", RAPL_SCALE), ("energy-pkg.unit", "Joules")];
        machine.pmu("power", 12, &[("cpumask", "0,8")], &[("event", "config:0-7")], &energy);
        machine.pmu("ibs_op", 10, &[], &[("cnt_ctl", "config:19"), ("rand_en", "config:57")], &[]);
        let fabric = [("event", "config:0-7,32-37"), ("umask", "config:8-15,24-27")];
        machine.pmu("amd_df", 13, &[("cpumask", "0,8")], &fabric, &[]);
        let cache = [
            ("event", "config:0-7"),
            ("umask", "config:8-15"),
            ("coreid", "config:42-44"),
            ("enallslices", "config:46"),
            ("enallcores", "config:47"),
            ("sliceid", "config:48-50"),
            ("threadmask", "config:56-57"),
        ];
        machine.pmu("amd_l3", 14, &[("cpumask", "0,8")], &cache, &[]);
        for channel in 0..4 {
            let socket = if channel < 2 { "0" } else { "8" };
            let format = [("event", "config:0-7"), ("rdwrmask", "config:8-9")];
            machine.pmu(&format!("amd_umc_{channel}"), 15 + channel, &[("cpumask", socket)], &format, &[]);
        }
        machine
    }

    /// One socket of Neoverse N1 with 80 cores.
    pub fn arm_server() -> Self {
        let machine = Self::bare();
        machine.put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
        machine.everywhere("0-79");
        let format = [("event", "config:0-15"), ("long", "config1:0"), ("rdpmc", "config1:1")];
        let events = [
            ("cpu_cycles", "event=0x0011"),
            ("inst_retired", "event=0x0008"),
            ("l1d_cache_refill", "event=0x0003"),
            ("bus_access", "event=0x0019"),
        ];
        machine.pmu("armv8_pmuv3_0", 8, &[("cpus", "0-79")], &format, &events);
        let mesh = [
            ("type", "config:0-15"),
            ("eventid", "config:16-26"),
            ("occupid", "config:27-30"),
            ("bynodeid", "config:31"),
            ("nodeid", "config:32-47"),
            ("wp_val", "config1:0-63"),
            ("wp_mask", "config2:0-63"),
        ];
        let misses = [("hnf_cache_miss", "type=0x5,eventid=0x1"), ("dtc_cycles", "type=0x3")];
        machine.pmu("arm_cmn_0", 9, &[("cpumask", "0")], &mesh, &misses);
        for cluster in 0..2 {
            let more = [("cpumask", ["0", "2"][cluster]), ("associated_cpus", ["0-1", "2-3"][cluster])];
            let events = [("bus_access", "event=0x19"), ("l3d_cache", "event=0x2b")];
            let number = 10 + cluster as u32;
            machine.pmu(&format!("arm_dsu_{cluster}"), number, &more, &[("event", "config:0-31")], &events);
        }
        machine
    }
}
