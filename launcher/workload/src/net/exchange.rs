//! What two leaders measure with each other: the time of small messages, and of large ones in both directions at once.
//!
//! The leader with the lower rank leads. Each word of a message says whether the message is the last one. So both
//! ranks agree on the number of repetitions, although only one rank reads the clock.

use super::content::Message;
use pmmpi::clock;
use pmmpi::transport::fabric::{Channel, FabricError, Pairwise};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much two leaders measure.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Round trips of a small message.
    pub round_trips: usize,
    /// The first ones, which do not count: connections and caches are cold.
    pub warm_ups: usize,
    /// Bursts that count. One more precedes them.
    pub bursts: usize,
    /// Messages of a burst in each direction. All are under way at once.
    pub messages: usize,
    /// Length of such a message.
    pub message_bytes: usize,
    /// After this time the round trips end early, and then the bursts; at least one of each counts.
    pub most: Duration,
    /// A pair that takes longer gives up.
    pub limit: Duration,
}

impl Amount {
    /// One pair of buffers for all exchanges, so that the network card knows their pages after the first one.
    pub fn buffers(&self) -> Buffers {
        // Not zero, so that the kernel of the operating system provides all pages now.
        let bytes = || vec![1; self.messages * self.message_bytes];
        Buffers { own: Arc::new(bytes()), theirs: bytes() }
    }
}

/// What a burst sends and receives.
pub struct Buffers {
    own: Arc<Vec<u8>>,
    theirs: Vec<u8>,
}

/// A pair and its place in the schedule.
#[derive(Clone, Copy, Debug)]
pub struct ScheduledPair {
    pub partner: u32,
    /// The channel of this exchange and of no other one that may still be under way.
    pub channel: u16,
    /// Until then the partner must have arrived.
    pub arrival: Instant,
    /// Until then everything must be done, if it is earlier than [`Amount::limit`] after the arrival.
    pub end: Instant,
}

/// The result of an exchange. Both partners have the same values.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Measured(PairMedians),
    /// The partner did not arrive in time.
    Absent,
    /// The partner arrived, but the exchange took too long.
    TooSlow,
    /// This rank received something wrong, which the text names.
    Wrong(String),
    /// The partner received something wrong.
    WrongThere,
}

/// Medians of one pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairMedians {
    /// Half of the round-trip time of a small message (ns).
    pub latency_ns: f64,
    /// The smallest one: what the link can do without disturbance (ns).
    pub least_latency_ns: f64,
    /// In one direction (10^9 bytes per second).
    pub gigabytes_per_s: f64,
}

/// Measures with a partner that does the same.
pub fn measure<F: Pairwise>(
    fabric: &mut F,
    buffers: &mut Buffers,
    meeting: ScheduledPair,
    amount: &Amount,
) -> Result<Outcome, FabricError> {
    let own = fabric.rank();
    let mut talk = Talk {
        leads: own < meeting.partner,
        own,
        fabric,
        meeting,
        amount,
        deadline: meeting.arrival,
        said: 0,
        word: Arc::new(vec![0; WORD_BYTES]),
        nothing: Arc::default(),
        wrong: None,
    };
    match talk.meet() {
        Err(Stop::Late) => return Ok(Outcome::Absent),
        Err(Stop::Fabric(e)) => return Err(e),
        Ok(()) => {}
    }
    match talk.measure(buffers) {
        Ok(outcome) => Ok(outcome),
        Err(Stop::Late) => Ok(Outcome::TooSlow),
        Err(Stop::Fabric(e)) => Err(e),
    }
}

fn done(exchanged: Result<bool, FabricError>) -> Result<(), Stop> {
    match exchanged {
        Ok(true) => Ok(()),
        Ok(false) => Err(Stop::Late),
        Err(e) => Err(Stop::Fabric(e)),
    }
}

/// Why an exchange ends early.
enum Stop {
    Late,
    Fabric(FabricError),
}

const WORD_BYTES: usize = size_of::<u64>();
/// The bit of a word that says that nothing follows.
const LAST: u64 = 1;
/// Numbers of bursts begin here. Words have smaller numbers.
const FIRST_BURST: u32 = 1 << 31;

struct Talk<'a, F> {
    fabric: &'a mut F,
    own: u32,
    meeting: ScheduledPair,
    amount: &'a Amount,
    leads: bool,
    deadline: Instant,
    /// Words of each direction so far.
    said: u32,
    /// The word that this rank sends.
    word: Arc<Vec<u8>>,
    nothing: Arc<Vec<u8>>,
    /// The first wrong byte that this rank received.
    wrong: Option<String>,
}

impl<F: Pairwise> Talk<'_, F> {
    /// Waits until the partner is there, so that no time contains a wait for a partner's other partners.
    fn meet(&mut self) -> Result<(), Stop> {
        self.word_each_way()?;
        let limit = Instant::now().checked_add(self.amount.limit);
        self.deadline = limit.map_or(self.meeting.end, |limit| limit.min(self.meeting.end));
        Ok(())
    }

    fn measure(&mut self, buffers: &mut Buffers) -> Result<Outcome, Stop> {
        let round_trips_ns = self.round_trips()?;
        let bursts_ns = self.bursts(buffers)?;
        let warm_ups = self.amount.warm_ups.min(round_trips_ns.len().saturating_sub(1));
        let (least_ns, median_ns) = least_and_median(&round_trips_ns[warm_ups..]);
        let (_, burst_ns) = least_and_median(bursts_ns.get(1..).unwrap_or_default());
        self.conclude([least_ns, median_ns, burst_ns])
    }

    /// The leader's round-trip times (ns); the times of the other rank have no meaning.
    fn round_trips(&mut self) -> Result<Vec<i64>, Stop> {
        let began = Instant::now();
        let mut times_ns = Vec::with_capacity(self.amount.round_trips);
        loop {
            let is_last =
                times_ns.len() + 1 >= self.amount.round_trips || began.elapsed() >= self.amount.most;
            let begin_ns = clock::monotonic_ns();
            let is_last = self.word_and_answer(is_last)?;
            times_ns.push(clock::monotonic_ns() - begin_ns);
            if is_last {
                return Ok(times_ns);
            }
        }
    }

    /// The times of the bursts (ns), the warm-up first. Both directions at once, as ClusterKit, hp2p and OSU's osu_bibw
    /// do: applications use both, and a fault of either direction shows.
    fn bursts(&mut self, buffers: &mut Buffers) -> Result<Vec<i64>, Stop> {
        let began = Instant::now();
        let mut times_ns = Vec::with_capacity(self.amount.bursts + 1);
        for number in FIRST_BURST.. {
            // Filling and checking take longer than a fast network: both happen outside of the time.
            self.message(self.own, number).fill(Arc::<Vec<u8>>::make_mut(&mut buffers.own));
            let enough = times_ns.len() >= self.amount.bursts.max(1);
            let too_long = !times_ns.is_empty() && began.elapsed() >= self.amount.most;
            let is_last = self.word_and_answer(enough || too_long)?;
            let channel = self.channel(self.amount.message_bytes);
            let begin_ns = clock::monotonic_ns();
            let all = self.fabric.exchange(&channel, &buffers.own, &mut buffers.theirs, self.deadline);
            times_ns.push(clock::monotonic_ns() - begin_ns);
            done(all)?;
            if let Some(at) = self.message(self.meeting.partner, number).first_wrong(&buffers.theirs) {
                let length = self.amount.message_bytes.max(1);
                self.note_wrong(|| format!("byte {} of a message of {length} bytes", at % length));
            }
            if is_last {
                break;
            }
        }
        Ok(times_ns)
    }

    /// Tells the partner the own medians and whether all received bytes were right. The latency is the leader's,
    /// because the other rank cannot measure it. A burst ends when both ranks have all messages of the burst.
    fn conclude(&mut self, own_ns: [i64; 3]) -> Result<Outcome, Stop> {
        let [least_ns, median_ns, burst_ns] = own_ns;
        let is_wrong = i64::from(self.wrong.is_some());
        let words = [least_ns, median_ns, burst_ns, is_wrong].map(i64::to_le_bytes);
        let mut theirs = [0; 4 * WORD_BYTES];
        let channel = self.channel(theirs.len());
        done(self.fabric.exchange(&channel, &Arc::new(words.concat()), &mut theirs, self.deadline))?;
        let mut theirs_ns = [0; 4];
        for (word, bytes) in theirs_ns.iter_mut().zip(theirs.as_chunks().0) {
            *word = i64::from_le_bytes(*bytes);
        }
        let [their_least_ns, their_median_ns, their_burst_ns, they_are_wrong] = theirs_ns;
        if let Some(wrong) = self.wrong.take() {
            return Ok(Outcome::Wrong(wrong));
        }
        if they_are_wrong != 0 {
            return Ok(Outcome::WrongThere);
        }
        let (least_ns, median_ns) =
            if self.leads { (least_ns, median_ns) } else { (their_least_ns, their_median_ns) };
        // A clock can stand still between two readings.
        let positive = |ns: i64| ns.max(1) as f64;
        let bytes = self.amount.messages * self.amount.message_bytes;
        Ok(Outcome::Measured(PairMedians {
            latency_ns: positive(median_ns) / 2.0,
            least_latency_ns: positive(least_ns) / 2.0,
            gigabytes_per_s: bytes as f64 / positive(burst_ns.max(their_burst_ns)),
        }))
    }

    /// A word from the leader, and the answer. True if the leader's word is the last one; it gives `is_last`.
    fn word_and_answer(&mut self, is_last: bool) -> Result<bool, Stop> {
        let number = self.next_number();
        if self.leads {
            self.say(number, is_last)?;
            self.hear(number)?;
            return Ok(is_last);
        }
        let is_last = self.hear(number)?;
        self.say(number, false)?;
        Ok(is_last)
    }

    fn next_number(&mut self) -> u32 {
        self.said += 1;
        self.said
    }

    fn say(&mut self, number: u32, is_last: bool) -> Result<(), Stop> {
        self.set_word(number, is_last);
        let channel = self.channel(WORD_BYTES);
        done(self.fabric.exchange(&channel, &self.word, &mut [], self.deadline))
    }

    /// True if the word is the last one.
    fn hear(&mut self, number: u32) -> Result<bool, Stop> {
        let mut word = [0; WORD_BYTES];
        let channel = self.channel(WORD_BYTES);
        done(self.fabric.exchange(&channel, &self.nothing, &mut word, self.deadline))?;
        Ok(self.check_word(number, word))
    }

    fn word_each_way(&mut self) -> Result<(), Stop> {
        let number = self.next_number();
        self.set_word(number, false);
        let mut word = [0; WORD_BYTES];
        let channel = self.channel(WORD_BYTES);
        done(self.fabric.exchange(&channel, &self.word, &mut word, self.deadline))?;
        self.check_word(number, word);
        Ok(())
    }

    fn channel(&self, message_bytes: usize) -> Channel {
        Channel { partner: self.meeting.partner, number: self.meeting.channel, message_bytes }
    }

    fn message(&self, from: u32, number: u32) -> Message {
        let to = if from == self.own { self.meeting.partner } else { self.own };
        Message { channel: self.meeting.channel, from, to, number }
    }

    fn set_word(&mut self, number: u32, is_last: bool) {
        let word = self.message(self.own, number).word() & !LAST;
        let word = if is_last { word | LAST } else { word };
        Arc::make_mut(&mut self.word).copy_from_slice(&word.to_le_bytes());
    }

    /// True if the word is the last one.
    fn check_word(&mut self, number: u32, word: [u8; WORD_BYTES]) -> bool {
        let word = u64::from_le_bytes(word);
        if word & !LAST != self.message(self.meeting.partner, number).word() & !LAST {
            self.note_wrong(|| format!("a message of {WORD_BYTES} bytes"));
        }
        word & LAST != 0
    }

    fn note_wrong(&mut self, what: impl FnOnce() -> String) {
        self.wrong.get_or_insert_with(what);
    }
}

/// Zeros without values.
fn least_and_median(values_ns: &[i64]) -> (i64, i64) {
    let mut sorted = values_ns.to_vec();
    sorted.sort_unstable();
    let median = pmmpi::order_statistics::position(sorted.len()).and_then(|at| sorted.get(at));
    (sorted.first().copied().unwrap_or(0), median.copied().unwrap_or(0))
}
