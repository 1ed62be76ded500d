//! What a look-up in two tables has to know of each key beside the look-ups themselves: which part of the older table its buckets lie in, and the counter of its home.

use super::{Constants, Vector};
use crate::{
    cells::Cells,
    sync::{AtomicU64, Ordering},
    words::{Readable, Words},
};

/// One bit for each chunk of buckets of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks<'a> {
    pub(crate) bits: &'a [AtomicU64],
    /// A chunk has two to the power of this many buckets.
    pub(crate) chunk_bits: u32,
}

/// Which of the two buckets of a key lie in marked chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) both: bool,
    pub(crate) any: bool,
}

/// For each hash whether the chunks of both its buckets are marked, and the same of either; and the counter of its home. All reads are Acquire.
#[inline(always)]
pub(super) fn inspect<V: Vector, G: Readable>(
    cells: &Cells<G>,
    marks: Marks<'_>,
    hashes: &[u64],
    marked: &mut [Marked],
    counters: &mut [u64],
) {
    let constants = Constants::<V>::new(cells);
    let (chunk_bits, low) = (V::splat(marks.chunk_bits.into()), V::splat(63));
    let bit = |bucket: V| {
        let chunk = bucket.shift_right_by(chunk_bits);
        V::gather_counters(marks.bits, chunk.shift_right::<6>()).shift_right_by(chunk.and(low)).and(constants.one)
    };
    let one = |hash: &u64| {
        let class = cells.geometry.class(*hash);
        let [home, away] = [cells.home(class), cells.away(class)].map(|bucket| {
            let chunk = bucket >> marks.chunk_bits;
            marks.bits[chunk / 64].load(Ordering::Acquire) >> (chunk % 64) & 1 != 0
        });
        (Marked { both: home & away, any: home | away }, cells.words.before(class.home))
    };
    let whole = hashes.len() - hashes.len() % V::LANES;
    for key in (0..whole).step_by(V::LANES) {
        let (base, fingerprint) = constants.classes(V::load(&hashes[key..]));
        let home = bit(constants.bucket(base, fingerprint));
        let away = bit(constants.bucket(constants.other(base, fingerprint), fingerprint));
        let (both, any) = (home.and(away).nonzero(), home.or(away).nonzero());
        for (lane, marked) in marked[key..][..V::LANES].iter_mut().enumerate() {
            *marked = Marked { both: both >> lane & 1 != 0, any: any >> lane & 1 != 0 };
        }
        constants.look(base).store(&mut counters[key..]);
    }
    for (key, hash) in hashes.iter().enumerate().skip(whole) {
        (marked[key], counters[key]) = one(hash);
    }
}
