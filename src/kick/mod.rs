//! Kicking: making room for a fingerprint whose two buckets are full, without ever holding one in hand.
//!
//! 1. [`search`] finds a path: a chain of fingerprints each of which could move to its other bucket, the last of them into a
//!    free slot. It only reads.
//! 2. [`relocate`] moves them one by one, *from the free end backwards*. Each move is complete before the next begins: a
//!    fingerprint is first copied, then its old copy is taken, so at no instant is it in neither place.
//!
//! Nothing is locked, so the path can be stale by the time it is walked. Each move checks for itself that its fingerprint is still
//! there and its target still has room; if not, someone else has changed one of them, and the insert starts again.

pub(crate) mod relocate;
mod search;

use crossbeam_utils::Backoff;
use relocate::{Relocation, relocate};
use search::Search;

use crate::{
    cells::{Candidates, Cells},
    hash::Class,
    stats::{Counters, Event},
    sync,
    word::Slot,
    words::Live,
};

/// What the filter has to say about one of its tables.
pub(crate) trait Surroundings {
    /// Makes a bucket ready for being put into; `false` if it cannot be used now.
    fn is_ready(&self, bucket: usize) -> bool;
    /// Takes one copy of the class, for which the sequence was advanced, from wherever it is. If there is none a removal took it that had no key
    /// of its own: the filter has then counted one removal too many.
    fn settle(&self, class: Class);
}

/// A filter of this one table.
pub(crate) struct Alone<'a> {
    pub(crate) cells: Cells<'a>,
    pub(crate) counters: &'a Counters,
}

impl Surroundings for Alone<'_> {
    #[inline(always)]
    fn is_ready(&self, _bucket: usize) -> bool {
        true
    }

    fn settle(&self, class: Class) {
        if !self.cells.take(&self.cells.candidates(class)) {
            self.counters.add(Event::Inserted);
        }
    }
}

/// No path within the bounds of the search: the table counts as full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoPath;

/// Puts a copy of the class into its away bucket or, after relocations, into either; its home bucket was just seen full.
///
/// If the home bucket cannot be used now, because a thread was stopped that drains into it, the away bucket will do, whether home has room or not.
///
/// `NoPath` also if this table is being left for a larger one: nothing displaced is put into it any more whose home is sealed.
#[inline(never)]
pub(crate) fn place_or_kick<G: Live>(
    cells: &Cells<G>,
    class: &Candidates,
    around: &impl Surroundings,
    counters: &Counters,
) -> Result<(), NoPath> {
    let Class { fingerprint, .. } = class.class;
    let backoff = Backoff::new();
    loop {
        let home_is_ready = around.is_ready(class.home);
        let mut kicked = false;
        let needs_away = |word| cells.layout.is_full(word) || !home_is_ready;
        // Look before counting: a count that reaches its maximum never comes down again.
        let away = !class.is_single() && around.is_ready(class.away);
        if away && !cells.layout.is_full(cells.word(class.away).peek()) {
            if mutated!("insert_count_after_copy") {
                if cells.place(class.away, Slot::away(fingerprint)) {
                    cells.count_up(class.home, |_| true);
                    return Ok(());
                }
            } else if cells.count_up(class.home, |word| needs_away(word) && !cells.layout.has_sealed(word)) {
                if cells.place(class.away, Slot::away(fingerprint)) {
                    return Ok(());
                }
                if !mutated!("keep_undone_count") {
                    cells.count_down(class.home);
                }
            }
        } else {
            kick(cells, class, around, counters)?;
            kicked = true;
        }
        if around.is_ready(class.home) && cells.place(class.home, Slot::at_home(fingerprint)) {
            return Ok(());
        }
        if cells.layout.has_sealed(cells.word(class.home).peek()) {
            return Err(NoPath);
        }
        // Whatever room there was is gone, or was made elsewhere: by other threads, or by the kick.
        if !kicked {
            sync::snooze(&backoff);
        }
    }
}

/// Buckets that a first search looks at: enough for nearly all, and little stack to prepare.
const FEW: usize = 64;
/// Buckets that a search looks at before the filter counts as full. More gain next to nothing: each doubling raises the load at
/// the first failure by about 0.001.
const MANY: usize = 512;

/// Tries to free a slot in one of the candidate buckets. If there is a path there is, or just was, a free slot: try again.
#[inline(never)]
fn kick<G: Live>(
    cells: &Cells<G>,
    class: &Candidates,
    around: &impl Surroundings,
    counters: &Counters,
) -> Result<(), NoPath> {
    counters.add(Event::Searched);
    kick_within::<FEW, G>(cells, class, around, counters)
        .or_else(|NoPath| kick_within::<MANY, G>(cells, class, around, counters))
}

/// Asks for the words that a search for this class would look at after the two full ones, long before it does: nearly all paths end there.
/// A hint, nothing depends on it.
#[inline]
pub(crate) fn look_ahead<G: Live>(cells: &Cells<G>, class: Class) {
    let words = [cells.home(class), cells.away(class)].map(|bucket| (bucket, cells.word(bucket).load()));
    if words.iter().all(|(_, word)| cells.layout.is_full(*word)) {
        for (bucket, word) in words {
            for slot in cells.layout.taken(word) {
                cells.prefetch(cells.other(bucket, slot.fingerprint()));
            }
        }
    }
}

#[inline(never)]
fn kick_within<const NODES: usize, G: Live>(
    cells: &Cells<G>,
    class: &Candidates,
    around: &impl Surroundings,
    counters: &Counters,
) -> Result<(), NoPath> {
    let search = Search::<NODES>::run(cells, around, class.home, class.away);
    for hop in search.path().ok_or(NoPath)? {
        match relocate(cells, around, hop) {
            Relocation::Moved => counters.add(Event::Relocated),
            Relocation::Stale => {
                counters.add(Event::Retried);
                break;
            }
        }
    }
    Ok(())
}
