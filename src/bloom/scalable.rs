//! [`ScalableBloomFilter`], and what both scalable filters have in common.

use super::{
    bits::Bits,
    layers::{Cells, Layers},
    methods::filter,
};

filter! {
    /// A concurrent Bloom filter that grows: when its newest layer is full it adds a larger one, of a lower rate, so that the rate of all together stays at or below the one asked for
    /// however far it grows.
    ///
    /// Every layer is one more to look at for an absent key: after growth to 100 times its capacity there are 7. If there is a limit that it will not pass, a
    /// [`BloomFilter`](super::BloomFilter) of that size is faster.
    ///
    /// # Consistency and progress
    ///
    /// All operations work through `&self` from any number of threads. Look-ups are wait-free, but for a layer that is added meanwhile. Inserts are lock-free; a
    /// new layer is added without waiting for anyone: if several threads make one, all but one of them are thrown away. From the return of [`insert`](Self::insert) on,
    /// [`contains`](Self::contains) of that key is `true` in every thread that learns of the insert.
    ///
    /// ```
    /// use koel::bloom::ScalableBloomFilter;
    ///
    /// let filter = ScalableBloomFilter::<u64>::with_capacity(100);
    /// for key in 0..10_000 {
    ///     filter.insert(&key)?;
    /// }
    /// assert_eq!(filter.layers(), 7);
    /// assert!(filter.false_positive_rate() <= 0.001);
    /// # Ok::<(), koel::InsertError>(())
    /// ```
    ScalableBloomFilter, Layers<Bits>, ScalableBloomFilterBuilder
}

impl<C: Cells> Layers<C> {
    pub(super) fn seed(&self) -> u64 {
        self.series.seed
    }
}

/// The methods that scalable filters have besides those that all have.
macro_rules! scalable_methods {
    ($filter:ident, $progress:literal, $end:literal) => {
        /// # Inserts
        impl<T: ?Sized, S> $filter<T, S> {
            /// Puts a key in: `true` if it was surely not in at some moment of the call, `false` if it may have been in.
            ///
            /// # Progress
            ///
            #[doc = $progress]
            ///
            /// # Complexity
            ///
            /// That of a look-up in all layers, and of an insert in one. Now and then a layer is allocated.
            ///
            /// # Errors
            ///
            /// [`InsertError::Alloc`](crate::InsertError::Alloc) if the memory for a new layer is not to be had, and [`InsertError::Full`](crate::InsertError::Full) if no layer can
            /// be so large (2<sup>32</sup> words of 8 bytes) or have so low a rate. Nothing has changed then. With the default settings that is so after
            #[doc = $end]
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100);")]
            #[doc = "assert_eq!(filter.insert(&7), Ok(true));"]
            #[doc = "assert_eq!(filter.insert(&7), Ok(false));"]
            #[doc = "```"]
            #[inline]
            pub fn insert<Q: core::hash::Hash + ?Sized>(&self, key: &Q) -> Result<bool, $crate::InsertError>
            where
                T: core::borrow::Borrow<Q>,
                S: core::hash::BuildHasher,
            {
                self.insert_hash(self.hash_of(key))
            }

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
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100);")]
            #[doc = "assert_eq!(filter.insert_hash(7), Ok(true));"]
            #[doc = "```"]
            #[inline]
            pub fn insert_hash(&self, hash: u64) -> Result<bool, $crate::InsertError> {
                self.raw.insert(hash)
            }

            /// [`insert_hash`](Self::insert_hash) for many hashes, up to the first that is refused. The words that they need are asked for before the first is needed.
            ///
            /// # Progress and complexity
            ///
            /// Those of [`insert`](Self::insert), hash by hash.
            ///
            /// # Errors
            ///
            /// [`InsertHashesError`](crate::InsertHashesError) says how many went in and why the next did not. Those that went in stay.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100);")]
            #[doc = "filter.insert_hashes(&[1, 2, 3])?;"]
            #[doc = "assert!(filter.contains_hash(2));"]
            #[doc = "# Ok::<(), koel::InsertHashesError>(())"]
            #[doc = "```"]
            pub fn insert_hashes(&self, hashes: &[u64]) -> Result<(), $crate::InsertHashesError> {
                self.raw.insert_batch(hashes).map_err(|(inserted, error)| $crate::InsertHashesError { inserted, error })
            }

            pub(super) fn try_insert(&self, hash: u64) -> Result<(), $crate::InsertError> {
                self.insert_hash(hash).map(drop)
            }
        }

        /// # Layers
        impl<T: ?Sized, S> $filter<T, S> {
            /// How many layers there are now.
            ///
            /// # Progress
            ///
            /// Wait-free.
            ///
            /// # Complexity
            ///
            /// Linear in the layers, of which there are at most 64.
            ///
            #[doc = "```"]
            #[doc = concat!("assert_eq!(koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100).layers(), 1);")]
            #[doc = "```"]
            pub fn layers(&self) -> usize {
                self.raw.len()
            }
        }
    };
}

pub(super) use scalable_methods;

scalable_methods!(
    ScalableBloomFilter,
    "Lock-free, unless a layer is added and the allocator waits.",
    "26 doublings of a capacity of 64, 12 of a million."
);
