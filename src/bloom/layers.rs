//! The layers of scalable filters (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom filters", 2007).
//!
//! - Layer *i* is sized for `capacity * growth^i` keys at the rate `p (1 - r) r^i`. The sum over any number of layers is below `p`, and an absent key is found if any layer finds it:
//!   so the rate stays at or below `p` however far the filter grows.
//! - A layer is *full* when as many of its cells are taken as give it its rate, less a 64th. Threads count the cells that they take in shards, and look at the sum from time to
//!   time, such that together they take no more than that 64th between two looks. (Each thread that has chosen a layer and not yet inserted when it becomes full puts one key more into
//!   it. In a layer of some dozen keys the keys of many threads would count; the rate is promised but for them.)
//! - Who finds the newest layer full makes another, and puts it into the next [`Slot`], unless another thread was faster: then it uses that one. Nobody waits.
//!   Layers stay where they are as long as the filter lives.
//! - Look-ups visit the newest layer first, which has most of the keys. They find all layers that were there when they began: whoever learns of an insert
//!   sees its layer, since slots are filled in order, each by a thread that saw the one before.
//!
//! # Several copies of a key
//!
//! An insert goes to the oldest layer that claims the key already, and to the newest if none does. In a filter without removal it then has nothing to change: a key that comes
//! again and again makes no filter grow. In a filter with removal the copies of a key come to lie in one layer; and as nothing that a layer does not claim goes to any but the
//! newest one, what older layers claim only becomes less. (Unless a claim ends between the look and the insert, by the removal of another key in the same moment: then the key takes cells
//! of an older layer, as if it had come earlier.)
//!
//! A key is removed from the only layer that claims it, which is then the one that has it. If several claim it nothing is done: one has the key, the others take it for one of theirs.

use alloc::boxed::Box;
use core::iter;

use super::{
    bits::Bits,
    counters::Counters,
    shape::{LOWEST_RATE, MAX_PROBES, Shape},
    slot::Slot,
};
use crate::{
    batch::{CHUNK, GROUP},
    error::{BuildError, InsertError},
    gate::Closed,
    memory::{AllocError, try_box, try_boxed},
    raw::is_cached,
    shards::Sharded,
    sync::{AtomicBool, AtomicUsize, Ordering},
    table::Table,
};

/// The most layers: as many halvings has the lowest rate of a layer from the highest one.
pub(crate) const MAX_LAYERS: usize = if cfg!(loom) { 4 } else { 64 };

/// What a layer is made of.
pub(crate) trait Cells: Sized {
    fn new(shape: Shape, huge_pages: bool) -> Result<Self, AllocError> {
        Self::of(Table::new(shape.words, huge_pages)?, shape)
    }
    /// With a table that there is already.
    fn of(table: Table, shape: Shape) -> Result<Self, AllocError>;
    fn shape(&self) -> &Shape;
    fn table(&self) -> &Table;
    /// How many cells are taken that were free.
    fn insert(&self, hash: u64) -> u32;
    fn contains(&self, hash: u64) -> bool;
    fn contains_batch(&self, hashes: &[u64], found: &mut [bool]);
    /// Cells that are taken.
    fn taken(&self) -> u64;
    fn clear(&mut self);
    fn memory_bytes(&self) -> usize;
    /// Asks for the words of the first probes of a hash, unless they are cached.
    #[inline(always)]
    fn ask(&self, hash: u64, probes: usize) {
        let (shape, table) = (self.shape(), self.table());
        if !is_cached(shape.words) {
            let in_word = 6 - shape.cell_bits.trailing_zeros();
            let cells = shape.probes(shape.mixed(hash));
            cells.take(probes).for_each(|cell| table.prefetch((cell >> in_word) as usize));
        }
    }
    /// Whether a key that is in has to be put in once more.
    const COUNTS: bool;
    /// Until this is dropped no cell changes; `None` where a snapshot may have a key by half.
    fn hold_still(&self) -> Option<Closed<'_>>;
}

impl Cells for Bits {
    fn of(table: Table, shape: Shape) -> Result<Self, AllocError> {
        Self::of(table, shape)
    }
    fn shape(&self) -> &Shape {
        &self.shape
    }
    fn table(&self) -> &Table {
        &self.table
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
    fn hold_still(&self) -> Option<Closed<'_>> {
        None
    }
}

impl Cells for Counters {
    fn of(table: Table, shape: Shape) -> Result<Self, AllocError> {
        Self::of(table, shape)
    }
    fn shape(&self) -> &Shape {
        &self.shape
    }
    fn table(&self) -> &Table {
        &self.table
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
    fn hold_still(&self) -> Option<Closed<'_>> {
        Some(self.hold_still())
    }
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

/// 2<sup>-64</sup>: a key of so low a rate has all the probes there can be.
const LOWEST_LAYER_RATE: f64 = 1.0 / (1_u128 << MAX_PROBES) as f64;

/// The first layer is to have a rate that there can be, whichever is asked for.
const MOST_TIGHTENING: f64 = 1.0 - LOWEST_LAYER_RATE / LOWEST_RATE;

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
        if !(self.tightening > 0.0 && self.tightening <= MOST_TIGHTENING) {
            return Err(BuildError::InvalidTighteningRatio { ratio: self.tightening });
        }
        Ok(())
    }

    /// The shape of a layer; `None` if there can be none so large, or of so low a rate.
    fn shape(&self, layer: usize) -> Option<Shape> {
        let rate = self.layer_rate(layer);
        if layer >= MAX_LAYERS || rate < LOWEST_LAYER_RATE {
            return None;
        }
        let capacity = self.layer_capacity(layer);
        let room = capacity * EARLY + libm::sqrt(capacity) + EARLY_KEYS;
        Shape::sized(false, room, rate, self.cell_bits, self.seed)
    }

    /// Keys that a layer is to have room for.
    pub(crate) fn layer_capacity(&self, layer: usize) -> f64 {
        self.capacity.max(SMALLEST) as f64 * libm::pow(self.growth, layer as f64)
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
    /// With cells of which so many are taken.
    fn new(cells: C, cells_taken: u64, rate: f64) -> Result<Self, AllocError> {
        let shape = cells.shape();
        let most = shape.fill_of_rate(rate) * shape.cells() as f64;
        let mut taken = Sharded::<AtomicUsize>::for_buckets(shape.words)?;
        *taken.first_mut() = AtomicUsize::new(cells_taken as usize);
        let step = (most / (64.0 * taken.iter().count() as f64)).max(1.0);
        // Below by what may be taken between two looks, and by the key that is then put in.
        let limit = (most * (1.0 - 1.0 / 64.0) - f64::from(shape.probes)).max(1.0) as isize;
        let full = AtomicBool::new(cells_taken >= limit.cast_unsigned() as u64);
        Ok(Self { cells, taken, step: step as isize, limit, full })
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
        let full = self.taken() >= self.limit;
        // Bits are never free again: a thread that was stopped here is not to undo what a later look has found.
        if full || C::COUNTS {
            self.full.store(full, Ordering::Relaxed);
        }
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
        let (removed, emptied) = self.cells.remove(hash);
        self.note(-(emptied as isize));
        removed
    }
}

#[derive(Debug)]
pub(crate) struct Layers<C> {
    /// Filled from the first on.
    slots: Box<[Slot<Layer<C>>]>,
    pub(crate) series: Series,
}

impl<C: Cells> Layers<C> {
    pub(crate) fn new(series: Series) -> Result<Self, BuildError> {
        series.check()?;
        let layers = Self::empty(series)?;
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
        layers.slots[0].set(try_box(first)?);
        Ok(layers)
    }

    pub(crate) fn empty(series: Series) -> Result<Self, AllocError> {
        Ok(Self { slots: try_boxed(MAX_LAYERS, Slot::new)?, series })
    }

    /// Adds the cells of a layer that there is already.
    pub(crate) fn restore(&mut self, number: usize, cells: C) -> Result<(), AllocError> {
        let taken = cells.taken();
        self.slots[number].set(try_box(Layer::new(cells, taken, self.series.layer_rate(number))?)?);
        Ok(())
    }

    fn layer(&self, number: usize, shape: Shape) -> Result<Layer<C>, AllocError> {
        Layer::new(C::new(shape, self.series.huge_pages)?, 0, self.series.layer_rate(number))
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

    /// Puts hashes in, up to the first that is refused, of which it says which it is and why.
    pub(crate) fn insert_batch(&self, hashes: &[u64]) -> Result<(), (usize, InsertError)> {
        self.ahead(hashes, |place, hash| self.insert(hash).map(drop).map_err(|error| (place, error)))
    }

    /// Does `work` for each hash, in order, up to the first error. Asks beforehand for the words that it needs most likely: those of the first probes in every layer, and of all in the newest.
    pub(crate) fn ahead<E>(&self, hashes: &[u64], mut work: impl FnMut(usize, u64) -> Result<(), E>) -> Result<(), E> {
        // Fewer at a time than look-ups have, as more lines of each are asked for.
        const KEYS: usize = GROUP / 4;
        for (group, hashes) in hashes.chunks(KEYS).enumerate() {
            for (layer, probes) in self.newest_first().zip(iter::once(MAX_PROBES as usize).chain(iter::repeat(2))) {
                hashes.iter().for_each(|hash| layer.cells.ask(*hash, probes));
            }
            for (place, hash) in hashes.iter().enumerate() {
                work(group * KEYS + place, *hash)?;
            }
        }
        Ok(())
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
        let layer = self.layer(number, shape).and_then(try_box);
        self.slots[number].set(layer.map_err(|error| InsertError::Alloc { bytes: error.bytes })?);
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
        self.slots[1..].iter_mut().for_each(Slot::empty);
        if let Some(first) = self.slots[0].get_mut() {
            first.cells.clear();
            first.taken.reset();
            // Its limit is at least 1.
            first.full = AtomicBool::new(false);
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
