//! A window for `loom-tests`: counters and layers of a few words.

use alloc::vec::Vec;

use super::{
    bits::Bits,
    counters::Counters,
    layers::{Cells as _, Layers, Series},
    shape::Shape,
    snapshot,
};
use crate::table::Table;

/// Counters of 4 bits in a word or two, of which each hash has three or fewer.
#[derive(Debug)]
pub struct CountersModel(Counters);

impl Default for CountersModel {
    fn default() -> Self {
        Self(Counters::new(Shape::new(false, 1, 4, 3, 0), false).expect("a word"))
    }
}

impl CountersModel {
    /// Two words, and a gate.
    pub fn with_snapshots() -> Self {
        let mut counters = Counters::new(Shape::new(false, 2, 4, 3, 0), false).expect("two words");
        counters.put_gate_to_use();
        Self(counters)
    }

    /// What a snapshot has.
    pub fn snapshot(&self) -> Self {
        let mut bytes = [[0; 8]; 2];
        let bytes = &mut bytes[..self.0.shape.words];
        snapshot::copy(&self.0, bytes);
        let mut table = Table::to_fill(bytes.len()).expect("two words");
        table.words_mut().iter_mut().zip(bytes).for_each(|(word, bytes)| word.set(u64::from_le_bytes(*bytes)));
        Self(Counters::of(table, self.0.shape).expect("a few words"))
    }

    /// The counters of a hash: the first word has 0 to 15.
    pub fn cells(&self, hash: u64) -> Vec<usize> {
        self.0.cells(hash)
    }

    pub fn insert(&self, hash: u64) {
        self.0.insert(hash);
    }

    pub fn remove(&self, hash: u64) -> bool {
        self.0.remove(hash).0
    }

    pub fn count(&self, hash: u64) -> u64 {
        self.0.count(hash)
    }

    /// Counters above 0.
    pub fn taken(&self) -> u64 {
        self.0.tally().0
    }
}

/// Layers, of which the first is full after one key.
#[derive(Debug)]
pub struct LayersModel(Layers<Bits>);

impl Default for LayersModel {
    fn default() -> Self {
        let series =
            Series { capacity: 1, rate: 0.2, growth: 1.0, tightening: 0.5, cell_bits: 1, seed: 0, huge_pages: false };
        Self(Layers::new(series).expect("a few words"))
    }
}

impl LayersModel {
    pub fn insert(&self, hash: u64) -> bool {
        self.0.insert(hash).expect("room for a layer")
    }

    pub fn contains(&self, hash: u64) -> bool {
        self.0.contains(hash)
    }

    pub fn layers(&self) -> usize {
        self.0.len()
    }

    /// Fills the newest layer; the next hash that is not in.
    pub fn fill(&self) -> u64 {
        let mut hash = 0;
        while !self.0.is_full() {
            self.insert(hash);
            hash += 1;
        }
        (hash..).find(|hash| !self.contains(*hash)).expect("unbounded")
    }
}
