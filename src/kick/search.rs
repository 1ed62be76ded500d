//! The search for a path: breadth-first from both candidate buckets, over words that are read without locks.
//!
//! Breadth-first finds a shortest path, so that as few fingerprints as possible move (Li, Andersen, Kaminsky and Freedman,
//! "Algorithmic Improvements for Fast Concurrent Cuckoo Hashing", EuroSys 2014). It is deterministic, bounded by its number of nodes, and
//! lives on the stack. It goes level by level: all buckets of one depth are asked for, then all are looked at, and only if none of them has a
//! free slot are their own neighbours worked out.

use core::ops::Range;

use super::{Surroundings, relocate::Hop};
use crate::{cells::Cells, word::Slot, words::Live};

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
    pub(super) fn run<G: Live>(cells: &Cells<G>, around: &impl Surroundings, home: usize, away: usize) -> Self {
        let root = |bucket: usize| Node { bucket: bucket as u32, slot: Slot::at_home(0), parent: NONE };
        let mut search = Self { nodes: [root(home); NODES], end: None };
        search.nodes[1] = root(away);
        // The nodes of one depth.
        let mut level = 0..if home == away { 1 } else { 2 };
        while !level.is_empty() {
            let usable = |node: &Node| {
                let bucket = node.bucket as usize;
                around.is_ready(bucket) && !cells.layout.is_full(cells.word(bucket).peek())
            };
            if let Some(free) = search.nodes[level.clone()].iter().position(usable) {
                search.end = Some((level.start + free) as u16);
                break;
            }
            level = level.end..search.expand(cells, around, level);
        }
        search
    }

    /// Adds the buckets that the fingerprints of this level could move to; how many nodes there are then.
    fn expand<G: Live>(&mut self, cells: &Cells<G>, around: &impl Surroundings, level: Range<usize>) -> usize {
        let mut len = level.end;
        for parent in level {
            let node = self.nodes[parent];
            let bucket = node.bucket as usize;
            if !around.is_ready(bucket) {
                continue;
            }
            let came_from = if node.parent == NONE { node.bucket } else { self.nodes[node.parent as usize].bucket };
            for slot in cells.layout.taken(cells.word(bucket).peek()) {
                let other = cells.other(bucket, slot.fingerprint());
                // A fingerprint with one bucket cannot move, and moving back gains nothing.
                if len < NODES && other != bucket && other != came_from as usize {
                    cells.prefetch(other);
                    self.nodes[len] = Node { bucket: other as u32, slot, parent: parent as u16 };
                    len += 1;
                }
            }
        }
        len
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
