//! What a filter holds, class by class: for tools, and for putting it into another filter.

use alloc::vec::Vec;
use core::{error::Error, fmt};

use crate::{
    CuckooFilter, InsertError, StableBuildHasher,
    hash::{Class, Generation, Geometry, Only},
    snapshot::hasher::Id,
    word::Layout,
};

/// Why [`merge_from`](CuckooFilter::merge_from) did not merge all, or [`union_with`](crate::bloom::BloomFilter::union_with) nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// The filters differ in something that decides where keys are. Nothing was merged.
    Mismatch {
        /// What differs: `slots`, `buckets`, `seed`, `hash algorithm`, `hash seed` or `hash check`; of Bloom filters `form`, `bits` or `probes`.
        field: &'static str,
        /// What the filter has that was to take the keys.
        here: u64,
        /// What the other has.
        there: u64,
    },
    /// A key was refused. Those that went in before stay; the other filter is as it was.
    Insert {
        /// How many keys went in.
        merged: usize,
        /// Why the next did not.
        error: InsertError,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { field, here, there } => {
                write!(f, "the filters differ in {field}: {here:#x} here, {there:#x} there")
            }
            Self::Insert { merged, error } => write!(f, "after {merged} keys: {error}"),
        }
    }
}

impl Error for MergeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Mismatch { .. } => None,
            Self::Insert { error, .. } => Some(error),
        }
    }
}

/// The classes of all copies in these words, bucket by bucket.
pub(crate) fn classes<G: Generation>(
    words: impl Iterator<Item = u64>,
    layout: Layout,
    geometry: Geometry,
    generation: G,
) -> impl Iterator<Item = Class> {
    words.enumerate().flat_map(move |(bucket, word)| {
        layout.taken(word).map(move |slot| {
            let (base, fingerprint) = (generation.base(bucket), slot.fingerprint());
            let home = if slot.is_displaced() { geometry.other(base, fingerprint) } else { base };
            Class { home, fingerprint }
        })
    })
}

/// # Contents
impl<T: ?Sized, S> CuckooFilter<T, S> {
    /// All words at one time, as a snapshot has them.
    fn words_at_once(&self) -> impl Iterator<Item = u64> + use<T, S> {
        // Written to beforehand, as in a snapshot.
        let mut words = Vec::new();
        words.resize(self.buckets(), [0; 8]);
        self.raw.copy_words(&mut words);
        words.into_iter().map(u64::from_le_bytes)
    }

    /// The classes of all keys that are in, a class as often as it has keys: home bucket and fingerprint. In the order of the buckets in which they are, which is no order
    /// to rely on. For tools that count, compare or draw what is in a filter; keys cannot be had back.
    ///
    /// # Progress
    ///
    /// That of [`append_to`](Self::append_to), during the call: it is a snapshot that is gone through.
    ///
    /// # Complexity
    ///
    /// Copies the table.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::with_capacity(100);
    /// filter.insert_hashes(&[7, 7, 8]).unwrap();
    /// assert_eq!(filter.iter_classes().count(), 3);
    /// assert!(filter.iter_classes().all(|(home, _)| home < filter.buckets()));
    /// ```
    pub fn iter_classes(&self) -> impl Iterator<Item = (usize, u32)> + use<T, S> {
        let cells = self.raw.cells();
        classes(self.words_at_once(), *cells.layout, *cells.geometry, Only).map(|class| (class.home, class.fingerprint))
    }
}

/// # Merging
impl<T: ?Sized, S: StableBuildHasher> CuckooFilter<T, S> {
    /// Puts all keys of another filter in as well: one with as many buckets and slots, and of the same seed and hasher, such as one built with the same settings and a
    /// given seed. Keys that are in both are in twice then. What is merged is a snapshot of the other filter.
    ///
    /// # Progress
    ///
    /// That of [`append_to`](Self::append_to) for the other filter, then that of [`insert`](Self::insert), key by key.
    ///
    /// # Complexity
    ///
    /// Linear in the table. Copies the table of the other, twice.
    ///
    /// # Errors
    ///
    /// [`MergeError::Mismatch`] names what differs. [`MergeError::Insert`] says how many keys went in before one was refused: no key of either filter is lost, but
    /// those that went in are in this one too. Before anything is merged it is refused, as [`InsertError::Full`], if there are not as many slots free as the other has keys.
    ///
    /// ```
    /// use koel::{CuckooFilter, MergeError};
    ///
    /// let build = |seed| CuckooFilter::<str>::builder().capacity(100).seed(seed).build().unwrap();
    /// let (trees, birds) = (build(1), build(1));
    /// trees.insert("oak").unwrap();
    /// birds.insert("koel").unwrap();
    /// trees.merge_from(&birds)?;
    /// assert!(trees.contains("oak") && trees.contains("koel"));
    /// assert_eq!(trees.merge_from(&build(2)), Err(MergeError::Mismatch { field: "seed", here: 1, there: 2 }));
    /// # Ok::<(), MergeError>(())
    /// ```
    pub fn merge_from(&self, other: &Self) -> Result<(), MergeError> {
        let (here, there) = (Id::of(self.hasher()), Id::of(other.hasher()));
        let fields = [
            ("slots", self.slots_per_bucket() as u64, other.slots_per_bucket() as u64),
            ("buckets", self.buckets() as u64, other.buckets() as u64),
            ("seed", self.seed(), other.seed()),
            ("hash algorithm", here.algorithm, there.algorithm),
            ("hash seed", here.seed, there.seed),
            ("hash check", here.check, there.check),
        ];
        if let Some((field, here, there)) = fields.into_iter().find(|(_, here, there)| here != there) {
            return Err(MergeError::Mismatch { field, here, there });
        }
        let (layout, geometry) = (*self.raw.cells().layout, *self.raw.cells().geometry);
        let words: Vec<u64> = other.words_at_once().collect();
        let keys: usize = words.iter().map(|word| layout.taken_count(*word)).sum();
        if self.raw.slots() - self.len() < keys {
            return Err(MergeError::Insert { merged: 0, error: InsertError::Full });
        }
        for (merged, class) in classes(words.into_iter(), layout, geometry, Only).enumerate() {
            self.raw.insert(class).map_err(|error| MergeError::Insert { merged, error })?;
        }
        Ok(())
    }
}
