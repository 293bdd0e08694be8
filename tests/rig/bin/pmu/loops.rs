//! Checks counts on one thread.

use crate::{AROUND, Check, INSTRUCTIONS, LOOP, TURNS, cpu_ns, hardware, instructions, is_near, unless};
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::default;
use pmmpi::counters::event::{Encoding, Event, Modes, kind};
use pmmpi::counters::perf_event_open::Target;
use rig::counting::{Counted, alone};
use rig::known_counts::turns;

pub fn the_loop() -> Check {
    let mut values = Vec::new();
    for _ in 0..5 {
        let counted = Counted::during(&instructions(), Target::ThisThread, || turns(TURNS));
        if counted.of("instructions:u")?.quality() != Quality::Exact {
            return Err(format!("{:?}", counted.all()));
        }
        values.push(counted.value("instructions:u")?);
    }
    let wrong = values.iter().any(|value| !(LOOP..LOOP + AROUND).contains(value));
    let differ = values.iter().max() != values.iter().min();
    unless(wrong || differ, format!("{values:?}"))
}

pub fn the_default_set() -> Check {
    let before = cpu_ns()?;
    let counted = Counted::during(&default::groups(), Target::ThisThread, || turns(TURNS));
    let cpu_ns = cpu_ns()? - before;
    let all = counted.all();
    let found: Vec<String> = all
        .iter()
        .map(|(event, reading)| {
            format!("{} {} {}", event.name, reading.value().unwrap_or(0), reading.quality().name())
        })
        .collect();
    let found = found.join(", ");
    for (event, reading) in &all {
        // PMUv3 has no event for this: arch/arm64/kernel/perf_event.c, armv8_pmuv3_perf_map.
        let lacks = cfg!(target_arch = "aarch64") && event.name == "ref_cycles";
        let expected = if lacks { Quality::Unsupported } else { Quality::Exact };
        if reading.quality() != expected {
            return Err(format!("{} is not {}: {found}", event.name, expected.name()));
        }
    }
    let in_user_mode = counted.value("instructions")? - counted.value("instructions_kernel")?;
    let clock_ns = counted.value("task_clock_ns")?;
    // The kernel reads the events of a group one after another.
    let wrong = in_user_mode.abs_diff(LOOP) > 10_000 || !is_near(clock_ns, cpu_ns, 20_000);
    unless(wrong, format!("{found}; {cpu_ns} ns by getrusage"))
}

pub fn modes() -> Check {
    let groups = vec![vec![
        Event::counted("u", hardware(INSTRUCTIONS, Modes::User)),
        Event::counted("k", hardware(INSTRUCTIONS, Modes::Kernel)),
    ]];
    let split = |work: &dyn Fn()| -> Result<(u64, u64), String> {
        let counted = Counted::during(&groups, Target::ThisThread, work);
        Ok((counted.value("u")?, counted.value("k")?))
    };
    const CALLS: u64 = 10_000;
    // In a loop of a twentieth of a second, the kernel's part comes from timer interrupts.
    let (loop_user, loop_kernel) = split(&|| turns(TURNS))?;
    // SAFETY: a system call without arguments.
    let (calls_user, calls_kernel) =
        split(&|| (0..CALLS).for_each(|_| assert!(unsafe { libc::syscall(libc::SYS_getppid) } >= 0)))?;
    let found = format!(
        "loop {loop_user} user, {loop_kernel} kernel; {CALLS} calls {calls_user} user, {calls_kernel} kernel"
    );
    let wrong = !(LOOP..LOOP + AROUND).contains(&loop_user)
        || loop_kernel > LOOP / 50
        || calls_kernel < CALLS * 20
        || calls_user > CALLS * 100;
    unless(wrong, found)
}

/// Events that this processor may lack: each has a value and is exact, or has a reason.
pub fn lacking() -> Check {
    const CHAIN: u64 = 0x1e; // reserved for the kernel
    const BR_RETIRED: u64 = 0x21;
    // linux/perf_event.h: enum perf_hw_id from 2 on (caches, branches, bus, stalls, reference cycles), and all
    // combinations of perf_hw_cache_id, _op_id, _result_id.
    let generic = (2..10).map(|id| ("hardware", Encoding::new(kind::HARDWARE, id)));
    let cache = (0..7 * 3 * 2).map(|n| {
        let (id, operation, result) = (n / 6, n / 2 % 3, n % 2);
        ("cache", Encoding::new(kind::CACHE, id | operation << 8 | result << 16))
    });
    // The architecture's own events. The kernel opens them even if the processor lacks them.
    let raw = (1..=0x30).filter(|code| *code != CHAIN).map(|code| ("raw", Encoding::new(kind::RAW, code)));
    let raw = raw.filter(|_| cfg!(target_arch = "aarch64"));
    let mut missing = 0;
    let mut counted = Vec::new();
    for (name, encoding) in generic.chain(cache).chain(raw) {
        let found = Counted::during(&alone(name, encoding.in_modes(Modes::User)), Target::ThisThread, || {
            turns(TURNS / 100)
        });
        let reading = found.of(name)?;
        let what = format!("{name} {:#x}", encoding.config[0]);
        match (reading.quality(), reading.value()) {
            (Quality::Unsupported, None) => missing += 1,
            (Quality::Exact, Some(value)) => counted.push(format!("{what} {value}")),
            other => return Err(format!("{what}: {other:?}")),
        }
    }
    let found = format!("{missing} unsupported; counted: {}", counted.join(", "));
    // Whether this kernel also asks the processor for raw codes.
    let found =
        format!("{found}; the kernel {} raw 0x21", if opens(BR_RETIRED) { "opens" } else { "refuses" });
    unless(cfg!(target_arch = "aarch64") && missing == 0, found)
}

/// Calls perf_event_open(2) directly.
fn opens(raw: u64) -> bool {
    const SIZE: u64 = 64; // PERF_ATTR_SIZE_VER0
    let attr = [u64::from(kind::RAW) | SIZE << 32, raw, 0, 0, 0, 0, 0, 0];
    // SAFETY: the attributes have the size that they state; the descriptor belongs to this function.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), 0, -1, -1, 0) as i32;
        descriptor >= 0 && libc::close(descriptor) == 0
    }
}
