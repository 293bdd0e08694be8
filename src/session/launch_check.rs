//! Is the job that runs the one that was started?
//!
//! A program whose MPI does not understand its launcher starts all the same, as so many jobs of one rank
//! ("singletons"): an MPICH program under Open MPI's mpirun or under `srun --mpi=pmix`, the reverse, or
//! any under an srun without a process manager. Nobody says so, and each runs the whole problem.

use crate::transport::local_socket;
use crate::transport::node_election::name_of;
use serde::{Deserialize, Serialize};
use std::os::unix::net::UnixListener;
use std::time::Duration;

/// What the launcher of the ranks says, and what is to be done where MPI says something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// Its name, as [`crate::record::Job`] has it.
    pub launcher: String,
    /// How many ranks it started, if it tells.
    pub ranks: Option<u32>,
    /// Which of them this one is.
    pub rank: u32,
    /// This rank speaks for all, of what rank 0 knows.
    pub speaks: bool,
    /// The job on this node: the same text for all of its ranks. `None` where nothing but errors is to be said.
    pub job: Option<String>,
    /// Nothing is to be said.
    pub quiet: bool,
    /// The job is to end.
    pub abort: bool,
}

impl Expectation {
    /// How long to wait for ranks that do not come to MPI_Init before that is said.
    ///
    /// Ranks that wait for others cannot talk to one another, and any of them may be the missing ones, rank
    /// 0 too. So rank 0 speaks first, and later ranks later: at most twice as many each time.
    pub fn patience(&self) -> Duration {
        self.patience_from(Duration::from_secs(30))
    }

    /// The same, where rank 0 has so much.
    pub fn patience_from(&self, first: Duration) -> Duration {
        first * (1 + self.rank.saturating_add(1).ilog2())
    }

    /// The right to speak about `topic` for all ranks of this node, as long as it is kept; `None` where another has it.
    pub fn speak_for_node(&self, topic: &str) -> Option<UnixListener> {
        let job = self.job.as_deref()?;
        local_socket::listen(&name_of("speaker", &format!("{job} {topic}"))).ok()
    }

    /// True where this process is to say that its world of `size` ranks is not the job that was started. Where the launcher
    /// does not tell how many ranks there are, ranks notice whose number is beyond their world: the first of them says so.
    pub fn speaks_of_mismatch(&self, size: u32) -> bool {
        self.ranks.map_or(self.rank == size, |_| self.speaks) && !self.quiet
    }

    /// What is wrong where pmmpi's own MPI program, which measures plain programs, has a world of `size` ranks.
    pub fn contradicted_by_runner(&self, size: u32, mpi_library: &str) -> Option<String> {
        let (launcher, library) = (&self.launcher, first_words(mpi_library));
        let advice = match advice(launcher, mpi_library) {
            advice if launcher == "srun" => advice,
            _ => "build pmmpi with the mpicc of this launcher's MPI",
        };
        let started = self.started_beyond(size)?;
        Some(format!(
            "{launcher} started {started}, but pmmpi's runner runs as jobs of {size}: the MPI that it was built for \
             ({library}) and the launcher do not understand each other; {advice}"
        ))
    }

    /// What is wrong with a world of `size` ranks.
    pub fn contradicted_by(&self, size: u32, mpi_library: &str) -> Option<String> {
        Some(message(&self.launcher, &self.started_beyond(size)?, size, mpi_library))
    }

    /// The ranks that were started, where a world of `size` has not all of them: a rank's own number tells, too.
    fn started_beyond(&self, size: u32) -> Option<String> {
        match self.ranks {
            Some(ranks) => (size < ranks).then(|| format!("{ranks} ranks")),
            None => (size <= self.rank).then(|| format!("at least {} ranks", u64::from(self.rank) + 1)),
        }
    }
}

/// What libraries say that are Open MPI's or made from it.
const OPEN_MPIS: [&str; 3] = ["Open MPI", "Spectrum MPI", "Fujitsu MPI"];

/// What is wrong where a launcher started `launched` ranks and MPI's world has `size`; `None` where nothing
/// is. (More than were launched is right: several launches may make one world.)
pub fn contradiction(launcher: &str, launched: u32, size: u32, mpi_library: &str) -> Option<String> {
    (size < launched).then(|| message(launcher, &format!("{launched} ranks"), size, mpi_library))
}

fn message(launcher: &str, started: &str, size: u32, mpi_library: &str) -> String {
    let (library, advice) = (first_words(mpi_library), advice(launcher, mpi_library));
    format!(
        "{launcher} started {started}, but the program runs as jobs of {size}: its MPI ({library}) and the launcher do \
         not understand each other; {advice}"
    )
}

fn advice(launcher: &str, mpi_library: &str) -> &'static str {
    let open_mpi = OPEN_MPIS.iter().any(|name| mpi_library.contains(name));
    match launcher {
        "srun" if open_mpi => "add --mpi=pmix to srun",
        "srun" => "add --mpi=pmi2 to srun",
        _ if launcher.contains("Open MPI") && !open_mpi => {
            "start it with the mpirun of its own MPI, mpiexec.hydra"
        }
        _ if open_mpi => "start it with Open MPI's own mpirun",
        _ => "start it with the launcher of its own MPI",
    }
}

/// The name and version of a library, of all that it says of itself.
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

    /// A launcher that tells each rank its number and no more.
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
            message.contains("prterun started at least 2 ranks, but the program runs as jobs of 1"),
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
