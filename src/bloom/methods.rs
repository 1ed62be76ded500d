//! The public methods that all filters of the Bloom family have. They are the same, so they are written once.

/// The struct, its making, look-ups and properties.
macro_rules! filter {
    ($(#[$doc:meta])* $filter:ident, $raw:ty, $builder:ident) => {
        $(#[$doc])*
        pub struct $filter<T: ?Sized, S = $crate::Xxh3> {
            pub(super) raw: $raw,
            pub(super) capacity: usize,
            /// The rate that was asked for.
            pub(super) rate: f64,
            hasher: S,
            keys: core::marker::PhantomData<fn(&T)>,
        }

        impl<T: ?Sized> $filter<T> {
            /// A filter for `n` distinct keys with a false-positive rate of at most 0.001, a random seed and the default hasher.
            ///
            /// # Progress and complexity
            ///
            #[doc = concat!("Those of [`build`](super::", stringify!($builder), "::build).")]
            ///
            /// # Panics
            ///
            /// If the capacity overflows or cannot be allocated, like `Vec::with_capacity`. [`builder`](Self::builder) returns an error instead.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(1_000);")]
            #[doc = "assert!(!filter.contains(&7));"]
            #[doc = "```"]
            #[must_use]
            pub fn with_capacity(n: usize) -> Self {
                match Self::builder().capacity(n).build() {
                    Ok(filter) => filter,
                    Err(error) => panic!("{error}"),
                }
            }

            /// Settings for a filter.
            ///
            /// # Progress and complexity
            ///
            /// Wait-free and constant: nothing is allocated yet.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::builder().capacity(1_000).false_positive_rate(1e-5).build()?;")]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            pub fn builder() -> super::$builder<T> {
                super::$builder::new()
            }
        }

        impl<T: ?Sized, S> $filter<T, S> {
            pub(super) fn from_parts(raw: $raw, capacity: usize, rate: f64, hasher: S) -> Self {
                Self { raw, capacity, rate, hasher, keys: core::marker::PhantomData }
            }
        }

        /// # Look-ups
        impl<T: ?Sized, S: core::hash::BuildHasher> $filter<T, S> {
            /// Whether the key may be in: `false` is certain, `true` is wrong for about [`false_positive_rate`](Self::false_positive_rate) of absent keys.
            ///
            /// # Progress
            ///
            /// Wait-free.
            ///
            /// # Complexity
            ///
            /// Constant, for each layer if there are several: at most as many words as the key has probes.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<str>::with_capacity(100);")]
            #[doc = "filter.insert(\"oak\");"]
            #[doc = "assert!(filter.contains(\"oak\"));"]
            #[doc = "```"]
            #[inline]
            pub fn contains<Q: core::hash::Hash + ?Sized>(&self, key: &Q) -> bool
            where
                T: core::borrow::Borrow<Q>,
            {
                self.contains_hash(self.hash_of(key))
            }

            /// [`contains`](Self::contains) for many keys: `found[i]` tells of `keys[i]`.
            ///
            /// # Progress
            ///
            /// Wait-free, unless the keys' own `Hash` is not.
            ///
            /// # Complexity
            ///
            /// Linear in the keys.
            ///
            /// # Panics
            ///
            /// If the slices have different lengths, like `copy_from_slice`.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<str>::with_capacity(100);")]
            #[doc = "filter.insert(\"oak\");"]
            #[doc = "let mut found = [false; 2];"]
            #[doc = "filter.contains_many(&[\"elm\", \"oak\"], &mut found);"]
            #[doc = "assert_eq!(found, [false, true]);"]
            #[doc = "```"]
            pub fn contains_many<K: core::borrow::Borrow<T>>(&self, keys: &[K], found: &mut [bool])
            where
                T: core::hash::Hash,
            {
                let hash = |key: &K| self.hash_of(key.borrow());
                $crate::batch::contains_many(keys, found, hash, |hashes, found| self.raw.contains_batch(hashes, found));
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
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<str>::with_capacity(100);")]
            #[doc = "let hash = filter.hash_of(\"key\");"]
            #[doc = "filter.insert_hash(hash);"]
            #[doc = "assert!(filter.contains(\"key\"));"]
            #[doc = "```"]
            #[inline]
            pub fn hash_of<Q: core::hash::Hash + ?Sized>(&self, key: &Q) -> u64
            where
                T: core::borrow::Borrow<Q>,
            {
                self.hasher.hash_one(key)
            }
        }

        /// # Look-ups of hashes
        ///
        /// For callers who have a hash already. Every hash is remixed with the seed of the filter, so sequential integers, or hashes with only high bits, are fine.
        impl<T: ?Sized, S> $filter<T, S> {
            /// [`contains`](Self::contains) for a hash.
            ///
            /// # Progress and complexity
            ///
            /// Those of [`contains`](Self::contains).
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100);")]
            #[doc = "assert!(!filter.contains_hash(1));"]
            #[doc = "```"]
            #[inline]
            pub fn contains_hash(&self, hash: u64) -> bool {
                self.raw.contains(hash)
            }

            /// [`contains_hash`](Self::contains_hash) for many hashes: `found[i]` tells of `hashes[i]`. Equal to single calls, and faster.
            ///
            /// # Progress
            ///
            /// Wait-free. Each answer is of a moment of its own during the call.
            ///
            /// # Complexity
            ///
            /// Linear in the hashes.
            ///
            /// # Panics
            ///
            /// If the slices have different lengths, like `copy_from_slice`.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100);")]
            #[doc = "filter.insert_hash(2);"]
            #[doc = "let mut found = [false; 3];"]
            #[doc = "filter.contains_hashes(&[1, 2, 3], &mut found);"]
            #[doc = "assert!(found[1]);"]
            #[doc = "```"]
            pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
                $crate::batch::check_lengths(hashes.len(), found.len());
                self.raw.contains_batch(hashes, found);
            }

            /// Puts the indices of those hashes that may be in at the end of `selected`, in order: what a join or a scan goes on with.
            ///
            /// # Progress
            ///
            /// Wait-free, unless the allocator is not.
            ///
            /// # Complexity
            ///
            /// Linear in the hashes. Allocates only if `selected` has to grow.
            ///
            /// # Panics
            ///
            /// If an index does not fit 32 bits: more than 2<sup>32</sup> hashes.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100);")]
            #[doc = "filter.insert_hash(2);"]
            #[doc = "let mut selected = Vec::new();"]
            #[doc = "filter.select_hashes(&[1, 2, 3], &mut selected);"]
            #[doc = "assert!(selected.contains(&1));"]
            #[doc = "```"]
            pub fn select_hashes(&self, hashes: &[u64], selected: &mut alloc::vec::Vec<u32>) {
                $crate::batch::select(hashes, selected, |hashes, found| self.raw.contains_batch(hashes, found));
            }
        }

        /// # Size and state
        impl<T: ?Sized, S> $filter<T, S> {
            /// The capacity that was asked for.
            ///
            /// # Progress and complexity
            ///
            /// A constant of the filter.
            ///
            #[doc = "```"]
            #[doc = concat!("assert_eq!(koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100).capacity(), 100);")]
            #[doc = "```"]
            pub fn capacity(&self) -> usize {
                self.capacity
            }

            /// The seed with which hashes are remixed.
            ///
            /// # Progress and complexity
            ///
            /// A constant of the filter.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::builder().seed(7).build()?;")]
            #[doc = "assert_eq!(filter.seed(), 7);"]
            #[doc = "# Ok::<(), koel::BuildError>(())"]
            #[doc = "```"]
            pub fn seed(&self) -> u64 {
                self.raw.seed()
            }

            /// The hasher of keys.
            ///
            /// # Progress and complexity
            ///
            /// A constant of the filter.
            ///
            #[doc = "```"]
            #[doc = concat!("assert_eq!(koel::bloom::", stringify!($filter), "::<u64>::with_capacity(1).hasher(), &koel::Xxh3::new());")]
            #[doc = "```"]
            pub fn hasher(&self) -> &S {
                &self.hasher
            }

            /// All memory of the filter in bytes, the struct included.
            ///
            /// # Progress and complexity
            ///
            /// Wait-free; constant for each layer.
            ///
            #[doc = "```"]
            #[doc = concat!("assert!(koel::bloom::", stringify!($filter), "::<u64>::with_capacity(10_000).memory_bytes() > 10_000);")]
            #[doc = "```"]
            pub fn memory_bytes(&self) -> usize {
                size_of::<Self>() + self.raw.memory_bytes()
            }

            /// The share of absent keys for which [`contains`](Self::contains) is expected to say `true` with what is in now: exact for the cells that are taken.
            ///
            /// # Progress
            ///
            /// Wait-free.
            ///
            /// # Complexity
            ///
            /// Goes through the filter, unless it is a scalable one, which counts as it goes.
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(1_000);")]
            #[doc = "assert_eq!(filter.false_positive_rate(), 0.0);"]
            #[doc = "for key in 0..1_000 {"]
            #[doc = "    filter.insert(&key);"]
            #[doc = "}"]
            #[doc = "let rate = filter.false_positive_rate();"]
            #[doc = "assert!(rate > 0.0 && rate < 0.0015, \"{rate}\");"]
            #[doc = "```"]
            pub fn false_positive_rate(&self) -> f64 {
                self.raw.false_positive_rate()
            }

            /// How many distinct keys are in, as far as the cells that are taken tell: within a percent or so for some thousands, as long as the filter is not far above its capacity.
            ///
            /// # Progress and complexity
            ///
            /// Those of [`false_positive_rate`](Self::false_positive_rate).
            ///
            #[doc = "```"]
            #[doc = concat!("let filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(10_000);")]
            #[doc = "for key in 0..10_000 {"]
            #[doc = "    filter.insert(&key);"]
            #[doc = "}"]
            #[doc = "let len = filter.estimated_len();"]
            #[doc = "assert!(len.abs_diff(10_000) < 300, \"{len}\");"]
            #[doc = "```"]
            pub fn estimated_len(&self) -> usize {
                self.raw.estimated_len()
            }

            /// Takes everything out. Memory stays (of a scalable filter that of the first layer).
            ///
            /// # Progress and complexity
            ///
            /// Exclusive; writes to all of it.
            ///
            #[doc = "```"]
            #[doc = concat!("let mut filter = koel::bloom::", stringify!($filter), "::<u64>::with_capacity(100);")]
            #[doc = "filter.insert(&7);"]
            #[doc = "filter.clear();"]
            #[doc = "assert!(!filter.contains(&7));"]
            #[doc = "```"]
            pub fn clear(&mut self) {
                self.raw.clear();
            }
        }

        impl<T: ?Sized, S> core::fmt::Debug for $filter<T, S> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($filter))
                    .field("capacity", &self.capacity)
                    .field("rate", &self.rate)
                    .field("memory_bytes", &self.memory_bytes())
                    .finish_non_exhaustive()
            }
        }

        impl<T: ?Sized, S: Send + Sync> super::MembershipFilter for $filter<T, S> {
            fn insert_hash(&self, hash: u64) -> Result<(), $crate::InsertError> {
                self.try_insert(hash)
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
                Self::estimated_len(self)
            }
        }
    };
}

pub(super) use filter;
