//! The operations of the filter on classes: section 4 of `docs/design.md`, put together from the steps of [`crate::cells`].
//!
//! - `contains` reads, see [`Cells::contains_home_first`] and [`Cells::contains_both`].
//! - `insert` places a copy in the home bucket (one compare-and-swap), else in the away bucket after raising the home's
//!   displaced count, else kicks and tries again. It needs no sequence: a copy that appears can make no reader miss one.
//! - `remove` takes a copy from the home word alone if that word says that there is no displaced one, else after advancing the sequence.
//! - `insert_if_absent` does a look-up and an insert inside a claim of the stripe.
//!
//! Whatever changes more than one word does so inside the [`Gate`]: a displaced insert, a kick, a removal that the home word does not decide.

use crate::{
    cells::{Candidates, Cells, NotPlaced},
    claim::Claims,
    error::{BuildError, InsertError},
    gate::Gate,
    hash::{Class, Geometry, Only},
    kick::{self, Alone, NoPath},
    seq::Stripes,
    stats::Event,
    sync::AtomicWord,
    table::Table,
    word::{Layout, Slot},
    words::{Common, Shared},
};

/// Tables up to this size count as cached: look-ups read both words without branching on the first.
///
/// Measured for single look-ups on a core with 2 MiB of second-level cache: the two forms meet at about half load in a table of 1 MiB, at 75% in one of 4 MiB
/// and at 85% in one of 16 MiB, and filters are mostly used near their capacity. For batches, which meet there too, the table is in section 4 of `docs/design.md`.
const CACHED_BYTES: usize = 4 << 20;

/// Whether a table of so many buckets counts as cached.
pub(crate) const fn is_cached(buckets: usize) -> bool {
    buckets <= CACHED_BYTES / size_of::<u64>()
}

#[derive(Debug)]
pub(crate) struct RawFilter {
    table: Table,
    layout: Layout,
    geometry: Geometry,
    pub(crate) common: Common,
    claims: Claims,
    pub(crate) gate: Gate,
    pub(crate) cached: bool,
}

impl RawFilter {
    pub(crate) fn new(layout: Layout, geometry: Geometry, huge_pages: bool) -> Result<Self, BuildError> {
        Self::of(Table::new(geometry.buckets(), huge_pages)?, layout, geometry)
    }

    /// With a table that there is already, and so many keys in it.
    pub(crate) fn restored(table: Table, layout: Layout, geometry: Geometry, keys: usize) -> Result<Self, BuildError> {
        let mut raw = Self::of(table, layout, geometry)?;
        raw.common.counters.set_keys(keys);
        Ok(raw)
    }

    fn of(table: Table, layout: Layout, geometry: Geometry) -> Result<Self, BuildError> {
        let buckets = geometry.buckets();
        let stripes = Stripes::for_buckets(buckets);
        Ok(Self {
            table,
            layout,
            geometry,
            common: Common::new(stripes, buckets)?,
            claims: Claims::new(stripes)?,
            gate: Gate::for_buckets(buckets)?,
            cached: is_cached(buckets),
        })
    }

    #[inline(always)]
    pub(crate) fn cells(&self) -> Cells<'_> {
        Cells {
            words: Shared { table: &self.table, common: &self.common },
            layout: &self.layout,
            geometry: &self.geometry,
            generation: Only,
        }
    }

    #[inline(always)]
    pub(crate) fn class(&self, hash: u64) -> Class {
        self.geometry.class(hash)
    }

    #[inline(always)]
    pub(crate) fn contains(&self, class: Class) -> bool {
        if self.cached { self.cells().contains_both(class) } else { self.cells().contains_home_first(class) }
    }

    pub(crate) fn count(&self, class: Class) -> usize {
        self.cells().count(&self.cells().candidates(class))
    }

    /// Keys that are in.
    pub(crate) fn keys(&self) -> usize {
        self.common.counters.keys(self.slots())
    }

    pub(crate) fn slots(&self) -> usize {
        self.geometry.buckets() * self.layout.slots()
    }

    #[inline]
    pub(crate) fn insert(&self, class: Class) -> Result<(), InsertError> {
        let cells = self.cells();
        // Without a loop, and what most inserts do not come to in a call: a few registers fewer to be saved.
        if let Err(why) = cells.place_once(cells.home(class), Slot::at_home(class.fingerprint)) {
            self.insert_further(class, why)?;
        }
        self.common.counters.add(Event::Inserted);
        Ok(())
    }

    #[inline(never)]
    fn insert_further(&self, class: Class, why: NotPlaced) -> Result<(), InsertError> {
        let cells = self.cells();
        let class = &cells.candidates(class);
        if why == NotPlaced::Overtaken {
            cells.note_overtaken();
            if cells.place(class.home, Slot::at_home(class.class.fingerprint)) {
                return Ok(());
            }
        }
        // The fence at the gate holds up loads behind it, not this.
        cells.prefetch(class.away);
        let _inside = self.gate.enter();
        let around = Alone { cells, counters: &self.common.counters };
        kick::place_or_kick(&cells, class, &around, &self.common.counters).map_err(|NoPath| {
            self.common.counters.add(Event::Refused);
            if cells.is_filled_by(class) { InsertError::TooManyCopies } else { InsertError::Full }
        })
    }

    pub(crate) fn insert_if_absent(&self, class: Class) -> Result<bool, InsertError> {
        let _claim = self.claims.claim(class.home);
        if self.cells().has_key(class) {
            return Ok(false);
        }
        self.insert(class).map(|()| true)
    }

    #[inline]
    pub(crate) fn remove(&self, class: Class) -> bool {
        let cells = self.cells();
        let candidates = cells.candidates(class);
        let taken = cells.take_from_home_alone(&candidates).unwrap_or_else(|| self.take(&candidates));
        if taken {
            self.common.counters.add(Event::Removed);
        }
        taken
    }

    #[inline(never)]
    fn take(&self, class: &Candidates) -> bool {
        let cells = self.cells();
        // As in `insert_further`.
        cells.prefetch(class.away);
        let _inside = self.gate.enter();
        if !mutated!("remove_without_sequence") {
            cells.sequences().advance(class.class.home);
        }
        cells.take(class)
    }

    pub(crate) fn words_mut(&mut self) -> &mut [AtomicWord] {
        self.table.words_mut()
    }

    /// Copies all words, behind the closed gate.
    pub(crate) fn copy_words(&self, out: &mut [[u8; 8]]) {
        let _closed = self.gate.close();
        for (out, word) in out.iter_mut().zip(self.table.words()) {
            *out = word.load().to_le_bytes();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.table.reset();
        self.common.counters.reset();
    }

    /// Bytes on the heap.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.common.memory_bytes() + self.claims.memory_bytes() + self.gate.memory_bytes()
    }
}
