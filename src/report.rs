//! [`Stats`]: what a filter holds and has been through.

use core::fmt;

use crate::{
    stats::{Counters, Event},
    word::{self, Layout},
};

/// A summary of a filter, from [`CuckooFilter::stats`](crate::CuckooFilter::stats). Prints itself on one line.
///
/// ```
/// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
/// let line = filter.stats().to_string();
/// assert!(line.starts_with("0 keys, load 0.0%"), "{line}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Keys that are in.
    pub keys: u64,
    /// The share of slots that are taken, 0 to 1.
    pub load_factor: f64,
    /// The share of keys that sit in their away bucket, 0 to 1. More of them mean more look-ups of two words.
    pub displaced_share: f64,
    /// Buckets whose displaced count has reached its maximum of 15 and stays there: their look-ups always read two words.
    pub saturated_buckets: u64,
    /// Fingerprints that were moved to make room.
    pub relocations: u64,
    /// Searches for a path of relocations: inserts that met two full buckets, repeats included.
    pub searches: u64,
    /// Paths that were given up because another thread changed a bucket on them.
    pub retries: u64,
    /// Inserts that were refused.
    pub failures: u64,
    /// Compare-and-swaps of a bucket that were done again, because another thread had changed the bucket since it was read.
    pub cas_retries: u64,
    /// Times that both buckets of a key were read again, because a fingerprint was taken meanwhile from a bucket of the same stripe (by a removal, a relocation, or draining),
    /// or because `insert_if_absent` waited for one that was being moved.
    /// In a batch each key counts.
    pub sequence_retries: u64,
}

impl Stats {
    /// Counts what these words hold.
    pub(crate) fn new(layout: Layout, slots: usize, counters: &Counters, words: impl Iterator<Item = u64>) -> Self {
        let (mut taken, mut displaced, mut saturated) = (0_usize, 0_usize, 0_u64);
        for word in words {
            taken += layout.taken_count(word);
            displaced += layout.displaced_slots(word);
            saturated += u64::from(word::displaced_count(word) == word::SATURATED);
        }
        let sum = |event| counters.sum(event) as u64;
        let keys = counters.keys(slots);
        Self {
            keys: keys as u64,
            load_factor: keys as f64 / slots as f64,
            displaced_share: if taken == 0 { 0.0 } else { displaced as f64 / taken as f64 },
            saturated_buckets: saturated,
            relocations: sum(Event::Relocated),
            searches: sum(Event::Searched),
            retries: sum(Event::Retried),
            failures: sum(Event::Refused),
            cas_retries: sum(Event::SwappedAgain),
            sequence_retries: sum(Event::ReadAgain),
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} keys, load {:.1}%, displaced {:.1}%, saturated buckets {}, relocations {}, searches {}, retries {}, failures {}, CAS retries {}, sequence retries {}",
            self.keys,
            100.0 * self.load_factor,
            100.0 * self.displaced_share,
            self.saturated_buckets,
            self.relocations,
            self.searches,
            self.retries,
            self.failures,
            self.cas_retries,
            self.sequence_retries,
        )
    }
}
