use super::*;
use crate::clock;
use crate::counters::counter_table::CounterTable;
use crate::counters::expected::ExpectedInstructions;
use crate::counters::open_counters::{Scope, Scripted};
use crate::counters::requested::AskedFor;
use crate::ids::RankId;
use crate::record::run_file::RunFileError;
use crate::record::{End, Mode, Run};
use crate::session::live_record::Phase;
use crate::session::shared_memory::SharedMemory;
use crate::session::{Beginning, RankMemory, RankSession};
use crate::transport::fabric::Threads;
use crate::transport::node_meeting::Meeting;
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::with_prefix("test-partial-").unwrap()
}

fn header(run_id: &str) -> RunHeader {
    RunHeader::new(run_id.into(), vec!["work".into()], Mode::Mpi, 0)
}

fn asked() -> Vec<AskedFor> {
    vec![AskedFor { typed: "--events work".into(), events: vec![(Scope::Task, "work".into())] }]
}

fn expected() -> Vec<ExpectedInstructions> {
    vec![ExpectedInstructions { part: Some("solve".into()), instructions: 7 }]
}

/// A rank that has reached t1, with its agent's note.
struct Rank {
    shared: SharedMemory,
    session: RankSession<'static, Threads, Scripted>,
    told: CarrierNote,
}

/// All ranks of a job of `size`, whose run is kept in `folder`.
fn ranks(size: u32, folder: &Path) -> Vec<Rank> {
    let begin = |fabric| {
        let shared = SharedMemory::create().unwrap();
        assert!(shared.live().claim());
        let began_ns = clock::monotonic_ns();
        let beginning = Beginning { began_ns, pings: false, tight_end: true, meeting: Meeting::default() };
        let (live, regions) = (shared.live(), shared.regions());
        let memory = RankMemory { live, regions, snapshots: CounterTable::default() };
        let mut session = RankSession::open(memory, Scripted::default(), fabric, beginning);
        let part = session.part_before(Some("threads"), vec![]);
        let told = CarrierNote { folder: folder.to_owned(), part };
        told.write(&shared).unwrap();
        session.start().unwrap();
        let told = CarrierNote::read(&shared).unwrap();
        Rank { shared, session, told }
    };
    std::thread::scope(|scope| {
        let ranks = Threads::new(size).into_iter().map(|fabric| scope.spawn(move || begin(fabric)));
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

impl Rank {
    fn kept(&self) -> KeptRank {
        KeptRank::of(&self.shared, &self.told).unwrap()
    }

    fn about(&self, header: RunHeader) -> Option<About> {
        let keep = Keep { folder: self.told.folder.clone(), header, asked: asked(), expected: expected() };
        About::of(&self.shared, keep, &self.told.folder)
    }

    /// A frame about this rank.
    fn frame(&self, whole: bool) -> Frame {
        let about = if whole { self.about(header("by rank")) } else { None };
        Frame { about, ranks: vec![self.kept()], ..Frame::default() }
    }

    fn end_as(&self, end: End) {
        self.shared.live().set_end(end, clock::monotonic_ns());
    }
}

fn stamps(run: &Run) -> Vec<(u32, usize)> {
    run.lost.iter().map(|lost| (lost.rank.0, lost.t_ns.len())).collect()
}

#[test]
fn what_was_carried_is_read_and_what_comes_later_counts() {
    let out = folder();
    let folder = folder_of(out.path(), "later").unwrap();
    let mut ranks = ranks(2, &folder);
    let mut file = NodeFile::of(&folder, None);
    file.add(|whole| {
        let about = if whole { ranks[0].about(header("of another launcher")) } else { None };
        Frame { about, ranks: ranks.iter().map(Rank::kept).collect(), ..Frame::default() }
    })
    .unwrap();
    let run = read(&folder).unwrap();
    assert_eq!((stamps(&run), run.end(), run.header.run_id.as_str()), (vec![(0, 2), (1, 2)], None, "later"));
    ranks[1].end_as(End::Signaled(9));
    file.add(|whole| ranks[1].frame(whole)).unwrap();
    assert_eq!(read(&folder).unwrap().end(), Some(End::Signaled(9)));
    // Another leader of this node, which has only rank 0.
    let (first, rest) = ranks.split_at_mut(1);
    std::thread::scope(|scope| {
        for rank in first.iter_mut().chain(rest) {
            scope.spawn(|| rank.session.stop().unwrap());
        }
    });
    NodeFile::of(&folder, None).add(|whole| ranks[0].frame(whole)).unwrap();
    let run = read(&folder).unwrap();
    assert_eq!((run.ranks.len(), stamps(&run)), (1, vec![(1, 2)]), "{run:#?}");
    assert_eq!(list(&folder).unwrap().len(), 1);
    // A launcher that reaches no leader has a file of its own.
    NodeFile::of(&folder, Some(RankId(1))).add(|whole| ranks[1].frame(whole)).unwrap();
    let run = read(&folder).unwrap();
    assert!(run.is_complete() && run.elapsed().is_some(), "{run:#?}");
    assert_eq!((run.end(), list(&folder).unwrap().len()), (Some(End::Signaled(9)), 2));
}

/// For example by a full disk or a SIGKILL.
#[test]
fn a_frame_that_was_cut_off_is_left_out() {
    let out = folder();
    let folder = folder_of(out.path(), "cut").unwrap();
    let ranks = ranks(2, &folder);
    let mut file = NodeFile::of(&folder, None);
    file.add(|whole| ranks[0].frame(whole)).unwrap();
    let path = list(&folder).unwrap().remove(0);
    let cut = &ranks[0].frame(false).to_bytes().unwrap()[..100];
    fs::File::options().append(true).open(&path).unwrap().write_all(cut).unwrap();
    assert_eq!(stamps(&read(&folder).unwrap()), [(0, 2)]);
    file.add(|whole| ranks[1].frame(whole)).unwrap();
    assert_eq!(stamps(&read(&folder).unwrap()), [(0, 2), (1, 2)]);
    // A changed byte.
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(stamps(&read(&folder).unwrap()), [(0, 2)]);
    fs::write(&path, &bytes[..50]).unwrap();
    assert!(matches!(read(&folder), Err(RunFileError::Empty)), "nothing says whose run it is");
}

#[test]
fn ranks_that_there_are_not_are_left_out() {
    let out = folder();
    let folder = folder_of(out.path(), "not").unwrap();
    let ranks = ranks(3, &folder);
    let mut about = ranks[0].about(header("not"));
    about.iter_mut().for_each(|about| about.size = 2);
    let strange = |kept: KeptRank, live: &[u8]| KeptRank { live: live.to_vec(), ..kept };
    let kept = vec![
        ranks[2].kept(),
        strange(ranks[1].kept(), &ranks[0].kept().live), // the part of one rank with the live record of another
        strange(ranks[1].kept(), b"short"),
        ranks[0].kept(),
    ];
    let frame = Frame { about, ranks: kept, ..Frame::default() };
    NodeFile::of(&folder, None).add(|_| frame.clone()).unwrap();
    assert_eq!(stamps(&read(&folder).unwrap()), [(0, 2)]);
}

/// The file has the parts that rank 0 gathered, and the data in the memory of rank 0's node.
#[test]
fn what_was_gathered_and_not_saved_is_read() {
    let out = folder();
    let folder = folder_of(out.path(), "gathered").unwrap();
    let mut ranks = ranks(2, &folder);
    let end = |rank: &mut Rank| {
        rank.session.stop().unwrap();
        let work = crate::session::Work { end: End::Finalized, child_cpu_ns: None, kernel: None };
        rank.session.gather(work, None, crate::session::OfNode::default()).unwrap()
    };
    let gathered = std::thread::scope(|scope| {
        let ends: Vec<_> = ranks.iter_mut().map(|rank| scope.spawn(|| end(rank))).collect();
        ends.into_iter().filter_map(|end| end.join().unwrap()).next().unwrap()
    });
    let gathered = crate::record::wire::join(&gathered).unwrap();
    NodeFile::of(&folder, None)
        .add(|whole| Frame { gathered: gathered.clone(), ..ranks[0].frame(whole) })
        .unwrap();
    // A file of another node, or a later one, removes nothing.
    NodeFile::of(&folder, Some(RankId(1))).add(|whole| ranks[1].frame(whole)).unwrap();
    let run = read(&folder).unwrap();
    assert!(run.is_complete() && run.lost.is_empty() && run.starting_ns.is_some(), "{run:#?}");
}

#[test]
fn a_file_does_not_grow_without_end() {
    let out = folder();
    let folder = folder_of(out.path(), "grow").unwrap();
    let ranks = ranks(1, &folder);
    let mut file = NodeFile::of(&folder, None);
    let mut longest = 0;
    for time in 0..1000 {
        ranks[0].shared.live().asked_to_end.store(time, Relaxed);
        file.add(|whole| ranks[0].frame(whole)).unwrap();
        longest = longest.max(list(&folder).unwrap().iter().map(|path| path.metadata().unwrap().len()).sum());
    }
    assert!(longest < 100_000, "{longest}");
    assert_eq!(stamps(&read(&folder).unwrap()), [(0, 2)]);
    assert_eq!(list(&folder).unwrap().len(), 1);
    file.withdraw();
    assert!(!folder.exists());
}

/// In a folder where every user may write.
#[test]
fn nothing_of_others_is_followed() {
    let out = folder();
    let (folder, victim) = (folder_of(out.path(), "links").unwrap(), out.path().join("victim"));
    let ranks = ranks(1, &folder);
    let add = || NodeFile::of(&folder, None).add(|whole| ranks[0].frame(whole));
    fs::create_dir(&victim).unwrap();
    std::os::unix::fs::symlink(&victim, &folder).unwrap();
    assert_eq!(add().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(list(&victim).unwrap().len(), 0);
    fs::remove_file(&folder).unwrap();
    add().unwrap();
    let path = list(&folder).unwrap().remove(0);
    fs::rename(&path, victim.join("file")).unwrap();
    std::os::unix::fs::symlink(victim.join("file"), &path).unwrap();
    assert_eq!(add().unwrap_err().raw_os_error(), Some(libc::ELOOP));
    assert!(matches!(read(&folder), Err(RunFileError::Unreadable(_))));
    // If the folder of all runs is gone, the run's folder is not created again.
    fs::remove_dir_all(out.path()).unwrap();
    assert_eq!(add().unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_rank_that_has_not_come_to_t1_leaves_nothing() {
    let out = folder();
    let folder = folder_of(out.path(), "before").unwrap();
    let ranks = ranks(1, &folder);
    ranks[0].shared.live().set_phase(Phase::Claimed);
    assert!(KeptRank::of(&ranks[0].shared, &ranks[0].told).is_none());
    assert!(CarrierNote::read(&SharedMemory::create().unwrap()).is_none());
}
