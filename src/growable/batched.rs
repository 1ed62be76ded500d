//! The batched operations of a [`GrowableCuckooFilter`]; [`crate::growth`] does the work.

use alloc::vec::Vec;
use core::{
    borrow::Borrow,
    hash::{BuildHasher, Hash},
};

use crate::{GrowableCuckooFilter, InsertHashesError, batch};

/// Hashes that are looked up in the tables of one moment: few enough to be looked up again if the filter has grown meanwhile.
const CHUNK: usize = 64 * batch::GROUP;

/// # Operations on many keys at once
///
/// Equal to the single operations on each key in order, and faster, as in [`CuckooFilter`](crate::CuckooFilter).
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
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
}

impl<T: ?Sized, S: BuildHasher> GrowableCuckooFilter<T, S> {
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
