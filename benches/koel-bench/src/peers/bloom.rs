//! Bloom filters: no removal.

use fastbloom::{AtomicBloomFilter, BloomFilter};

use super::{BuildPassThrough, Peer, Shared, Spec};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        sized_for_keys: true,
        ..Spec::new(
            "fastbloom",
            "0.17, sized for the keys and Koel's false-positive rate with them; given the hash",
            |plan| {
                let filter = BloomFilter::with_false_pos(plan.rate().max(1e-9))
                    .hasher(BuildPassThrough::default())
                    .expected_items(plan.keys as usize);
                Ok(Box::new(Plain { filter, keys: 0 }))
            },
        )
    },
    Spec {
        sized_for_keys: true,
        shared: true,
        ..Spec::new(
            "fastbloom atomic",
            "0.17's atomic one, sized for the keys and Koel's false-positive rate with them; given the hash",
            |plan| {
                let filter = AtomicBloomFilter::with_false_pos(plan.rate().max(1e-9))
                    .hasher(BuildPassThrough::default())
                    .expected_items(plan.keys as usize);
                Ok(Box::new(Atomic(filter)))
            },
        )
    },
    Spec {
        large: true,
        ..Spec::new(
            "sbbf-rs",
            "0.2 (in sbbf-rs-safe 0.3), split blocks of 32 bytes, as many bytes as Koel; given the hash",
            |plan| {
                let bytes = plan.bytes as usize;
                Ok(Box::new(SplitBlock(sbbf_rs_safe::Filter::new(8, bytes))))
            },
        )
    },
];

struct Plain {
    filter: BloomFilter<BuildPassThrough>,
    keys: usize,
}

impl Peer for Plain {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.filter.contains_hash(hash)
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.filter.insert_hash(hash);
        self.keys += 1;
        true
    }

    fn memory_bytes(&self) -> usize {
        self.filter.num_bits() / 8 + size_of_val(self)
    }

    fn stated_rate(&self) -> Option<f64> {
        Some(self.filter.expected_false_pos(self.keys))
    }
}

struct Atomic(AtomicBloomFilter<BuildPassThrough>);

impl Peer for Atomic {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        Shared::insert(self, hash)
    }

    fn memory_bytes(&self) -> usize {
        self.0.num_bits() / 8 + size_of_val(self)
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Atomic {
    #[inline]
    fn insert(&self, hash: u64) -> bool {
        self.0.insert_hash(hash);
        true
    }
}

struct SplitBlock(sbbf_rs_safe::Filter);

impl Peer for SplitBlock {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert_hash(hash);
        true
    }

    fn clear(&mut self) {
        self.0.reset();
    }

    fn memory_bytes(&self) -> usize {
        self.0.as_bytes().len() + size_of_val(self)
    }
}
