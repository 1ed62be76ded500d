//! What a snapshot of a filter that grows is taken of, and a filter that begins with the words of one.

use super::{Growing, GrowthPlan, state::Generation};
use crate::{error::BuildError, snapshot::OtherSize, table::Table};

impl Growing {
    /// A filter with one table, which has doubled so often, and so many keys.
    pub(crate) fn restored(
        plan: GrowthPlan,
        seed: u64,
        doublings: u32,
        table: Table,
        keys: usize,
    ) -> Result<Self, BuildError> {
        let mut growing =
            Self::beginning_with(plan, seed, Generation::of(table, plan.layout, doublings, false)?, false)?;
        growing.common.counters.set_keys(keys);
        Ok(growing)
    }

    /// Copies all words, behind the closed gate, if there are as many as there is room for; how often the table has doubled.
    pub(crate) fn copy_words(&self, out: &mut [[u8; 8]]) -> Result<u32, OtherSize> {
        let _closed = self.gate.close();
        // Nobody else is draining, so each chunk is drained as soon as it is looked at.
        loop {
            let view = self.view_to_change();
            if view.old.is_none() {
                break;
            }
            if self.drain_next() == 0 {
                self.retire(&view);
            }
        }
        let view = self.view();
        let words = view.new.words.table.words();
        if words.len() != out.len() {
            return Err(OtherSize { words: words.len() });
        }
        for (out, word) in out.iter_mut().zip(words) {
            *out = word.load().to_le_bytes();
        }
        Ok(view.current.place.doublings())
    }
}
