//! Growth, size and state of a [`GrowableCuckooFilter`].

use alloc::vec::Vec;
use core::fmt;

use crate::{GrowableCuckooFilter, InsertError, Stats, sizing};

/// # Growth
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// How often the filter has doubled.
    ///
    /// # Progress and complexity
    ///
    /// Wait-free.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.generation(), 0);
    /// ```
    pub fn generation(&self) -> u32 {
        self.growing.doublings()
    }

    /// Whether the filter is growing: there are two tables, and fingerprints are still to be moved to the larger one.
    ///
    /// # Progress and complexity
    ///
    /// Wait-free.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert!(!filter.is_draining());
    /// ```
    pub fn is_draining(&self) -> bool {
        self.growing.is_draining()
    }

    /// Moves the fingerprints of about `max_buckets` buckets (rounded up to 32) to the larger table, if the filter is growing; how many buckets were
    /// emptied. 0 if it is not growing, or what is left is in the hands of other threads. Several threads may call it: each moves different buckets first, and some
    /// may be counted by more than one.
    ///
    /// # Progress
    ///
    /// Lock-free, except that it waits while a snapshot copies the table.
    ///
    /// # Complexity
    ///
    /// Linear in the buckets.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.drain(1_000), 0);
    /// ```
    pub fn drain(&self, max_buckets: usize) -> usize {
        self.growing.drain(max_buckets)
    }

    /// Moves all fingerprints that are left to the larger table, if the filter is growing.
    ///
    /// # Progress
    ///
    /// Waits for threads that were stopped in the midst of moving a fingerprint, if what they hold up is all that is left.
    ///
    /// # Complexity
    ///
    /// Linear in the buckets that are left.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.finish_draining();
    /// assert!(!filter.is_draining());
    /// ```
    pub fn finish_draining(&self) {
        self.growing.finish_draining();
    }

    /// Grows until there is room for so many keys more, and does the draining of all growths but the last.
    ///
    /// # Progress
    ///
    /// Waits for other threads that grow the filter or drain it.
    ///
    /// # Complexity
    ///
    /// Linear in the table.
    ///
    /// # Errors
    ///
    /// [`InsertError::Full`] if that would be above the largest size, and [`InsertError::Alloc`] if memory is not to be had. Then it may have grown part of
    /// the way.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.reserve(100_000)?;
    /// assert!(filter.capacity() >= 100_000);
    /// # Ok::<(), koel::InsertError>(())
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<(), InsertError> {
        self.growing.reserve(additional)
    }

    /// Halves the table as often as its keys fit, at most down to the initial size. If memory for the smaller table is not to be had nothing changes.
    ///
    /// # Progress
    ///
    /// Exclusive: no other thread has a reference.
    ///
    /// # Complexity
    ///
    /// Linear in the table. If it shrinks, displaced counts are computed anew.
    ///
    /// ```
    /// let mut filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.reserve(100_000).unwrap();
    /// filter.insert(&1).unwrap();
    /// filter.shrink_to_fit();
    /// assert_eq!(filter.generation(), 0);
    /// assert!(filter.contains(&1));
    /// ```
    pub fn shrink_to_fit(&mut self) {
        self.growing.shrink();
    }
}

/// # Size and state
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// How many keys are in: inserts less removals.
    ///
    /// # Progress
    ///
    /// Wait-free. Exact when no other thread is inserting or removing; otherwise each thread's share is of a moment of its own.
    ///
    /// # Complexity
    ///
    /// Adds up at most 144 counters.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1).unwrap();
    /// assert_eq!(filter.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.growing.keys()
    }

    /// Whether no key is in, with the exactness of [`len`](Self::len).
    ///
    /// # Progress
    ///
    /// Wait-free, with the exactness of [`len`](Self::len).
    ///
    /// # Complexity
    ///
    /// That of [`len`](Self::len).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert!(filter.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many distinct keys surely go in before the filter grows again.
    ///
    /// # Progress and complexity
    ///
    /// Wait-free.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert!(filter.capacity() >= 100);
    /// ```
    pub fn capacity(&self) -> usize {
        self.growing.plan.capacity(self.generation())
    }

    /// How many distinct keys surely go in at the largest size. At as many as the builder was told the rate holds; there may be room for more.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::builder().max_capacity(1_000_000).build()?;
    /// assert!(filter.max_capacity() >= 1_000_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.growing.plan.max_capacity()
    }

    /// Buckets of the table, while growing of the larger one; each is one 64-bit word.
    ///
    /// # Progress and complexity
    ///
    /// Wait-free.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.buckets(), 4_096);
    /// ```
    pub fn buckets(&self) -> usize {
        self.growing.buckets()
    }

    /// Slots of a bucket, each for one key: 2 to 6.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.slots_per_bucket(), 3);
    /// ```
    pub fn slots_per_bucket(&self) -> usize {
        self.growing.plan.layout.slots()
    }

    /// Bits of a fingerprint, of which [`generation`](Self::generation) many choose the bucket.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.fingerprint_bits(), 19);
    /// ```
    pub fn fingerprint_bits(&self) -> u32 {
        self.growing.plan.layout.fingerprint_bits()
    }

    /// The share of slots (while growing: of the larger table) that the keys take, 0 to 1, with the exactness of [`len`](Self::len).
    ///
    /// # Progress
    ///
    /// Wait-free, with the exactness of [`len`](Self::len).
    ///
    /// # Complexity
    ///
    /// That of [`len`](Self::len).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.load_factor(), 0.0);
    /// ```
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / (self.buckets() as f64 * self.slots_per_bucket() as f64)
    }

    /// All memory of the filter in bytes: the table, while growing both tables, those that were left as far as they have not been given back, all counters, and the struct itself.
    ///
    /// # Progress and complexity
    ///
    /// Wait-free.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert!(filter.memory_bytes() < 64 * 1024);
    /// ```
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.growing.memory_bytes()
    }

    /// The share of absent keys for which [`contains`](Self::contains) is expected to say `true` with what is in now, if the keys in it are distinct.
    ///
    /// # Progress
    ///
    /// Wait-free, with the exactness of [`len`](Self::len).
    ///
    /// # Complexity
    ///
    /// That of [`len`](Self::len).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// (0..1_000).for_each(|key| filter.insert(&key).unwrap());
    /// assert!(filter.false_positive_rate() < 0.001);
    /// ```
    pub fn false_positive_rate(&self) -> f64 {
        sizing::false_positive_rate(self.len(), self.growing.plan.base, self.growing.plan.layout)
    }

    /// The hasher of keys.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.hasher(), &koel::Xxh3::new());
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
    /// let filter = koel::GrowableCuckooFilter::<u64>::builder().seed(7).build()?;
    /// assert_eq!(filter.seed(), 7);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn seed(&self) -> u64 {
        self.growing.geometry().seed()
    }

    /// Takes all keys out and forgets the statistics. The table keeps its size.
    ///
    /// # Progress
    ///
    /// Exclusive: no other thread has a reference.
    ///
    /// # Complexity
    ///
    /// Writes the whole table.
    ///
    /// ```
    /// let mut filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1).unwrap();
    /// filter.clear();
    /// assert!(filter.is_empty() && !filter.contains(&1));
    /// ```
    pub fn clear(&mut self) {
        self.growing.clear();
    }

    /// What the filter holds and has been through, to be looked at or printed.
    ///
    /// # Progress
    ///
    /// Wait-free. Each number is of a moment of its own while other threads work.
    ///
    /// # Complexity
    ///
    /// Reads the whole table.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&1).unwrap();
    /// assert_eq!(filter.stats().keys, 1);
    /// ```
    pub fn stats(&self) -> Stats {
        let slots = self.growing.slots();
        Stats::new(self.growing.plan.layout, slots, &self.growing.common.counters, self.growing.words())
    }

    /// All words of the table, or of both. For this project's own tests.
    #[doc(hidden)]
    pub fn words(&self) -> Vec<u64> {
        self.growing.words().collect()
    }
}

impl<T: ?Sized, S> fmt::Debug for GrowableCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowableCuckooFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("max_capacity", &self.max_capacity())
            .field("generation", &self.generation())
            .field("is_draining", &self.is_draining())
            .field("buckets", &self.buckets())
            .field("slots_per_bucket", &self.slots_per_bucket())
            .field("fingerprint_bits", &self.fingerprint_bits())
            .finish_non_exhaustive()
    }
}
