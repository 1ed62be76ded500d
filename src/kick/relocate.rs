//! One relocation: a fingerprint moves to its other bucket while readers, removers and other movers are at work.
//!
//! # Protocol
//!
//! Home to away, only if away shows a free slot:
//! 1. raise the home's displaced count, by a compare-and-swap on a word that still holds the copy;
//! 2. place a copy in the away bucket (no room any more: lower the count again, stale);
//! 3. advance the sequence;
//! 4. clear a copy in the home bucket.
//!
//! Away to home:
//! 1. place a copy in the home bucket;
//! 2. advance the sequence;
//! 3. clear a copy in the away bucket;
//! 4. lower the home's displaced count.
//!
//! If the copy to be cleared is gone, someone took it. The class then has one copy more than it should, and this thread owes one take,
//! for which it has already advanced the sequence: it takes any copy of the class. Only more removals than inserts can have taken that
//! copy too; then nothing is owed any more.
//!
//! From before the first step until after the last, the relocation is announced in the counter of the stripe ([`crate::seq`]).

use super::Surroundings;
use crate::{cells::Cells, hash::Class, word::Slot, words::Live};

/// A move of `slot` between its two buckets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) slot: Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relocation {
    /// The fingerprint has moved; `from` has got a free slot.
    Moved,
    /// The words are not as they were when the path was found.
    Stale,
}

pub(crate) fn relocate<G: Live>(cells: &Cells<G>, around: &impl Surroundings, hop: Hop) -> Relocation {
    let fingerprint = hop.slot.fingerprint();
    let outward = !hop.slot.is_displaced();
    let home = cells.generation.base(if outward { hop.from } else { hop.to });
    let class = cells.candidates(Class { home, fingerprint });
    debug_assert_eq!(class.away, if outward { hop.to } else { hop.from });
    let _under_way = cells.sequences().relocation(home);
    if mutated!("sequence_before_copy") {
        cells.sequences().advance(home);
    }

    if outward {
        // Look before counting: a count that reaches its maximum never comes down again.
        if cells.layout.is_full(cells.word(class.away).peek()) {
            return Relocation::Stale;
        }
        if !mutated!("count_after_copy") && !cells.count_up(class.home, |word| cells.has_at_home(word, &class)) {
            return Relocation::Stale;
        }
        if !cells.place(class.away, Slot::away(fingerprint)) {
            if !mutated!("count_after_copy", "keep_lost_count") {
                cells.count_down(class.home);
            }
            return Relocation::Stale;
        }
        if mutated!("count_after_copy") {
            cells.count_up(class.home, |_| true);
        }
    } else if !cells.place(class.home, Slot::at_home(fingerprint)) {
        return Relocation::Stale;
    }

    if !mutated!("relocate_without_sequence", "sequence_before_copy") {
        cells.sequences().advance(home);
    }

    if outward {
        if cells.clear_home(&class) {
            return Relocation::Moved;
        }
    } else if cells.clear_away(&class) {
        cells.count_down(class.home);
        return Relocation::Moved;
    }
    if !mutated!("keep_extra_copy") {
        around.settle(class.class);
    }
    Relocation::Stale
}
