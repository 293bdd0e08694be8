//! The first use of a log is a dry run: an operator sees what pmmpi would do before pmmpi changes any node.

use crate::error::Error;
use crate::journal::Journal;
use crate::scontrol::Slurm;
use std::path::Path;

/// True if no run of pmmpi has used this log.
pub fn is_first_use(log: &Path) -> bool {
    !log.exists()
}

/// Creates the log: the next use acts. The log has the name of this cluster, because another cluster still needs its
/// own dry run.
pub fn begin_log(log: &Path, slurm: &dyn Slurm) -> Result<(), Error> {
    match Journal::open(log, &slurm.cluster()) {
        // Another run has created it in the meantime.
        Ok(_) | Err(Error::Held { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;
    use crate::journal::check_log;
    use tempfile::TempDir;

    #[test]
    fn a_new_log_is_that_of_the_cluster_that_saw_the_dry_run() {
        let folder = TempDir::new().unwrap();
        let (log, slurm) = (folder.path().join("log"), Fake::new([]));
        slurm.is_cluster(Some("alpha"));
        assert!(is_first_use(&log));
        begin_log(&log, &slurm).unwrap();
        assert!(!is_first_use(&log));
        assert!(std::fs::read_to_string(&log).unwrap().contains("\"cluster\":\"alpha\""));
        check_log(&log, &slurm).unwrap();
        for other in [Some("beta"), None] {
            slurm.is_cluster(other);
            assert!(matches!(check_log(&log, &slurm), Err(Error::NoJournal(..))), "{other:?}");
        }
    }

    #[test]
    fn a_new_log_may_have_no_name() {
        let folder = TempDir::new().unwrap();
        let (log, slurm) = (folder.path().join("log"), Fake::new([]));
        begin_log(&log, &slurm).unwrap();
        assert!(!is_first_use(&log));
        slurm.is_cluster(Some("beta"));
        check_log(&log, &slurm).unwrap();
    }
}
