//! Other cuckoo filters, and a lock around the best single-threaded one.

use std::sync::{PoisonError, RwLock};

use rand::{SeedableRng, rngs::SmallRng};
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};

use super::{BuildPassThrough, Hashed, PassThrough, Peer, Plan, Shared, Spec};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        removes: true,
        shared: true,
        large: true,
        ..Spec::new(
            "atomic-cuckoo-filter",
            "0.3, 4 slots of 16 bits; takes no hashes: a hasher that passes them through, one multiplication for its fingerprints",
            |plan| {
                let filter = atomic_cuckoo_filter::CuckooFilterBuilder::<PassThrough>::default()
                    .capacity(plan.slots() as usize)
                    .fingerprint_size(16)
                    .bucket_size(4)
                    .build()
                    .map_err(|error| error.to_string())?;
                Ok(Box::new(Atomic(filter)))
            },
        )
    },
    Spec {
        removes: true,
        ..Spec::new(
            "bloom-lib",
            "1.0's cuckoo filter, 4 slots of 16 bits; a hasher that passes hashes through",
            |plan| Ok(Box::new(BloomLib(bloom_lib(plan)?))),
        )
    },
    Spec {
        removes: true,
        ..Spec::new(
            "cuckoofilter",
            "0.5, 4 slots of 8 bits, so half the memory and a hundred times the false positives; a hasher that passes hashes through, two \
             multiplications for its fingerprints",
            |plan| Ok(Box::new(Classic(cuckoofilter::CuckooFilter::with_capacity(plan.slots() as usize)))),
        )
    },
    Spec {
        removes: true,
        ..Spec::new(
            "scalable_cuckoo_filter",
            "0.5, 4 slots of 16 bits; grows when an insert fails; a hasher that passes hashes through, one multiplication for its fingerprints",
            |plan| {
                // Its rate halves once for the first table, and 16 bits are what this rate then asks for.
                let filter = ScalableCuckooFilterBuilder::new()
                    .initial_capacity(plan.slots() as usize)
                    .false_positive_probability(1.0 / 4096.0)
                    .hasher(PassThrough::default())
                    // Its default generator is bound to one thread, and slower.
                    .rng(SmallRng::seed_from_u64(1))
                    .finish();
                Ok(Box::new(Scalable(filter)))
            },
        )
    },
    Spec {
        removes: true,
        shared: true,
        ..Spec::new("RwLock<bloom-lib>", "bloom-lib's in the standard library's RwLock, taken for each call", |plan| {
            Ok(Box::new(Locked(RwLock::new(bloom_lib(plan)?))))
        })
    },
];

type Inner = bloom_lib::CuckooFilter<Hashed, BuildPassThrough>;

fn bloom_lib(plan: &Plan) -> Result<Inner, String> {
    // It has the power of two of buckets that takes this capacity at 95% load.
    let capacity = (plan.slots() as f64 * 0.949).max(1.0) as usize;
    Inner::with_hasher(capacity, BuildPassThrough::default()).map_err(|error| error.to_string())
}

fn bloom_lib_bytes(filter: &Inner) -> usize {
    filter.capacity() * 2 + size_of_val(filter)
}

struct Atomic(atomic_cuckoo_filter::CuckooFilter<PassThrough>);

impl Peer for Atomic {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains(&Hashed(hash))
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert(&Hashed(hash)).is_ok()
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.0.remove(&Hashed(hash))
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn memory_bytes(&self) -> usize {
        self.0.capacity() * 2 + size_of_val(self)
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Atomic {
    #[inline]
    fn insert(&self, hash: u64) -> bool {
        self.0.insert(&Hashed(hash)).is_ok()
    }

    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.0.remove(&Hashed(hash))
    }
}

struct BloomLib(Inner);

impl Peer for BloomLib {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains(&Hashed(hash))
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert(&Hashed(hash)).is_ok()
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.0.remove(&Hashed(hash))
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn memory_bytes(&self) -> usize {
        bloom_lib_bytes(&self.0)
    }
}

struct Classic(cuckoofilter::CuckooFilter<PassThrough>);

impl Peer for Classic {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains(&Hashed(hash))
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.add(&Hashed(hash)).is_ok()
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.0.delete(&Hashed(hash))
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_usage()
    }
}

struct Scalable(ScalableCuckooFilter<Hashed, PassThrough, SmallRng>);

impl Peer for Scalable {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains(&Hashed(hash))
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert(&Hashed(hash));
        true
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.0.remove(&Hashed(hash))
    }

    fn memory_bytes(&self) -> usize {
        (self.0.bits() / 8) as usize + size_of_val(self)
    }
}

struct Locked(RwLock<Inner>);

impl Peer for Locked {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&Hashed(hash))
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        Shared::insert(self, hash)
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        Shared::remove(self, hash)
    }

    fn clear(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn memory_bytes(&self) -> usize {
        bloom_lib_bytes(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Locked {
    #[inline]
    fn insert(&self, hash: u64) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(&Hashed(hash)).is_ok()
    }

    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&Hashed(hash))
    }
}
