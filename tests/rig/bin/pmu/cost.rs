//! The cost of reading a counter: in instructions, if the processor counts them exactly, and in time.

use crate::access::user_access;
use crate::{CYCLES, INSTRUCTIONS, hardware};
use pmmpi::RankId;
use pmmpi::clock::monotonic_ns;
use pmmpi::counters::event::{Event, Modes};
use pmmpi::counters::perf_event_open::Target;
use pmmpi::counters::thread_counter::ThreadCounter;
use pmmpi::session::live_probes::collect;
use rig::counting::Counted;
use rig::probing::{arm, inside};
use std::hint::black_box;

const READS: u64 = 1000;
const BATCHES: usize = 101;

/// The cost of one read: instructions in user mode and in the kernel, if counted, and time (ns).
struct Cost {
    user: Option<f64>,
    kernel: Option<f64>,
    ns: f64,
}

/// Prints a table with each way to read each event, without the cost of the loop itself.
pub fn table() -> Result<(), String> {
    user_access(true)?;
    println!("{:28} {:>12} {:>12} {:>12}", "ONE READ OF", "USER INSTR", "KERNEL INSTR", "NS");
    for (name, id) in [("instructions", INSTRUCTIONS), ("cycles", CYCLES)] {
        let mut counter = match ThreadCounter::open(hardware(id, Modes::User)) {
            Ok(counter) => counter,
            Err(gap) => {
                println!("{name}: {gap}");
                continue;
            }
        };
        let register = counter.register().ok_or_else(|| format!("{name} is in no register"))?;
        let nothing = cost(|| Some(0));
        // SAFETY: the register holds this open counter, and nothing else runs that could move it.
        let bare = cost(|| unsafe { black_box(register).read() });
        let own = cost(|| black_box(&counter).read_register());
        let call = cost(|| counter.read().ok());
        for (way, cost) in [("bare register", bare), ("read_register", own), ("read(2)", call)] {
            let less = |of: Option<f64>, none: Option<f64>| match (of, none) {
                (Some(of), Some(none)) => format!("{:.2}", of - none),
                _ => "-".to_owned(),
            };
            let name = format!("{name}, {way}");
            let (user, kernel) = (less(cost.user, nothing.user), less(cost.kernel, nothing.kernel));
            println!("{name:28} {user:>12} {kernel:>12} {:>12.1}", cost.ns - nothing.ns);
        }
    }
    probes();
    Ok(())
}

/// Prints what an entry of a probe takes, begin and end together.
fn probes() {
    arm();
    let nothing = cost(|| Some(0));
    for (what, name) in [("a short name", "solve"), ("a name of 63 bytes", LONG_NAME)] {
        let cost = cost(|| {
            inside(name, || ());
            Some(0)
        });
        let user =
            cost.user.zip(nothing.user).map_or("-".to_owned(), |(of, none)| format!("{:.2}", of - none));
        let kernel =
            cost.kernel.zip(nothing.kernel).map_or("-".to_owned(), |(of, none)| format!("{:.2}", of - none));
        println!("{:28} {user:>12} {kernel:>12} {:>12.1}", format!("probe, {what}"), cost.ns - nothing.ns);
    }
    for (name, totals, times) in collect(RankId(0)).over_ranks() {
        let counts = [totals.cycles, totals.instructions].map(|of| (of.least, of.most));
        let median = times.median_ps().unwrap_or_default() / 1e3;
        println!(
            "{name:.8}: cycles and instructions of an entry {counts:?}, median {median:.1} ns, {:?}",
            totals.discarded
        );
    }
}

const LONG_NAME: &str = "a name that is as long as the name of a probe may be: 63 bytes.";

/// The medians of many batches.
fn cost(mut read: impl FnMut() -> Option<u64>) -> Cost {
    let of = |name, modes| vec![Event::counted(name, hardware(INSTRUCTIONS, modes))];
    let groups = [of("user", Modes::User), of("kernel", Modes::Kernel)];
    let mut values: [Vec<f64>; 3] = Default::default();
    for _ in 0..BATCHES {
        let mut ns = 0;
        let counted = Counted::during(&groups, Target::ThisThread, || {
            let before = monotonic_ns();
            for _ in 0..READS {
                black_box(read());
            }
            ns = monotonic_ns() - before;
        });
        let found = [counted.value("user").ok(), counted.value("kernel").ok(), Some(ns as u64)];
        for (values, value) in values.iter_mut().zip(found) {
            values.extend(value.map(|value| value as f64 / READS as f64));
        }
    }
    let [user, kernel, ns] = values.map(|mut values| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    });
    Cost { user, kernel, ns: ns.unwrap_or(f64::NAN) }
}
