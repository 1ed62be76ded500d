//! [`BloomFilter`].

use core::{
    borrow::Borrow,
    hash::{BuildHasher, Hash},
};

use super::{bits::Bits, methods::filter};
use crate::{
    InsertError, MergeError, StableBuildHasher,
    batch::{Backend, check_lengths},
    snapshot::hasher::Id,
};

filter! {
    /// A concurrent Bloom filter: a set that answers "surely absent" or "maybe present". Keys are only ever added.
    ///
    /// In the standard form each key sets *k* bits anywhere, and the rate is the textbook's. In the [`blocked`](super::BloomFilterBuilder::blocked) form all of them lie in one cache
    /// line: look-ups are several times as fast, for 5% more memory at a rate of 1%, 9% at 0.1%, 19% at 0.01%.
    ///
    /// It takes more keys than its capacity, at a rate that rises: at twice the capacity from 1% to 16%. [`ScalableBloomFilter`](super::ScalableBloomFilter) keeps the rate.
    ///
    /// # Consistency and progress
    ///
    /// All operations work through `&self` from any number of threads. Nothing waits or begins again: look-ups are wait-free, and so are inserts where the processor sets a bit of shared
    /// memory with one instruction, as x86-64 does, and 64-bit Arm from version 8.1 on (elsewhere it tries until no other thread changes the same word in between: lock-free). From the return of [`insert`](Self::insert) on,
    /// [`contains`](Self::contains) of that key is `true` in every thread that learns of the insert. That a key is found makes nothing else visible that its inserter did.
    ///
    /// ```
    /// use koel::bloom::BloomFilter;
    ///
    /// let filter = BloomFilter::<str>::builder().capacity(1_000).false_positive_rate(0.01).blocked(true).build()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| filter.insert("pine"));
    ///     scope.spawn(|| filter.insert("oak"));
    /// });
    /// assert!(filter.contains("pine") && filter.contains("oak"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    BloomFilter, Bits, BloomFilterBuilder
}

impl Bits {
    pub(super) fn seed(&self) -> u64 {
        self.shape.seed
    }

    pub(super) fn estimated_len(&self) -> usize {
        self.shape.keys_of_fill(self.fill_ratio())
    }
}

/// # Inserts
impl<T: ?Sized, S> BloomFilter<T, S> {
    /// Puts a key in: `true` if it was surely not in when the call began. Of several threads that put the same key in at once, each may get `true`:
    /// [`insert_if_absent`](crate::CuckooFilter::insert_if_absent) of a cuckoo filter has one winner.
    ///
    /// # Progress
    ///
    /// Wait-free on most processors, see *Consistency and progress* of the type.
    ///
    /// # Complexity
    ///
    /// Constant: as many words as the key has probes, which are written to unless the key is found already (in the blocked form only those that lack a bit).
    ///
    /// ```
    /// let filter = koel::bloom::BloomFilter::<u64>::with_capacity(100);
    /// assert!(filter.insert(&7));
    /// assert!(!filter.insert(&7));
    /// ```
    #[inline]
    pub fn insert<Q: Hash + ?Sized>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        S: BuildHasher,
    {
        self.insert_hash(self.hash_of(key))
    }

    /// [`insert`](Self::insert) for a hash.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`insert`](Self::insert).
    ///
    /// ```
    /// let filter = koel::bloom::BloomFilter::<u64>::with_capacity(100);
    /// assert!(filter.insert_hash(7));
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.raw.insert(hash) != 0
    }

    /// [`insert_hash`](Self::insert_hash) for many hashes. Their words are asked for before the first is needed, and computed by vectors of hashes.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`insert`](Self::insert), and linear in the hashes. Never allocates.
    ///
    /// ```
    /// let filter = koel::bloom::BloomFilter::<u64>::with_capacity(100);
    /// filter.insert_hashes(&[1, 2, 3]);
    /// assert!(filter.contains_hash(2));
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) {
        self.raw.insert_batch(hashes);
    }

    pub(super) fn try_insert(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_hash(hash);
        Ok(())
    }

    /// [`contains_hashes`](Self::contains_hashes) on a given backend, which has to be available. For this project's own tests.
    #[doc(hidden)]
    pub fn contains_hashes_with(&self, backend: Backend, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        self.raw.contains_batch_with(backend, hashes, found);
    }
}

/// # Bits
impl<T: ?Sized, S> BloomFilter<T, S> {
    /// Whether all bits of a key lie in one cache line.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// assert!(!koel::bloom::BloomFilter::<u64>::with_capacity(100).is_blocked());
    /// ```
    pub fn is_blocked(&self) -> bool {
        self.raw.shape.blocked
    }

    /// Bits of the filter, *m*.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::bloom::BloomFilter::<u64>::builder().capacity(1_000_000).false_positive_rate(0.01).build()?;
    /// assert!(filter.bits().abs_diff(9_585_059) < 10_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn bits(&self) -> u64 {
        self.raw.shape.cells()
    }

    /// Bits of a key, *k*: in the blocked form 8 or 16.
    ///
    /// # Progress and complexity
    ///
    /// A constant of the filter.
    ///
    /// ```
    /// let filter = koel::bloom::BloomFilter::<u64>::builder().capacity(100).false_positive_rate(0.01).build()?;
    /// assert_eq!(filter.probes(), 7);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn probes(&self) -> u32 {
        self.raw.shape.probes
    }

    /// The share of bits that are set, 0 to 1: about a half when the standard form holds its capacity.
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
    /// assert_eq!(koel::bloom::BloomFilter::<u64>::with_capacity(100).fill_ratio(), 0.0);
    /// ```
    pub fn fill_ratio(&self) -> f64 {
        self.raw.fill_ratio()
    }
}

/// # Sets
impl<T: ?Sized, S: StableBuildHasher> BloomFilter<T, S> {
    /// Puts all keys of another filter in as well: one with as many bits and probes, of the same form, seed and hasher, such as one built with the same settings and a given seed. The
    /// result is the filter that had got the keys of both. What other threads put into the other meanwhile may come too.
    ///
    /// # Progress
    ///
    /// Wait-free.
    ///
    /// # Complexity
    ///
    /// Goes through both.
    ///
    /// # Errors
    ///
    /// [`MergeError::Mismatch`] names what differs. Nothing has changed then.
    ///
    /// ```
    /// use koel::{MergeError, bloom::BloomFilter};
    ///
    /// let build = |seed| BloomFilter::<str>::builder().capacity(100).seed(seed).build().unwrap();
    /// let (trees, birds) = (build(1), build(1));
    /// trees.insert("oak");
    /// birds.insert("koel");
    /// trees.union_with(&birds)?;
    /// assert!(trees.contains("oak") && trees.contains("koel"));
    /// assert_eq!(trees.union_with(&build(2)), Err(MergeError::Mismatch { field: "seed", here: 1, there: 2 }));
    /// # Ok::<(), MergeError>(())
    /// ```
    pub fn union_with(&self, other: &Self) -> Result<(), MergeError> {
        self.check_alike(other)?;
        self.raw.union(&other.raw);
        Ok(())
    }

    /// Leaves what is in another filter as well, one as for [`union_with`](Self::union_with): all keys that are in both are found, and some that are in one, at a rate that is higher
    /// than that of a filter which had got only the keys of both.
    ///
    /// # Progress and complexity
    ///
    /// Exclusive; goes through both.
    ///
    /// # Errors
    ///
    /// Those of [`union_with`](Self::union_with).
    ///
    /// ```
    /// use koel::bloom::BloomFilter;
    ///
    /// let build = || BloomFilter::<str>::builder().capacity(100).seed(1).build().unwrap();
    /// let (mut trees, tall) = (build(), build());
    /// trees.insert("oak");
    /// trees.insert("dwarf pine");
    /// tall.insert("oak");
    /// trees.intersect_with(&tall)?;
    /// assert!(trees.contains("oak") && !trees.contains("dwarf pine"));
    /// # Ok::<(), koel::MergeError>(())
    /// ```
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_alike(other)?;
        self.raw.intersect(&other.raw);
        Ok(())
    }

    fn check_alike(&self, other: &Self) -> Result<(), MergeError> {
        let (here, there) = (Id::of(self.hasher()), Id::of(other.hasher()));
        let fields = [
            ("form", u64::from(self.is_blocked()), u64::from(other.is_blocked())),
            ("bits", self.bits(), other.bits()),
            ("probes", self.probes().into(), other.probes().into()),
            ("seed", self.seed(), other.seed()),
            ("hash algorithm", here.algorithm, there.algorithm),
            ("hash seed", here.seed, there.seed),
            ("hash check", here.check, there.check),
        ];
        match fields.into_iter().find(|(_, here, there)| here != there) {
            None => Ok(()),
            Some((field, here, there)) => Err(MergeError::Mismatch { field, here, there }),
        }
    }
}
