//! Size and state of a [`CuckooFilter`].

use core::fmt;

use crate::{CuckooFilter, Stats, sizing};

/// # Size and state
impl<T: ?Sized, S> CuckooFilter<T, S> {
    /// How many keys are in: inserts less removals.
    ///
    /// # Progress
    ///
    /// Wait-free. Exact when no other thread is inserting or removing; otherwise each thread's share is of a moment of its own.
    ///
    /// # Complexity
    ///
    /// Adds up two counters for each of at most 72 shards.
    ///
    /// # Correctness
    ///
    /// Copies that went in less copies that were taken out, also if keys were removed that had never been in.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1).unwrap();
    /// assert_eq!(filter.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.raw.keys()
    }

    /// Whether no key is in, with the exactness of [`len`](Self::len).
    ///
    /// # Progress
    ///
    /// Wait-free.
    ///
    /// # Complexity
    ///
    /// That of [`len`](Self::len).
    ///
    /// # Correctness
    ///
    /// That of [`len`](Self::len).
    ///
    /// ```
    /// assert!(koel::CuckooFilter::<u64>::with_capacity(100).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many distinct keys surely go in, at the false-positive rate that was asked for. More go in until [`InsertError::Full`](crate::InsertError::Full), at a
    /// higher rate.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// assert_eq!(koel::CuckooFilter::<u64>::with_capacity(100).capacity(), 100);
    /// ```
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Buckets of the table, each one 64-bit word.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert!(filter.buckets() * filter.slots_per_bucket() > 100);
    /// ```
    pub fn buckets(&self) -> usize {
        self.raw.cells().geometry.buckets()
    }

    /// Slots of a bucket, each for one key: 2 to 6.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// assert_eq!(koel::CuckooFilter::<u64>::with_capacity(100).slots_per_bucket(), 4);
    /// ```
    pub fn slots_per_bucket(&self) -> usize {
        self.raw.cells().layout.slots()
    }

    /// Bits of a fingerprint: a slot less the bit that says whether it is displaced.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// assert_eq!(koel::CuckooFilter::<u64>::with_capacity(100).fingerprint_bits(), 14);
    /// ```
    pub fn fingerprint_bits(&self) -> u32 {
        self.raw.cells().layout.fingerprint_bits()
    }

    /// The share of slots that are taken, 0 to 1, with the exactness of [`len`](Self::len).
    ///
    /// # Progress
    ///
    /// Wait-free.
    ///
    /// # Complexity
    ///
    /// That of [`len`](Self::len).
    ///
    /// # Correctness
    ///
    /// That of [`len`](Self::len). How full a filter becomes before it refuses an insert is in README's table of sizes.
    ///
    /// ```
    /// assert_eq!(koel::CuckooFilter::<u64>::with_capacity(100).load_factor(), 0.0);
    /// ```
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / (self.buckets() as f64 * self.slots_per_bucket() as f64)
    }

    /// All memory of the filter in bytes: the table, all counters, and the struct itself.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// assert!(koel::CuckooFilter::<u64>::with_capacity(1_000).memory_bytes() < 6 * 1024);
    /// ```
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.raw.memory_bytes()
    }

    /// The share of absent keys for which [`contains`](Self::contains) is expected to say `true` with what is in now, if the keys in it are
    /// distinct: `1 - exp(-len / (buckets * fingerprints))`.
    ///
    /// Displaced keys do not raise it: the displaced bit of a slot says to which bucket its fingerprint belongs, so that a false positive
    /// needs a key with the same home *and* the same fingerprint, half of what a classical cuckoo filter has.
    ///
    /// # Progress
    ///
    /// Wait-free, with the exactness of [`len`](Self::len).
    ///
    /// # Complexity
    ///
    /// That of [`len`](Self::len).
    ///
    /// # Correctness
    ///
    /// The mean over absent keys; copies of one key make it less than this says.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(1_000);
    /// (0..1_000).for_each(|key| filter.insert(&key).unwrap());
    /// assert!(filter.false_positive_rate() < 0.001);
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        sizing::false_positive_rate(self.len(), self.buckets(), *self.raw.cells().layout)
    }

    /// The hasher of keys.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// assert_eq!(koel::CuckooFilter::<u64>::with_capacity(1).hasher(), &koel::Xxh3::new());
    /// ```
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The seed with which hashes are remixed.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::builder().seed(7).build()?;
    /// assert_eq!(filter.seed(), 7);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn seed(&self) -> u64 {
        self.raw.cells().geometry.seed()
    }

    /// Takes all keys out and forgets the statistics.
    ///
    /// # Progress
    ///
    /// Exclusive: no other thread has a reference.
    ///
    /// # Complexity
    ///
    /// Writes the whole table.
    ///
    /// # Correctness
    ///
    /// No key is in, as after building; seed, layout and capacity stay.
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1).unwrap();
    /// filter.clear();
    /// assert!(filter.is_empty() && !filter.contains(&1));
    /// ```
    pub fn clear(&mut self) {
        self.raw.clear();
    }

    /// What the filter holds and has been through, to be looked at or printed.
    ///
    /// # Progress
    ///
    /// Wait-free. Each number is of a moment of its own while other threads work.
    ///
    /// # Complexity
    ///
    /// Reads the whole table, to count displaced keys.
    ///
    /// # Correctness
    ///
    /// Exact when no other thread works, but for the statistics of a filter that comes from a snapshot, which begin there.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1).unwrap();
    /// let stats = filter.stats();
    /// assert_eq!(stats.keys, 1);
    /// println!("{stats}");
    /// ```
    pub fn stats(&self) -> Stats {
        Stats::new(*self.raw.cells().layout, self.raw.slots(), &self.raw.common.counters, self.words())
    }
}

impl<T: ?Sized, S> fmt::Debug for CuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuckooFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("buckets", &self.buckets())
            .field("slots_per_bucket", &self.slots_per_bucket())
            .field("fingerprint_bits", &self.fingerprint_bits())
            .finish_non_exhaustive()
    }
}
