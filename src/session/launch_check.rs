//! Checks that the running job is the job that was launched.
//!
//! If a program's MPI does not understand its launcher, the program still starts, but each rank is a separate job
//! ("singleton"). Examples are an MPICH program under Open MPI's mpirun or under `srun --mpi=pmix`, an Open MPI program
//! under MPICH's mpiexec or under `srun --mpi=pmi2`, and any program under an srun without a process manager. MPI
//! reports no error, and each job runs the whole problem.

use crate::text::count;
use crate::transport::local_socket;
use crate::transport::node_election::name_of;
use serde::{Deserialize, Serialize};
use std::os::unix::net::UnixListener;
use std::time::Duration;

/// What the launcher of the ranks reports, and what to do if MPI reports something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// The launcher's name: see [`crate::record::Job`].
    pub launcher: String,
    /// Number of ranks that it started, if it reports this.
    pub ranks: Option<u32>,
    /// The number of this rank among them.
    pub rank: u32,
    /// True if this rank reports for all ranks what rank 0 knows.
    pub speaks: bool,
    /// Identifies the job on this node: the same text for all of its ranks. `None` if the tool must report only
    /// errors.
    pub job: Option<String>,
    /// True if the tool must report nothing.
    pub quiet: bool,
    /// True if the tool must end the job.
    pub abort: bool,
}

impl Expectation {
    /// How long to wait for ranks that do not reach MPI_Init before this rank reports it.
    ///
    /// Waiting ranks cannot communicate, and any rank may be missing, even rank 0. So rank 0 reports first, and
    /// higher ranks report later. The number of reporting ranks at most doubles each time.
    pub fn patience(&self) -> Duration {
        self.patience_from(Duration::from_secs(30))
    }

    /// Like [`Self::patience`], where rank 0 waits for the time `first`.
    pub fn patience_from(&self, first: Duration) -> Duration {
        first * (1 + self.rank.saturating_add(1).ilog2())
    }

    /// The right to report on `topic` for all ranks of this node, as long as the result lives; `None` if another
    /// rank has it.
    pub fn speak_for_node(&self, topic: &str) -> Option<UnixListener> {
        let job = self.job.as_deref()?;
        local_socket::listen(&name_of("speaker", &format!("{job} {topic}"))).ok()
    }

    /// True if this process must report that its world of `size` ranks is not the launched job. If the launcher
    /// does not report the number of ranks, a rank notices only if its own number is beyond its world: the first
    /// such rank reports.
    pub fn speaks_of_mismatch(&self, size: u32) -> bool {
        self.ranks.map_or(self.rank == size, |_| self.speaks) && !self.quiet
    }

    /// The error if pmmpi's own MPI program, which measures plain programs, has a world of `size` ranks; `None` if
    /// that is right.
    pub fn contradicted_by_runner(&self, size: u32, mpi_library: &str) -> Option<String> {
        let (launcher, library) = (&self.launcher, first_words(mpi_library));
        let advice = match advice(launcher, mpi_library) {
            advice if launcher == "srun" => advice,
            _ => "build pmmpi's runner with the mpicc of this launcher's MPI",
        };
        let (started, jobs) = (self.started_beyond(size)?, count(size as usize, "rank"));
        Some(format!(
            "{launcher} started {started}, but pmmpi's runner runs as separate jobs of {jobs}: the \
             runner's MPI ({library}) and the launcher do not work together; {advice}"
        ))
    }

    /// The error if the program has a world of `size` ranks; `None` if that is right.
    pub fn contradicted_by(&self, size: u32, mpi_library: &str) -> Option<String> {
        Some(message(&self.launcher, &self.started_beyond(size)?, size, mpi_library))
    }

    /// The launched ranks, if a world of `size` lacks some of them. If their number is unknown, this rank's own
    /// number shows it.
    fn started_beyond(&self, size: u32) -> Option<String> {
        match self.ranks {
            Some(ranks) => (size < ranks).then(|| format!("{ranks} ranks")),
            None => (size <= self.rank).then(|| format!("at least {} ranks", u64::from(self.rank) + 1)),
        }
    }
}

/// Names in the version texts of Open MPI and of libraries that derive from it.
const OPEN_MPIS: [&str; 3] = ["Open MPI", "Spectrum MPI", "Fujitsu MPI"];

/// The error if a launcher started `launched` ranks but MPI's world has `size`; `None` if that is right. (A larger
/// world is right: several launches may make one world.)
pub fn contradiction(launcher: &str, launched: u32, size: u32, mpi_library: &str) -> Option<String> {
    (size < launched).then(|| message(launcher, &format!("{launched} ranks"), size, mpi_library))
}

fn message(launcher: &str, started: &str, size: u32, mpi_library: &str) -> String {
    let (library, advice) = (first_words(mpi_library), advice(launcher, mpi_library));
    let jobs = count(size as usize, "rank");
    format!(
        "{launcher} started {started}, but the program runs as separate jobs of {jobs}: the \
         program's MPI ({library}) and the launcher do not work together; {advice}"
    )
}

fn advice(launcher: &str, mpi_library: &str) -> &'static str {
    let open_mpi = OPEN_MPIS.iter().any(|name| mpi_library.contains(name));
    match launcher {
        "srun" if open_mpi => "add --mpi=pmix to srun",
        "srun" => "add --mpi=pmi2 to srun",
        _ if launcher.contains("Open MPI") && !open_mpi => {
            "start the program with the launcher of its own MPI, for example mpiexec.hydra"
        }
        _ if open_mpi => "start the program with Open MPI's own mpirun",
        _ => "start the program with the launcher of its own MPI",
    }
}

/// The name and version of a library, from its longer version text.
fn first_words(mpi_library: &str) -> String {
    let words: Vec<&str> = mpi_library.split(',').next().unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_0_loses_patience_first_and_nobody_waits_for_ever() {
        let patience = |rank| {
            let launcher = "srun".to_owned();
            let (ranks, speaks, abort) = (Some(u32::MAX), rank == 0, false);
            Expectation { launcher, ranks, rank, speaks, job: None, quiet: false, abort }.patience().as_secs()
        };
        assert_eq!([0, 1, 2, 3, 20_000, u32::MAX].map(patience), [30, 60, 60, 90, 450, 960]);
    }

    #[test]
    fn one_rank_of_a_node_speaks() {
        let expectation = |job| Expectation {
            launcher: "srun".to_owned(),
            ranks: Some(2),
            rank: 0,
            speaks: true,
            job,
            quiet: false,
            abort: false,
        };
        let own = expectation(Some(format!("speaks {}", std::process::id())));
        let first = own.speak_for_node("topic");
        assert!(first.is_some() && own.speak_for_node("topic").is_none());
        drop(first);
        assert!(own.speak_for_node("topic").is_some() && expectation(None).speak_for_node("topic").is_none());
    }

    /// A launcher that gives each rank only its number.
    #[test]
    fn a_rank_beyond_its_world_notices() {
        let of = |rank| Expectation {
            launcher: "prterun".to_owned(),
            ranks: None,
            rank,
            speaks: rank == 0,
            job: None,
            quiet: false,
            abort: false,
        };
        let mpich = "MPICH Version: 4.0.2";
        assert_eq!((of(0).contradicted_by(1, mpich), of(2).contradicted_by(3, mpich)), (None, None));
        let message = of(1).contradicted_by(1, mpich).unwrap();
        assert!(
            message.contains(
                "prterun started at least 2 ranks, but the program runs as separate jobs of 1 rank"
            ),
            "{message}"
        );
        assert!(of(2).contradicted_by_runner(1, mpich).unwrap().contains("at least 3 ranks"));
        assert_eq!([1, 2, 3].map(|rank| of(rank).speaks_of_mismatch(1)), [true, false, false]);
        assert!(!Expectation { quiet: true, ..of(1) }.speaks_of_mismatch(1));
        let known = |rank| Expectation { ranks: Some(4), ..of(rank) }.speaks_of_mismatch(1);
        assert_eq!([known(0), known(1)], [true, false]);
    }

    #[test]
    fn the_message_names_the_flag_that_mends_it() {
        let (open_mpi, mpich) = ("Open MPI v4.1.4, package: Debian", "MPICH Version:      4.0.2");
        let says = |launcher: &str, library: &str, words: &str| {
            let message = contradiction(launcher, 4, 1, library).unwrap();
            assert!(message.contains(words) && message.contains("4 ranks"), "{message}");
        };
        says("srun", open_mpi, "--mpi=pmix");
        says("srun", mpich, "--mpi=pmi2");
        says("mpirun (Open MPI)", mpich, "mpiexec.hydra");
        says("mpiexec (Hydra)", open_mpi, "Open MPI's own mpirun");
        assert_eq!(contradiction("srun", 4, 4, mpich), None);
        assert_eq!(contradiction("srun", 4, 8, mpich), None);
    }
}
