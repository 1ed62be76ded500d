//! [`GrowableCuckooFilter`]: the public face of [`crate::growth`]. Long only because each method is documented in full.

use alloc::vec::Vec;
use core::{
    borrow::Borrow,
    fmt,
    hash::{BuildHasher, Hash},
    marker::PhantomData,
};

use crate::{
    DecodeError, GrowableCuckooFilterBuilder, InsertError, InsertHashesError, StableBuildHasher, Stats, Xxh3, batch,
    growth::{Growing, GrowthPlan},
    sizing,
    snapshot::{
        OtherSize, Source,
        hasher::Id,
        header::{Header, Kind},
        methods::snapshot_methods,
    },
    table::Table,
};

/// Hashes that are looked up in the tables of one moment: few enough to be looked up again if the filter has grown meanwhile.
const CHUNK: usize = 64 * batch::GROUP;

/// A [`CuckooFilter`](crate::CuckooFilter) that doubles when it is full: for caches that do not know their final size.
///
/// It is one table, in which each key has two candidate buckets at any size, not a chain of filters: look-ups cost the same before and after growth,
/// and removals stay exact. The keys are not needed to grow. All operations keep their guarantees while it grows, in all threads.
///
/// # Growth
///
/// When no room can be made for a key, and at least half of all slots are taken, a table of twice the size is added, and the fingerprints move over
/// little by little: every insert meanwhile moves some ([`is_draining`](Self::is_draining)). Whoever would rather have that done by a thread in the background
/// calls [`finish_draining`](Self::finish_draining) or [`drain`](Self::drain) there. Until it is done, memory is that of both tables.
///
/// Every doubling spends one bit of the fingerprints, so the false-positive rate doubles with it. The builder is told the largest
/// capacity and the rate that has to hold there, and picks the layout: before that size the rate is lower.
///
/// A single look-up has to find out first which table there is, and costs up to twice one in a [`CuckooFilter`](crate::CuckooFilter); batches cost the same
/// (`docs/benchmarks.md`).
///
/// # Progress
///
/// That of [`CuckooFilter`](crate::CuckooFilter), with two additions: an insert that needs a larger table waits while another thread
/// allocates it, and an insert during a growth waits if threads that were stopped in the midst of draining hold up both buckets of its key. Such a thread also keeps the older
/// table from being retired, and so the filter from growing again: when the larger table is full, inserts wait for it. Look-ups never wait. While a snapshot
/// copies the table, whatever drains or grows waits too, so every insert during a growth does.
///
/// # Memory
///
/// The table starts with at least 4,096 buckets (32 KiB). On Linux the memory of a table that was left is given back by the inserts that follow, bit by bit, and by [`drain`](Self::drain) and
/// [`finish_draining`](Self::finish_draining) all at once, as soon as no thread can still be changing it; its addresses, less than those in use, stay until the filter is dropped, shrunk or
/// cleared. On other systems the memory does too, and so does a first table of less than 256 KiB. [`memory_bytes`](Self::memory_bytes) counts what has not been given back.
///
/// # Examples
///
/// ```
/// use koel::GrowableCuckooFilter;
///
/// let filter = GrowableCuckooFilter::<str>::builder().initial_capacity(1_000).max_capacity(1_000_000).build()?;
/// for key in 0..100_000 {
///     filter.insert(&format!("key {key}")).unwrap();
/// }
/// assert_eq!(filter.len(), 100_000);
/// assert!(filter.contains("key 0") && filter.generation() > 0);
/// # Ok::<(), koel::BuildError>(())
/// ```
pub struct GrowableCuckooFilter<T: ?Sized, S = Xxh3> {
    growing: Growing,
    /// The largest number of keys that was asked for, and the rate that has to hold with it.
    asked: usize,
    rate: f64,
    hasher: S,
    keys: PhantomData<fn(&T)>,
}

impl<T: ?Sized> GrowableCuckooFilter<T> {
    /// A filter that starts with room for `n` distinct keys (and at least with 4,096 buckets) and doubles up to seven times, to about 128 times the room, with a
    /// false-positive rate of at most 0.001 at its [`max_capacity`](Self::max_capacity), a random seed and the default hasher. Fewer times above 30 million keys, where
    /// a table has no more buckets.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`build`](GrowableCuckooFilterBuilder::build).
    ///
    /// # Panics
    ///
    /// If the capacity overflows or cannot be allocated, like `Vec::with_capacity`. [`builder`](Self::builder) returns an error instead.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(1_000);
    /// (0..100_000).for_each(|key| filter.insert(&key).unwrap());
    /// ```
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        match Self::builder().initial_capacity(n).build() {
            Ok(filter) => filter,
            Err(error) => panic!("{error}"),
        }
    }

    /// Settings for a filter: initial and largest capacity, rate, seed, hasher, huge pages.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::builder().max_capacity(1_000_000).false_positive_rate(0.01).build()?;
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn builder() -> GrowableCuckooFilterBuilder<T> {
        GrowableCuckooFilterBuilder::new()
    }
}

impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    pub(crate) fn from_parts(growing: Growing, asked: usize, rate: f64, hasher: S) -> Self {
        Self { growing, asked, rate, hasher, keys: PhantomData }
    }
}

/// # Operations on keys
///
/// As those of [`CuckooFilter`](crate::CuckooFilter), where their guarantees are described.
impl<T: ?Sized, S: BuildHasher> GrowableCuckooFilter<T, S> {
    /// Puts a key in. The filter is a multiset: a key that was inserted twice needs removing twice.
    ///
    /// # Progress
    ///
    /// Lock-free as long as one of the key's two buckets has a free slot and the filter is not growing. Beyond that see the
    /// [type](Self#progress).
    ///
    /// # Complexity
    ///
    /// Constant, and while the filter is growing the fingerprints of some 34 buckets more are moved, and of one for each bucket that a relocation uses. An insert that starts a growth allocates the larger table.
    ///
    /// # Errors
    ///
    /// [`InsertError::Full`] only at the largest size (or if keys of nearly equal hashes fill one place of a table that is less than half full: growth
    /// would not help), [`InsertError::TooManyCopies`] if both buckets are filled by this class (copies of one key never make the filter grow), and
    /// [`InsertError::Alloc`] if a larger table is needed and cannot be allocated. After an error every key is found as before.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&7).unwrap();
    /// ```
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, key: &Q) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
    {
        self.insert_hash(self.hash_of(key))
    }

    /// Puts a key in unless a key of its class is in already: `true` if it went in. Of any number of threads that call this at once
    /// for one key, exactly one gets `true`, whether the filter grows meanwhile or not.
    ///
    /// # Progress
    ///
    /// Waits for other calls of itself, and for relocations, in the same one of up to 1,024 stripes; otherwise that of [`insert`](Self::insert).
    ///
    /// # Complexity
    ///
    /// That of [`contains`](Self::contains) and [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.insert_if_absent(&7), Ok(true));
    /// assert_eq!(filter.insert_if_absent(&7), Ok(false));
    /// ```
    #[inline]
    pub fn insert_if_absent<Q: Hash + ?Sized>(&self, key: &Q) -> Result<bool, InsertError>
    where
        T: Borrow<Q>,
    {
        self.insert_if_absent_hash(self.hash_of(key))
    }

    /// Whether the key may be in: `false` is certain, `true` is wrong for about [`false_positive_rate`](Self::false_positive_rate) of absent keys.
    ///
    /// # Progress
    ///
    /// Lock-free: again only if another thread began or ended a relocation, or removed a key, in the same stripe, or the filter grew, in between.
    ///
    /// # Complexity
    ///
    /// Constant: one or two cache lines, while the filter is growing up to four.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&7).unwrap();
    /// assert!(filter.contains(&7));
    /// ```
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.contains_hash(self.hash_of(key))
    }

    /// Takes a key out: `true` if a copy of its class was taken.
    ///
    /// # Progress
    ///
    /// Lock-free, except that it may wait while a snapshot copies the table, like [`CuckooFilter::remove`](crate::CuckooFilter::remove).
    ///
    /// # Complexity
    ///
    /// Constant.
    ///
    /// # Correctness
    ///
    /// Only remove what is in, see [`CuckooFilter::remove`](crate::CuckooFilter::remove). Removals are exact before, during and after growth.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&7).unwrap();
    /// assert!(filter.remove(&7));
    /// assert!(!filter.contains(&7));
    /// ```
    #[inline]
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.remove_hash(self.hash_of(key))
    }

    /// How many keys of this key's class are in.
    ///
    /// # Progress
    ///
    /// Lock-free. A copy that is just being moved by another thread may be counted twice.
    ///
    /// # Complexity
    ///
    /// Constant. The most that can be counted is twice the slots of a bucket, and while the filter is growing twice as many.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&7).unwrap();
    /// filter.insert(&7).unwrap();
    /// assert_eq!(filter.count(&7), 2);
    /// ```
    #[inline]
    pub fn count<Q: Hash + ?Sized>(&self, key: &Q) -> usize
    where
        T: Borrow<Q>,
    {
        self.count_hash(self.hash_of(key))
    }

    /// The hash of a key, for the methods that take one: hash once, use often.
    ///
    /// # Progress and complexity
    ///
    /// That of hashing the key.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(filter.hash_of(&7)).unwrap();
    /// assert!(filter.contains(&7));
    /// ```
    #[inline]
    pub fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
    {
        self.hasher.hash_one(key)
    }

    /// [`contains`](Self::contains) for many keys: `found[i]` tells of `keys[i]`.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`contains_hashes`](Self::contains_hashes).
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert(&7).unwrap();
    /// let mut found = [false; 2];
    /// filter.contains_many(&[7, 8], &mut found);
    /// assert_eq!(found, [true, false]);
    /// ```
    pub fn contains_many<K: Borrow<T>>(&self, keys: &[K], found: &mut [bool])
    where
        T: Hash,
    {
        batch::contains_many(
            keys,
            found,
            |key| self.hash_of(key.borrow()),
            |hashes, found| {
                self.growing.contains_hashes(hashes, found);
            },
        );
    }
}

/// # Operations on hashes
///
/// For callers who have a hash already. Every hash is remixed with the seed of the filter. Each method is its twin on keys in progress,
/// complexity, errors and correctness. Keys with equal 64-bit hashes are one key.
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// [`insert`](Self::insert) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.insert_hash(1), Ok(()));
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.growing.insert(self.growing.class(hash))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.insert_if_absent_hash(1), Ok(true));
    /// ```
    #[inline]
    pub fn insert_if_absent_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.growing.insert_if_absent(self.growing.class(hash))
    }

    /// [`contains`](Self::contains) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`contains`](Self::contains).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert!(!filter.contains_hash(1));
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.growing.contains(self.growing.class(hash))
    }

    /// [`remove`](Self::remove) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`remove`](Self::remove).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(1).unwrap();
    /// assert!(filter.remove_hash(1));
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.growing.remove(self.growing.class(hash))
    }

    /// [`count`](Self::count) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`count`](Self::count).
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(1).unwrap();
    /// assert_eq!(filter.count_hash(1), 1);
    /// ```
    #[inline]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.growing.count(self.growing.class(hash))
    }

    /// [`contains_hash`](Self::contains_hash) for many hashes: `found[i]` tells of `hashes[i]`.
    ///
    /// # Progress
    ///
    /// Lock-free, key by key. Each answer is of a moment of its own during the call.
    ///
    /// # Complexity
    ///
    /// Linear in the hashes.
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let mut found = [false; 3];
    /// filter.contains_hashes(&[1, 2, 3], &mut found);
    /// assert_eq!(found, [false, true, false]);
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        batch::check_lengths(hashes.len(), found.len());
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
            self.growing.contains_hashes(hashes, found);
        }
    }

    /// Puts the indices of those hashes that may be in at the end of `selected`, in order: what a join or a scan goes on with.
    ///
    /// # Progress
    ///
    /// That of [`contains_hashes`](Self::contains_hashes).
    ///
    /// # Complexity
    ///
    /// That of [`contains_hashes`](Self::contains_hashes). Allocates only if `selected` has to grow.
    ///
    /// # Panics
    ///
    /// If an index does not fit 32 bits: more than 2<sup>32</sup> hashes.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let mut selected = Vec::new();
    /// filter.select_hashes(&[1, 2, 3, 2], &mut selected);
    /// assert_eq!(selected, [1, 3]);
    /// ```
    pub fn select_hashes(&self, hashes: &[u64], selected: &mut Vec<u32>) {
        batch::select(hashes, selected, |hashes, found| self.growing.contains_hashes(hashes, found));
    }

    /// [`insert_hash`](Self::insert_hash) for many hashes, up to the first that is refused.
    ///
    /// # Progress
    ///
    /// That of [`insert`](Self::insert), key by key.
    ///
    /// # Complexity
    ///
    /// Linear in the hashes.
    ///
    /// # Errors
    ///
    /// [`InsertHashesError`] says how many went in and why the next did not. Those that went in stay.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hashes(&[1, 2, 3])?;
    /// assert_eq!(filter.len(), 3);
    /// # Ok::<(), koel::InsertHashesError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> Result<(), InsertHashesError> {
        let mut inserted = 0;
        for hashes in hashes.chunks(CHUNK) {
            self.growing
                .insert_hashes(hashes)
                .map_err(|error| InsertHashesError { inserted: inserted + error.inserted, ..error })?;
            inserted += hashes.len();
        }
        Ok(())
    }

    /// [`remove_hash`](Self::remove_hash) for many hashes: `removed[i]` tells of `hashes[i]`.
    ///
    /// # Progress
    ///
    /// That of [`remove`](Self::remove), key by key.
    ///
    /// # Complexity
    ///
    /// Linear in the hashes.
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
    /// let filter = koel::GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let mut removed = [false; 2];
    /// filter.remove_hashes(&[2, 2], &mut removed);
    /// assert_eq!(removed, [true, false]);
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64], removed: &mut [bool]) {
        batch::check_lengths(hashes.len(), removed.len());
        for (hashes, removed) in hashes.chunks(CHUNK).zip(removed.chunks_mut(CHUNK)) {
            self.growing.remove_hashes(hashes, removed);
        }
    }

    /// Home base bucket and fingerprint of a hash: what the filter can tell apart. For this project's own tests.
    #[doc(hidden)]
    pub fn class_of_hash(&self, hash: u64) -> (usize, u32) {
        let class = self.growing.class(hash);
        (class.home, class.fingerprint)
    }
}

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

/// What a snapshot of a filter is taken of.
struct Taken<'a, T: ?Sized, S>(&'a GrowableCuckooFilter<T, S>);

impl<T: ?Sized, S: StableBuildHasher> Source for Taken<'_, T, S> {
    type Head = Header;

    fn header(&self) -> Header {
        let GrowableCuckooFilter { growing, asked, rate, hasher, .. } = self.0;
        let fixed = Header::fixed(growing.plan.layout, growing.geometry(), Id::of(hasher), *asked, *rate);
        fixed.growing(growing.plan.doublings)
    }

    fn words(&self) -> usize {
        self.0.buckets()
    }

    fn copy(&self, words: &mut [[u8; 8]]) -> Result<u32, OtherSize> {
        self.0.growing.copy_words(words)
    }
}

impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    fn restored(header: Header, table: Table, hasher: S) -> Result<Self, DecodeError> {
        let plan = GrowthPlan { layout: header.layout, base: header.base, doublings: header.max_doublings };
        let growing = Growing::restored(plan, header.seed, header.doublings, table, header.keys as usize)?;
        Ok(Self::from_parts(growing, header.capacity, header.rate, hasher))
    }
}

snapshot_methods!(cuckoo, GrowableCuckooFilter, "GrowableCuckooFilter", Kind::Growing, Header, Taken);

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
