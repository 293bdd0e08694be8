//! What a measurement needs from the ranks' interconnect, and the two fabrics that work without MPI.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How a rank waits for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Leave at once when the last rank enters. This is for barriers before the work, where a late exit is skew.
    /// The rank yields its core (sched_yield), but never sleeps.
    Eager,
    /// Leave the cores to ranks that still work. This is for the barrier after the work. It does not widen the
    /// upper bound, which is a minimum over nodes: the last rank to arrive does not wait.
    Patient,
}

/// Ranks that can wait for each other and exchange bytes. It must be dropped before MPI is finalised.
pub trait Fabric {
    /// This process, 0 to `size() - 1`.
    fn rank(&self) -> u32;
    /// Processes in the job.
    fn size(&self) -> u32;
    /// Returns after every rank has called it: every entry precedes every exit. Calls `meanwhile` at most once,
    /// after this rank has entered, and only if a patient rank must wait long. So the time of `meanwhile` delays no
    /// other rank.
    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError>;
    /// A barrier that all ranks are about to reach, so it may keep the cores busy.
    fn meet(&mut self) -> Result<(), FabricError> {
        self.barrier(Wait::Eager, &mut || ())
    }
    /// Copies rank 0's bytes to every rank. All ranks give the same length.
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError>;
    /// Every rank's bytes on rank 0, in rank order; nothing elsewhere. All ranks give the same length.
    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError>;
    /// Like [`Self::gather`], but `counts` of rank 0 has the length of each rank's bytes. At most `i32::MAX` bytes
    /// in all.
    fn gather_varying(&mut self, own: &[u8], counts: &[usize]) -> Result<Vec<u8>, FabricError>;
    /// From now on messages cannot mix with the program's own. Must be called before the first message after the
    /// first barrier. Collective; a fabric of the tool's own need not do anything.
    fn isolate(&mut self) -> Result<(), FabricError> {
        Ok(())
    }
    /// Prepares a patient barrier so that its last rank leaves it at once: see [`crate::transport::end_barrier`].
    /// Collective; called before the work.
    fn prepare_end(&mut self) -> Result<(), FabricError> {
        Ok(())
    }
    /// Sends a message to another rank. Messages from one rank to another arrive in the order in which they were
    /// sent.
    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError>;
    /// Receives the next message from another rank. The buffer may be longer than the message.
    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError>;
}

/// A fabric of which some ranks can form a fabric of their own.
pub trait Divisible: Fabric + Sized {
    /// Collective. The fabric of the ranks that call this with `true`, in their order; `None` on the others.
    fn subset(&mut self, is_member: bool) -> Result<Option<Self>, FabricError>;
}

/// A fabric whose ranks can exchange data two by two, with a time limit.
pub trait Pairwise: Fabric {
    /// Sends `own` to the partner and fills `theirs` with what the partner sends, both at once. All messages are under way
    /// at the same time. Either may be empty: then this only receives or only sends. The partner must call this with
    /// buffers of the same lengths and the same `with`, except for its partner.
    ///
    /// False if not everything has arrived and left at the deadline. `theirs` then has any content, and the channel must
    /// not be used again. A message under way cannot be taken back: so the fabric keeps `own` until the process ends, and
    /// the partner may still receive it.
    fn exchange(
        &mut self,
        with: &Channel,
        own: &Arc<Vec<u8>>,
        theirs: &mut [u8],
        deadline: Instant,
    ) -> Result<bool, FabricError>;
}

/// How two ranks exchange data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The other rank.
    pub partner: u32,
    /// Messages of two channels never mix, if their numbers differ modulo [`Channel::NUMBERS`].
    pub number: u16,
    /// The length of a message. Only the last one may be shorter.
    pub message_bytes: usize,
}

impl Channel {
    /// How many channels a pair of ranks has. MPI guarantees 32,768 tags (MPI 4.1, section 9.1.2: MPI_TAG_UB); other
    /// messages need the first ones.
    pub const NUMBERS: u16 = 16_384;
}

impl<F: Pairwise> Pairwise for &mut F {
    fn exchange(
        &mut self,
        with: &Channel,
        own: &Arc<Vec<u8>>,
        theirs: &mut [u8],
        deadline: Instant,
    ) -> Result<bool, FabricError> {
        (**self).exchange(with, own, theirs, deadline)
    }
}

impl<F: Fabric> Fabric for &mut F {
    fn rank(&self) -> u32 {
        (**self).rank()
    }

    fn size(&self) -> u32 {
        (**self).size()
    }

    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        (**self).barrier(wait, meanwhile)
    }

    fn meet(&mut self) -> Result<(), FabricError> {
        (**self).meet()
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        (**self).broadcast(bytes)
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError> {
        (**self).gather(own)
    }

    fn gather_varying(&mut self, own: &[u8], counts: &[usize]) -> Result<Vec<u8>, FabricError> {
        (**self).gather_varying(own, counts)
    }

    fn isolate(&mut self) -> Result<(), FabricError> {
        (**self).isolate()
    }

    fn prepare_end(&mut self) -> Result<(), FabricError> {
        (**self).prepare_end()
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError> {
        (**self).send(to, message)
    }

    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError> {
        (**self).receive(from, buffer)
    }
}

/// A call to the interconnect that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricError {
    /// The function, as its library names it.
    pub call: &'static str,
    /// Its error code, in the library's own numbering.
    pub code: i32,
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {}", self.call, self.code)
    }
}

impl std::error::Error for FabricError {}

/// The counts, starts and total that MPI_Gatherv needs.
pub fn mpi_counts(counts: &[usize]) -> Result<(Vec<i32>, Vec<i32>, usize), FabricError> {
    const TOO_LARGE: FabricError = FabricError { call: "a round of MPI_Gatherv", code: -1 };
    let mut total = 0usize;
    let starts: Vec<i32> = counts
        .iter()
        .map(|count| {
            let start = i32::try_from(total).map_err(|_| TOO_LARGE);
            total = total.saturating_add(*count);
            start
        })
        .collect::<Result<_, _>>()?;
    let counts =
        counts.iter().map(|count| i32::try_from(*count).map_err(|_| TOO_LARGE)).collect::<Result<_, _>>()?;
    Ok((counts, starts, total))
}

/// One process alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solo;

/// One process alone has no other rank.
const ALONE: FabricError = FabricError { call: "a message to a rank that does not exist", code: -1 };

impl Fabric for Solo {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn barrier(&mut self, _: Wait, _: &mut dyn FnMut()) -> Result<(), FabricError> {
        Ok(())
    }

    fn broadcast(&mut self, _: &mut [u8]) -> Result<(), FabricError> {
        Ok(())
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError> {
        Ok(own.to_vec())
    }

    fn gather_varying(&mut self, own: &[u8], _: &[usize]) -> Result<Vec<u8>, FabricError> {
        Ok(own.to_vec())
    }

    fn send(&mut self, _: u32, _: &[u8]) -> Result<(), FabricError> {
        Err(ALONE)
    }

    fn receive(&mut self, _: u32, _: &mut [u8]) -> Result<(), FabricError> {
        Err(ALONE)
    }
}

impl Pairwise for Solo {
    fn exchange(
        &mut self,
        _: &Channel,
        _: &Arc<Vec<u8>>,
        _: &mut [u8],
        _: Instant,
    ) -> Result<bool, FabricError> {
        Err(ALONE)
    }
}

impl Divisible for Solo {
    fn subset(&mut self, is_member: bool) -> Result<Option<Self>, FabricError> {
        Ok(is_member.then_some(Self))
    }
}

/// Threads of one process as ranks, for tests of the session.
pub struct Threads {
    rank: u32,
    shared: SharedMeeting,
    /// How often this rank has called [`Divisible::subset`].
    divisions: usize,
}

type SharedMeeting = Arc<(Mutex<Meeting>, Condvar)>;

struct Meeting {
    size: u32,
    arrived: u32,
    generation: u64,
    /// Messages under way, by sender, receiver and channel. [`Fabric::send`] uses none.
    sent: HashMap<(u32, u32, Option<u16>), VecDeque<Vec<u8>>>,
    /// The subset of each division.
    subsets: HashMap<usize, SharedMeeting>,
}

impl Meeting {
    fn of(size: u32) -> SharedMeeting {
        let meeting = Self { size, arrived: 0, generation: 0, sent: HashMap::new(), subsets: HashMap::new() };
        Arc::new((Mutex::new(meeting), Condvar::new()))
    }
}

impl Threads {
    /// One fabric for each of `size` threads.
    pub fn new(size: u32) -> Vec<Self> {
        let shared = Meeting::of(size);
        (0..size).map(|rank| Self { rank, shared: Arc::clone(&shared), divisions: 0 }).collect()
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&'a self, meeting: MutexGuard<'a, Meeting>) -> MutexGuard<'a, Meeting> {
        self.shared.1.wait(meeting).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fabric for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.meeting().size
    }

    fn barrier(&mut self, _: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        let mut meeting = self.meeting();
        let generation = meeting.generation;
        meeting.arrived += 1;
        if meeting.arrived == meeting.size {
            meeting.arrived = 0;
            meeting.generation += 1;
            self.shared.1.notify_all();
        } else {
            drop(meeting);
            meanwhile();
            meeting = self.meeting();
        }
        while meeting.generation == generation {
            meeting = self.wait(meeting);
        }
        Ok(())
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        if self.rank != 0 {
            return self.receive(0, bytes);
        }
        (1..self.size()).try_for_each(|rank| self.send(rank, bytes))
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError> {
        let counts = vec![own.len(); self.size() as usize];
        self.gather_varying(own, &counts)
    }

    fn gather_varying(&mut self, own: &[u8], counts: &[usize]) -> Result<Vec<u8>, FabricError> {
        if self.rank != 0 {
            return self.send(0, own).map(|()| Vec::new());
        }
        let mut all = own.to_vec();
        for (rank, count) in (1..).zip(&counts[1..]) {
            let mut bytes = vec![0; *count];
            self.receive(rank, &mut bytes)?;
            all.extend(bytes);
        }
        Ok(all)
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError> {
        self.meeting().sent.entry((self.rank, to, None)).or_default().push_back(message.to_vec());
        self.shared.1.notify_all();
        Ok(())
    }

    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError> {
        let way = (from, self.rank, None);
        let mut meeting = self.meeting();
        loop {
            if let Some(message) = meeting.sent.get_mut(&way).and_then(VecDeque::pop_front) {
                buffer[..message.len()].copy_from_slice(&message);
                return Ok(());
            }
            meeting = self.wait(meeting);
        }
    }
}

impl Pairwise for Threads {
    fn exchange(
        &mut self,
        with: &Channel,
        own: &Arc<Vec<u8>>,
        theirs: &mut [u8],
        deadline: Instant,
    ) -> Result<bool, FabricError> {
        const OTHER_LENGTH: FabricError =
            FabricError { call: "an exchange of messages of different lengths", code: -1 };
        let number = Some(with.number % Channel::NUMBERS);
        let length = with.message_bytes.max(1);
        let mut meeting = self.meeting();
        let sent = meeting.sent.entry((self.rank, with.partner, number)).or_default();
        sent.extend(own.chunks(length).map(<[u8]>::to_vec));
        self.shared.1.notify_all();
        for message in theirs.chunks_mut(length) {
            let came = loop {
                let way = (with.partner, self.rank, number);
                if let Some(came) = meeting.sent.get_mut(&way).and_then(VecDeque::pop_front) {
                    break came;
                }
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(false);
                }
                meeting = self.shared.1.wait_timeout(meeting, left).unwrap_or_else(PoisonError::into_inner).0;
            };
            if came.len() != message.len() {
                return Err(OTHER_LENGTH);
            }
            message.copy_from_slice(&came);
        }
        Ok(true)
    }
}

impl Divisible for Threads {
    fn subset(&mut self, is_member: bool) -> Result<Option<Self>, FabricError> {
        let mut members = self.gather(&[u8::from(is_member)])?;
        members.resize(self.size() as usize, 0);
        self.broadcast(&mut members)?;
        let number_of = |members: &[u8]| members.iter().map(|member| u32::from(*member)).sum();
        let (rank, size) = (number_of(&members[..self.rank as usize]), number_of(&members));
        self.divisions += 1;
        let mut meeting = self.meeting();
        let shared = meeting.subsets.entry(self.divisions).or_insert_with(|| Meeting::of(size));
        Ok(is_member.then(|| Self { rank, shared: Arc::clone(shared), divisions: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn some_ranks_form_a_fabric_of_their_own() {
        let ranks = Threads::new(5);
        std::thread::scope(|scope| {
            for mut fabric in ranks {
                scope.spawn(move || {
                    let own = fabric.rank();
                    for members in [[1, 2, 4], [0, 1, 3]] {
                        let place = members.iter().position(|member| *member == own);
                        let subset = fabric.subset(place.is_some()).unwrap();
                        let Some(mut subset) = subset else {
                            assert_eq!(place, None);
                            continue;
                        };
                        assert_eq!((Some(subset.rank() as usize), subset.size()), (place, 3));
                        subset.meet().unwrap();
                        let all = subset.gather(&[own as u8]).unwrap();
                        assert_eq!(
                            all,
                            if place == Some(0) { members.map(|m| m as u8).to_vec() } else { vec![] }
                        );
                    }
                });
            }
        });
    }

    #[test]
    fn two_ranks_exchange_data_while_messages_of_other_channels_wait() {
        let soon = || Instant::now() + Duration::from_secs(60);
        std::thread::scope(|scope| {
            for mut fabric in Threads::new(2) {
                scope.spawn(move || {
                    let own = fabric.rank();
                    let channel = |number| Channel { partner: 1 - own, number, message_bytes: 3 };
                    for number in [7, 8] {
                        let bytes = Arc::new(vec![number as u8 + own as u8; 7]);
                        assert_eq!(fabric.exchange(&channel(number), &bytes, &mut [], soon()), Ok(true));
                    }
                    for number in [8, 7] {
                        let mut came = [0; 7];
                        let nothing = Arc::new(Vec::new());
                        assert_eq!(fabric.exchange(&channel(number), &nothing, &mut came, soon()), Ok(true));
                        assert_eq!(came, [number as u8 + 1 - own as u8; 7]);
                    }
                });
            }
        });
    }

    #[test]
    fn an_exchange_without_an_answer_ends_at_its_deadline() {
        let mut alone = Threads::new(2).remove(0);
        let channel = Channel { partner: 1, number: 0, message_bytes: 8 };
        let deadline = Instant::now() + Duration::from_millis(20);
        assert_eq!(alone.exchange(&channel, &Arc::new(vec![1]), &mut [0], deadline), Ok(false));
        assert!(Instant::now() >= deadline);
        assert!(Solo.exchange(&channel, &Arc::default(), &mut [], deadline).is_err());
    }

    /// Even if one rank's `meanwhile` takes for ever, the other rank leaves the barrier.
    #[test]
    fn a_barrier_is_entered_before_anything_else_is_done() {
        let mut ranks = Threads::new(2);
        let (mut second, mut first) = (ranks.remove(1), ranks.remove(0));
        let ((waits, is_waiting), (left, has_left)) = (mpsc::channel(), mpsc::channel());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut meanwhile = || {
                    waits.send(()).unwrap();
                    has_left.recv_timeout(Duration::from_secs(60)).unwrap();
                };
                first.barrier(Wait::Patient, &mut meanwhile).unwrap();
            });
            is_waiting.recv().unwrap();
            second.barrier(Wait::Patient, &mut || panic!("the last one to arrive does not wait")).unwrap();
            left.send(()).unwrap();
        });
    }
}
