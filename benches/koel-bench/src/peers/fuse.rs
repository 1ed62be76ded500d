//! Filters that are built once from all their keys.

use xorf::{BinaryFuse16, Filter};

use super::{Peer, Spec};
use crate::keys;

pub(super) const SPECS: &[Spec] = &[Spec {
    sized_for_keys: true,
    fixed: true,
    ..Spec::new(
        "xorf BinaryFuse16",
        "0.13, 16-bit fingerprints, built from all keys at once; given the hash, which it mixes itself",
        |plan| {
            let keys: Vec<u64> = (0..plan.keys).map(keys::present).collect();
            let filter = BinaryFuse16::try_from(keys).map_err(str::to_string)?;
            Ok(Box::new(Fuse(filter)))
        },
    )
}];

struct Fuse(BinaryFuse16);

impl Peer for Fuse {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains(&hash)
    }

    fn insert(&mut self, _hash: u64) -> bool {
        false
    }

    fn memory_bytes(&self) -> usize {
        self.0.len() * 2 + size_of_val(self)
    }
}
