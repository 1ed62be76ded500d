//! The builder of [`CuckooFilter`].

use core::{fmt, marker::PhantomData};

use crate::{BuildError, CuckooFilter, Xxh3, hash::Geometry, packed, raw::RawFilter, sizing};

/// Settings for a [`CuckooFilter`], from [`CuckooFilter::builder`].
///
/// # Progress and complexity
///
/// Each method but [`build`](Self::build) is a constant-time change of a setting.
///
/// ```
/// use koel::CuckooFilter;
///
/// let filter = CuckooFilter::<str>::builder()
///     .capacity(1_000_000)
///     .false_positive_rate(0.01)
///     .seed(42)
///     .build()?;
/// assert_eq!(filter.capacity(), 1_000_000);
/// # Ok::<(), koel::BuildError>(())
/// ```
pub struct CuckooFilterBuilder<T: ?Sized, S = Xxh3> {
    capacity: usize,
    rate: Option<f64>,
    slots: Option<usize>,
    seed: Option<u64>,
    huge_pages: bool,
    hasher: S,
    keys: PhantomData<fn(&T)>,
}

impl<T: ?Sized> CuckooFilterBuilder<T> {
    pub(crate) fn new() -> Self {
        Self {
            capacity: 0,
            rate: None,
            slots: None,
            seed: None,
            huge_pages: false,
            hasher: Xxh3::new(),
            keys: PhantomData,
        }
    }
}

impl<T: ?Sized, S> CuckooFilterBuilder<T, S> {
    /// How many keys the filter is to take: distinct keys, all of which go in. 0 unless set.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::builder().capacity(1_025).build()?;
    /// for key in 0..1_025 {
    ///     filter.insert(&key).unwrap();
    /// }
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn capacity(self, keys: usize) -> Self {
        Self { capacity: keys, ..self }
    }

    /// The largest share of absent keys that may answer "maybe present" when the filter holds its capacity: greater
    /// than 0, less than 1. 0.001 unless set; if only [`slots_per_bucket`](Self::slots_per_bucket) is set, whatever that layout has.
    ///
    /// The layout and load that need the least memory are chosen.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::builder().capacity(100_000).false_positive_rate(0.01).build()?;
    /// assert_eq!((filter.slots_per_bucket(), filter.fingerprint_bits()), (6, 9));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Fixes the layout: 2 slots of 30 bits in each 64-bit bucket, 3 of 20, 4 of 15, 5 of 12 or 6 of 10. One of those bits says
    /// whether the slot's fingerprint is displaced.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::builder().capacity(100_000).slots_per_bucket(3).build()?;
    /// assert_eq!((filter.slots_per_bucket(), filter.fingerprint_bits()), (3, 19));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn slots_per_bucket(self, slots: usize) -> Self {
        Self { slots: Some(slots), ..self }
    }

    /// The seed with which hashes are remixed. Random unless set (a constant without the feature `std`). The same seed and the
    /// same calls from one thread give the same table.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::builder().capacity(100).seed(7).build()?;
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// The hasher of keys, [`Xxh3`] unless set. `RandomState` of the standard library withstands keys chosen to collide.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// use std::hash::RandomState;
    ///
    /// let filter = koel::CuckooFilter::<str>::builder().capacity(100).hasher(RandomState::new()).build()?;
    /// filter.insert("key").unwrap();
    /// assert!(filter.contains("key"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher<H>(self, hasher: H) -> CuckooFilterBuilder<T, H> {
        let Self { capacity, rate, slots, seed, huge_pages, hasher: _, keys } = self;
        CuckooFilterBuilder { capacity, rate, slots, seed, huge_pages, hasher, keys }
    }

    /// Whether to ask the system for huge pages (feature `std`; Linux in the `madvise` or `always` mode): in a table of a gibibyte at 75% load,
    /// 1.3 times as many single look-ups per second were measured, and 1.7 times as many in batches. Only advice: without them the filter works
    /// on small pages. Memory is then resident in steps of 2 MiB. Off unless set.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::<u64>::builder().capacity(10_000_000).huge_pages(true).build()?;
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn huge_pages(self, huge_pages: bool) -> Self {
        Self { huge_pages, ..self }
    }

    /// Builds the filter.
    ///
    /// # Progress
    ///
    /// Waits for nobody, unless the allocator or the system does.
    ///
    /// # Complexity
    ///
    /// Allocates the table and three small arrays: sequence counters, claims and event counters. A table of 256 KiB or more
    /// (with the feature `std`), and any with huge pages, is mapped: its pages come when they are first used.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the value and the limit it broke, before anything large is allocated; or
    /// [`BuildError::Alloc`] if the memory is not to be had.
    ///
    /// ```
    /// use koel::{BuildError, CuckooFilter};
    ///
    /// let error = CuckooFilter::<u64>::builder().false_positive_rate(1.5).build().unwrap_err();
    /// assert_eq!(error, BuildError::InvalidRate { rate: 1.5 });
    /// ```
    pub fn build(self) -> Result<CuckooFilter<T, S>, BuildError> {
        let plan = sizing::plan(self.capacity, self.rate, self.slots)?;
        let geometry = Geometry::new(plan.buckets, plan.layout, self.seed.unwrap_or_else(random_seed));
        let raw = RawFilter::new(plan.layout, geometry, self.huge_pages)?;
        let rate = sizing::rate(self.rate, self.slots).unwrap_or(0.0);
        Ok(CuckooFilter::from_parts(raw, self.capacity, rate, self.hasher))
    }
}

/// # From a set that is known
impl<T: ?Sized, S> CuckooFilterBuilder<T, S> {
    /// Builds a filter of these hashes, for files that do not change: as [`CuckooFilter::from_hashes`], with the settings made. The seed is 0 unless set. If a larger
    /// [`capacity`](Self::capacity) is set the table is as large as that of [`build`](Self::build), and there is room for as many.
    ///
    /// # Progress and complexity
    ///
    /// Those of [`CuckooFilter::from_hashes`].
    ///
    /// # Errors
    ///
    /// Those of [`CuckooFilter::from_hashes`].
    ///
    /// ```
    /// let builder = koel::CuckooFilter::<u64>::builder().false_positive_rate(0.01);
    /// let filter = builder.build_from_hashes(&[5, 7, 11])?;
    /// assert!(filter.contains_hash(7));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn build_from_hashes(self, hashes: &[u64]) -> Result<CuckooFilter<T, S>, BuildError> {
        let rate = sizing::rate(self.rate, self.slots);
        let seed = self.seed.unwrap_or(0);
        let (raw, capacity) = packed::build(hashes, self.capacity, rate, self.slots, seed, self.huge_pages)?;
        Ok(CuckooFilter::from_parts(raw, capacity, rate.unwrap_or(0.0), self.hasher))
    }
}

impl<T: ?Sized, S> fmt::Debug for CuckooFilterBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuckooFilterBuilder")
            .field("capacity", &self.capacity)
            .field("false_positive_rate", &self.rate)
            .field("slots_per_bucket", &self.slots)
            .field("seed", &self.seed)
            .field("huge_pages", &self.huge_pages)
            .finish_non_exhaustive()
    }
}

/// A seed that differs from filter to filter and from process to process.
#[cfg(feature = "std")]
pub(crate) fn random_seed() -> u64 {
    use core::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(())
}

/// Without an operating system there is no source of randomness: one constant.
#[cfg(not(feature = "std"))]
pub(crate) fn random_seed() -> u64 {
    0x6b6f_656c
}
