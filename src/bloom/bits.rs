//! The bits of a [`BloomFilter`](super::BloomFilter), or of a layer of a scalable one, in either form.

use super::{
    blocked,
    shape::{LINE, Shape},
    standard,
};
use crate::{batch::Backend, memory::AllocError, raw::is_cached, sync::AtomicWord, table::Table};

#[derive(Debug)]
pub(crate) struct Bits {
    pub(crate) table: Table,
    pub(crate) shape: Shape,
    cached: bool,
}

impl Bits {
    /// With a table that there is already.
    pub(crate) fn of(table: Table, shape: Shape) -> Result<Self, AllocError> {
        Ok(Self { table, shape, cached: is_cached(shape.words) })
    }

    /// Sets the bits of a hash; how many were not set.
    #[inline]
    pub(crate) fn insert(&self, hash: u64) -> u32 {
        let (table, shape) = (&self.table, &self.shape);
        let mixed = shape.mixed(hash);
        if shape.blocked { blocked::insert(table, shape, mixed) } else { standard::insert(table, shape, mixed) }
    }

    pub(crate) fn insert_batch(&self, hashes: &[u64]) {
        let (table, shape) = (&self.table, &self.shape);
        if shape.blocked {
            blocked::insert_batch(table, shape, self.cached, hashes);
        } else {
            standard::insert_batch(table, shape, self.cached, hashes);
        }
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let (table, shape) = (&self.table, &self.shape);
        let mixed = shape.mixed(hash);
        if shape.blocked { blocked::contains(table, shape, mixed) } else { standard::contains(table, shape, mixed) }
    }

    pub(crate) fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_batch_with(Backend::best(), hashes, found);
    }

    pub(crate) fn contains_batch_with(&self, backend: Backend, hashes: &[u64], found: &mut [bool]) {
        let (table, shape) = (&self.table, &self.shape);
        if shape.blocked {
            blocked::contains_batch(backend, table, shape, self.cached, hashes, found);
        } else {
            standard::contains_batch(backend, table, shape, self.cached, hashes, found);
        }
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.table.words().iter().map(AtomicWord::load_alone)
    }

    /// Bits that are set.
    pub(crate) fn set(&self) -> u64 {
        self.words().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(crate) fn fill_ratio(&self) -> f64 {
        self.set() as f64 / self.shape.cells() as f64
    }

    /// The share of absent keys that are found with the bits that are set now.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        if !self.shape.blocked {
            return self.shape.rate_of_fill(self.fill_ratio());
        }
        // Every line is as likely as another, and in each of its words so are the bits.
        let bits_per_word = f64::from(self.shape.probes) / LINE as f64;
        let lines = self.table.words().chunks_exact(LINE);
        let rate = |line: &[AtomicWord]| -> f64 {
            line.iter().map(|word| f64::from(word.load_alone().count_ones()) / 64.0).product()
        };
        let sum: f64 = lines.map(|line| libm::pow(rate(line), bits_per_word)).sum();
        sum / self.shape.lines() as f64
    }

    /// Sets the bits that another filter of the same shape has.
    pub(crate) fn union(&self, other: &Self) {
        for (word, bits) in self.table.words().iter().zip(other.words()) {
            if bits & !word.peek_alone() != 0 {
                word.set_bits(bits);
            }
        }
    }

    /// Clears the bits that another filter of the same shape has not.
    pub(crate) fn intersect(&mut self, other: &Self) {
        for (word, bits) in self.table.words_mut().iter_mut().zip(other.words()) {
            let both = word.load_alone() & bits;
            word.set(both);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.table.reset();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }
}
