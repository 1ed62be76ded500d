//! Bloom filters: no removal.

use fastbloom::{AtomicBloomFilter, BloomFilter};

use super::{BuildPassThrough, Peer, Shared, Spec};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        ours: true,
        sized_for_keys: true,
        shared: true,
        batched: true,
        ..Spec::new(
            "koel bloom batch",
            "koel::bloom::BloomFilter, sized for the keys and Koel's false-positive rate with them; by contains_hashes and insert_hashes",
            |plan| {
                let builder =
                    ::koel::bloom::BloomFilter::builder().capacity(plan.keys as usize).huge_pages(plan.huge_pages);
                let filter = builder.false_positive_rate(plan.rate().max(1e-9)).seed(1).build();
                Ok(Box::new(Ours(filter.map_err(|error| error.to_string())?)))
            },
        )
    },
    Spec {
        ours: true,
        shared: true,
        batched: true,
        large: true,
        ..Spec::new(
            "koel blocked batch",
            "koel::bloom::BloomFilter in the blocked form, 8 bits for a key, as many bytes as Koel; by contains_hashes and insert_hashes",
            |plan| Ok(Box::new(Ours(blocked(plan)?))),
        )
    },
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

/// A blocked filter of exactly `plan.bytes`.
fn blocked(plan: &super::Plan) -> Result<::koel::bloom::BloomFilter<u64>, String> {
    let (mut few, mut many) = (0, plan.bytes as usize);
    while few < many {
        let capacity = usize::midpoint(few, many);
        let builder = ::koel::bloom::BloomFilter::builder().capacity(capacity).false_positive_rate(0.001).blocked(true);
        let filter = builder.seed(1).huge_pages(plan.huge_pages).build().map_err(|error| error.to_string())?;
        match (filter.bits() / 8).cmp(&plan.bytes) {
            std::cmp::Ordering::Equal => return Ok(filter),
            std::cmp::Ordering::Less => few = capacity + 1,
            std::cmp::Ordering::Greater => many = capacity,
        }
    }
    Err(format!("no capacity gives {} bytes", plan.bytes))
}

/// Koel's own, by batches.
struct Ours(::koel::bloom::BloomFilter<u64>);

impl Peer for Ours {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert_hash(hash);
        true
    }

    fn contains_many(&self, hashes: &[u64], found: &mut [bool]) {
        self.0.contains_hashes(hashes, found);
    }

    fn insert_many(&mut self, hashes: &[u64]) -> usize {
        Shared::insert_many(self, hashes)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn stated_rate(&self) -> Option<f64> {
        Some(self.0.false_positive_rate())
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Ours {
    #[inline]
    fn insert(&self, hash: u64) -> bool {
        self.0.insert_hash(hash);
        true
    }

    fn insert_many(&self, hashes: &[u64]) -> usize {
        self.0.insert_hashes(hashes);
        hashes.len()
    }
}

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
