//! Scripts.
use rig::slurm::Slurm;
#[test]
fn a() { let _ = Slurm::turn(); }
