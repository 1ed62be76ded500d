//! The window for models of growth, see [`crate::model`].

use crossbeam_utils::Backoff;

use super::{Around, Growing, GrowthPlan};
use crate::{
    cells::Cells,
    error::InsertError,
    hash::{Class, Doubled},
    kick::{
        Surroundings,
        relocate::{Hop, Relocation, relocate},
    },
    word::{self, Layout, Slot},
    words::{Frozen, Snapshot},
};

/// A filter that starts with a few buckets.
#[derive(Debug)]
pub struct GrowthModel {
    filter: Growing,
}

/// A class of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthKey(Class);

impl GrowthModel {
    /// With `buckets` buckets of `slots` slots, to be doubled up to `doublings` times.
    pub fn new(slots: usize, buckets: usize, doublings: u32) -> Self {
        let plan = GrowthPlan { layout: Layout::new(slots), base: buckets, doublings };
        Self { filter: Growing::new(plan, 0, false).expect("a small table") }
    }

    /// Of which snapshots are taken.
    pub fn with_snapshots(slots: usize, buckets: usize, doublings: u32) -> Self {
        let mut model = Self::new(slots, buckets, doublings);
        model.filter.gate.put_to_use();
        model
    }

    /// Copies of the class in a snapshot, which is of a single table; and whether a look-up that reads the home bucket first, and believes its count, finds it there.
    pub fn in_snapshot(&self, key: GrowthKey) -> (usize, bool) {
        let Growing { plan, geometry, .. } = &self.filter;
        let mut words = self.filter.buckets();
        loop {
            let mut bytes = alloc::vec![[0; 8]; words];
            match self.filter.copy_words(&mut bytes) {
                Ok(doublings) => {
                    let generation = Snapshot(Doubled::new(plan.layout, doublings));
                    let cells = Cells { words: Frozen(&bytes), layout: &plan.layout, geometry, generation };
                    let candidates = cells.candidates(key.0);
                    return (cells.copies(&candidates, cells.seen(&candidates)), cells.contains_home_first(key.0));
                }
                Err(now) => words = now.words,
            }
        }
    }

    /// The `nth` class with these base buckets and these topmost bits of the fingerprint, as many as there can be doublings.
    pub fn key(&self, home: usize, away: usize, top: u32, nth: usize) -> GrowthKey {
        let plan = &self.filter.plan;
        let first = 1.max(top << (plan.layout.fingerprint_bits() - plan.doublings));
        let mut fingerprints = (first..).filter(|fingerprint| self.filter.geometry.other(home, *fingerprint) == away);
        GrowthKey(Class { home, fingerprint: fingerprints.nth(nth).expect("unbounded") })
    }

    pub fn contains(&self, key: GrowthKey) -> bool {
        self.filter.contains(key.0)
    }

    /// The batched look-up. Only for six slots in a bucket, where hashes of a class are easily found.
    pub fn contains_batch(&self, key: GrowthKey) -> bool {
        assert_eq!(self.filter.plan.layout.slots(), 6);
        let hash = (0..).find(|hash| self.filter.class(*hash) == key.0).expect("unbounded");
        let mut found = [false];
        self.filter.contains_hashes(&[hash], &mut found);
        found[0]
    }

    pub fn count(&self, key: GrowthKey) -> usize {
        self.filter.count(key.0)
    }

    pub fn insert(&self, key: GrowthKey) -> Result<(), InsertError> {
        self.filter.insert(key.0)
    }

    pub fn insert_if_absent(&self, key: GrowthKey) -> Result<bool, InsertError> {
        self.filter.insert_if_absent(key.0)
    }

    pub fn remove(&self, key: GrowthKey) -> bool {
        self.filter.remove(key.0)
    }

    /// Doubles a filter that is not draining; otherwise does nothing.
    pub fn grow(&self) {
        let _inside = self.filter.gate.enter();
        let view = self.filter.view_to_change();
        if view.old.is_none() {
            self.filter.double(&view, &Backoff::new()).expect("memory");
        }
    }

    pub fn drain(&self, max_buckets: usize) -> usize {
        self.filter.drain(max_buckets)
    }

    pub fn finish_draining(&self) {
        self.filter.finish_draining();
    }

    /// Drains what can be drained without waiting for anybody; whether that was all.
    pub fn drain_rest(&self) -> bool {
        while self.filter.drain(usize::MAX) != 0 {}
        !self.filter.is_draining()
    }

    /// One hop of a kick in the newer table: moves a copy of the class out of its home bucket, or back into it. Whether it did.
    pub fn relocate(&self, key: GrowthKey, outward: bool) -> bool {
        let _inside = self.filter.gate.enter();
        let view = self.filter.view();
        let around = Around { filter: &self.filter, view: &view };
        let (home, away) = (view.new.home(key.0), view.new.away(key.0));
        let fingerprint = key.0.fingerprint;
        let hop = if outward {
            Hop { from: home, to: away, slot: Slot::at_home(fingerprint) }
        } else {
            Hop { from: away, to: home, slot: Slot::away(fingerprint) }
        };
        // As the search does that finds paths.
        let ready = around.is_ready(hop.from) && around.is_ready(hop.to);
        ready && relocate(&view.new, &around, hop) == Relocation::Moved
    }

    /// A hop back home of a kick in the table that is being drained, by someone who saw it before; whether it did.
    pub fn relocate_in_older(&self, key: GrowthKey) -> bool {
        let _inside = self.filter.gate.enter();
        let view = self.filter.view();
        let Some(old) = &view.old else { return false };
        let around = Around { filter: &self.filter, view: &view };
        let (from, to) = (old.cells.away(key.0), old.cells.home(key.0));
        let hop = Hop { from, to, slot: Slot::away(key.0.fingerprint) };
        relocate(&old.cells, &around, hop) == Relocation::Moved
    }

    pub fn doublings(&self) -> u32 {
        self.filter.doublings()
    }

    pub fn is_draining(&self) -> bool {
        self.filter.is_draining()
    }

    /// Keys by the counters.
    pub fn keys(&self) -> usize {
        self.filter.keys()
    }

    /// Taken slots, and the sum of all displaced counts.
    pub fn totals(&self) -> (usize, u64) {
        let layout = &self.filter.plan.layout;
        self.filter.words().fold((0, 0), |(taken, displaced), word| {
            (taken + layout.taken(word).count(), displaced + word::displaced_count(word))
        })
    }
}
