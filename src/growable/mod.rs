//! [`GrowableCuckooFilter`]: the public face of [`crate::growth`].

use core::{
    borrow::Borrow,
    hash::{BuildHasher, Hash},
    marker::PhantomData,
};

use crate::{
    DecodeError, GrowableCuckooFilterBuilder, InsertError, StableBuildHasher, Xxh3,
    growth::{Growing, GrowthPlan},
    snapshot::{
        OtherSize, Source,
        hasher::Id,
        header::{Header, Kind},
        methods::snapshot_methods,
    },
    table::Table,
};

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

    /// Home base bucket and fingerprint of a hash: what the filter can tell apart. For this project's own tests.
    #[doc(hidden)]
    pub fn class_of_hash(&self, hash: u64) -> (usize, u32) {
        let class = self.growing.class(hash);
        (class.home, class.fingerprint)
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

// Here, so that the documentation has them after the operations on keys.
mod batched;
mod state;
