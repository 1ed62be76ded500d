//! [`CuckooFilter`]: the public face. Turns keys into hashes and hashes into classes; [`crate::raw`] does the work.

use core::{
    borrow::Borrow,
    hash::{BuildHasher, Hash},
    marker::PhantomData,
};

use crate::{
    CuckooFilterBuilder, DecodeError, InsertError, StableBuildHasher, Xxh3,
    raw::RawFilter,
    snapshot::{
        OtherSize, Source,
        hasher::Id,
        header::{Header, Kind},
        methods::snapshot_methods,
    },
    table::Table,
};

/// A concurrent cuckoo filter: a set that answers "surely absent" or "maybe present", in a few bits per key, to many threads at once.
///
/// A key is anything that hashes; as in [`HashSet`](https://doc.rust-lang.org/std/collections/struct.HashSet.html), a borrowed form
/// of `T` does. Keys are not stored, only a *fingerprint* of some bits in one of two *buckets*. Keys with the same home bucket and
/// fingerprint are of one *class*, and the filter cannot tell them apart: it is a multiset of classes.
///
/// # Consistency
///
/// All operations work through `&self` from any number of threads.
///
/// - **No false negatives.** From the return of [`insert`](Self::insert) until a matching [`remove`](Self::remove) begins,
///   [`contains`](Self::contains) of that key is `true` in every thread that learns of the insert, whatever other threads insert, remove
///   and relocate meanwhile.
/// - **False positives** at the rate asked for, when the filter holds its capacity, and at less below.
/// - **A refused insert loses nothing**: every other key is found as before, and `len` is the same.
/// - An insert synchronises with every look-up that finds the copy it placed: what the thread did before is visible there.
///
/// # Progress
///
/// Nothing here takes a lock, and a thread that is stopped anywhere holds up no other, with two exceptions:
///
/// - [`insert_if_absent`](Self::insert_if_absent) waits for other calls of itself, and for relocations, in the same one of up to 1,024 stripes.
/// - While a snapshot ([`append_to`](Self::append_to) and all that is made of it) copies the table, operations that change more than one word wait: inserts whose home
///   bucket is full, and removals of what may be displaced. The snapshot waits for those that have begun, and closes the way to new ones meanwhile. Look-ups never wait, nor do the other inserts and removals, which are most.
///
/// (On targets without 64-bit atomic instructions every access goes through the locks of `portable-atomic` instead.)
///
/// # Memory
///
/// One allocation of 64-bit words, and small ones for counters. [`memory_bytes`](Self::memory_bytes) counts everything.
///
/// # Examples
///
/// ```
/// use koel::CuckooFilter;
///
/// let filter = CuckooFilter::<str>::with_capacity(1_000);
/// std::thread::scope(|scope| {
///     scope.spawn(|| filter.insert("pine").unwrap());
///     scope.spawn(|| filter.insert("oak").unwrap());
/// });
/// assert!(filter.contains("pine") && filter.contains("oak"));
/// assert!(filter.remove("pine"));
/// assert!(!filter.contains("pine"));
/// ```
pub struct CuckooFilter<T: ?Sized, S = Xxh3> {
    pub(crate) raw: RawFilter,
    capacity: usize,
    /// The rate that was asked for, 0 if none was.
    rate: f64,
    hasher: S,
    keys: PhantomData<fn(&T)>,
}

impl<T: ?Sized> CuckooFilter<T> {
    /// A filter for `n` distinct keys with a false-positive rate of at most 0.001, a random seed and the default hasher.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`build`](CuckooFilterBuilder::build).
    ///
    /// # Panics
    ///
    /// If the capacity overflows or cannot be allocated, like `Vec::with_capacity`. [`builder`](Self::builder) returns an error instead.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(1_000);
    /// (0..1_000).for_each(|key| filter.insert(&key).unwrap());
    /// ```
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        match Self::builder().capacity(n).build() {
            Ok(filter) => filter,
            Err(error) => panic!("{error}"),
        }
    }

    /// A filter of these hashes, with a false-positive rate of at most 0.001, for files that do not change: packed as tightly as the sizing table says for a full one. The
    /// same set of hashes in any order, repeated or not, gives the same filter, and so the same [`to_bytes`](Self::to_bytes). (A hash that repeats is one key, which one
    /// removal takes out.) Keys are found by [`contains_hash`](Self::contains_hash), or by [`contains`](Self::contains) if the hashes are those of [`Xxh3`].
    /// Little room is left: inserts that follow may be refused.
    ///
    /// [`build_from_hashes`](CuckooFilterBuilder::build_from_hashes) of the builder takes rate, layout, seed and hasher.
    ///
    /// # Progress
    ///
    /// Waits for nobody, unless the allocator or the system does.
    ///
    /// # Complexity
    ///
    /// Linear in the hashes. Allocates about 16 bytes for each of them (more if they were chosen to collide) besides the filter, as long as it takes.
    ///
    /// # Errors
    ///
    /// Those of [`build`](CuckooFilterBuilder::build); and [`BuildError::HashesTooAlike`](crate::BuildError::HashesTooAlike) if hashes were chosen to collide.
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// let one = CuckooFilter::<u64>::from_hashes(&[1, 2, 3])?;
    /// let other = CuckooFilter::<u64>::from_hashes(&[3, 1, 2, 2])?;
    /// assert_eq!(one.len(), 3);
    /// assert_eq!(one.to_bytes(), other.to_bytes());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn from_hashes(hashes: &[u64]) -> Result<Self, crate::BuildError> {
        Self::builder().build_from_hashes(hashes)
    }

    /// Settings for a filter: capacity, rate, layout, seed, hasher, huge pages.
    ///
    /// # Progress and complexity
    ///
    /// Wait-free and constant: nothing is allocated yet.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::builder().capacity(1_000).false_positive_rate(1e-5).build()?;
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn builder() -> CuckooFilterBuilder<T> {
        CuckooFilterBuilder::new()
    }
}

impl<T: ?Sized, S> CuckooFilter<T, S> {
    pub(crate) fn from_parts(raw: RawFilter, capacity: usize, rate: f64, hasher: S) -> Self {
        Self { raw, capacity, rate, hasher, keys: PhantomData }
    }
}

/// # Operations on keys
impl<T: ?Sized, S: BuildHasher> CuckooFilter<T, S> {
    /// Puts a key in. The filter is a multiset: a key that was inserted twice needs removing twice.
    ///
    /// # Progress
    ///
    /// Lock-free as long as the key's home bucket has a free slot: usually one compare-and-swap. If it is full, the insert waits while a snapshot copies the table, and otherwise for
    /// no one, stalled or not. If both buckets are full, keys are relocated; each step that has to be done again was undone by another thread's step.
    /// (Two threads relocating could in principle undo each other's steps again and again; nothing of the kind was ever seen.)
    ///
    /// # Complexity
    ///
    /// Constant; if both buckets are full, which is rare below half load and common close to capacity, a search among mostly a few, at most 512 buckets. A search may be
    /// repeated if other threads change what it found, and an insert is refused only after one of 64 and one of 512. Never allocates.
    ///
    /// # Errors
    ///
    /// [`InsertError::Full`] if no room could be made, which does not happen to the first [`capacity`](Self::capacity) distinct keys (unless they were
    /// chosen to collide), and [`InsertError::TooManyCopies`] if both buckets are filled by this class. After an error every other key is found as before.
    ///
    /// # Correctness
    ///
    /// After `Ok` every look-up finds the key, in every thread that learns of the return. After an error no copy went in, and none was lost: some keys may lie in the other one of their buckets.
    ///
    /// ```
    /// use koel::{CuckooFilter, InsertError};
    ///
    /// let filter = CuckooFilter::<str>::builder().capacity(100).slots_per_bucket(4).build().unwrap();
    /// let copies = (0..).take_while(|_| filter.insert("again").is_ok()).count();
    /// assert!(copies == 8 || copies == 4);
    /// assert_eq!(filter.insert("again"), Err(InsertError::TooManyCopies));
    /// assert_eq!(filter.insert("other"), Ok(()));
    /// ```
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, key: &Q) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
    {
        self.insert_hash(self.hash_of(key))
    }

    /// Puts a key in unless a key of its class is in already: `true` if it went in. Of any number of threads that call this at once
    /// for one key, exactly one gets `true`.
    ///
    /// # Progress
    ///
    /// May wait for another `insert_if_absent` in the same one of up to 1,024 stripes of buckets, and, if a copy of the class is in, for relocations in
    /// that stripe; no user code runs meanwhile. Other operations never wait for it. Like [`insert`](Self::insert) it may wait for a snapshot, and so do those who wait for it then.
    ///
    /// # Complexity
    ///
    /// That of [`contains`](Self::contains) and [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// # Correctness
    ///
    /// `false` means that a key of the same class is in: at the false-positive rate it is another one. (Not a key that was removed before the call: a copy
    /// that a relocation is about to take back is not mistaken for one.) "Exactly one" holds
    /// against other calls of this method, as long as nobody removes the key or inserts it with `insert` meanwhile.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<str>::with_capacity(100);
    /// assert_eq!(filter.insert_if_absent("once"), Ok(true));
    /// assert_eq!(filter.insert_if_absent("once"), Ok(false));
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
    /// Lock-free: reads one or two words, again only if another thread began or ended a relocation, or removed a key, in the same stripe in between.
    ///
    /// # Complexity
    ///
    /// Constant: one or two cache lines of the table.
    ///
    /// # Correctness
    ///
    /// No false negatives: `true` for a key whose [`insert`](Self::insert) has returned, as far as this thread can know, until a matching [`remove`](Self::remove) begins, whatever other threads
    /// do meanwhile. `true` for an absent key if one of its class is in.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
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
    /// Lock-free: usually one compare-and-swap, done again only if another thread changed the same bucket. But if keys of its home bucket are displaced, and while a snapshot
    /// copies the table, it waits.
    ///
    /// # Complexity
    ///
    /// Constant.
    ///
    /// # Correctness
    ///
    /// Only remove what is in. Removing a key that was never inserted, or once more than it was inserted, takes out another key of
    /// its class if there is one (the chance is the false-positive rate), and that key is then a false negative. So it is in every
    /// filter that deletes. Two threads that race to remove a key which is in once are over-removing too, and may both get `true`
    /// if another key has the same class, or if the key is being relocated just then; `len` stays the number of copies.
    ///
    /// If the key is being relocated by another thread, one more copy of it can be seen by [`contains`](Self::contains) and [`count`](Self::count) until that thread has
    /// taken it back: a false positive for a moment.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
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

    /// How many keys of this key's class are in: at least the number of its own copies, exactly the number of copies of its class.
    ///
    /// # Progress
    ///
    /// Lock-free, like [`contains`](Self::contains). A copy that is just being relocated by another thread may be counted twice.
    ///
    /// # Complexity
    ///
    /// Constant. The most that can be counted is twice the slots of a bucket.
    ///
    /// # Correctness
    ///
    /// Never less than the copies of the key that are in, as [`contains`](Self::contains) is never `false`; more if other keys have the same class.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
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
    /// # Progress
    ///
    /// Wait-free, unless the key's own `Hash` is not.
    ///
    /// # Complexity
    ///
    /// That of hashing the key.
    ///
    /// # Correctness
    ///
    /// Equal keys have equal hashes, if `Hash` and the hasher keep their word; with [`Xxh3`] on every machine.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<str>::with_capacity(100);
    /// let hash = filter.hash_of("key");
    /// filter.insert_hash(hash).unwrap();
    /// assert!(filter.contains("key"));
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
/// For callers who have a hash already. Every hash is remixed with the seed of the filter, so sequential integers, or hashes with only
/// high bits, are fine. Each method is its twin on keys in progress, complexity, errors and correctness. Keys with equal 64-bit hashes are one key.
impl<T: ?Sized, S> CuckooFilter<T, S> {
    /// [`insert`](Self::insert) for a hash.
    ///
    /// # Progress
    ///
    /// That of [`insert`](Self::insert).
    ///
    /// # Complexity
    ///
    /// That of [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// # Correctness
    ///
    /// That of [`insert`](Self::insert).
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.insert_hash(1), Ok(()));
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.raw.insert(self.raw.class(hash))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for a hash.
    ///
    /// # Progress
    ///
    /// That of [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// # Complexity
    ///
    /// That of [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// # Errors
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// # Correctness
    ///
    /// That of [`insert_if_absent`](Self::insert_if_absent): `false` may be due to another key of the same class.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.insert_if_absent_hash(1), Ok(true));
    /// assert_eq!(filter.insert_if_absent_hash(1), Ok(false));
    /// ```
    #[inline]
    pub fn insert_if_absent_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.raw.insert_if_absent(self.raw.class(hash))
    }

    /// [`contains`](Self::contains) for a hash.
    ///
    /// # Progress
    ///
    /// That of [`contains`](Self::contains).
    ///
    /// # Complexity
    ///
    /// That of [`contains`](Self::contains).
    ///
    /// # Correctness
    ///
    /// That of [`contains`](Self::contains).
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// assert!(!filter.contains_hash(1));
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.raw.contains(self.raw.class(hash))
    }

    /// [`remove`](Self::remove) for a hash.
    ///
    /// # Progress
    ///
    /// That of [`remove`](Self::remove).
    ///
    /// # Complexity
    ///
    /// That of [`remove`](Self::remove).
    ///
    /// # Correctness
    ///
    /// That of [`remove`](Self::remove): only remove what is in.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(1).unwrap();
    /// assert!(filter.remove_hash(1));
    /// assert!(!filter.remove_hash(1));
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.raw.remove(self.raw.class(hash))
    }

    /// [`count`](Self::count) for a hash.
    ///
    /// # Progress
    ///
    /// That of [`count`](Self::count).
    ///
    /// # Complexity
    ///
    /// That of [`count`](Self::count).
    ///
    /// # Correctness
    ///
    /// That of [`count`](Self::count).
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(1).unwrap();
    /// assert_eq!(filter.count_hash(1), 1);
    /// ```
    #[inline]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.raw.count(self.raw.class(hash))
    }

    /// Home bucket and fingerprint of a hash: what the filter can tell apart. For this project's own tests.
    #[doc(hidden)]
    pub fn class_of_hash(&self, hash: u64) -> (usize, u32) {
        let class = self.raw.class(hash);
        (class.home, class.fingerprint)
    }

    /// Goes through the gate of snapshots and out again. For this project's own measurements.
    #[doc(hidden)]
    #[inline(never)]
    pub fn pass_gate(&self) {
        drop(self.raw.gate.enter());
    }

    /// All words of the table. For this project's own tests.
    #[doc(hidden)]
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.raw.cells().words()
    }
}

/// What a snapshot of a filter is taken of.
struct Taken<'a, T: ?Sized, S>(&'a CuckooFilter<T, S>);

impl<T: ?Sized, S: StableBuildHasher> Source for Taken<'_, T, S> {
    type Head = Header;

    fn header(&self) -> Header {
        let CuckooFilter { raw, capacity, rate, hasher, .. } = self.0;
        Header::fixed(*raw.cells().layout, raw.cells().geometry, Id::of(hasher), *capacity, *rate)
    }

    fn words(&self) -> usize {
        self.0.buckets()
    }

    fn copy(&self, words: &mut [[u8; 8]]) -> Result<u32, OtherSize> {
        self.0.raw.copy_words(words);
        Ok(0)
    }
}

impl<T: ?Sized, S> CuckooFilter<T, S> {
    fn restored(header: Header, table: Table, hasher: S) -> Result<Self, DecodeError> {
        let raw = RawFilter::restored(table, header.layout, header.geometry(), header.keys as usize)?;
        Ok(Self::from_parts(raw, header.capacity, header.rate, hasher))
    }
}

snapshot_methods!(cuckoo, CuckooFilter, "CuckooFilter", Kind::Fixed, Header, Taken);

// Here, so that the documentation has them after the operations on keys.
mod batched;
mod state;
