//! Kinds of warnings: each code with its meaning and its advice; docs/warnings.md is generated from them.

/// Every code in alphabetical order, each with its name for scripts, meaning, advice, and an example.
macro_rules! codes {
    ($($variant:ident $name:literal $meaning:literal $advice:literal $example:literal)*) => {
        /// What a warning is about. Its name is for scripts: stable, lower case, with hyphens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WarningCode { $(#[doc = $meaning] $variant,)* }

        impl WarningCode {
            /// All codes, by name.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name for scripts.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the warning means.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// What to do.
            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)* }
            }

            /// An example of a message with this code.
            pub fn example(self) -> &'static str {
                match self { $(Self::$variant => $example,)* }
            }
        }
    };
}

codes! {
    ArchivedClasses "archived-classes"
        "A file of an archive has no columns `class.*`. So `--class-by` has no effect on the runs of this \
         file."
        "Export the runs again, or make the report of the archive without --class-by."
        "a file of an archive lacks the columns class.*, so --class-by has no effect on its runs: these runs \
         keep the class that the file names, or are in the class undeclared"
    BimodalClass "bimodal-class"
        "The nodes of a class form a fast group and a slow group: perhaps the class has two kinds of nodes."
        "If the class has two kinds of nodes, give each kind its own label: nodes with different labels are in \
         different classes."
        "90 nodes of a class are fast and 10 nodes are 6.0 % slower (./hpl)"
    ClassMoved "class-moved"
        "Most nodes of a class became slower."
        "Look for a change that affects all nodes: in the program, its libraries or the system."
        "most nodes have been 3.0 % slower since session s31: drift does not show this change, because drift \
         compares each node with the other nodes (./hpl)"
    CompositionChanged "composition-changed"
        "The nodes of a class differ between two sessions: more than 10 % of the nodes are in only one of the \
         two sessions."
        "Do nothing if nodes were added or removed on purpose."
        "session s31 lacks 20 nodes of session s30 and has 0 new nodes: for drift, the report uses only nodes \
         that were measured in several sessions (./hpl)"
    ConflictingRun "conflicting-run"
        "Two run files have the same run id and different contents."
        "Find out which of the two files was altered. The report uses the file that comes first in \
         alphabetical order."
        "b.pmr has the run id of a.pmr, but different contents"
    CoresDiffer "cores-differ"
        "Nodes of a class have different numbers of hardware threads, or a kernel of a screen used different \
         numbers of hardware threads on nodes of a class. This difference alone can make a node slower or \
         faster."
        "Look for the reason: SMT, cores that are offline, a cgroup, a bound rank (--cores rank). If the nodes \
         differ on purpose, compare only equal nodes: pmmpi report --class-by \
         cpu,microcode,memory,kernel,command,ranks,labels,hardware_threads."
        "nodes of a class use different numbers of hardware threads: 64 on 18 nodes, 32 on 2 nodes (n03, n07)"
    CutSession "cut-session"
        "The time of `--since` is inside a session, so the report has only the later runs of this session."
        "Choose a time before or after the session."
        "--since is inside session s31: the report has neither the earlier runs of this session nor their \
         medians"
    DamagedFile "damaged-file"
        "A run file was altered or damaged."
        "Copy the file again from the machine that measured the run."
        "run.pmr: is damaged: its checksum does not match"
    DependentRuns "dependent-runs"
        "Successive runs of a node are alike, so they give less information than the same number of independent \
         runs. The verdicts take this into account. The intervals of medians do not: these intervals are too \
         narrow."
        "Leave more time between the runs of a node. For example, use `pmmpi repeat --compare`, which starts \
         another command between two runs of the first command. Or start the launches one by one, with pauses, \
         and give all runs the same label `session`."
        "successive runs of a node are alike (correlation 0.6): 7 runs of a node give as much information as \
         2.1 independent runs; the 98.4 % interval of a median contains the true median with a probability of \
         only about 82 % (./hpl)"
    EmptyFile "empty-file"
        "A run file has no bytes."
        "The disk may have been full. Measure again."
        "run.pmr: is empty"
    EndedEarly "ended-early"
        "A screen ended before all its rounds were complete. Examples of reasons: a process of pmmpi was killed, \
         a node stopped, pmmpi received a signal, or pmmpi could not save a run."
        "The report uses the saved rounds. If the warning names a node, examine this node. Then screen \
         again."
        "a screen ended early: n3 (rank 3): the process of pmmpi was killed, failed or did not answer \
         during round 3 of triad, so the screen ends"
    EndedInRegion "ended-in-region"
        "The job ended while ranks were inside a region, or while ranks waited at the start or end of a region."
        "If some ranks wait at the start or end of a region, the other ranks did not reach this place: \
         look for the missing call."
        "places of the ranks when the job ended: ranks 0, 1 at the end of region `solve`; rank 2 elsewhere"
    ExpectedOfNothing "expected-of-nothing"
        "`--expect` names a region or a probe that the program never entered."
        "Compare this name with the names in the program's calls of pmmpi_begin and pmmpi_probe_begin."
        "--expect names `slove`, but the program has no such region or probe"
    FailedRun "failed-run"
        "The program failed on a rank, a rank ended too early, or a node was lost. For medians and verdicts, \
         the report does not use this run. In a screen, the report leaves out only the nodes on which the \
         kernel failed, and uses the other nodes of the round."
        "See the program's own messages."
        "rank 3 on n0222: signal 11"
    FewAnchors "few-anchors"
        "Suspects of earlier sessions were measured again, but the report cannot compare these nodes with the \
         class. The session has too few nodes that were OK or FAST before, or its times are too coarse. The \
         suspects keep their earlier verdicts."
        "Measure the suspects again, together with at least 3 nodes of the class that were OK or FAST in an \
         earlier session. If the message says that the times are too coarse, use times with more digits: \
         the unit of the last digit must be below 0.5 % of the time."
        "session s2 has 20 suspects, and 0 nodes that were OK or FAST before; a comparison needs 3 such nodes; \
         suspects keep their earlier verdicts (./hpl)"
    FewRounds "few-rounds"
        "A node has fewer than 3 runs of a kernel in a screen: differences may be noise. With so few runs, \
         the comparison with the class gives only OK or SUSPECT."
        "Screen more rounds: --rounds 3+4 (three rounds of all nodes, and four more rounds of suspects) or \
         --rounds 7."
        "n0222 has only 1 run of a kernel, but the report needs 3"
    FewRuns "few-runs"
        "A node has fewer than 5 runs of a class in the session that judges the node: differences may be \
         noise. With so few runs, the comparison with the class gives only OK or SUSPECT. With a smaller \
         `--min-runs`, other verdicts are possible, too. In `pmmpi compare`: A or B has too few runs to \
         show how much the times vary."
        "Measure 7 runs: --runs 7, or `pmmpi repeat --runs 7` for an MPI program."
        "n0222 has only 3 runs in the session that judges it, but the report needs 5"
    FlakyNode "flaky-node"
        "Over all sessions since its last maintenance, a node has more slow runs than expected by chance."
        "Check the other programs on the node, its error counters and its throttling."
        "n0222: 9 of 40 runs are slow, more than expected by chance (./hpl)"
    ForeignFile "foreign-file"
        "A file `*.pmr` is not a run file, or a file on the command line has a format that pmmpi does not \
         know."
        "On the command line, give only run files (*.pmr), folders with run files, or result files of the tools \
         in docs/import.md."
        "notes.txt: is neither a run file of pmmpi nor a known result file"
    ForeignFiles "foreign-files"
        "pmmpi did not read some files of a folder: pmmpi does not know the format of these files, or they \
         are run files in a subfolder."
        "docs/import.md lists what pmmpi reads from each tool's files. To read run files, name the folder that \
         contains them."
        "pmmpi cannot read the format of 2 files: a.txt, b.bin"
    IncompleteRun "incomplete-run"
        "Not every rank reached the end barrier, so pmmpi cannot bound the elapsed time."
        "If the job is still running, make the report again after its end."
        "2 of 4 ranks reached the end barrier; 1 did not, but left data; 1 left no data"
    InconsistentClocks "inconsistent-clocks"
        "The stamps of the nodes contradict one another, so pmmpi cannot bound the elapsed time."
        "Check the suspect clocks. Either a clock jumped (for example in a virtual machine that was suspended \
         or moved), or a barrier let a rank through too early."
        "clocks with rate errors of at most 100 ppm do not explain the stamps; only rate errors of at least \
         1500.0 ppm would explain them; suspect clocks: n0222"
    KernelFailedEverywhere "kernel-failed-everywhere"
        "In a screen, a kernel or the user's program failed on all nodes in all rounds, and so measured nothing. \
         These failures put no node on a list of nodes to avoid, even in a screen of one node."
        "Check the options of the kernel (for example --disk, --memory or --blas) or the program. Then check \
         what all nodes share. In a screen of one node, the node itself may be the reason: screen this node \
         together with other nodes."
        "the kernel disk failed on all 4 nodes in all rounds; on n1: Cannot create /nowhere/.pmmpi-screen-1f: \
         No such file or directory (os error 2); choose an existing folder in which you may write"
    LateNode "late-node"
        "The other nodes waited for one node at the end barrier, for at least 1 % of the job's elapsed \
         time."
        "Either the node is slow, or it has more work than the other nodes. To find out which of the two is \
         true, compare other runs and regions (`node_waits` in --format json)."
        "the other 3 nodes waited at least 1.50 s (5.0 % of the elapsed time) for n0222; rank 7 of this node \
         came last"
    LaterSessions "later-sessions"
        "The input of a screen has sessions that began after this screen. Perhaps another screen has written to \
         the archive meanwhile, or the clock of a screen was wrong. The report does not use these sessions: it \
         judges each node by this screen and by earlier sessions."
        "Do nothing if another screen began meanwhile. Otherwise check the clock of the first node of each screen."
        "the input has 1 session that began after this screen: the report does not use it"
    MediansBehind "medians-behind"
        "With `--since`, the report takes the history of nodes from the medians of the archive. These medians \
         lack some of the archive's runs."
        "Repeat the last `pmmpi export`: this export updates the medians."
        "the medians of the archive dgemm lack the runs of 1 file: dgemm/month=2026-11/pmmpi-1.parquet"
    MixedScopes "mixed-scopes"
        "Some runs of a class counted only the threads of ranks. Other runs (with `--scope core`) counted \
         everything that ran on the hardware threads. A table by place shows only the kind of counts that most \
         runs have."
        "Measure all runs with the same `--scope`, or give the report only runs with the same scope."
        "--by core: the counts of 2 of 5 runs are not in the table: these runs counted threads of ranks, but most \
         runs counted hardware threads (--scope core) (./hpl)"
    NewerFile "newer-file"
        "A run file was written by a newer pmmpi."
        "Read the file with `pmmpi report` of the version that wrote the file, or of a later version."
        "run.pmr: has schema 9, but this pmmpi reads only schemas up to 7: use a newer pmmpi"
    NoPlaces "no-places"
        "Some runs have no counts by place, because another tool measured the runs, or because their archive \
         lacks these counts. The report cannot show what was counted at each core or rank of these runs."
        "If the runs are in an archive, export their run files again with `pmmpi export --places`."
        "3 runs of an archive have no counts by place, for example 20261101T120000Z-n1-7-1c"
    NoRunFiles "no-run-files"
        "A folder contains no run file."
        "Measure a program with `pmmpi PROGRAM`, or name the folder of --out, not its parent folder."
        "results: there is no run file in this folder"
    NoStamps "no-stamps"
        "A rank's record has no time stamps."
        "Report this to the authors of pmmpi, with the run file."
        "rank 3 has no time stamps"
    NoTime "no-time"
        "The report leaves out elapsed times that are zero or negative."
        "Measure longer work. If the time of long work is zero or negative, the clock of a node jumped: \
         check the time service of the nodes."
        "the report leaves out 2 elapsed times that are zero or negative"
    NodeChanged "node-changed"
        "A node's facts changed after pmmpi had read them. The run file has the facts from the start of the \
         run."
        "Find out who or what changed the facts (for example an administrator or a power manager), and measure \
         again."
        "n0222 changed after pmmpi had read its facts: governor from performance to powersave"
    NodeUnknown "node-unknown"
        "A run has no record of a node's hardware, so the report does not compare the node with other nodes."
        "Start every rank with pmmpi. There is no record if a rank needs more than 10 s to read the \
         hardware, or ends before it has read the hardware."
        "the run has no record of the hardware of n0222"
    NoiseFloor "noise-floor"
        "The report cannot detect a node that is slower than its class by --delta, because times vary too much \
         or their bounds are too far apart."
        "Measure longer work, or more runs."
        "a node's median is uncertain by 13.4 %: the report cannot detect a node that is 3.0 % slower than its \
         class (./hpl)"
    NotInTurns "not-in-turns"
        "A and B were not measured in turns: a change of the machine between A and B looks like a difference \
         between A and B."
        "Measure A and B in turns: A, B, A, B."
        "A and B were not measured in turns (in 3 of 3 comparisons): a change of the machine between A and B \
         looks like a difference between A and B"
    OtherVersion "other-version"
        "A partial run was written by another version of pmmpi."
        "Read the partial run with `pmmpi report` of the version that measured the run."
        "run.partial: was written by another version of pmmpi: use `pmmpi report` of that version"
    Overhead "overhead"
        "pmmpi itself took more than 1 % of the job's time. The bounds do not contain this time."
        "Measure a longer run if the job's whole time matters."
        "pmmpi itself took 0.030000 s in addition to the work"
    Paused "paused"
        "The program paused regions with MPI_Pcontrol(0). The elapsed time contains the pause."
        "Compare regions only between runs that pause in the same places."
        "MPI_Pcontrol(0) paused the regions on 2 of 4 ranks; the longest pause was on rank 1: 0.500000 s"
    ProbesLeftOut "probes-left-out"
        "pmmpi did not record some entries of probes: a thread uses too many names, nests probes too deeply, or \
         does not end an entry."
        "Use few names, one for each kind of work. End each probe in the thread and in the function that \
         began it."
        "12 entries of probes are missing: pmmpi records only the first 254 names of a thread, 32 levels of \
         nesting, and entries that end"
    RegionsLeftOut "regions-left-out"
        "pmmpi did not count some entries of regions: the program uses too many region names, it nests regions \
         too deeply, or a barrier failed."
        "Use few region names, one for each kind of work, and end each region that the program begins."
        "pmmpi did not count 12 entries of regions: it counts only the first 255 region names and 64 levels \
         of nesting, and leaves out entries with a failed barrier"
    RejectedRows "rejected-rows"
        "pmmpi leaves out some rows or values of a file, because they are not valid, or because an earlier row \
         belongs to the same run."
        "docs/import.md lists what pmmpi reads from each tool's files."
        "pmmpi left out 1 row: times.csv:12: elapsed_s: -3 is not a time above zero"
    RepeatedRows "repeated-rows"
        "Some rows occur more than once with the same content: each run counts once."
        "Read each run from one place only: from an archive, or from the files from which the archive was made."
        "pmmpi found 7 rows with the same content as earlier rows, and counts each run once"
    RepeatedSession "repeated-session"
        "Several screens of the same nodes have the same label `session`. The report takes each screen as a \
         separate session. If all these screens were one session, the runs of an earlier screen could hide the \
         present state of a node."
        "Give each screen its own value of the label `session`, or leave out this label. Without the label, \
         pmmpi screen uses the start of the screen as the name of the session."
        "1 screen has the same label session=weekly as earlier screens in the archive: in the report, the \
         session of this screen is weekly 20261126T044328.744080810Z"
    RoundEffects "round-effects"
        "All nodes were slower in some rounds than in others. The report subtracts these differences before it \
         compares nodes."
        "Do nothing if the rounds ran different work. Otherwise look for a cause that slows all nodes at once, \
         such as the file system, the network or the power."
        "the rounds of the session differ by 12.0 %: the report corrects the times of each round (./hpl)"
    RoundedTimes "rounded-times"
        "The times have a coarse resolution. If rounding can explain a difference, the report does not \
         call a node slow or fast because of this difference."
        "Use times with more digits, or measure longer work."
        "the times are multiples of 1 s, which is 9.6 % of the class median: the report can detect a slow \
         node only if it is slower than its class by about 12.6 % or more (./hpl)"
    SeparateJobs "separate-jobs"
        "MPI saw fewer ranks than the launcher started: each of several jobs did the whole work."
        "Start the program with the launcher of its own MPI. `--on-mismatch abort` ends such jobs."
        "srun started 4 ranks, but the program runs as separate jobs of 1 rank: the program's MPI (Open MPI v4.1.4) \
         and the launcher do not work together; add --mpi=pmix to srun"
    SettingsDiffer "settings-differ"
        "Runs of a class differ in a setting that may change their speed: the MPI library, the launcher, an \
         environment variable, or the kind of places to which ranks are bound. Or runs of one node in one \
         session differ in a fact of the node, such as `transports`, `memory_policy`, `transparent_hugepage`, \
         `hugepages` or `governor`."
        "Compare only runs with equal settings: add the settings to the class, for example \
         `--class-by cpu,command,ranks,env.OMP_NUM_THREADS`. `pmmpi diff` compares two runs."
        "runs differ in env.OMP_NUM_THREADS: 8 in 33 runs, not set in 2 runs (0c5f1e, 9a22b0) (./hpl)"
    SharedRuns "shared-runs"
        "Some runs are in both A and B. The comparison does not use these runs."
        "Choose sets without runs in common."
        "A and B have 7 runs in common: the comparison does not use them"
    SlewedClock "slewed-clock"
        "During the run, a node's clock was too fast or too slow: its rate error was larger than --max-drift-ppm \
         allows. The bounds are still valid, because pmmpi widened them by this rate error."
        "The node's time service is correcting a large clock error: look at `chronyc tracking` or `ntpq -p`."
        "the clock of n0222 was 500 ppm too fast during the run; the bounds of the run are valid for rate \
         errors of up to 600 ppm"
    SplitByLabel "split-by-label"
        "Runs that are otherwise equal have many different values of a label, such as the number of the job. The \
         number of values is more than half the number of runs. Each value makes a class of its own, so the \
         report does not compare runs with different values."
        "To give names to runs, use the label `run`: this label does not change the class of a run. Or leave \
         labels out of the class: --class-by cpu,microcode,memory,kernel,command,ranks."
        "the label job has 7 values in 7 runs of ./hpl: the report does not compare runs with different values"
    TimeOrder "time-order"
        "Nodes were measured at different moments or in different rounds. Their elapsed times seem to depend on \
         the moment or on the round. The report cannot find out whether a node is slow, or whether all nodes \
         were slow when this node was measured."
        "Measure all nodes in rounds: each node once, then each node again."
        "nodes that were measured one after another have similar times (von Neumann's ratio is 0.31; if the order \
         had no effect, the ratio would be about 2). The moment of the measurement may explain a slowdown of up \
         to 7.9 %. Therefore a node is SLOW or SLOW-TAIL only if it is certainly slower than its class by more \
         than 11.1 % (this slowdown and --delta together) (./hpl)"
    TruncatedFile "truncated-file"
        "The end of a run file is missing."
        "Copy the file again from the machine that measured the run."
        "run.pmr: is truncated: 100 of 200 bytes"
    TrustFile "trust-file"
        "The report cannot use a file of `pmmpi validate`."
        "Run `pmmpi validate` again on a node with the processor in the name of the file, or remove \
         the file."
        "the report does not use trust-AuthenticAMD-25-1-1-0xa0011d5.json, because it has more than 4194304 \
         bytes"
    UncountedEvents "uncounted-events"
        "Some events that the user requested have no count."
        "Do nothing if you do not need these events. On a node that could not count them, `pmmpi list events` shows \
         which events the node can count, and `pmmpi doctor` shows what limits counting."
        "--events: rank 0 cannot count cycles: not counted by this processor and Linux kernel (a virtual \
         machine without counters?)"
    UndatedReset "undated-reset"
        "`--resets` names nodes, but the start of some runs of these nodes is not known. The report does not \
         know whether these runs were before or after the maintenance."
        "Give the start times in the column `started` of the input, or mark the runs after the maintenance \
         with the column or label `maintenance`."
        "--resets names 1 node with runs whose start is not known: n0007"
    UndatedRuns "undated-runs"
        "`--since` or `--until` leaves out runs whose start is not known."
        "Give the start times in the column `started` of the input, or make the report without --since and \
         --until."
        "--since and --until leave out 12 runs whose start is not known"
    UndatedSessions "undated-sessions"
        "Some sessions have no start time, so the report orders the sessions by name."
        "Add a column `started` with start times (RFC 3339)."
        "some sessions have no start time: the report orders the sessions by name"
    UnequalRuns "unequal-runs"
        "Some nodes of a class have at least three times as many runs as others."
        "Measure all nodes equally often."
        "nodes have between 5 and 101 runs: the report cannot detect small differences of nodes with few runs \
         (./hpl)"
    UnknownClassKey "unknown-class-key"
        "`--class-by` names a key that no run has."
        "Valid keys are cpu, microcode, memory, kernel, command, ranks, labels and class. A key can also be the \
         name of a label, of a column, of a fact, or of a setting of a run (docs/report.md). `--class-by none` \
         puts all nodes in one class."
        "--class-by rack: no run has a label, fact or setting of this name, and no file has a column of this \
         name with text or numbers"
    UnknownLabel "unknown-label"
        "`--where` names a label or column that does not exist: no run has a label of this name, and no \
         file has a column of this name."
        "Check the name. An archive has columns of other tools' results only if `pmmpi export --class-by` named \
         them."
        "--where blas: no run has a label of this name, and no file has a column of this name"
    UnknownNode "unknown-node"
        "`--node` names nodes that have no run in this report."
        "Check the names. If you use --since, --until, --class, --run or --where, perhaps these nodes have \
         runs, but the options select none of these runs."
        "--node names 1 node without a selected run: n0999"
    UnknownReset "unknown-reset"
        "`--resets` names nodes that the input does not have."
        "In the file of --resets, use the host names that the report shows. Do nothing if the runs of these \
         nodes are in another input."
        "--resets names 2 nodes that the input does not have: n0999, node7"
    UnmeasuredReset "unmeasured-reset"
        "For some nodes that `--resets` names, there is no elapsed time after the last maintenance. For such a \
         node, the report can show only the state before the maintenance."
        "Measure these nodes again."
        "--resets names 1 node without a time after the maintenance: n0007"
    UnpairedRuns "unpaired-runs"
        "Some runs of A or B have no partner: the other set has no run of the same work on the same node. The \
         comparison leaves out runs without a partner."
        "Measure A and B on the same nodes, with the same work."
        "runs without a partner in the other set: 14 runs of A (n03, n07), 7 runs of B (n12)"
    UnreadPath "unread-path"
        "pmmpi takes the names of nodes from the paths of files, but these paths also differ in a part that \
         pmmpi did not read. If this part is the name of the node, several nodes look like one node."
        "Describe the parts of the paths with --path-pattern; docs/import.md describes patterns."
        "pmmpi took the names of nodes from the paths of 35 files (hpl/cn017/run3/HPL.out: node run3), but \
         another part of these paths differs, too: cn016, cn017, cn018, ...; if this part is the node, use \
         --path-pattern '{node}/{run}/HPL.out'"
    UnreadPlaces "unread-places"
        "pmmpi cannot read a file that contains the counts of each core, socket and rank. The rest of the \
         report does not need this file."
        "Repair or remove the file. If the file belongs to an archive, repeat the export with --places."
        "archive/_places/month=2026-11/pmmpi-1.parquet is damaged: it has no column `event`"
    UnreadValues "unread-values"
        "pmmpi did not read some values of another tool's results, for example times that the user did not \
         request, text or rates."
        "docs/import.md lists what pmmpi reads from each tool's files."
        "pmmpi did not read these values: gflops (7 values)"
    UnreadableFile "unreadable-file"
        "pmmpi cannot read a file or folder."
        "Check the path and its permissions."
        "run.pmr: cannot be read: Permission denied (os error 13)"
    UnusableCounters "unusable-counters"
        "`pmmpi validate` found that some events do not count what their names say. The report does not \
         use these events to find a cause."
        "Run `pmmpi validate` on a node of the run to see how large the errors of the counts are."
        "l2_misses: unusable on this processor, according to `pmmpi validate`"
    UnusableFile "unusable-file"
        "pmmpi could not read any run from a folder, from a file of another tool, or from a file of an archive."
        "docs/import.md lists what pmmpi reads from each tool's files. If the file belongs to an archive, \
         repair or remove the file, and export its runs again."
        "times.csv: has no column `elapsed_s` (expected: node,run,elapsed_s; found: node,run,time)"
    UnusedColumns "unused-columns"
        "A CSV file has text columns with only a few different values. The report does not use these columns."
        "If the values stand for different work or for different kinds of nodes, name the column in \
         --class-by: pmmpi then compares only runs with the same value. --where COLUMN=VALUE selects runs."
        "the report does not use these columns: blas (mkl, openblas); runs with different values are in one class"
    WideBounds "wide-bounds"
        "The two bounds of the elapsed time are more than 1 % apart."
        "Measure a longer run: the distance between the bounds comes from the barriers, not from the work."
        "the bounds 1.000 and 1.050 s are 5 % apart"
}
