//! Look-ups by the batch: many keys at once, with vectors where the processor has them.
//!
//! One algorithm, [`look_up`], generic over a [`Vector`] of 64-bit lanes; the backends (`swar`, `x86_64`, `aarch64`) say what a vector is
//! and wrap the algorithm into a function for their instruction set. The backend is chosen once per call.
//!
//! # Two ways through a batch
//!
//! - **A table in cache** ([`in_cache`]): for each vector of keys, gather the sequence counters, the away words, the home words, and the
//!   counters again; no branch depends on a key. Keys of which neither word matches and whose counter has changed are looked up again, one by one.
//! - **A table in memory** ([`in_memory`]): a pipeline. Home words are asked for some keys ahead; they decide most keys; those with displaced
//!   fingerprints ask for their away words and are looked up in both, validated, a few keys later.
//! - **Two tables**, while a filter grows (`two_tables`): a pipeline as well, that looks at each key where it most likely is.
//!
//! # Why it is right
//!
//! Each key is answered by the same reads as by `Cells::contains_both` or `Cells::contains_home_first`, in the order that their arguments ask for:
//! first look at the counter, both words, second look. In memory the home word of the pipeline's second stage only ever answers by itself (a match, or
//! count 0); for a key that needs both words it is read again after the counter.
//!
//! Words are shared with writers, so they are read as atomics, one by one, or gathered inside `asm!`, which Rust's memory model does not
//! look into; what the processor guarantees is said where that is done.

#[cfg(all(target_arch = "aarch64", target_endian = "little", not(loom)))]
mod aarch64;
mod in_memory;
mod probes;
mod swar;
#[cfg(feature = "growth")]
mod two_tables;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod x86_64;

use alloc::vec::Vec;

pub(crate) use probes::Probes;
#[cfg(feature = "growth")]
pub(crate) use two_tables::{Marks, TwoTables};

#[cfg(feature = "growth")]
use crate::words::Live;
use crate::{
    cells::Cells,
    hash::{Class, REMIX, SPREAD_LINEAR, SPREAD_SQUARE},
    sync::{AtomicU64, AtomicWord},
    words::{Readable, Stored, Words},
};

/// Keys of a group of insertions or removals: enough under way to keep the memory busy, few enough to stay in first-level cache.
pub(crate) const GROUP: usize = 64;

/// Keys that are hashed or answered on the stack at a time.
pub(crate) const CHUNK: usize = 16 * GROUP;

/// What a batch runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// One key at a time, in plain arithmetic: everywhere, and what the others are tested against.
    Swar,
    /// Two keys at a time, 64-bit Arm.
    Neon,
    /// Four keys at a time.
    Avx2,
    /// Eight keys at a time.
    Avx512,
}

impl Backend {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Swar, Self::Neon, Self::Avx2, Self::Avx512];

    /// Whether this processor has what it takes.
    pub fn is_available(self) -> bool {
        match self {
            Self::Swar => true,
            Self::Neon => cfg!(all(target_arch = "aarch64", target_endian = "little", not(loom))),
            #[cfg(all(target_arch = "x86_64", feature = "std", not(loom)))]
            Self::Avx2 => std::is_x86_feature_detected!("avx2"),
            #[cfg(all(target_arch = "x86_64", feature = "std", not(loom)))]
            Self::Avx512 => std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512dq"),
            #[cfg(not(all(target_arch = "x86_64", feature = "std", not(loom))))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// The widest that is available.
    pub(crate) fn best() -> Self {
        Self::ALL.into_iter().rev().find(|backend| backend.is_available()).unwrap_or(Self::Swar)
    }
}

/// Answers for each hash whether its class may be in, like the single look-up. `cached` says whether the table counts as cached.
pub(crate) fn contains<G: Readable>(cells: &Cells<G>, cached: bool, hashes: &[u64], found: &mut [bool]) {
    contains_with(Backend::best(), cells, cached, hashes, found);
}

/// As [`contains`], on a given backend, which has to be available.
pub(crate) fn contains_with<G: Readable>(
    backend: Backend,
    cells: &Cells<G>,
    cached: bool,
    hashes: &[u64],
    found: &mut [bool],
) {
    debug_assert_eq!(hashes.len(), found.len());
    assert!(backend.is_available(), "{backend:?} is not available");
    match backend {
        Backend::Swar => swar::look_up(cells, cached, hashes, found),
        #[cfg(all(target_arch = "aarch64", target_endian = "little", not(loom)))]
        Backend::Neon => aarch64::look_up(cells, cached, hashes, found),
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: the backend is available, so the processor has its features.
        Backend::Avx2 => unsafe { x86_64::look_up_avx2(cells, cached, hashes, found) },
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: as above.
        Backend::Avx512 => unsafe { x86_64::look_up_avx512(cells, cached, hashes, found) },
        #[allow(unreachable_patterns, reason = "which are left depends on the target")]
        Backend::Neon | Backend::Avx2 | Backend::Avx512 => unreachable!("{backend:?} is not available"),
    }
}

/// Answers for each hash whether its class may be in one of two tables, of which the older one is being drained, if the state stays as it is. `again` looks up one singly: where
/// something was taken meanwhile, and those few that fill no vector.
#[cfg(feature = "growth")]
pub(crate) fn contains_in_two<G: Live>(
    backend: Backend,
    tables: &TwoTables<'_, G>,
    hashes: &[u64],
    found: &mut [bool],
    again: &dyn Fn(u64) -> bool,
) {
    debug_assert_eq!(hashes.len(), found.len());
    assert!(backend.is_available(), "{backend:?} is not available");
    match backend {
        Backend::Swar => swar::look_up_in_two(tables, hashes, found, again),
        #[cfg(all(target_arch = "aarch64", target_endian = "little", not(loom)))]
        Backend::Neon => aarch64::look_up_in_two(tables, hashes, found, again),
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: the backend is available, so the processor has its features.
        Backend::Avx2 => unsafe { x86_64::look_up_in_two_avx2(tables, hashes, found, again) },
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: as above.
        Backend::Avx512 => unsafe { x86_64::look_up_in_two_avx512(tables, hashes, found, again) },
        #[allow(unreachable_patterns, reason = "which are left depends on the target")]
        Backend::Neon | Backend::Avx2 | Backend::Avx512 => unreachable!("{backend:?} is not available"),
    }
}

/// Answers for each hash whether all bits of its probes are set, on a backend that has to be available.
pub(crate) fn contains_bits(backend: Backend, probes: Probes<'_>, hashes: &[u64], found: &mut [bool]) {
    debug_assert_eq!(hashes.len(), found.len());
    assert!(backend.is_available(), "{backend:?} is not available");
    match backend {
        Backend::Swar => swar::look_up_bits(probes, hashes, found),
        #[cfg(all(target_arch = "aarch64", target_endian = "little", not(loom)))]
        Backend::Neon => aarch64::look_up_bits(probes, hashes, found),
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: the backend is available, so the processor has its features.
        Backend::Avx2 => unsafe { x86_64::look_up_bits_avx2(probes, hashes, found) },
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: as above.
        Backend::Avx512 => unsafe { x86_64::look_up_bits_avx512(probes, hashes, found) },
        #[allow(unreachable_patterns, reason = "which are left depends on the target")]
        Backend::Neon | Backend::Avx2 | Backend::Avx512 => unreachable!("{backend:?} is not available"),
    }
}

/// Puts the indices of those hashes that `contains` finds at the end of `selected`.
#[track_caller]
pub(crate) fn select(hashes: &[u64], selected: &mut Vec<u32>, contains: impl Fn(&[u64], &mut [bool])) {
    assert!(hashes.len() as u64 <= 1 << 32, "the indices of {} hashes do not fit 32 bits", hashes.len());
    let mut found = [false; CHUNK];
    for (chunk, hashes) in hashes.chunks(CHUNK).enumerate() {
        let found = &mut found[..hashes.len()];
        contains(hashes, found);
        let first = chunk * CHUNK;
        selected.extend((first..).zip(found).filter(|(_, found)| **found).map(|(index, _)| index as u32));
    }
}

/// Looks up keys by their hashes, made on the stack a chunk at a time.
#[track_caller]
pub(crate) fn contains_many<K>(
    keys: &[K],
    found: &mut [bool],
    hash: impl Fn(&K) -> u64,
    contains: impl Fn(&[u64], &mut [bool]),
) {
    check_lengths(keys.len(), found.len());
    let mut hashes = [0; CHUNK];
    for (keys, found) in keys.chunks(CHUNK).zip(found.chunks_mut(CHUNK)) {
        let hashes = &mut hashes[..keys.len()];
        hashes.iter_mut().zip(keys).for_each(|(place, key)| *place = hash(key));
        contains(hashes, found);
    }
}

#[track_caller]
pub(crate) fn check_lengths(keys: usize, answers: usize) {
    assert!(keys == answers, "{keys} keys, but room for {answers} answers");
}

/// Lanes of the widest vector.
const MOST_LANES: usize = 8;

/// Lanes of 64 bits, worked on together.
trait Vector: Copy {
    const LANES: usize;

    fn splat(value: u64) -> Self;
    /// The first [`LANES`](Self::LANES) of `values`, which has them.
    fn load(values: &[u64]) -> Self;
    /// Into the first lanes of `values`, which has them.
    fn store(self, values: &mut [u64]);
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// `!self & other`
    fn not_and(self, other: Self) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn shift_left<const BITS: u32>(self) -> Self;
    fn shift_right<const BITS: u32>(self) -> Self;
    /// Each lane by a number of its own, less than 64.
    #[cfg(feature = "growth")]
    fn shift_right_by(self, bits: Self) -> Self;
    /// The 64-bit products of the low halves.
    fn mul_low_halves(self, other: Self) -> Self;
    /// The low 64 bits of the products.
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let cross = self.shift_right::<32>().mul_low_halves(other).add(self.mul_low_halves(other.shift_right::<32>()));
        self.mul_low_halves(other).add(cross.shift_left::<32>())
    }
    /// One bit for each of these places that is set: a place has the index of the word, which is in range, in its high half, and that of the bit in the six bits below.
    #[inline(always)]
    fn bits(words: &[AtomicWord], places: Self) -> u32 {
        let (mut indices, mut shifts) = ([0; MOST_LANES], [0; MOST_LANES]);
        places.shift_right::<32>().store(&mut indices);
        places.shift_right::<26>().store(&mut shifts);
        let lanes = indices[..Self::LANES].iter().zip(shifts).enumerate();
        lanes.fold(0, |bits, (lane, (index, shift))| {
            let word = words[*index as usize].load_alone() >> (shift & 63);
            bits | (word as u32 & 1) << lane
        })
    }
    /// One bit for each lane that is not 0.
    fn nonzero(self) -> u32;
    /// The lanes that `mask` names into the first of `values`, in order; what stands behind them, up to [`LANES`](Self::LANES), is undefined.
    #[inline(always)]
    fn store_some(self, mask: u32, values: &mut [u64]) {
        let mut lanes = [0; MOST_LANES];
        self.store(&mut lanes);
        let mut len = 0;
        for (lane, value) in lanes[..Self::LANES].iter().enumerate() {
            // Written always, kept only if it counts: no branch to mispredict.
            values[len] = *value;
            len += (mask >> lane & 1) as usize;
        }
    }
    /// The words with these indices, which are in range; each read is Acquire.
    fn gather_words(words: &[AtomicWord], indices: Self) -> Self;
    /// Those of the second table in the lanes that are set in the mask, of the first in those that are 0.
    #[cfg(feature = "growth")]
    fn gather_either(first: &[AtomicWord], second: &[AtomicWord], indices: Self, mask: Self) -> Self;
    /// The little-endian words with these indices, which are in range; nobody changes them.
    fn gather_frozen(words: &[[u8; 8]], indices: Self) -> Self;
    /// The counters with these indices, which are in range; each read is Acquire.
    fn gather_counters(counters: &[AtomicU64], indices: Self) -> Self;
}

/// Answers for each hash. What the backends wrap.
#[inline(always)]
fn look_up<V: Vector, G: Readable>(cells: &Cells<G>, cached: bool, hashes: &[u64], found: &mut [bool]) {
    if cached { in_cache::<V, G>(cells, hashes, found) } else { in_memory::look_up::<V, G>(cells, hashes, found) }
}

/// `hash::mix` in every lane, with [`REMIX`] in every lane of `remix`.
#[inline(always)]
fn mix<V: Vector>(hashes: V, remix: V) -> V {
    let fold = |x: V| x.xor(x.shift_right::<32>());
    fold(fold(fold(hashes).mul(remix)).mul(remix))
}

/// What every vector of keys needs, taken out of the loops here: the compiler may not do it, since each read of a word is Acquire.
struct Constants<'a, V> {
    words: Stored<'a>,
    /// The counters, and what turns home buckets into their indices; `None` where nothing ever changes.
    counters: Option<(&'a [AtomicU64], V)>,
    key: V,
    remix: V,
    buckets: V,
    fingerprints: V,
    spread_square: V,
    spread_linear: V,
    odd: V,
    ones: V,
    ones_high: V,
    highs: V,
    one: V,
    /// The number of each lane.
    lanes: V,
    /// See `Generation::factors`.
    factors: Option<(V, V)>,
}

impl<'a, V: Vector> Constants<'a, V> {
    #[inline(always)]
    fn new<G: Readable>(cells: &Cells<'a, G>) -> Self {
        let (ones, highs) = cells.layout.masks();
        Self {
            words: cells.words.stored(),
            counters: cells.words.counters().map(|(counters, mask)| (counters, V::splat(mask as u64))),
            key: V::splat(cells.geometry.key()),
            remix: V::splat(REMIX),
            buckets: V::splat(cells.geometry.buckets() as u64),
            fingerprints: V::splat(u64::from(cells.layout.fingerprints())),
            spread_square: V::splat(u64::from(SPREAD_SQUARE)),
            spread_linear: V::splat(u64::from(SPREAD_LINEAR)),
            odd: V::splat(cells.geometry.odd()),
            ones: V::splat(ones),
            ones_high: V::splat(ones >> 32),
            highs: V::splat(highs),
            one: V::splat(1),
            lanes: V::load(&[0, 1, 2, 3, 4, 5, 6, 7]),
            factors: cells.generation.factors().map(|(scale, fraction)| (V::splat(scale), V::splat(fraction))),
        }
    }

    /// The buckets of fingerprints at these base buckets: `Generation::bucket` in every lane.
    #[inline(always)]
    fn bucket(&self, base: V, fingerprint: V) -> V {
        let Some((scale, fraction)) = self.factors else { return base };
        base.mul_low_halves(scale).add(fingerprint.mul_low_halves(fraction).shift_right::<32>())
    }

    /// Home base buckets and fingerprints: `Geometry::class` in every lane. Bucket counts have 32 bits, so the high half of the
    /// product with a 64-bit hash comes from two products of 32 bits.
    #[inline(always)]
    fn classes(&self, hashes: V) -> (V, V) {
        let mixed = mix(hashes.xor(self.key), self.remix);
        let low = mixed.mul_low_halves(self.buckets).shift_right::<32>();
        let home = mixed.shift_right::<32>().mul_low_halves(self.buckets).add(low).shift_right::<32>();
        let fingerprint = mixed.mul_low_halves(self.fingerprints).shift_right::<32>().add(self.one);
        (home, fingerprint)
    }

    /// The other base bucket: `Geometry::other` in every lane.
    #[inline(always)]
    fn other(&self, bucket: V, fingerprint: V) -> V {
        // Products are of low halves, so the remainders modulo 2^32 take care of themselves.
        let slope = fingerprint.mul_low_halves(self.spread_square).add(self.spread_linear);
        let spread = fingerprint.mul_low_halves(slope).mul_low_halves(self.buckets).shift_right::<32>();
        let difference = spread.or(self.odd).sub(bucket);
        // All ones where the difference is negative.
        let borrow = V::splat(0).sub(difference.shift_right::<63>());
        difference.add(borrow.and(self.buckets))
    }

    /// A slot in every lane of a word.
    #[inline(always)]
    fn pattern(&self, slot: V) -> V {
        slot.mul_low_halves(self.ones).add(slot.mul_low_halves(self.ones_high).shift_left::<32>())
    }

    /// `Layout::zeros` in every lane.
    #[inline(always)]
    fn zeros(&self, word: V) -> V {
        word.not_and(word.sub(self.ones)).and(self.highs)
    }

    /// The words of these buckets.
    #[inline(always)]
    fn gather(&self, buckets: V) -> V {
        match self.words {
            Stored::Shared(words) => V::gather_words(words, buckets),
            Stored::Frozen(words) => V::gather_frozen(words, buckets),
        }
    }

    /// The counters of these homes.
    #[inline(always)]
    fn look(&self, homes: V) -> V {
        self.counters.map_or(V::splat(0), |(counters, mask)| V::gather_counters(counters, homes.and(mask)))
    }

    /// One bit for each of these hashes, as many as there are lanes, whose class is in: by both words, or, if neither has it and their stripe has
    /// changed meanwhile, by looking again.
    ///
    /// The order of the reads is that of `Cells::contains_both`, each after those before it: Acquire.
    #[inline(always)]
    fn contains_both<G: Readable>(&self, cells: &Cells<G>, hashes: &[u64]) -> u32 {
        let (home, fingerprint) = self.classes(V::load(hashes));
        let away = self.bucket(self.other(home, fingerprint), fingerprint);
        let at_home = self.pattern(fingerprint.add(fingerprint));
        let displaced = at_home.add(self.ones);
        let base = home;
        let home = self.bucket(home, fingerprint);
        let before = self.look(base);
        let away = self.gather(away);
        let home = self.gather(home);
        let after = self.look(base);
        let hits = self.zeros(home.xor(at_home)).or(self.zeros(away.xor(displaced))).nonzero();
        let moved = before.xor(after).nonzero() & !hits;
        if moved != 0 && !mutated!("batch_without_validation") {
            return hits | again(cells, moved, hashes);
        }
        hits
    }
}

/// One bit for each of these lanes whose class is in, looked up one by one.
#[cold]
#[inline(never)]
fn again<G: Readable>(cells: &Cells<G>, lanes: u32, hashes: &[u64]) -> u32 {
    let contains = |hash: u64| {
        cells.note_retry();
        u32::from(cells.contains_both(cells.geometry.class(hash)))
    };
    let lanes = hashes.iter().enumerate().filter(|(lane, _)| lanes >> lane & 1 != 0);
    lanes.fold(0, |hits, (lane, hash)| hits | contains(*hash) << lane)
}

/// The way through a table in cache: both words of every key, no branch that depends on a key.
#[inline(always)]
fn in_cache<V: Vector, G: Readable>(cells: &Cells<G>, hashes: &[u64], found: &mut [bool]) {
    let constants = Constants::<V>::new(cells);
    let mut groups = hashes.chunks_exact(V::LANES);
    let mut answers = found.chunks_exact_mut(V::LANES);
    for (hashes, found) in groups.by_ref().zip(answers.by_ref()) {
        spread(constants.contains_both(cells, hashes), found);
    }
    for (hash, found) in groups.remainder().iter().zip(answers.into_remainder()) {
        *found = cells.contains_both(cells.geometry.class(*hash));
    }
}

/// Answers one bit for each key.
#[inline(always)]
fn spread(bits: u32, found: &mut [bool]) {
    for (lane, found) in found.iter_mut().enumerate() {
        *found = bits >> lane & 1 != 0;
    }
}

/// Does `work` for each hash, in order, with the words that it needs asked for beforehand: its home word; the away word, if the home word
/// `needs_away`; and for those, when both words are there, what `further` asks for. Stops at the first error, and says at which hash.
#[inline(always)]
pub(crate) fn staged<E, G: Readable>(
    cells: &Cells<G>,
    hashes: &[u64],
    needs_away: impl Fn(u64) -> bool,
    further: impl Fn(Class),
    mut work: impl FnMut(usize, Class) -> Result<(), E>,
) -> Result<(), (usize, E)> {
    let mut classes = [Class { home: 0, fingerprint: 1 }; GROUP];
    let mut pending = [0_u8; GROUP];
    for (group, hashes) in hashes.chunks(GROUP).enumerate() {
        for (class, hash) in classes.iter_mut().zip(hashes) {
            *class = cells.geometry.class(*hash);
            cells.prefetch(cells.home(*class));
        }
        let mut pending_len = 0;
        for (key, class) in classes[..hashes.len()].iter().enumerate() {
            pending[pending_len] = key as u8;
            pending_len += usize::from(needs_away(cells.load(cells.home(*class))));
        }
        for key in &pending[..pending_len] {
            let class = classes[usize::from(*key)];
            cells.prefetch(cells.away(class));
        }
        for key in &pending[..pending_len] {
            further(classes[usize::from(*key)]);
        }
        for (key, class) in classes[..hashes.len()].iter().enumerate() {
            work(group * GROUP + key, *class).map_err(|error| (group * GROUP + key, error))?;
        }
    }
    Ok(())
}
