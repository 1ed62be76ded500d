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

use relocate::{Relocation, relocate};
use search::Search;

use crate::{
    cells::{Candidates, Cells},
    hash::{Class, Generation},
    stats::{Counters, Event},
};

/// How an attempt to make room ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kick {
    /// One of the two buckets has, or just had, a free slot: try again.
    Room,
    /// No path within the bounds of the search.
    NoPath,
}

/// Buckets that a first search looks at: enough for nearly all, and little stack to prepare.
const FEW: usize = 64;
/// Buckets that a search looks at before the filter counts as full. More gain next to nothing: each doubling raises the load at
/// the first failure by about 0.001.
const MANY: usize = 512;

/// Tries to free a slot in one of the candidate buckets.
#[cold]
#[inline(never)]
pub(crate) fn kick<G: Generation>(cells: &Cells<G>, class: &Candidates, counters: &Counters) -> Kick {
    counters.add(Event::Searched);
    match kick_within::<FEW, G>(cells, class, counters) {
        Kick::NoPath => kick_within::<MANY, G>(cells, class, counters),
        Kick::Room => Kick::Room,
    }
}

/// Asks for the words that a search for this class would look at after the two full ones, long before it does: nearly all paths end there.
/// A hint, nothing depends on it.
#[inline]
pub(crate) fn look_ahead<G: Generation>(cells: &Cells<G>, class: Class) {
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
fn kick_within<const NODES: usize, G: Generation>(cells: &Cells<G>, class: &Candidates, counters: &Counters) -> Kick {
    let search = Search::<NODES>::run(cells, class.home, class.away);
    let Some(path) = search.path() else { return Kick::NoPath };
    for hop in path {
        match relocate(cells, hop) {
            Relocation::Moved => counters.add(Event::Relocated),
            Relocation::Stale => {
                counters.add(Event::Retried);
                break;
            }
        }
    }
    Kick::Room
}
