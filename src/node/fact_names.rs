//! Names of facts that equal nodes have in common.

/// Names with their meaning. A program that reads run files may find other names: those of a newer pmmpi.
pub const FACTS: [(&str, &str); 31] = [
    ("hardware_threads", "hardware threads that are online"),
    ("numa_nodes", "NUMA nodes that are online"),
    ("smt", "simultaneous multithreading: on, off, ..."),
    ("governor", "frequency governor of the first hardware thread"),
    ("frequency_limits", "lowest and highest frequency that is set for the first hardware thread"),
    ("power_limits", "long-term power limits of the sockets (RAPL)"),
    ("dimms", "memory modules with their size and speed (SMBIOS; only root may read it)"),
    ("edac_dimms", "memory modules with their size and type, as memory controllers show them (EDAC)"),
    ("transparent_hugepage", "transparent huge pages: always, madvise or never"),
    ("hugepages", "reserved huge pages of the default size"),
    ("other_hugepages", "reserved huge pages of other sizes, or none"),
    ("numa_balancing", "whether the Linux kernel moves pages between NUMA nodes: on, off, memory tiering"),
    ("turbo", "whether processors may run faster than their nominal frequency: on, off"),
    (
        "turbo_steps",
        "highest frequency of a core for each number of active cores of its socket, without wide vector instructions (Intel; only root may read it)",
    ),
    (
        "other_governors",
        "governors that differ from that of the first hardware thread, or none if all are equal",
    ),
    (
        "other_frequency_limits",
        "frequency limits that differ from those of the first hardware thread, or none if all are equal",
    ),
    ("kernel_options", "options on the Linux kernel's command line that change how fast a node is"),
    (
        "transports",
        "the ways in which the node's first MPI process communicates: devices, shared memory, TCP",
    ),
    ("mpi_components", "transport components and libraries that the node's first MPI process has loaded"),
    (
        "memory_policy",
        "NUMA memory policy of the node's first MPI process: default, or as numactl and Slurm's --mem-bind set it",
    ),
    ("allowed_numa_nodes", "NUMA nodes that may give memory to the node's first MPI process"),
    ("allowed_hardware_threads", "hardware threads on which the ranks of the node may run"),
    ("stack_limit", "largest stack of the node's first MPI process (ulimit -s)"),
    ("scheduling", "scheduling policy and nice value (or priority) of the node's first MPI process"),
    ("switch", "network switches above the node, as Slurm names them (topology/tree)"),
    ("clocksource", "the clock from which the Linux kernel takes its time"),
    ("infiniband", "InfiniBand and RoCE ports with their rate, or down for a port that is not active"),
    ("ethernet", "Ethernet ports that are up, with their rate"),
    ("pcie_adapters", "PCIe links of network adapters: speed and width"),
    ("pcie_gpus", "PCIe links of GPUs: width (not speed, which depends on the load)"),
    (
        "gpus",
        "GPUs with their type, highest clock, power limit and ECC, and the version of the driver (NVIDIA)",
    ),
];
