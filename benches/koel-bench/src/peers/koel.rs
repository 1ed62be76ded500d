//! Koel itself, by single calls and by batches.

use koel::{CuckooFilter, InsertHashesError};

use super::{Peer, Plan, Shared, Spec};

/// Single calls.
pub const SINGLE: &str = "koel";
/// Batches.
pub const BATCH: &str = "koel batch";

pub(super) const SPECS: &[Spec] = &[
    Spec {
        ours: true,
        removes: true,
        shared: true,
        large: true,
        ..Spec::new(SINGLE, "4 slots of 15 bits; given the hash, one call for each key", |plan| {
            Ok(Box::new(Single(table(plan, 4)?)))
        })
    },
    Spec {
        ours: true,
        removes: true,
        shared: true,
        large: true,
        batched: true,
        ..Spec::new(BATCH, "the same by contains_hashes, insert_hashes and remove_hashes", |plan| {
            Ok(Box::new(Batch(table(plan, 4)?)))
        })
    },
];

/// A filter whose table has exactly `plan.bytes`: the capacity that the builder gives so many buckets.
///
/// # Errors
///
/// The builder's, as text.
pub fn table(plan: &Plan, slots: usize) -> Result<CuckooFilter<u64>, String> {
    let buckets = plan.bytes / 8;
    // The dependable load of `slots` slots and what small tables get on top (docs/design.md), inverted; then corrected by what comes out,
    // so that a change there does no harm. Pages are not touched before use, so trying costs nothing.
    let mut capacity = buckets as usize * slots * 9 / 10;
    for _ in 0..64 {
        let filter = CuckooFilter::builder()
            .capacity(capacity)
            .slots_per_bucket(slots)
            .seed(1)
            .huge_pages(plan.huge_pages)
            .build()
            .map_err(|error| error.to_string())?;
        let difference = buckets as i64 - filter.buckets() as i64;
        if difference == 0 {
            return Ok(filter);
        }
        let step = (difference as f64 * slots as f64 * 0.9) as i64;
        capacity = capacity.saturating_add_signed(if step == 0 { difference.signum() } else { step } as isize);
    }
    Err(format!("no capacity gives {buckets} buckets"))
}

struct Single(CuckooFilter<u64>);

struct Batch(CuckooFilter<u64>);

impl Peer for Single {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert_hash(hash).is_ok()
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.0.remove_hash(hash)
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

    fn as_koel(&self) -> Option<&CuckooFilter<u64>> {
        Some(&self.0)
    }
}

impl Shared for Single {
    #[inline]
    fn insert(&self, hash: u64) -> bool {
        self.0.insert_hash(hash).is_ok()
    }

    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.0.remove_hash(hash)
    }
}

/// How many of a batch went in.
pub(crate) fn insert_hashes(filter: &CuckooFilter<u64>, hashes: &[u64]) -> usize {
    inserted(hashes, filter.insert_hashes(hashes))
}

/// How many of these went in if that came of it.
pub(crate) fn inserted(hashes: &[u64], outcome: Result<(), InsertHashesError>) -> usize {
    outcome.map_or_else(|error| error.inserted, |()| hashes.len())
}

/// How many of these `remove` says it found, by batches of an array that stays in the first-level cache.
pub(crate) fn removed(hashes: &[u64], remove: impl Fn(&[u64], &mut [bool])) -> usize {
    let mut removed = [false; 1024];
    let removed_of = |hashes: &[u64]| {
        let removed = &mut removed[..hashes.len()];
        remove(hashes, removed);
        removed.iter().filter(|removed| **removed).count()
    };
    hashes.chunks(1024).map(removed_of).sum()
}

impl Peer for Batch {
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert_hash(hash).is_ok()
    }

    fn remove(&mut self, hash: u64) -> bool {
        self.0.remove_hash(hash)
    }

    fn contains_many(&self, hashes: &[u64], found: &mut [bool]) {
        self.0.contains_hashes(hashes, found);
    }

    fn insert_many(&mut self, hashes: &[u64]) -> usize {
        insert_hashes(&self.0, hashes)
    }

    fn remove_many(&mut self, hashes: &[u64]) -> usize {
        removed(hashes, |hashes, removed| self.0.remove_hashes(hashes, removed))
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

    fn as_koel(&self) -> Option<&CuckooFilter<u64>> {
        Some(&self.0)
    }
}

impl Shared for Batch {
    fn insert(&self, hash: u64) -> bool {
        self.0.insert_hash(hash).is_ok()
    }

    fn remove(&self, hash: u64) -> bool {
        self.0.remove_hash(hash)
    }

    fn insert_many(&self, hashes: &[u64]) -> usize {
        insert_hashes(&self.0, hashes)
    }

    fn remove_many(&self, hashes: &[u64]) -> usize {
        removed(hashes, |hashes, removed| self.0.remove_hashes(hashes, removed))
    }
}
