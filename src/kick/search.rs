//! The search for a path: breadth-first from both candidate buckets, over words that are read without locks.
//!
//! Breadth-first finds a shortest path, so that as few fingerprints as possible move (Li, Andersen, Kaminsky and Freedman,
//! "Algorithmic Improvements for Fast Concurrent Cuckoo Hashing", EuroSys 2014). It is deterministic and bounded by
//! its number of nodes, lives on the stack, and asks for each bucket's cache line when it enters the queue, long before it is read.

use super::relocate::Hop;
use crate::{cells::Cells, word::Slot};

/// The parent of a root.
const NONE: u16 = u16::MAX;

/// A bucket that could be reached.
#[derive(Clone, Copy)]
struct Node {
    bucket: u32,
    /// What would move from the parent's bucket to this one.
    slot: Slot,
    parent: u16,
}

/// A search that looks at up to `NODES` buckets.
pub(super) struct Search<const NODES: usize> {
    nodes: [Node; NODES],
    /// The node whose bucket has a free slot.
    end: Option<u16>,
}

impl<const NODES: usize> Search<NODES> {
    /// Searches from the candidate buckets of a class, which may be one and the same.
    pub(super) fn run(cells: &Cells, home: usize, away: usize) -> Self {
        let root = |bucket: usize| Node { bucket: bucket as u32, slot: Slot::at_home(0), parent: NONE };
        let mut search = Self { nodes: [root(home); NODES], end: None };
        search.nodes[1] = root(away);
        let mut len = if home == away { 1 } else { 2 };
        let mut next = 0;
        while next < len {
            let node = search.nodes[next];
            let bucket = node.bucket as usize;
            let word = cells.word(bucket).peek();
            if !cells.layout.is_full(word) {
                search.end = Some(next as u16);
                break;
            }
            let came_from =
                if node.parent == NONE { bucket } else { search.nodes[node.parent as usize].bucket as usize };
            for slot in cells.layout.taken(word) {
                let other = cells.geometry.other(bucket, slot.fingerprint());
                // A fingerprint with one bucket cannot move, and moving back gains nothing.
                if len < NODES && other != bucket && other != came_from {
                    cells.prefetch(other);
                    search.nodes[len] = Node { bucket: other as u32, slot, parent: next as u16 };
                    len += 1;
                }
            }
            next += 1;
        }
        search
    }

    /// The moves that lead to a free slot in a root, in the order in which they have to be made; `None` if no path was found.
    pub(super) fn path(&self) -> Option<impl Iterator<Item = Hop>> {
        let mut node = self.nodes[self.end? as usize];
        Some(core::iter::from_fn(move || {
            if node.parent == NONE {
                return None;
            }
            let parent = self.nodes[node.parent as usize];
            let hop = Hop { from: parent.bucket as usize, to: node.bucket as usize, slot: node.slot };
            node = parent;
            Some(hop)
        }))
    }
}
