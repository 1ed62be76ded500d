//! [`ScalableCountingBloomFilter`].

use core::{
    borrow::Borrow,
    convert::Infallible,
    hash::{BuildHasher, Hash},
};

use super::{
    counters::Counters,
    layers::{Layers, Taken},
    methods::filter,
    scalable::scalable_methods,
};
use crate::batch::check_lengths;

filter! {
    /// A concurrent counting Bloom filter that grows by layers, with the removal that layers allow: one that is refused when it would have to guess.
    ///
    /// `GrowableCuckooFilter` does this job better: it has two buckets to look at, at any size, and removes every key that is in. Measured at a rate of 0.1%, grown to 64 times the first
    /// capacity (`docs/choosing.md` in the repository): 24 bits a key against 90; 33 million keys by batches, in million per second: inserts 5.3 against 1.3, absent keys looked up 85
    /// against 3.0, removals 22 against 0.91 (one by one), of which this filter refused 26 in a million. It is here so that the difference can be measured, and for what only counters do.
    ///
    /// # Consistency and progress
    ///
    /// Those of [`ScalableBloomFilter`](super::ScalableBloomFilter) and [`CountingBloomFilter`](super::CountingBloomFilter). Layers that were emptied by removals stay.
    ///
    /// ```
    /// use koel::bloom::{Removal, ScalableCountingBloomFilter};
    ///
    /// let filter = ScalableCountingBloomFilter::<u64>::with_capacity(100);
    /// filter.insert(&7)?;
    /// assert_eq!(filter.remove(&7), Removal::Removed);
    /// assert_eq!(filter.remove(&7), Removal::Absent);
    /// # Ok::<(), koel::InsertError>(())
    /// ```
    ScalableCountingBloomFilter, Layers<Counters>, ScalableCountingBloomFilterBuilder
}

scalable_methods!(
    ScalableCountingBloomFilter,
    "Lock-free, but waits for a snapshot that is being taken; unless a layer is added and the allocator waits.",
    "24 doublings of a capacity of 64, 11 of a million."
);

/// What became of a removal from a [`ScalableCountingBloomFilter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Removal {
    /// One layer claimed the key, and one copy was taken there. Of a key that is in, that is the layer which has it; a key that is not in is removed at the false-positive rate, see
    /// *Correctness* at [`remove`](ScalableCountingBloomFilter::remove).
    Removed,
    /// No layer claimed the key: it is surely absent. Never said of a key that is in.
    Absent,
    /// More than one layer claimed the key, and nothing was changed. Of the keys that are in, this share at most: the sum of the rates of the layers other than the key's own, which is below the
    /// rate asked for. (It is in one layer even if it was inserted several times, unless threads that inserted it at once saw different layers, or another key was removed in the moment of a later insert.)
    Ambiguous,
}

/// # Removals and counts
impl<T: ?Sized, S: BuildHasher> ScalableCountingBloomFilter<T, S> {
    /// Takes a key out, if it is certain from which layer.
    ///
    /// # Progress
    ///
    /// Lock-free, but waits for a snapshot that is being taken.
    ///
    /// # Complexity
    ///
    /// That of a look-up in all layers, and of a removal from one.
    ///
    /// # Correctness
    ///
    /// Only remove what is in: otherwise another key may be lost, at the false-positive rate, as in [`CountingBloomFilter::remove`](super::CountingBloomFilter::remove).
    ///
    /// ```
    /// use koel::bloom::{Removal, ScalableCountingBloomFilter};
    ///
    /// let filter = ScalableCountingBloomFilter::<str>::with_capacity(100);
    /// filter.insert("oak").unwrap();
    /// assert_eq!(filter.remove("elm"), Removal::Absent);
    /// assert_eq!(filter.remove("oak"), Removal::Removed);
    /// ```
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> Removal
    where
        T: Borrow<Q>,
    {
        self.remove_hash(self.hash_of(key))
    }

    /// How often the key is in, at most: the sum over all layers of the lowest of its counters. A layer of which that is the maximum of a counter stands for as many or more.
    ///
    /// # Progress
    ///
    /// Wait-free.
    ///
    /// # Complexity
    ///
    /// That of a look-up in all layers.
    ///
    /// ```
    /// let filter = koel::bloom::ScalableCountingBloomFilter::<u64>::with_capacity(100);
    /// (0..3).for_each(|_| drop(filter.insert(&7).unwrap()));
    /// assert_eq!(filter.count(&7), 3);
    /// ```
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
    {
        self.count_hash(self.hash_of(key))
    }
}

/// # Removals and counts of hashes
impl<T: ?Sized, S> ScalableCountingBloomFilter<T, S> {
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
    /// use koel::bloom::{Removal, ScalableCountingBloomFilter};
    ///
    /// assert_eq!(ScalableCountingBloomFilter::<u64>::with_capacity(100).remove_hash(7), Removal::Absent);
    /// ```
    pub fn remove_hash(&self, hash: u64) -> Removal {
        match self.raw.remove(hash) {
            Taken::Removed => Removal::Removed,
            Taken::Absent => Removal::Absent,
            Taken::Ambiguous => Removal::Ambiguous,
        }
    }

    /// [`remove_hash`](Self::remove_hash) for many hashes: `removed[i]` tells of `hashes[i]`. A hash that stands there twice is removed twice.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`remove`](Self::remove), hash by hash. Their words are asked for before the first is needed.
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
    /// use koel::bloom::{Removal, ScalableCountingBloomFilter};
    ///
    /// let filter = ScalableCountingBloomFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2)?;
    /// let mut removed = [Removal::Ambiguous; 2];
    /// filter.remove_hashes(&[2, 2], &mut removed);
    /// assert_eq!(removed, [Removal::Removed, Removal::Absent]);
    /// # Ok::<(), koel::InsertError>(())
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64], removed: &mut [Removal]) {
        check_lengths(hashes.len(), removed.len());
        let Ok(()) = self.raw.ahead(hashes, |place, hash| {
            removed[place] = self.remove_hash(hash);
            Ok::<(), Infallible>(())
        });
    }

    /// [`count`](Self::count) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`count`](Self::count).
    ///
    /// ```
    /// assert_eq!(koel::bloom::ScalableCountingBloomFilter::<u64>::with_capacity(100).count_hash(7), 0);
    /// ```
    pub fn count_hash(&self, hash: u64) -> u64 {
        self.raw.count(hash)
    }

    /// How many counters of all layers have reached their maximum, and stay there.
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
    /// assert_eq!(koel::bloom::ScalableCountingBloomFilter::<u64>::with_capacity(100).saturated(), 0);
    /// ```
    pub fn saturated(&self) -> u64 {
        self.raw.saturated()
    }
}
