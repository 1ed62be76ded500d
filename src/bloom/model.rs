//! A window for `loom-tests`: counters and layers of a few words.

use super::{
    bits::Bits,
    counters::Counters,
    layers::{Layers, Series},
    shape::Shape,
};

/// Counters of 4 bits in a single word, of which each hash has three or fewer.
#[derive(Debug)]
pub struct CountersModel(Counters);

impl Default for CountersModel {
    fn default() -> Self {
        Self(Counters::new(Shape::new(false, 1, 4, 3, 0), false).expect("a word"))
    }
}

impl CountersModel {
    pub fn insert(&self, hash: u64) {
        self.0.insert(hash);
    }

    pub fn remove(&self, hash: u64) -> bool {
        self.0.remove(hash).is_some()
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
