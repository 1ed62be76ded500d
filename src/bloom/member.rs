//! [`MembershipFilter`]: what all filters of this crate have in common.

#[cfg(feature = "growth")]
use crate::GrowableCuckooFilter;
use crate::{CuckooFilter, InsertError};

/// A filter that takes hashes and says whether they may be in: all filters of this crate, so that programs, tests and measurements can take any. It can be a trait object.
///
/// The methods of each filter say more about progress, complexity and errors than can be said here of all.
///
/// ```
/// use koel::{CuckooFilter, bloom::{BloomFilter, MembershipFilter}};
///
/// let filters: [Box<dyn MembershipFilter>; 2] =
///     [Box::new(BloomFilter::<u64>::with_capacity(100)), Box::new(CuckooFilter::<u64>::with_capacity(100))];
/// for filter in filters {
///     filter.insert_hash(7)?;
///     assert!(filter.contains_hash(7));
/// }
/// # Ok::<(), koel::InsertError>(())
/// ```
pub trait MembershipFilter: Send + Sync {
    /// Puts a hash in.
    ///
    /// # Errors
    ///
    /// Those of the filter's own method; filters that cannot be full have none.
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError>;

    /// Whether the hash may be in.
    fn contains_hash(&self, hash: u64) -> bool;

    /// [`contains_hash`](Self::contains_hash) for many hashes: `found[i]` tells of `hashes[i]`.
    ///
    /// # Panics
    ///
    /// If the slices have different lengths, like `copy_from_slice`.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]);

    /// The share of absent keys that are expected to be found, with what is in now.
    fn false_positive_rate(&self) -> f64;

    /// All memory of the filter in bytes.
    fn memory_bytes(&self) -> usize;

    /// How many keys are in: exactly in cuckoo filters, which count copies too, an estimate of the distinct ones in others.
    fn estimated_len(&self) -> usize;
}

/// The methods are the filter's own.
macro_rules! member {
    ($filter:ident) => {
        impl<T: ?Sized, S: Send + Sync> MembershipFilter for $filter<T, S> {
            fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
                Self::insert_hash(self, hash)
            }

            fn contains_hash(&self, hash: u64) -> bool {
                Self::contains_hash(self, hash)
            }

            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
                Self::contains_hashes(self, hashes, found);
            }

            fn false_positive_rate(&self) -> f64 {
                Self::false_positive_rate(self)
            }

            fn memory_bytes(&self) -> usize {
                Self::memory_bytes(self)
            }

            fn estimated_len(&self) -> usize {
                self.len()
            }
        }
    };
}

member!(CuckooFilter);
#[cfg(feature = "growth")]
member!(GrowableCuckooFilter);
