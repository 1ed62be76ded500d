//! The layers of scalable filters (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom filters", 2007).
//!
//! - Layer *i* is sized for `capacity * growth^i` keys at the rate `p (1 - r) r^i`. The sum over any number of layers is below `p`, and an absent key is found if any layer finds it:
//!   so the rate stays at or below `p` however far the filter grows.
//! - A layer is *full* when as many of its cells are taken as give it its rate, less a 64th. Threads count the cells that they take in shards, and look at the sum from time to
//!   time, such that together they cannot pass the rate between two looks. (A thread that was stopped between choosing a layer and inserting may put one key
//!   more into it.)
//! - Who finds the newest layer full makes another, and puts it into the next [`Slot`], unless another thread was faster: then it uses that one. Nobody waits.
//!   Layers stay where they are as long as the filter lives.
//! - Look-ups visit the newest layer first, which has most of the keys. They find all layers that were there when they began: whoever learns of an insert
//!   sees its layer, since slots are filled in order, each by a thread that saw the one before.
//!
//! # Several copies of a key
//!
//! An insert goes to the oldest layer that claims the key already, and to the newest if none does. In a filter without removal it then has nothing to change: a key that comes
//! again and again makes no filter grow. In a filter with removal the copies of a key come to lie in one layer; and as nothing that a layer does not claim goes to any but the
//! newest one, what older layers claim only becomes less.
//!
//! A key is removed from the only layer that claims it, which is then the one that has it. If several claim it nothing is done: one has the key, the others take it for one of theirs.

use alloc::boxed::Box;
use core::array;

use super::{
    bits::Bits,
    counters::Counters,
    shape::{MAX_PROBES, Shape},
    slot::Slot,
};
use crate::{
    batch::CHUNK,
    error::{BuildError, InsertError},
    memory::AllocError,
    shards::Sharded,
    sync::{AtomicBool, AtomicUsize, Ordering},
    table::Table,
};

/// The most layers: as many halvings has the lowest rate of a layer from the highest one.
pub(crate) const MAX_LAYERS: usize = if cfg!(loom) { 4 } else { 64 };

/// What a layer is made of.
pub(crate) trait Cells: Sized {
    fn new(shape: Shape, huge_pages: bool) -> Result<Self, AllocError>;
    fn shape(&self) -> &Shape;
    fn table(&self) -> &Table;
    fn table_mut(&mut self) -> &mut Table;
    /// How many cells are taken that were free.
    fn insert(&self, hash: u64) -> u32;
    fn contains(&self, hash: u64) -> bool;
    fn contains_batch(&self, hashes: &[u64], found: &mut [bool]);
    /// Cells that are taken.
    fn taken(&self) -> u64;
    fn clear(&mut self);
    fn memory_bytes(&self) -> usize;
    /// Whether a key that is in has to be put in once more.
    const COUNTS: bool;
}

impl Cells for Bits {
    fn new(shape: Shape, huge_pages: bool) -> Result<Self, AllocError> {
        Self::new(shape, huge_pages)
    }
    fn shape(&self) -> &Shape {
        &self.shape
    }
    fn table(&self) -> &Table {
        &self.table
    }
    fn table_mut(&mut self) -> &mut Table {
        &mut self.table
    }
    #[inline]
    fn insert(&self, hash: u64) -> u32 {
        self.insert(hash)
    }
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.contains(hash)
    }
    fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_batch(hashes, found);
    }
    fn taken(&self) -> u64 {
        self.set()
    }
    fn clear(&mut self) {
        self.clear();
    }
    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
    const COUNTS: bool = false;
}

impl Cells for Counters {
    fn new(shape: Shape, huge_pages: bool) -> Result<Self, AllocError> {
        Self::new(shape, huge_pages)
    }
    fn shape(&self) -> &Shape {
        &self.shape
    }
    fn table(&self) -> &Table {
        &self.table
    }
    fn table_mut(&mut self) -> &mut Table {
        &mut self.table
    }
    #[inline]
    fn insert(&self, hash: u64) -> u32 {
        self.insert(hash)
    }
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.contains(hash)
    }
    fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_batch(hashes, found);
    }
    fn taken(&self) -> u64 {
        self.tally().0
    }
    fn clear(&mut self) {
        self.clear();
    }
    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
    const COUNTS: bool = true;
}

/// How layers follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) capacity: usize,
    pub(crate) rate: f64,
    pub(crate) growth: f64,
    pub(crate) tightening: f64,
    pub(crate) cell_bits: u32,
    pub(crate) seed: u64,
    pub(crate) huge_pages: bool,
}

/// Keys that the first layer has room for at least.
const SMALLEST: usize = if cfg!(loom) { 1 } else { 64 };

/// Layers are sized for a little more than their capacity, since they count as full a little early: this part of it, ...
const EARLY: f64 = 1.04;

/// ... and this many keys, of which a small layer notices each; the square root of the capacity comes to that, more than four standard deviations of the cells that so many keys take.
const EARLY_KEYS: f64 = 2.0;

impl Series {
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        super::shape::check_rate(self.rate)?;
        if !(self.growth >= 1.0 && self.growth <= 1024.0) {
            return Err(BuildError::InvalidGrowthFactor { factor: self.growth });
        }
        if !(self.tightening > 0.0 && self.tightening < 1.0) {
            return Err(BuildError::InvalidTighteningRatio { ratio: self.tightening });
        }
        Ok(())
    }

    /// The shape of a layer; `None` if there can be none so large, or of so low a rate.
    fn shape(&self, layer: usize) -> Option<Shape> {
        let rate = self.layer_rate(layer);
        if layer >= MAX_LAYERS || rate < libm::exp2(-f64::from(MAX_PROBES)) {
            return None;
        }
        let capacity = self.capacity.max(SMALLEST) as f64 * libm::pow(self.growth, layer as f64);
        let room = capacity * EARLY + libm::sqrt(capacity) + EARLY_KEYS;
        Shape::sized(false, room, rate, self.cell_bits, self.seed)
    }

    /// The rate of a layer that is full.
    pub(crate) fn layer_rate(&self, layer: usize) -> f64 {
        self.rate * (1.0 - self.tightening) * libm::pow(self.tightening, layer as f64)
    }
}

#[derive(Debug)]
pub(crate) struct Layer<C> {
    pub(crate) cells: C,
    /// Cells that are taken: what the threads took, less what they freed.
    taken: Sharded<AtomicUsize>,
    /// Threads look at the sum after so many.
    step: isize,
    /// From which sum on it is full.
    limit: isize,
    full: AtomicBool,
}

impl<C: Cells> Layer<C> {
    fn new(cells: C, rate: f64) -> Result<Self, AllocError> {
        let shape = cells.shape();
        let most = shape.fill_of_rate(rate) * shape.cells() as f64;
        let mut taken = Sharded::<AtomicUsize>::for_buckets(shape.words)?;
        *taken.first_mut() = AtomicUsize::new(cells.taken() as usize);
        let step = (most / (64.0 * taken.iter().count() as f64)).max(1.0);
        // Below by what may be taken between two looks, and by the key that is then put in.
        let limit = (most * (1.0 - 1.0 / 64.0) - f64::from(shape.probes)).max(1.0) as isize;
        let layer = Self { cells, taken, step: step as isize, limit, full: AtomicBool::new(false) };
        layer.look();
        Ok(layer)
    }

    /// Notes that so many more cells are taken, or fewer.
    #[inline]
    fn note(&self, change: isize) {
        if change == 0 {
            return;
        }
        // Relaxed, as all here: whether a layer is full is a hint, nothing is concluded from it but where the next key goes.
        let before = match self.taken.own() {
            Ok(shard) => {
                let before = shard.load(Ordering::Relaxed);
                shard.store(before.wrapping_add_signed(change), Ordering::Relaxed);
                before
            }
            Err(crowd) => crowd.shard().fetch_add(change.cast_unsigned(), Ordering::Relaxed),
        };
        let before = before.cast_signed();
        if before.div_euclid(self.step) != before.wrapping_add(change).div_euclid(self.step) {
            self.look();
        }
    }

    #[inline(never)]
    fn look(&self) {
        self.full.store(self.taken() >= self.limit, Ordering::Relaxed);
    }

    /// Cells that are taken, by the counters.
    fn taken(&self) -> isize {
        let sum = self.taken.iter().fold(0_usize, |sum, shard| sum.wrapping_add(shard.load(Ordering::Relaxed)));
        sum.cast_signed().max(0)
    }

    #[inline]
    fn insert(&self, hash: u64) -> bool {
        let new = self.cells.insert(hash);
        self.note(new as isize);
        new != 0
    }

    pub(crate) fn fill_ratio(&self) -> f64 {
        (self.taken() as f64 / self.cells.shape().cells() as f64).min(1.0)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.cells.memory_bytes() + self.taken.memory_bytes()
    }
}

impl Layer<Counters> {
    /// Whether the hash was there.
    fn remove(&self, hash: u64) -> bool {
        let emptied = self.cells.remove(hash);
        self.note(-(emptied.unwrap_or(0) as isize));
        emptied.is_some()
    }
}

#[derive(Debug)]
pub(crate) struct Layers<C> {
    /// Filled from the first on.
    slots: Box<[Slot<Layer<C>>; MAX_LAYERS]>,
    pub(crate) series: Series,
}

impl<C: Cells> Layers<C> {
    pub(crate) fn new(series: Series) -> Result<Self, BuildError> {
        series.check()?;
        let layers = Self::empty(series);
        let shape = series.shape(0).ok_or_else(|| {
            let first = |capacity| Series { capacity, ..series }.shape(0).is_some();
            let (mut largest, mut too_many) = (0, series.capacity);
            while too_many - largest > too_many / 1024 + 1 {
                let middle = usize::midpoint(largest, too_many);
                *(if first(middle) { &mut largest } else { &mut too_many }) = middle;
            }
            BuildError::CapacityTooLarge { capacity: series.capacity, largest }
        })?;
        let first = layers.layer(0, shape)?;
        layers.slots[0].set(Box::new(first));
        Ok(layers)
    }

    fn empty(series: Series) -> Self {
        Self { slots: Box::new(array::from_fn(|_| Slot::new())), series }
    }

    /// With the cells of layers that there are already.
    pub(crate) fn restored(series: Series, layers: impl Iterator<Item = C>) -> Result<Self, BuildError> {
        let all = Self::empty(series);
        for ((number, slot), cells) in all.slots.iter().enumerate().zip(layers) {
            slot.set(Box::new(Layer::new(cells, series.layer_rate(number))?));
        }
        Ok(all)
    }

    fn layer(&self, number: usize, shape: Shape) -> Result<Layer<C>, AllocError> {
        Layer::new(C::new(shape, self.series.huge_pages)?, self.series.layer_rate(number))
    }

    /// The layers, the oldest first.
    #[inline]
    pub(crate) fn all(&self) -> impl Iterator<Item = &Layer<C>> {
        self.slots.iter().map_while(Slot::get)
    }

    /// How many layers there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all().count()
    }

    /// The layers, the newest first.
    #[inline]
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Layer<C>> {
        self.slots[..self.len()].iter().rev().filter_map(Slot::get)
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.newest_first().any(|layer| layer.cells.contains(hash))
    }

    /// Puts a hash in; whether it was surely absent.
    pub(crate) fn insert(&self, hash: u64) -> Result<bool, InsertError> {
        if let Some(layer) = self.all().find(|layer| layer.cells.contains(hash)) {
            if C::COUNTS {
                layer.insert(hash);
            }
            return Ok(false);
        }
        Ok(self.newest()?.insert(hash))
    }

    /// The newest layer, which is one that is not full.
    fn newest(&self) -> Result<&Layer<C>, InsertError> {
        loop {
            let len = self.len();
            if let Some(layer) = self.slots[..len].last().and_then(Slot::get)
                && !layer.full.load(Ordering::Relaxed)
            {
                return Ok(layer);
            }
            self.add(len)?;
        }
    }

    /// Whether the newest layer is full.
    #[cfg(loom)]
    pub(crate) fn is_full(&self) -> bool {
        self.newest_first().next().is_some_and(|layer| layer.full.load(Ordering::Relaxed))
    }

    #[cold]
    #[inline(never)]
    fn add(&self, number: usize) -> Result<(), InsertError> {
        let shape = self.series.shape(number).ok_or(InsertError::Full)?;
        let layer = self.layer(number, shape).map_err(|error| InsertError::Alloc { bytes: error.bytes })?;
        self.slots[number].set(Box::new(layer));
        Ok(())
    }

    pub(crate) fn contains_batch(&self, hashes: &[u64], found: &mut [bool]) {
        // A part at a time, of which the keys that no layer had so far are looked up in the next.
        let mut left = [0; PART];
        let mut places = [0_u16; PART];
        let mut answers = [false; PART];
        for (hashes, found) in hashes.chunks(PART).zip(found.chunks_mut(PART)) {
            let mut layers = self.newest_first();
            let Some(newest) = layers.next() else { return };
            newest.cells.contains_batch(hashes, found);
            for layer in layers {
                let mut len = 0;
                for (place, (hash, found)) in hashes.iter().zip(&*found).enumerate() {
                    // Written always, kept only if it counts.
                    (left[len], places[len]) = (*hash, place as u16);
                    len += usize::from(!found);
                }
                layer.cells.contains_batch(&left[..len], &mut answers[..len]);
                for (place, answer) in places[..len].iter().zip(&answers) {
                    found[usize::from(*place)] = *answer;
                }
            }
        }
    }

    /// The chance that any layer finds an absent key, with what is in now.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        let absent = |layer: &Layer<C>| 1.0 - layer.cells.shape().rate_of_fill(layer.fill_ratio());
        1.0 - self.all().map(absent).product::<f64>()
    }

    pub(crate) fn estimated_len(&self) -> usize {
        self.all().map(|layer| layer.cells.shape().keys_of_fill(layer.fill_ratio())).sum()
    }

    /// Leaves the first layer, empty.
    pub(crate) fn clear(&mut self) {
        self.slots[1..].iter_mut().for_each(|slot| drop(slot.take()));
        if let Some(mut first) = self.slots[0].take() {
            first.cells.clear();
            first.taken.reset();
            first.look();
            self.slots[0].set(first);
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots) + self.all().map(Layer::memory_bytes).sum::<usize>()
    }
}

/// Hashes that are looked up in all layers at a time.
const PART: usize = if cfg!(loom) { 16 } else { CHUNK };

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Removed,
    Absent,
    Ambiguous,
}

impl Layers<Counters> {
    pub(crate) fn remove(&self, hash: u64) -> Taken {
        let mut claiming = self.newest_first().filter(|layer| layer.cells.contains(hash));
        let Some(layer) = claiming.next() else { return Taken::Absent };
        if claiming.next().is_some() {
            return Taken::Ambiguous;
        }
        if layer.remove(hash) { Taken::Removed } else { Taken::Absent }
    }

    pub(crate) fn count(&self, hash: u64) -> u64 {
        self.all().map(|layer| layer.cells.count(hash)).sum()
    }

    pub(crate) fn saturated(&self) -> u64 {
        self.all().map(|layer| layer.cells.tally().1).sum()
    }
}
