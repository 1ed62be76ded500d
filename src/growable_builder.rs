//! The builder of [`GrowableCuckooFilter`].

use core::{fmt, marker::PhantomData};

use crate::{
    BuildError, GrowableCuckooFilter, Xxh3,
    builder::random_seed,
    growth::{Growing, GrowthPlan},
    sizing,
};

/// Settings for a [`GrowableCuckooFilter`], from [`GrowableCuckooFilter::builder`].
///
/// ```
/// use koel::GrowableCuckooFilter;
///
/// let filter = GrowableCuckooFilter::<str>::builder()
///     .initial_capacity(100_000)
///     .max_capacity(10_000_000)
///     .false_positive_rate(0.001)
///     .build()?;
/// assert!(filter.max_capacity() >= 10_000_000);
/// # Ok::<(), koel::BuildError>(())
/// ```
pub struct GrowableCuckooFilterBuilder<T: ?Sized, S = Xxh3> {
    initial: usize,
    max: Option<usize>,
    rate: Option<f64>,
    seed: Option<u64>,
    huge_pages: bool,
    hasher: S,
    keys: PhantomData<fn(&T)>,
}

impl<T: ?Sized> GrowableCuckooFilterBuilder<T> {
    pub(crate) fn new() -> Self {
        Self {
            initial: 0,
            max: None,
            rate: None,
            seed: None,
            huge_pages: false,
            hasher: Xxh3::new(),
            keys: PhantomData,
        }
    }
}

impl<T: ?Sized, S> GrowableCuckooFilterBuilder<T, S> {
    /// How many distinct keys go in before the filter first grows. 0 unless set, which means 4,096 buckets, as does every number that needs fewer.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::builder().initial_capacity(100_000).build()?;
    /// assert!(filter.capacity() >= 100_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn initial_capacity(self, keys: usize) -> Self {
        Self { initial: keys, ..self }
    }

    /// How many distinct keys the filter is to take at its largest. Unless set, what it takes after as many doublings as the rate allows, at most
    /// seven: about 128 times the initial capacity.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::builder().max_capacity(1_000_000).build()?;
    /// assert!(filter.max_capacity() >= 1_000_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_capacity(self, keys: usize) -> Self {
        Self { max: Some(keys), ..self }
    }

    /// The largest share of absent keys that may answer "maybe present", at any size up to the maximum: greater than 0, less than 1.
    /// 0.001 unless set. The layout follows from it: each doubling doubles the rate, so that a filter that is to grow far takes longer fingerprints.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let rate = |max| {
    ///     let filter = koel::GrowableCuckooFilter::<u64>::builder().max_capacity(max).false_positive_rate(0.01).build()?;
    ///     Ok::<_, koel::BuildError>(filter.fingerprint_bits())
    /// };
    /// assert_eq!((rate(10_000)?, rate(100_000_000)?), (9, 29));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// The seed with which hashes are remixed. Random unless set. The same seed and the same calls from one thread give the same table.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::builder().seed(7).build()?;
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
    /// let filter = koel::GrowableCuckooFilter::<str>::builder().hasher(std::hash::RandomState::new()).build()?;
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher<H>(self, hasher: H) -> GrowableCuckooFilterBuilder<T, H> {
        let Self { initial, max, rate, seed, huge_pages, hasher: _, keys } = self;
        GrowableCuckooFilterBuilder { initial, max, rate, seed, huge_pages, hasher, keys }
    }

    /// Whether to ask the system for huge pages for every table: see [`CuckooFilterBuilder::huge_pages`](crate::CuckooFilterBuilder::huge_pages).
    /// Off unless set.
    ///
    /// # Progress and complexity
    ///
    /// Constant time.
    ///
    /// ```
    /// let filter = koel::GrowableCuckooFilter::<u64>::builder().initial_capacity(10_000_000).huge_pages(true).build()?;
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn huge_pages(self, huge_pages: bool) -> Self {
        Self { huge_pages, ..self }
    }

    /// Builds the filter, at its initial size.
    ///
    /// # Progress
    ///
    /// Waits for nobody, unless the allocator or the system does.
    ///
    /// # Complexity
    ///
    /// Allocates the first table, whose pages are not touched.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the values and the limit they broke, before anything large is allocated. [`BuildError::GrowthTooFar`] says which
    /// rate or which initial capacity would do.
    ///
    /// ```
    /// use koel::{BuildError, GrowableCuckooFilter};
    ///
    /// let builder = GrowableCuckooFilter::<u64>::builder().max_capacity(1_000_000_000).false_positive_rate(1e-5);
    /// let error = builder.build().unwrap_err();
    /// assert!(matches!(error, BuildError::GrowthTooFar { .. }));
    /// ```
    pub fn build(self) -> Result<GrowableCuckooFilter<T, S>, BuildError> {
        let (plan, capacity) = GrowthPlan::new(self.initial, self.max, self.rate)?;
        let growing = Growing::new(plan, self.seed.unwrap_or_else(random_seed), self.huge_pages)?;
        Ok(GrowableCuckooFilter::from_parts(growing, capacity, self.rate.unwrap_or(sizing::DEFAULT_RATE), self.hasher))
    }
}

impl<T: ?Sized, S> fmt::Debug for GrowableCuckooFilterBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowableCuckooFilterBuilder")
            .field("initial_capacity", &self.initial)
            .field("max_capacity", &self.max)
            .field("false_positive_rate", &self.rate)
            .field("seed", &self.seed)
            .field("huge_pages", &self.huge_pages)
            .finish_non_exhaustive()
    }
}
