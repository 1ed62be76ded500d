//! What one uses without a filter: an exact set.

use dashmap::DashMap;

use super::{BuildPassThrough, Hashed, Peer, Shared, Spec};

pub(super) const SPECS: &[Spec] = &[Spec {
    removes: true,
    shared: true,
    ..Spec::new(
        "dashmap",
        "6, a sharded hash set of the 64-bit hashes, exact; a hasher that passes them through",
        |plan| Ok(Box::new(Set(DashMap::with_capacity_and_hasher(plan.keys as usize, BuildPassThrough::default())))),
    )
}];

struct Set(DashMap<Hashed, (), BuildPassThrough>);

impl Peer for Set {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_key(&Hashed(hash))
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
        self.0.clear();
    }

    fn memory_bytes(&self) -> usize {
        // A hash table's buckets are 8/7 of its capacity, each a key and a byte of metadata.
        self.0.capacity() * 8 / 7 * 9
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Set {
    #[inline]
    fn insert(&self, hash: u64) -> bool {
        self.0.insert(Hashed(hash), ());
        true
    }

    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.0.remove(&Hashed(hash)).is_some()
    }
}
