//! Quotient filters.

use super::{Peer, Spec};

pub(super) const SPECS: &[Spec] = &[Spec {
    removes: true,
    ..Spec::new("qfilter", "0.3, 14 bits and 2.1 bits of metadata a slot; given the hash", |plan| {
        // Its capacity is 95% of a power of two of slots.
        let capacity = plan.slots() * 19 / 20;
        let filter = qfilter::Filter::new(capacity, 1.0 / 16384.0).map_err(|error| error.to_string())?;
        Ok(Box::new(Quotient(filter)))
    })
}];

struct Quotient(qfilter::Filter);

impl Peer for Quotient {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.0.contains_fingerprint(hash)
    }

    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        self.0.insert_fingerprint(true, hash).is_ok()
    }

    #[inline]
    fn remove(&mut self, hash: u64) -> bool {
        self.0.remove_fingerprint(hash)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_usage() + size_of_val(self)
    }

    fn stated_rate(&self) -> Option<f64> {
        Some(self.0.current_error_ratio())
    }
}
