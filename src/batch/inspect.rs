//! Which keys of a batch have to be looked up in which of two tables: by the parts of the older table that their buckets lie in. Keys are sorted by the vector.

use super::{Constants, MOST_LANES, Vector};
use crate::{cells::Cells, sync::AtomicU64, words::Readable};

/// One bit for each chunk of buckets of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks<'a> {
    pub(crate) bits: &'a [AtomicU64],
    /// A chunk has two to the power of this many buckets.
    pub(crate) chunk_bits: u32,
}

/// The most keys that are inspected at a time.
pub(crate) const PART: usize = if cfg!(loom) { super::GROUP } else { super::CHUNK };

/// Room for them, and for what a vector writes behind the last.
const ROOM: usize = PART + MOST_LANES;

/// Some keys of a part of a batch.
#[derive(Debug)]
pub(crate) struct Picked {
    hashes: [u64; ROOM],
    /// Which keys of the part they are.
    places: [u64; ROOM],
    /// The counters of their homes, before anything else was read.
    before: [u64; ROOM],
    len: usize,
}

impl Picked {
    pub(crate) const fn new() -> Self {
        Self { hashes: [0; ROOM], places: [0; ROOM], before: [0; ROOM], len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes[..self.len]
    }

    /// Place, hash, and counter of each.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        let Self { hashes, places, before, len } = self;
        places
            .iter()
            .zip(hashes)
            .zip(before)
            .take(*len)
            .map(|((place, hash), before)| (*place as usize, *hash, *before))
    }

    /// Adds those lanes that `mask` names.
    #[inline(always)]
    fn push<V: Vector>(&mut self, hashes: V, places: V, before: V, mask: u32) {
        hashes.store_some(mask, &mut self.hashes[self.len..]);
        places.store_some(mask, &mut self.places[self.len..]);
        before.store_some(mask, &mut self.before[self.len..]);
        self.len += mask.count_ones() as usize;
    }
}

/// What is to be done with a part of a batch.
#[derive(Debug)]
pub(crate) enum Sort<'a> {
    /// All keys: into the second if both their buckets lie in marked chunks, into the first otherwise.
    All(&'a [u64], &'a mut Picked, &'a mut Picked),
    /// Of these keys, those of which none was found and either bucket lies in a marked chunk.
    Missing(&'a Picked, &'a [bool], &'a mut Picked),
}

/// Sorts keys by which of their buckets lie in marked chunks. All reads are Acquire.
#[inline(always)]
pub(super) fn sort<V: Vector, G: Readable>(cells: &Cells<G>, marks: Marks<'_>, sort: Sort<'_>) {
    match sort {
        Sort::All(hashes, first, second) => {
            let whole = hashes.len() - hashes.len() % V::LANES;
            let sorter = Sorter::<V>::new(cells, marks);
            for key in (0..whole).step_by(V::LANES) {
                let keys = V::load(&hashes[key..]);
                let (both, _, before) = sorter.look(keys);
                let places = V::splat(key as u64).add(sorter.constants.lanes);
                second.push(keys, places, before, both);
                first.push(keys, places, before, !both & ((1 << V::LANES) - 1));
            }
            let sorter = Sorter::<u64>::new(cells, marks);
            for (key, hash) in hashes.iter().enumerate().skip(whole) {
                let (both, _, before) = sorter.look(*hash);
                let to = if both != 0 { &mut *second } else { &mut *first };
                to.push(*hash, key as u64, before, 1);
            }
        }
        Sort::Missing(picked, found, to) => {
            let whole = picked.len - picked.len % V::LANES;
            let sorter = Sorter::<V>::new(cells, marks);
            for key in (0..whole).step_by(V::LANES) {
                let [keys, places, before] =
                    [&picked.hashes, &picked.places, &picked.before].map(|values| V::load(&values[key..]));
                let found = found[key..][..V::LANES].iter().rev().fold(0, |bits, found| bits << 1 | u32::from(*found));
                let (_, any, _) = sorter.look(keys);
                to.push(keys, places, before, any & !found);
            }
            let sorter = Sorter::<u64>::new(cells, marks);
            for (key, is_found) in found.iter().enumerate().take(picked.len).skip(whole) {
                let (_, any, _) = sorter.look(picked.hashes[key]);
                to.push(picked.hashes[key], picked.places[key], picked.before[key], any & u32::from(!is_found));
            }
        }
    }
}

struct Sorter<'a, 'm, V> {
    constants: Constants<'a, V>,
    bits: &'m [AtomicU64],
    chunk_bits: V,
    low: V,
}

impl<'a, 'm, V: Vector> Sorter<'a, 'm, V> {
    #[inline(always)]
    fn new<G: Readable>(cells: &Cells<'a, G>, marks: Marks<'m>) -> Self {
        let (chunk_bits, low) = (V::splat(marks.chunk_bits.into()), V::splat(63));
        Self { constants: Constants::new(cells), bits: marks.bits, chunk_bits, low }
    }

    /// One bit for each key both of whose buckets are marked, the same for either, and the counters.
    #[inline(always)]
    fn look(&self, hashes: V) -> (u32, u32, V) {
        let constants = &self.constants;
        let bit = |bucket: V| {
            let chunk = bucket.shift_right_by(self.chunk_bits);
            let bits = V::gather_counters(self.bits, chunk.shift_right::<6>());
            bits.shift_right_by(chunk.and(self.low)).and(constants.one)
        };
        let (base, fingerprint) = constants.classes(hashes);
        let home = bit(constants.bucket(base, fingerprint));
        let away = bit(constants.bucket(constants.other(base, fingerprint), fingerprint));
        (home.and(away).nonzero(), home.or(away).nonzero(), constants.look(base))
    }
}
