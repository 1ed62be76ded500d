//! The batched operations of [`CuckooFilter`]; [`crate::batch`] does the work.

use alloc::vec::Vec;
use core::{
    borrow::Borrow,
    convert::Infallible,
    hash::{BuildHasher, Hash},
};

use crate::{
    CuckooFilter, InsertHashesError,
    batch::{self, Backend, check_lengths},
    kick, word,
};

/// # Operations on many keys at once
///
/// Equal to the single operations on each key in order, and faster: vectors compare several words at a time (NEON on 64-bit Arm; AVX2 and AVX-512 where
/// the processor has them, which only the feature `std` can detect), and in tables larger than the cache the words of many keys are asked for before the first is needed.
/// (Without such vectors, batches of look-ups in tables of up to 4 MiB are a little slower than single ones.)
impl<T: ?Sized, S> CuckooFilter<T, S> {
    /// [`contains_hash`](Self::contains_hash) for many hashes: `found[i]` tells of `hashes[i]`.
    ///
    /// # Progress
    ///
    /// Lock-free, key by key, like the single look-up. Each answer is of a moment of its own during the call.
    ///
    /// # Complexity
    ///
    /// Linear in the hashes; one or two cache lines of the table each.
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let mut found = [false; 3];
    /// filter.contains_hashes(&[1, 2, 3], &mut found);
    /// assert_eq!(found, [false, true, false]);
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        batch::contains(&self.raw.cells(), self.raw.cached, hashes, found);
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
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let mut selected = Vec::new();
    /// filter.select_hashes(&[1, 2, 3, 2], &mut selected);
    /// assert_eq!(selected, [1, 3]);
    /// ```
    pub fn select_hashes(&self, hashes: &[u64], selected: &mut Vec<u32>) {
        let cells = self.raw.cells();
        batch::select(hashes, selected, |hashes, found| batch::contains(&cells, self.raw.cached, hashes, found));
    }

    /// [`insert_hash`](Self::insert_hash) for many hashes, up to the first that is refused.
    ///
    /// # Progress
    ///
    /// That of [`insert`](Self::insert), key by key.
    ///
    /// # Complexity
    ///
    /// Linear in the hashes. Never allocates.
    ///
    /// # Errors
    ///
    /// [`InsertHashesError`] says how many went in and why the next did not. Those that went in stay.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hashes(&[1, 2, 3])?;
    /// assert_eq!(filter.len(), 3);
    /// # Ok::<(), koel::InsertHashesError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> Result<(), InsertHashesError> {
        let raw = &self.raw;
        let cells = raw.cells();
        let full = |home| cells.layout.is_full(home);
        let look_ahead = |class| {
            // In cache, finding out what to ask for would cost more than it saves.
            if !raw.cached {
                kick::look_ahead(&cells, class);
            }
        };
        batch::staged(&cells, hashes, full, look_ahead, |_, class| raw.insert(class))
            .map_err(|(inserted, error)| InsertHashesError { inserted, error })
    }

    /// [`remove_hash`](Self::remove_hash) for many hashes: `removed[i]` tells of `hashes[i]`. A hash that stands there twice is removed twice.
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
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hash(2).unwrap();
    /// let mut removed = [false; 2];
    /// filter.remove_hashes(&[2, 2], &mut removed);
    /// assert_eq!(removed, [true, false]);
    /// ```
    pub fn remove_hashes(&self, hashes: &[u64], removed: &mut [bool]) {
        check_lengths(hashes.len(), removed.len());
        let raw = &self.raw;
        let remove = |index: usize, class| {
            removed[index] = raw.remove(class);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = batch::staged(&raw.cells(), hashes, |home| word::displaced_count(home) != 0, |_| {}, remove)
            .map_err(|(_, never): (usize, Infallible)| never);
    }

    /// [`contains_hashes`](Self::contains_hashes) on a given backend, which has to be available. For this project's own tests.
    #[doc(hidden)]
    pub fn contains_hashes_with(&self, backend: Backend, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        batch::contains_with(backend, &self.raw.cells(), self.raw.cached, hashes, found);
    }

    /// Whether the table counts as one that fits the cache, whatever its size. For this project's own tests and measurements.
    #[doc(hidden)]
    pub fn count_as_cached(&mut self, cached: bool) {
        self.raw.cached = cached;
    }
}

impl<T: ?Sized, S: BuildHasher> CuckooFilter<T, S> {
    /// [`contains`](Self::contains) for many keys: `found[i]` tells of `keys[i]`.
    ///
    /// # Progress
    ///
    /// That of [`contains_hashes`](Self::contains_hashes), unless the keys' own `Hash` is worse.
    ///
    /// # Complexity
    ///
    /// Linear in the keys.
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<str>::with_capacity(100);
    /// filter.insert("oak").unwrap();
    /// let mut found = [false; 2];
    /// filter.contains_many(&["elm", "oak"], &mut found);
    /// assert_eq!(found, [false, true]);
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
                batch::contains(&self.raw.cells(), self.raw.cached, hashes, found);
            },
        );
    }
}
