//! Counts the displaced fingerprints of every home bucket, of a table that nobody is working on.
//!
//! It is most of the work of loading a snapshot and a good part of packing a table, and the homes lie anywhere: so words are gone through a part at a time, the homes of
//! a part are asked for together, and the steps in between are free of branches that would be mispredicted.

use crate::{
    hash::{Generation, Geometry},
    memory::AllocError,
    table::{self, Scratch},
    word::{Layout, Slot, with_slots},
};

/// Words that are looked at together at most: their places have eight bits.
pub(crate) const PART: usize = 1 << u8::BITS;

/// Displaced slots of a part at most.
const MOST: usize = PART * *Layout::SLOTS.end();

/// The displaced fingerprints of each home, and the layout and geometry by which they are found.
pub(crate) struct Displaced {
    counts: Scratch<u8>,
    layout: Layout,
    geometry: Geometry,
    /// Places of words that have displaced slots. The ends of this list and the next are written to always, and kept only if it counts.
    crowded: [u8; PART],
    /// Displaced slots, with the places of their words.
    slots: [(Slot, u32); MOST],
    /// Their homes.
    homes: [u32; MOST],
}

/// A displaced fingerprint in a bucket that is its home.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single {
    pub(crate) bucket: usize,
}

impl Displaced {
    pub(crate) fn new(buckets: usize, layout: Layout, geometry: Geometry) -> Result<Self, AllocError> {
        Ok(Self {
            counts: Scratch::new(buckets)?,
            layout,
            geometry,
            crowded: [0; PART],
            slots: [(Slot::at_home(0), 0); MOST],
            homes: [0; MOST],
        })
    }

    /// How many there are of each home, up to 255.
    pub(crate) fn counts(&self) -> &[u8] {
        &self.counts
    }

    /// Counts those in some buckets, at most [`PART`], from `first` on, whose words have no sealed slot; none if one is in its home bucket.
    pub(crate) fn count(&mut self, words: &[u64], first: usize, generation: impl Generation) -> Result<(), Single> {
        with_slots!(self.layout.slots(), SLOTS => self.count_slots::<SLOTS>(words, first, generation))
    }

    #[inline(never)]
    fn count_slots<const SLOTS: usize>(
        &mut self,
        words: &[u64],
        first: usize,
        generation: impl Generation,
    ) -> Result<(), Single> {
        let layout = const { Layout::new(SLOTS) };
        let Self { counts, geometry, crowded, slots, homes, .. } = self;
        let mut len = 0;
        for (at, word) in words.iter().enumerate() {
            crowded[len] = at as u8;
            len += usize::from(layout.is_any_displaced(*word));
        }
        let crowded = &crowded[..len];
        let mut len = 0;
        for at in crowded {
            layout.each_displaced(words[usize::from(*at)], |slot, is_one| {
                slots[len] = (slot, u32::from(*at));
                len += usize::from(is_one);
            });
        }
        let (slots, homes) = (&slots[..len], &mut homes[..len]);
        let mut is_any_single = false;
        for ((slot, at), home) in slots.iter().zip(&mut *homes) {
            let (bucket, fingerprint) = (first + *at as usize, slot.fingerprint());
            let found = generation.bucket(geometry.other(generation.base(bucket), fingerprint), fingerprint);
            is_any_single |= found == bucket;
            table::prefetch(&raw const counts[found]);
            *home = found as u32;
        }
        if is_any_single {
            let buckets = slots.iter().map(|(_, at)| first + *at as usize);
            let single = buckets.zip(homes).find(|(bucket, home)| *bucket == **home as usize);
            return single.map_or(Ok(()), |(bucket, _)| Err(Single { bucket }));
        }
        for home in homes {
            let count = &mut counts[*home as usize];
            *count = count.saturating_add(1);
        }
        Ok(())
    }
}
