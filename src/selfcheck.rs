//! Is the job that runs the one that was started?
//!
//! A program whose MPI does not understand its launcher starts all the same, as so many jobs of one rank
//! ("singletons"): an MPICH program under Open MPI's mpirun or under `srun --mpi=pmix`, the reverse, or
//! any under an srun without a process manager. Nobody says so, and each runs the whole problem.

use serde::{Deserialize, Serialize};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

/// What the launcher of the ranks says, and what is to be done where MPI says something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// Its name, as [`crate::record::Job`] has it.
    pub launcher: String,
    /// How many ranks it started.
    pub ranks: u32,
    /// Which of them this one is.
    pub rank: u32,
    /// This rank speaks for all.
    pub speaks: bool,
    /// What started the ranks on this node: its process's number, the same for all of them. `None` where
    /// nothing but errors is to be said.
    pub parent: Option<u32>,
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

    /// The right to speak for all ranks of this node, as long as it is kept; `None` where another has it.
    pub fn speak_for_node(&self) -> Option<UnixListener> {
        // An abstract name (unix(7)): no file, and gone with its process.
        let name = format!("pmmpi-{}", self.parent?);
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).ok()?).ok()
    }

    /// What is wrong with a world of `size` ranks, by [`contradiction`].
    pub fn contradicted_by(&self, size: u32, mpi_library: &str) -> Option<String> {
        contradiction(&self.launcher, self.ranks, size, mpi_library)
    }
}

/// What is wrong where a launcher started `launched` ranks and MPI's world has `size`; `None` where nothing
/// is. (More than were launched is right: several launches may make one world.)
pub fn contradiction(launcher: &str, launched: u32, size: u32, mpi_library: &str) -> Option<String> {
    if size >= launched {
        return None;
    }
    let open_mpi = mpi_library.contains("Open MPI");
    let advice = match launcher {
        "srun" if open_mpi => "add --mpi=pmix to srun",
        "srun" => "add --mpi=pmi2 to srun",
        _ if launcher.contains("Open MPI") && !open_mpi => {
            "start it with the mpirun of its own MPI, mpiexec.hydra"
        }
        _ if open_mpi => "start it with Open MPI's own mpirun",
        _ => "start it with the launcher of its own MPI",
    };
    let library: Vec<&str> = mpi_library.split(',').next().unwrap_or_default().split_whitespace().collect();
    let library = library.join(" ");
    Some(format!(
        "{launcher} started {launched} ranks, but the program runs as jobs of {size}: its MPI ({library}) and the \
         launcher do not understand each other; {advice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_0_loses_patience_first_and_nobody_waits_for_ever() {
        let patience = |rank| {
            let launcher = "srun".to_owned();
            let (ranks, speaks, abort) = (u32::MAX, rank == 0, false);
            Expectation { launcher, ranks, rank, speaks, parent: None, abort }.patience().as_secs()
        };
        assert_eq!([0, 1, 2, 3, 20_000, u32::MAX].map(patience), [30, 60, 60, 90, 450, 960]);
    }

    #[test]
    fn one_rank_of_a_node_speaks() {
        let expectation = |parent| Expectation {
            launcher: "srun".to_owned(),
            ranks: 2,
            rank: 0,
            speaks: true,
            parent,
            abort: false,
        };
        let own = expectation(Some(std::process::id()));
        let first = own.speak_for_node();
        assert!(first.is_some() && own.speak_for_node().is_none());
        drop(first);
        assert!(own.speak_for_node().is_some() && expectation(None).speak_for_node().is_none());
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
