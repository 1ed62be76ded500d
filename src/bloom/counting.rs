//! [`CountingBloomFilter`].

use core::{
    borrow::Borrow,
    hash::{BuildHasher, Hash},
};

use super::{counters::Counters, methods::filter};
use crate::{InsertError, batch::check_lengths};

filter! {
    /// A concurrent Bloom filter with counters in place of bits, so that keys can be removed, and counted.
    ///
    /// It is a multiset: a key that was inserted twice needs removing twice. A counter that reaches its maximum stays there for ever, so keys are never lost; those that share
    /// it cannot be removed wholly any more. For removal alone a [`CuckooFilter`](crate::CuckooFilter) takes a third of the memory, and is faster.
    ///
    /// # Consistency and progress
    ///
    /// All operations work through `&self` from any number of threads. Look-ups are wait-free; inserts and removals are lock-free: a compare-and-swap for each counter, done again if
    /// another thread changed the same word. Only for a snapshot that is being taken they wait, so that it has each of them wholly or not at all. From the return of [`insert`](Self::insert) until a matching [`remove`](Self::remove) begins, [`contains`](Self::contains) of that key is `true`
    /// in every thread that learns of the insert, through overflow of counters or whatever else. While one thread inserts or removes a key, another may see any part of it done.
    ///
    /// ```
    /// use koel::bloom::CountingBloomFilter;
    ///
    /// let filter = CountingBloomFilter::<str>::with_capacity(1_000);
    /// filter.insert("pine");
    /// filter.insert("pine");
    /// assert_eq!(filter.count("pine"), 2);
    /// assert!(filter.remove("pine") && filter.remove("pine"));
    /// assert!(!filter.contains("pine"));
    /// ```
    CountingBloomFilter, Counters, CountingBloomFilterBuilder
}

impl Counters {
    pub(super) fn seed(&self) -> u64 {
        self.shape.seed
    }

    pub(super) fn fill_ratio(&self) -> f64 {
        self.tally().0 as f64 / self.shape.cells() as f64
    }

    pub(super) fn false_positive_rate(&self) -> f64 {
        self.shape.rate_of_fill(self.fill_ratio())
    }

    pub(super) fn estimated_len(&self) -> usize {
        self.shape.keys_of_fill(self.fill_ratio())
    }
}

/// # Inserts, removals and counts
impl<T: ?Sized, S: BuildHasher> CountingBloomFilter<T, S> {
    /// Puts a key in: `true` if it was surely not in at some moment of the call, `false` if it may have been in.
    ///
    /// # Progress
    ///
    /// Lock-free, but waits for a snapshot that is being taken.
    ///
    /// # Complexity
    ///
    /// Constant: a compare-and-swap for each counter of the key that is not at its maximum.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// assert!(filter.insert(&7));
    /// assert!(!filter.insert(&7));
    /// ```
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.insert_hash(self.hash_of(key))
    }

    /// Takes a key out: `false`, and nothing changes, if it is surely absent.
    ///
    /// # Progress
    ///
    /// Lock-free, but waits for a snapshot that is being taken.
    ///
    /// # Complexity
    ///
    /// That of [`insert`](Self::insert).
    ///
    /// # Correctness
    ///
    /// Only remove what is in. Of keys that were never inserted, or removed already, all but the false positives are refused; a false positive lowers counters that other
    /// keys need, which then are false negatives. So it is in every filter that deletes. Of two threads that race to remove a key which is in once, one gets `false`, unless all counters of the
    /// key are shared with others; while it puts back what it took, those others may not be found for a moment.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// filter.insert(&7);
    /// assert!(filter.remove(&7));
    /// assert!(!filter.remove(&7));
    /// ```
    #[inline]
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.remove_hash(self.hash_of(key))
    }

    /// How often the key is in, at most: the lowest of its counters. If that is [`counter_max`](Self::counter_max) it stands for as many or more; below that it is exact but for
    /// about as many keys as there are false positives, where it is too high.
    ///
    /// # Progress
    ///
    /// Wait-free.
    ///
    /// # Complexity
    ///
    /// Constant.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// (0..20).for_each(|_| drop(filter.insert(&7)));
    /// assert_eq!(filter.count(&7), 15);
    /// ```
    #[inline]
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
    {
        self.count_hash(self.hash_of(key))
    }
}

/// # Inserts, removals and counts of hashes
impl<T: ?Sized, S> CountingBloomFilter<T, S> {
    /// [`insert`](Self::insert) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// assert!(filter.insert_hash(7));
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.raw.insert(hash) != 0
    }

    /// [`insert_hash`](Self::insert_hash) for many hashes. Their words are asked for before the first is needed.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`insert`](Self::insert) for every 16 hashes, and linear in them. Never allocates.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// filter.insert_hashes(&[1, 2, 2]);
    /// assert_eq!(filter.count_hash(2), 2);
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) {
        self.raw.insert_batch(hashes);
    }

    /// [`remove`](Self::remove) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`remove`](Self::remove).
    ///
    /// # Correctness
    ///
    /// That of [`remove`](Self::remove): only remove what is in.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(7);
    /// assert!(filter.remove_hash(7));
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.raw.remove(hash).0
    }

    /// [`remove_hash`](Self::remove_hash) for many hashes: `removed[i]` tells of `hashes[i]`. A hash that stands there twice is removed twice.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`remove`](Self::remove), hash by hash.
    ///
    /// # Correctness
    ///
    /// That of [`remove`](Self::remove): only remove what is in.
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2);
    /// let mut removed = [false; 2];
    /// filter.remove_hashes(&[2, 2], &mut removed);
    /// assert_eq!(removed, [true, false]);
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64], removed: &mut [bool]) {
        check_lengths(hashes.len(), removed.len());
        hashes.iter().zip(removed).for_each(|(hash, removed)| *removed = self.remove_hash(*hash));
    }

    /// [`count`](Self::count) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`count`](Self::count).
    ///
    /// ```
    /// assert_eq!(koel::bloom::CountingBloomFilter::<u64>::with_capacity(100).count_hash(7), 0);
    /// ```
    #[inline]
    pub fn count_hash(&self, hash: u64) -> u64 {
        self.raw.count(hash)
    }

    pub(super) fn try_insert(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_hash(hash);
        Ok(())
    }
}

/// # Counters
impl<T: ?Sized, S> CountingBloomFilter<T, S> {
    /// The largest value of a counter: 3, 15 or 255.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// assert_eq!(koel::bloom::CountingBloomFilter::<u64>::with_capacity(100).counter_max(), 15);
    /// ```
    pub fn counter_max(&self) -> u64 {
        self.raw.max()
    }

    /// How many counters have reached their maximum, and stay there.
    ///
    /// # Progress
    ///
    /// Wait-free.
    ///
    /// # Complexity
    ///
    /// Goes through the filter.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::with_capacity(100);
    /// (0..15).for_each(|_| drop(filter.insert(&7)));
    /// assert!(filter.saturated() > 0);
    /// ```
    pub fn saturated(&self) -> u64 {
        self.raw.tally().1
    }

    /// The share of counters that are above 0, 0 to 1: about a half when the filter holds its capacity.
    ///
    /// # Progress
    ///
    /// Wait-free.
    ///
    /// # Complexity
    ///
    /// Goes through the filter.
    ///
    /// ```
    /// assert_eq!(koel::bloom::CountingBloomFilter::<u64>::with_capacity(100).fill_ratio(), 0.0);
    /// ```
    pub fn fill_ratio(&self) -> f64 {
        self.raw.fill_ratio()
    }
}
