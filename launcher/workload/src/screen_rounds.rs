//! Rounds of `pmmpi screen` on any fabric: in each round all nodes run the same kernels in the same order. After the
//! rounds of all nodes, the suspects of each kernel run some more, together with nodes that are not suspected.
//!
//! Each kernel of each round is a run of its own, saved before the next one starts.

use crate::kernel_instructions;
use crate::net::{self, NetRound};
use crate::one_round::{self, NOT_TRIED, Round, RoundKind, RoundWork};
use crate::process::PreparedProgram;
use crate::rank_watch::{LastWords, RankWatch, WatchAddress};
use crate::rounds::{RoundsContext, in_round};
use crate::screen_console::ScreenConsole;
use crate::screen_messages::{Teller, Told};
use crate::screen_plan::{ScreenOutcome, ScreenPlan, ScreenWork, WorkKind};
use crate::screen_report::with_history;
use crate::{Failure, descendants, saving, signals};
use pmmpi::clock;
use pmmpi::node::NodeKey;
use pmmpi::record::{End, RankRecord, Run, RunHeader, wire};
use pmmpi::session::Beginning;
use pmmpi::session::launcher_request::{Extras, SharedRequest};
use pmmpi::transport::collectives;
use pmmpi::transport::fabric::{Divisible, FabricError, Pairwise};
use pmmpi::transport::node_meeting::Meeting;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Nodes that run beside the suspects: a round of fewer nodes shows no effect of the round itself (see
/// docs/method.md, rounds).
const LEAST_NODES: usize = 5;

/// What rank 0 says before each work.
const GO_ON: u8 = 0;
const STOP: u8 = 1;

/// Why this rank does not start a work.
const HUNG_BEFORE: &str =
    "it took longer than --timeout in an earlier round or warm-up, so pmmpi did not start it again";
const LEFT_BEFORE: &str = "a process of an earlier kernel is still there (no signal ended this process), so pmmpi did not \
                           start this kernel";

/// Executes `plan` together with the other ranks. Returns the run files on rank 0, `None` elsewhere.
pub fn run<F: Divisible + Pairwise>(
    mut fabric: F,
    plan: &ScreenPlan,
    place: RoundsContext,
) -> Result<Option<ScreenOutcome>, Failure> {
    let environment = &plan.rounds.environment;
    let prepared =
        |work: &ScreenWork| PreparedProgram::new(&work.program, &work.argv, environment.iter().cloned());
    let programs = plan.works.iter().map(prepared).collect::<Result<Vec<_>, _>>();
    let programs = programs.map_err(|e| Failure::own(format_args!("cannot start a kernel: {e}")))?;
    if plan.rounds.timeout.is_some() {
        descendants::adopt();
    }
    let told = SharedRequest::share(&mut fabric, || SharedRequest {
        extras: Extras { pings: plan.rounds.pings, tight_end: true, ..Extras::default() },
        meeting: Meeting::arrange(),
        ..SharedRequest::default()
    });
    let told = told.map_err(in_round)?;
    let host = &NodeKey::own().hostname;
    let hosts = collectives::collect(&mut fabric, host.as_bytes()).map_err(in_round)?;
    let hosts: Vec<_> = hosts.into_iter().map(|host| String::from_utf8_lossy(&host).into_owned()).collect();
    let common = Common::of_rank_0(plan, &hosts);
    let common =
        collectives::spread(&mut fabric, wire::encode(&common).unwrap_or_default()).map_err(in_round)?;
    let common: Common = wire::decode(&common)
        .map_err(|e| Failure::own(format_args!("pmmpi cannot decode what rank 0 plans: {e}")))?;
    let plan = &ScreenPlan { seed: common.seed, ..plan.clone() };
    let speaks = fabric.rank() == 0;
    if plan.works.iter().any(|work| work.kind == WorkKind::Net) {
        // Only rank 0 knows.
        let is_one = net::node_count(&mut fabric).map_err(in_round)? < 2;
        let told =
            collectives::spread(&mut fabric, vec![if is_one { STOP } else { GO_ON }]).map_err(in_round)?;
        if told == [STOP] {
            return if speaks { Err(one_node()) } else { Ok(None) };
        }
    }
    let watch = common.watch(plan, fabric.rank(), host);
    let mut rounds = ScreenRounds {
        plan,
        programs,
        place,
        told,
        hosts,
        console: if speaks { ScreenConsole::new(plan) } else { ScreenConsole::silent() },
        teller: Teller::new(plan.told_on),
        suspects: HashMap::new(),
        hung: HashMap::new(),
        hung_here: vec![false; plan.works.len()],
        is_left_here: false,
        done: ScreenOutcome::default(),
        first_channel: 0,
        is_first: true,
    };
    rounds.warm_up(&mut fabric).map_err(in_round)?;
    for number in 0..plan.rounds.runs {
        for work in plan.order(number) {
            rounds.work(&mut fabric, Some(number), work).map_err(in_round)?;
        }
    }
    if plan.more_rounds > 0 {
        rounds.suspects(&mut fabric).map_err(in_round)?;
    }
    signals::no_more_children();
    rounds.console.end();
    // The launcher's rank 0 may be another rank of MPI.
    let is_told = speaks && plan.told_on.is_some();
    let mut done = rounds.done;
    if is_told {
        rounds.teller.tell(&Told::Ended(std::mem::take(&mut done.ending)));
    }
    // Ranks without a part in the last rounds wait here: their launcher may end a rank that has nothing more to do, and
    // the launcher of rank 0 must not take that for a failure.
    collectives::spread(&mut fabric, vec![STOP]).map_err(in_round)?;
    if let Some(watch) = watch {
        watch.end();
    }
    Ok((speaks && !is_told).then_some(done))
}

/// What rank 0 decides for all ranks.
#[derive(Serialize, Deserialize)]
struct Common {
    /// Each rank has its own plan, but all must run the same kernel at the same time.
    seed: u64,
    watch: Option<WatchAddress>,
    /// The rank that prints a message if rank 0 has ended: on another node, if there is one.
    deputy: u32,
    /// The file that keeps this message.
    ended_file: Option<PathBuf>,
    /// The host of rank 0.
    host: String,
}

impl Common {
    /// What rank 0 spreads; the other ranks know no hosts.
    fn of_rank_0(plan: &ScreenPlan, hosts: &[String]) -> Self {
        let host = hosts.first().cloned().unwrap_or_default();
        let deputy = hosts.iter().position(|other| *other != host).unwrap_or(1) as u32;
        Self { seed: plan.seed, watch: plan.watch.clone(), deputy, ended_file: plan.ended_file(), host }
    }

    /// Connects this rank to the launcher of rank 0.
    fn watch(self, plan: &ScreenPlan, rank: u32, host: &str) -> Option<RankWatch> {
        let words = (rank == self.deputy).then(|| {
            let folder = plan.rounds.out.as_deref().unwrap_or(Path::new("."));
            let message = format!(
                "{}: rank 0 has ended, so the screen ends. To report the rounds that are saved: pmmpi-report screen {}",
                self.host,
                folder.display()
            );
            LastWords { message, file: self.ended_file.clone() }
        });
        self.watch.map(|address| RankWatch::begin(address, rank, host, words))
    }
}

/// `round 2 of triad`.
fn name_of(number: Option<u32>, work: &ScreenWork) -> String {
    number.map_or_else(
        || format!("a warm-up of {}", work.name),
        |number| format!("round {} of {}", number + 1, work.name),
    )
}

fn one_node() -> Failure {
    Failure::usage(
        "the kernel `net` measures the network between nodes, but this job has only one node. Start pmmpi \
         screen on several nodes, for example with srun -N 4 --ntasks-per-node=1, or leave `net` out of \
         --kernels",
    )
}

struct ScreenRounds<'a> {
    plan: &'a ScreenPlan,
    /// One per work.
    programs: Vec<PreparedProgram>,
    place: RoundsContext,
    told: SharedRequest,
    /// The host name of each rank; only on rank 0.
    hosts: Vec<String>,
    console: ScreenConsole,
    /// Tells the launcher of rank 0.
    teller: Teller,
    /// The nodes that looked slow in the rounds of all nodes, by kernel; only on rank 0.
    suspects: HashMap<String, BTreeSet<String>>,
    /// The nodes on which a kernel took longer than the time limit, or was not started, by kernel; only on rank 0.
    hung: HashMap<String, BTreeSet<String>>,
    /// For each work, whether it took longer than the time limit on this rank. It would take that time in each round.
    hung_here: Vec<bool>,
    /// True if a process is still here after its time limit. If it continued, it would make the next kernel slow.
    is_left_here: bool,
    done: ScreenOutcome,
    /// The first channel that the kernel `net` has not used; also makes its pairs different ones in each round.
    first_channel: u16,
    /// True before the first work.
    is_first: bool,
}

impl ScreenRounds<'_> {
    /// Rounds that are not kept: as many as the user asked for, and until the time of --soak is over.
    fn warm_up<F: Pairwise>(&mut self, fabric: &mut F) -> Result<(), FabricError> {
        let plan = self.plan;
        let began = Instant::now();
        for number in 0.. {
            let is_wanted = number < plan.rounds.warmup || began.elapsed() < plan.soak;
            let goes_on = is_wanted && !self.stops();
            // Rank 0 decides.
            if collectives::spread(fabric, vec![if goes_on { GO_ON } else { STOP }])? == [STOP] {
                break;
            }
            for work in plan.order(!number) {
                self.work(fabric, None, work)?;
            }
        }
        Ok(())
    }

    fn is_interrupted(&mut self) -> bool {
        let ending = &mut self.done.ending;
        ending.stopped_by = ending.stopped_by.or_else(signals::asked_to_end);
        ending.stopped_by.is_some()
    }

    /// True if rank 0 starts nothing more.
    fn stops(&mut self) -> bool {
        self.is_interrupted() || self.done.ending.failure.is_some()
    }

    /// One kernel of a round on all ranks of `fabric`, unless rank 0 stops. `number` is that of the measured round, `None`
    /// for a warm-up.
    fn work<F: Pairwise>(
        &mut self,
        fabric: &mut F,
        number: Option<u32>,
        work: usize,
    ) -> Result<(), FabricError> {
        let plan = self.plan;
        let settings = &plan.rounds;
        let stops = self.stops();
        if collectives::spread(fabric, vec![if stops { STOP } else { GO_ON }])? == [STOP] {
            return Ok(());
        }
        if fabric.rank() != 0 {
            signals::forget_request(); // a signal to another rank ends only what it runs
        }
        let what = &plan.works[work];
        self.console.begin(&what.name, number.is_none());
        self.teller.tell(&Told::Begins(name_of(number, what)));
        let beginning = Beginning {
            began_ns: if self.is_first { self.place.began_ns } else { clock::monotonic_ns() },
            pings: self.told.extras.pings,
            tight_end: true,
            meeting: self.told.meeting,
        };
        let kind = match what.kind {
            // On each rank in any case, because its preparation is collective. It gives up before the time limit.
            WorkKind::Net => RoundKind::Net(NetRound {
                seed: plan.seed.wrapping_add(u64::from(self.first_channel)),
                first_channel: self.first_channel,
                for_suspects: number.is_some_and(|number| number >= settings.runs),
            }),
            _ if self.hung_here[work] => RoundKind::Nobody(HUNG_BEFORE),
            _ if self.is_left_here => RoundKind::Nobody(LEFT_BEFORE),
            WorkKind::Program => RoundKind::Program,
            WorkKind::Kernel => RoundKind::Kernel,
        };
        let round_work = RoundWork {
            kind,
            program: &self.programs[work],
            file: &what.program,
            timeout: settings.timeout,
            is_screen: true,
            output_to_stderr: plan.output_to_stderr,
            selection: &settings.selection,
            gpus: settings.gpus.as_deref(),
            is_first: std::mem::replace(&mut self.is_first, false),
            is_last: false,
        };
        let round = one_round::measure(fabric, &round_work, &self.place, beginning)?;
        self.first_channel = self.first_channel.wrapping_add(round.channels);
        self.hung_here[work] |= round.own.timed_out;
        self.is_left_here |= round.own.is_left;
        // The signal may have ended the kernels of this round, too.
        if let Some(parts) = &round.parts
            && !(fabric.rank() == 0 && self.is_interrupted())
            && let Err(failure) = self.settle(number, what, &round, parts)
        {
            self.done.ending.failure = Some(failure);
        }
        Ok(())
    }

    /// On rank 0: saves a run and prints what became of it.
    fn settle(
        &mut self,
        kept: Option<u32>,
        work: &ScreenWork,
        round: &Round,
        parts: &[Vec<u8>],
    ) -> Result<(), Failure> {
        let plan = self.plan;
        let settings = &plan.rounds;
        let header = RunHeader {
            command: work.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            ..settings.header_of(kept.unwrap_or(0), round.started_unix_ns)
        };
        let mut run = Run::assemble(header, round.size, parts, round.gather_ns)
            .map_err(|e| Failure::own(format_args!("pmmpi cannot decode the record of a rank: {e}")))?;
        run.keep_options(&settings.selection);
        self.note_hung(work, &run);
        let screened = run.screened.get_or_insert_default();
        let ranks = run.ranks.len();
        let of_rank_0 = round.expected_instructions;
        run.expected.extend(kernel_instructions::of_all(of_rank_0, &screened.results, ranks));
        screened.kernel = work.kind.is_kernel().then(|| work.name.clone());
        if kept.is_some_and(|number| number >= settings.runs)
            && let Some(nodes) = self.suspects.get(&work.name)
        {
            let is_suspect = |rank: &&RankRecord| nodes.contains(&run.nodes[rank.node.index()].key.hostname);
            screened.suspects = run.ranks.iter().filter(is_suspect).map(|rank| rank.rank).collect();
        }
        if kept.is_some()
            && let Some(folder) = &settings.out
        {
            let file = saving::save(folder, None, &run, settings.quiet)?;
            self.teller.tell(&Told::Saved(file.clone()));
            self.done.files.push(file);
        }
        self.console.done(kept, work, &run);
        Ok(())
    }

    /// Notes the nodes on which this work took longer than the time limit, or was not started.
    fn note_hung(&mut self, work: &ScreenWork, run: &Run) {
        for rank in run.ranks.iter().filter(|rank| [End::TimedOut, NOT_TRIED].contains(&rank.end)) {
            let host = run.nodes[rank.node.index()].key.hostname.clone();
            self.hung.entry(work.name.clone()).or_default().insert(host);
        }
    }

    /// The further rounds of the suspects of each kernel.
    fn suspects<F: Divisible + Pairwise>(&mut self, fabric: &mut F) -> Result<(), FabricError> {
        let plan = self.plan;
        let chosen = if fabric.rank() == 0 { self.chosen() } else { Vec::new() };
        let chosen = collectives::spread(fabric, wire::encode(&chosen).unwrap_or_default())?;
        // One list of ranks per work; empty lists if nothing can change any more.
        let chosen: Vec<Vec<u32>> = wire::decode(&chosen).unwrap_or_default();
        let own = fabric.rank();
        let mut subsets = Vec::with_capacity(chosen.len());
        for ranks in &chosen {
            let is_any = !ranks.is_empty();
            subsets.push(if is_any { fabric.subset(ranks.contains(&own))? } else { None });
        }
        let works = chosen.iter().filter(|ranks| !ranks.is_empty()).count();
        self.console.suspects(plan.more_rounds, works);
        let first = plan.rounds.runs;
        for number in first..first + plan.more_rounds {
            for work in plan.order(number) {
                if let Some(Some(subset)) = subsets.get_mut(work) {
                    self.work(subset, Some(number), work)?;
                }
            }
        }
        Ok(())
    }

    /// On rank 0: for each work the ranks of the suspects and of the nodes beside them, in order; none if no node is
    /// suspected.
    fn chosen(&mut self) -> Vec<Vec<u32>> {
        if self.stops() || self.done.files.is_empty() {
            return Vec::new();
        }
        match self.ask() {
            Ok(mut suspects) => {
                let none = BTreeSet::new();
                // A node on which the kernel hangs is measured no more.
                suspects.retain(|kernel, nodes| {
                    let hung = self.hung.get(kernel).unwrap_or(&none);
                    nodes.retain(|node| !hung.contains(node));
                    !nodes.is_empty()
                });
                let of = |work: &ScreenWork| {
                    let hung = self.hung.get(&work.name).unwrap_or(&none);
                    suspects.get(&work.name).map_or_else(Vec::new, |nodes| self.beside(nodes, hung))
                };
                let chosen: Vec<Vec<u32>> = self.plan.works.iter().map(of).collect();
                self.console.suspected(&suspects);
                self.suspects = suspects;
                chosen
            }
            Err(why) => {
                self.console.warn(format_args!(
                    "pmmpi cannot measure suspects again, because it could not find out which nodes are suspects: {why}"
                ));
                Vec::new()
            }
        }
    }

    /// The ranks of these nodes, of rank 0's node, and of enough other nodes on which the kernel does not hang.
    fn beside(&self, suspects: &BTreeSet<String>, hung: &BTreeSet<String>) -> Vec<u32> {
        let mut others: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        others.sort_unstable();
        others.dedup();
        let is_healthy = |host: &str| !suspects.contains(host) && !hung.contains(host);
        others.retain(|host| is_healthy(host));
        let first = self.hosts.first().map(String::as_str);
        let mut nodes: BTreeSet<&str> =
            first.into_iter().chain(suspects.iter().map(String::as_str)).collect();
        let unsuspected = usize::from(first.is_some_and(is_healthy));
        others.retain(|host| Some(*host) != first);
        let numbers = self.plan.choose((0..others.len() as u32).collect(), LEAST_NODES - unsuspected);
        nodes.extend(numbers.into_iter().map(|number| others[number as usize]));
        let ranks = (0..).zip(&self.hosts).filter(|(_, host)| nodes.contains(host.as_str()));
        ranks.map(|(rank, _)| rank).collect()
    }

    /// The suspects by kernel, as `pmmpi-report screen --suspects` prints them: a kernel, a tab and a node per line.
    fn ask(&self) -> Result<HashMap<String, BTreeSet<String>>, String> {
        let words = with_history(self.plan, &self.done, Some("--suspects".into()));
        let (program, rest) = words.split_first().ok_or("there is no program that reports")?;
        let output = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{}: {e}", program.to_string_lossy()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {}", program.to_string_lossy(), output.status, said.trim()));
        }
        let mut suspects: HashMap<String, BTreeSet<String>> = HashMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some((kernel, node)) = line.split_once('\t') {
                suspects.entry(kernel.to_owned()).or_default().insert(node.to_owned());
            }
        }
        Ok(suspects)
    }
}
