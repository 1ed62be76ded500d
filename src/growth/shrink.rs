//! Shrinking, which nobody else may look at: the fingerprints are inserted anew into a smaller table.

use alloc::sync::Arc;

use super::{
    Growing,
    state::{Generation, State, StateCell},
};
use crate::{
    hash::{Class, Generation as _},
    kick::{self, NoPath, Surroundings},
    stats::Counters,
    word::Slot,
};

/// A table that nobody else works on.
struct Exclusive;

impl Surroundings for Exclusive {
    fn is_ready(&self, _bucket: usize) -> bool {
        true
    }

    fn settle(&self, _class: Class) {
        unreachable!("no other thread takes copies")
    }
}

impl Growing {
    /// Puts all fingerprints into the smallest table that they fit.
    pub(crate) fn shrink(&mut self) {
        self.finish_draining();
        let current = self.doublings();
        let keys = self.keys();
        let smaller = (0..current).filter(|doublings| self.plan.capacity(*doublings) >= keys);
        if let Some(current) = smaller.into_iter().find_map(|doublings| self.rebuilt(doublings)) {
            // All tables there were go: nobody else is looking.
            self.state = StateCell::new(State::new(Arc::new(current), None));
        }
    }

    /// All fingerprints in a table of another size, if they fit and it can be had.
    fn rebuilt(&self, doublings: u32) -> Option<Generation> {
        let view = self.view();
        let rebuilt = Generation::new(self.plan.base, self.plan.layout, doublings, self.huge_pages).ok()?;
        let cells = self.cells(&rebuilt);
        // Relocations of this kind are not those that the statistics are about.
        let counters = Counters::for_buckets(1).ok()?;
        for (bucket, word) in view.new.words().enumerate() {
            for slot in self.plan.layout.taken(word) {
                let (base, fingerprint) = (view.new.generation.base(bucket), slot.fingerprint());
                let home = if slot.is_displaced() { self.geometry.other(base, fingerprint) } else { base };
                let candidates = cells.candidates(Class { home, fingerprint });
                if !cells.place(candidates.home, Slot::at_home(fingerprint)) {
                    kick::place_or_kick(&cells, &candidates, &Exclusive, &counters).map_err(|NoPath| ()).ok()?;
                }
            }
        }
        Some(rebuilt)
    }
}
