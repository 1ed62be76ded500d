//! The builders of the Bloom family. They have most settings in common, so those are written once.

use core::{fmt, marker::PhantomData};

use super::{
    BloomFilter, CountingBloomFilter, ScalableBloomFilter, ScalableCountingBloomFilter,
    bits::Bits,
    counters::Counters,
    layers::{Cells as _, Layers, Series},
    shape::Shape,
};
use crate::{BuildError, Xxh3, builder::random_seed, sizing::DEFAULT_RATE};

/// Bits of a counter unless set.
const DEFAULT_COUNTER_BITS: u32 = 4;
const DEFAULT_GROWTH: f64 = 2.0;
const DEFAULT_TIGHTENING: f64 = 0.5;

fn check_counter_bits(bits: u32) -> Result<u32, BuildError> {
    if matches!(bits, 2 | 4 | 8) { Ok(bits) } else { Err(BuildError::InvalidCounterBits { bits }) }
}

/// A builder: settings that all have, and some of its own.
macro_rules! builder {
    ($builder:ident of $filter:ident, { $($field:ident: $type:ty = $default:expr),* }) => {
        #[doc = concat!("Settings for a [`", stringify!($filter), "`], from [`", stringify!($filter), "::builder`].")]
        ///
        /// # Progress and complexity
        ///
        /// Each method but [`build`](Self::build) is a constant-time change of a setting.
        ///
        #[doc = "```"]
        #[doc = concat!("use koel::bloom::", stringify!($filter), ";")]
        #[doc = ""]
        #[doc = concat!("let filter = ", stringify!($filter), "::<str>::builder().capacity(1_000_000).false_positive_rate(0.01).seed(42).build()?;")]
        #[doc = "assert_eq!(filter.capacity(), 1_000_000);"]
        #[doc = "# Ok::<(), koel::BuildError>(())"]
        #[doc = "```"]
        pub struct $builder<T: ?Sized, S = Xxh3> {
            capacity: usize,
            rate: f64,
            $($field: $type,)*
            seed: Option<u64>,
            huge_pages: bool,
            hasher: S,
            keys: PhantomData<fn(&T)>,
        }

        impl<T: ?Sized> $builder<T> {
            pub(super) fn new() -> Self {
                Self {
                    capacity: 0,
                    rate: DEFAULT_RATE,
                    $($field: $default,)*
                    seed: None,
                    huge_pages: false,
                    hasher: Xxh3::new(),
                    keys: PhantomData,
                }
            }
        }

        impl<T: ?Sized, S> $builder<T, S> {
            /// How many distinct keys the filter is to take at the rate asked for (of a scalable filter the first layer, which takes at least 64). 0 unless set.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::builder().capacity(1_025).build()?;")]
            #[doc = "assert_eq!(filter.capacity(), 1_025);"]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            #[must_use]
            pub fn capacity(self, keys: usize) -> Self {
                Self { capacity: keys, ..self }
            }

            /// The largest share of absent keys that may answer "maybe present" when the filter holds its capacity (of a scalable filter: however many it holds):
            /// less than 1, and at least 2<sup>-32</sup>. 0.001 unless set.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::builder().capacity(100).false_positive_rate(1e-6).build()?;")]
            #[doc = "assert!(filter.false_positive_rate() < 1e-6);"]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            #[must_use]
            pub fn false_positive_rate(self, rate: f64) -> Self {
                Self { rate, ..self }
            }

            /// The seed with which hashes are remixed. Random unless set (a constant without the feature `std`). The same seed and the same calls from one thread give the same
            /// filter.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::builder().seed(7).build()?;")]
            #[doc = "assert_eq!(filter.seed(), 7);"]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            #[must_use]
            pub fn seed(self, seed: u64) -> Self {
                Self { seed: Some(seed), ..self }
            }

            /// The hasher of keys, [`Xxh3`](crate::Xxh3) unless set. `RandomState` of the standard library withstands keys chosen to collide.
            ///
            #[doc = "```"]
            #[doc = "use std::hash::RandomState;"]
            #[doc = ""]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<str>::builder().hasher(RandomState::new()).build()?;")]
            #[doc = "filter.insert(\"key\");"]
            #[doc = "assert!(filter.contains(\"key\"));"]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            #[must_use]
            pub fn hasher<H>(self, hasher: H) -> $builder<T, H> {
                let Self { capacity, rate, $($field,)* seed, huge_pages, hasher: _, keys } = self;
                $builder { capacity, rate, $($field,)* seed, huge_pages, hasher, keys }
            }

            /// Whether to ask the system for huge pages, as in [`CuckooFilterBuilder`](crate::CuckooFilterBuilder::huge_pages). Off unless set.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::builder().capacity(1_000_000).huge_pages(true).build()?;")]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
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
            /// Allocates the cells of the filter, which are mapped from 256 KiB on (with the feature `std`): their pages come when they are first used.
            ///
            /// # Errors
            ///
            /// A [`BuildError`](crate::BuildError) that names the value and the limit it broke, before anything large is allocated; or
            /// [`BuildError::Alloc`](crate::BuildError::Alloc) if the memory is not to be had.
            ///
            #[doc = "```"]
            #[doc = "use koel::BuildError;"]
            #[doc = concat!("let builder = koel::bloom::", stringify!($filter), "::<u64>::builder();")]
            #[doc = "assert_eq!(builder.false_positive_rate(1.5).build().unwrap_err(), BuildError::InvalidRate { rate: 1.5 });"]
            #[doc = "```"]
            pub fn build(self) -> Result<$filter<T, S>, BuildError> {
                let raw = self.raw(self.seed.unwrap_or_else(random_seed))?;
                Ok($filter::from_parts(raw, self.capacity, self.rate, self.hasher))
            }
        }

        impl<T: ?Sized, S> fmt::Debug for $builder<T, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($builder))
                    .field("capacity", &self.capacity)
                    .field("false_positive_rate", &self.rate)
                    $(.field(stringify!($field), &self.$field))*
                    .field("seed", &self.seed)
                    .field("huge_pages", &self.huge_pages)
                    .finish_non_exhaustive()
            }
        }
    };
}

builder!(BloomFilterBuilder of BloomFilter, { blocked: bool = false });
builder!(CountingBloomFilterBuilder of CountingBloomFilter, { counter_bits: u32 = DEFAULT_COUNTER_BITS });
builder!(ScalableBloomFilterBuilder of ScalableBloomFilter, {
    growth_factor: f64 = DEFAULT_GROWTH,
    tightening_ratio: f64 = DEFAULT_TIGHTENING
});
builder!(ScalableCountingBloomFilterBuilder of ScalableCountingBloomFilter, {
    counter_bits: u32 = DEFAULT_COUNTER_BITS,
    growth_factor: f64 = DEFAULT_GROWTH,
    tightening_ratio: f64 = DEFAULT_TIGHTENING
});

impl<T: ?Sized, S> BloomFilterBuilder<T, S> {
    /// Whether all bits of a key are to lie in one cache line: a key then takes one access to memory, and vectors look at all its bits at once. For the same rate it takes a few
    /// more bits: 5% at 1%, 9% at 0.1%, 19% at 0.01%, 36% at 10<sup>-6</sup>. Off unless set.
    ///
    /// ```
    /// let filter = koel::bloom::BloomFilter::<u64>::builder().capacity(100_000).blocked(true).build()?;
    /// assert!(filter.is_blocked());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn blocked(self, blocked: bool) -> Self {
        Self { blocked, ..self }
    }

    fn raw(&self, seed: u64) -> Result<Bits, BuildError> {
        let shape = Shape::plan(self.blocked, self.capacity, self.rate, 1, seed)?;
        Ok(Bits::new(shape, self.huge_pages)?)
    }
}

impl<T: ?Sized, S> CountingBloomFilterBuilder<T, S> {
    /// Bits of a counter: 2, 4 or 8. A counter that reaches its maximum of 3, 15 or 255 stays there. 4 unless set: with the capacity in, one counter in 10<sup>15</sup> reaches 15, if the keys
    /// are distinct.
    ///
    /// ```
    /// let filter = koel::bloom::CountingBloomFilter::<u64>::builder().capacity(100).counter_bits(8).build()?;
    /// assert_eq!(filter.counter_max(), 255);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn counter_bits(self, bits: u32) -> Self {
        Self { counter_bits: bits, ..self }
    }

    fn raw(&self, seed: u64) -> Result<Counters, BuildError> {
        let bits = check_counter_bits(self.counter_bits)?;
        let shape = Shape::plan(false, self.capacity, self.rate, bits, seed)?;
        Ok(Counters::new(shape, self.huge_pages)?)
    }
}

/// The settings of layers.
macro_rules! series_settings {
    ($builder:ident, $filter:literal) => {
        impl<T: ?Sized, S> $builder<T, S> {
            /// How many times as many keys as a layer takes the next: 1 to 1,024. 2 unless set. More means fewer layers to look at, and more memory that is not used yet.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", $filter, "::<u64>::builder().capacity(100).growth_factor(4.0).build()?;")]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            #[must_use]
            pub fn growth_factor(self, factor: f64) -> Self {
                Self { growth_factor: factor, ..self }
            }

            /// How many times the rate of a layer the next has: *r*, greater than 0 and at most 1 - 2<sup>-32</sup>. 0.5 unless set. The first has the rate *p* (1 - *r*), so that the sum of all, however many, is
            /// below *p*. Close to 1 the first layers take more memory than they have to, close to 0 the later ones do.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", $filter, "::<u64>::builder().capacity(100).tightening_ratio(0.8).build()?;")]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            #[must_use]
            pub fn tightening_ratio(self, ratio: f64) -> Self {
                Self { tightening_ratio: ratio, ..self }
            }

            fn series(&self, cell_bits: u32, seed: u64) -> Series {
                Series {
                    capacity: self.capacity,
                    rate: self.rate,
                    growth: self.growth_factor,
                    tightening: self.tightening_ratio,
                    cell_bits,
                    seed,
                    huge_pages: self.huge_pages,
                }
            }
        }
    };
}

series_settings!(ScalableBloomFilterBuilder, "ScalableBloomFilter");
series_settings!(ScalableCountingBloomFilterBuilder, "ScalableCountingBloomFilter");

impl<T: ?Sized, S> ScalableBloomFilterBuilder<T, S> {
    fn raw(&self, seed: u64) -> Result<Layers<Bits>, BuildError> {
        Layers::new(self.series(1, seed))
    }
}

impl<T: ?Sized, S> ScalableCountingBloomFilterBuilder<T, S> {
    /// Bits of a counter: 2, 4 or 8. A counter that reaches its maximum of 3, 15 or 255 stays there. 4 unless set.
    ///
    /// ```
    /// let filter = koel::bloom::ScalableCountingBloomFilter::<u64>::builder().capacity(100).counter_bits(8).build()?;
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn counter_bits(self, bits: u32) -> Self {
        Self { counter_bits: bits, ..self }
    }

    fn raw(&self, seed: u64) -> Result<Layers<Counters>, BuildError> {
        Layers::new(self.series(check_counter_bits(self.counter_bits)?, seed))
    }
}
