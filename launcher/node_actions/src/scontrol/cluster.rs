//! The name of the cluster in the configuration that Slurm shows.

/// The name of this line; spaces and an equals sign follow.
const KEY: &str = "ClusterName";
/// What Slurm shows for a value that is not set.
const UNSET: &str = "(null)";

/// The name in the output of `scontrol show config`. Slurm itself knows it in lower case.
pub(super) fn of_config(config: &str) -> Option<String> {
    let mut pairs = config.lines().filter_map(|line| line.split_once('='));
    let (_, name) = pairs.find(|(key, _)| key.trim() == KEY)?;
    let name = name.trim();
    (!name.is_empty() && name != UNSET).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_the_name() {
        let config = "Configuration data as of 2026-11-26T02:09:12\nAccountingStorageTRES   = cpu,mem,node\n\
                      ClusterName             = Alpha2\nCommunicationParameters = (null)\n\n\
                      Slurmctld(primary) at n1 is UP\n";
        assert_eq!(of_config(config).as_deref(), Some("alpha2"));
        for name in ["", "(null)", " "] {
            assert_eq!(of_config(&config.replace("Alpha2", name)), None, "{name:?}");
        }
        assert_eq!(of_config(&config.replace("ClusterName", "OtherClusterName")), None);
        assert_eq!(of_config(""), None);
    }
}
