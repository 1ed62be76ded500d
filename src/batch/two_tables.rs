//! The way of a batch through two tables, of which the older one is being drained: a pipeline like that of a table in memory, in which each key is looked up first where it most
//! likely is, and mostly only there. Whether its old buckets are *sealed* is known beforehand, by their numbers; whether their draining was *begun* is asked after the words.
//!
//! 1. *Ask*: hash a vector of keys and prefetch their home words: those of the newer table where the old home is sealed, else those of the older.
//! 2. *Decide*, [`AHEAD`] keys later: the word answers by a match. Count 0 says "absent" if all copies are in that table: in the newer one because both old buckets
//!    are sealed, in the older one because the draining of neither was begun.
//! 3. *Ask again*, and some queued keys later *look again*, at a pair of words, with a counter before and after ([`Pair`]).
//! 4. *Ask for everything*, and as much later *finish*: all four words, validated.
//!
//! What may be concluded is said in section 8 of `docs/design.md`, rules 3, 4 and 10. The caller looks whether the state is still the same.

use super::{
    Constants, MOST_LANES, Vector,
    in_memory::{AHEAD, LAG, QUEUE, Queue, RING},
    spread,
};
use crate::{
    cells::Cells,
    stats::Event,
    sync::{AtomicU64, AtomicWord},
    table, word,
    words::{Common, Live},
};

/// One bit for each chunk of buckets of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks<'a> {
    pub(crate) bits: &'a [AtomicU64],
    /// A chunk has two to the power of this many buckets.
    pub(crate) chunk_bits: u32,
}

/// Two tables, and how far the older one is drained.
#[derive(Debug)]
pub(crate) struct TwoTables<'a, G: Live> {
    pub(crate) old: Cells<'a, G>,
    pub(crate) new: Cells<'a, G>,
    /// The older table's buckets below this one are sealed.
    pub(crate) sealed: usize,
    /// Chunks of the older table in which the draining of some bucket may have begun.
    pub(crate) begun: Marks<'a>,
}

/// In a queue the number of a key is followed by one bit: the word that was looked at says that something is displaced.
const BEHIND: u32 = 1;

/// Vectors of keys that are looked at in a row: whether there are enough is mispredicted once for all of them.
const ROW: usize = 4;

/// Keys that stay in the queue of pairs behind them: their words are on the way.
const WAIT: usize = 32;

// So many are left at most when the next vector comes.
const _: () = assert!(WAIT + (ROW + 1) * MOST_LANES < QUEUE && LAG + (ROW + 1) * MOST_LANES < QUEUE);

/// Looks up all keys. `again` looks up one whose stripe has changed meanwhile.
#[inline(always)]
pub(super) fn look_up<V: Vector, G: Live>(
    tables: &TwoTables<'_, G>,
    hashes: &[u64],
    found: &mut [bool],
    again: &dyn Fn(u64) -> bool,
) {
    let whole = hashes.len() - hashes.len() % V::LANES;
    let (whole, rest) = hashes.split_at(whole);
    let (found, rest_found) = found.split_at_mut(whole.len());
    let both = Both::<V>::new(tables);
    let mut asked = Asked { homes: [0; RING], fingerprints: [0; RING], old_homes: [0; RING], old_aways: [0; RING] };
    let (mut pairs, mut last) = (Queue::new(), Queue::new());
    for key in (0..whole.len() + AHEAD).step_by(V::LANES) {
        if key < whole.len() {
            asked.ask(&both, key, V::load(&whole[key..]));
        }
        if key >= AHEAD {
            let key = key - AHEAD;
            let (undecided, keys) = asked.decide(&both, key, &mut found[key..][..V::LANES]);
            pairs.push(V::load(&whole[key..]), keys, undecided);
        }
        if pairs.has(ROW * V::LANES + WAIT) {
            while let Some((hashes, keys)) = pairs.ask_next::<V>() {
                both.ask_pair(hashes, keys);
            }
            for _ in 0..ROW {
                both.look_at_pair(&mut pairs, found, &mut last);
            }
            while let Some((hashes, _)) = last.ask_next::<V>() {
                both.ask_all(hashes);
            }
            while last.has(V::LANES + LAG) {
                both.finish(&mut last, found, again);
            }
        }
    }
    while pairs.has(V::LANES) {
        both.look_at_pair(&mut pairs, found, &mut last);
        if last.has(V::LANES) {
            both.finish(&mut last, found, again);
        }
    }
    while last.has(V::LANES) {
        both.finish(&mut last, found, again);
    }
    // A part of a vector is left of each queue, and of the batch.
    for (hash, key) in pairs.left().chain(last.left()) {
        found[(key >> BEHIND) as usize] = again(hash);
    }
    for (hash, found) in rest.iter().zip(rest_found) {
        *found = again(*hash);
    }
}

/// What a vector of keys needs of two tables.
struct Both<'a, V> {
    old: Constants<'a, V>,
    new: Constants<'a, V>,
    old_words: &'a [AtomicWord],
    new_words: &'a [AtomicWord],
    sealed: V,
    begun: &'a [AtomicU64],
    chunk_bits: V,
    low: V,
    common: &'a Common,
}

/// Where some keys belong.
struct Places<V> {
    base: V,
    fingerprint: V,
    old_home: V,
    old_away: V,
    new_home: V,
    new_away: V,
}

/// Two words of a key, and what can be concluded from them; masks.
///
/// - Both old buckets sealed: the away and the home word of the newer table.
/// - The old home sealed, the away bucket not: the old table has copies only there. The old away word, then the home word of the newer table, count included.
/// - The other way round: the old home word, then that of the newer table, likewise.
/// - Neither: if the old home word spoke of something displaced, the away and the home word of the older table, which are all if the draining of neither was begun; else
///   the home words of both tables, with their counts.
struct Pair<V> {
    first: V,
    second: V,
    only_new: V,
    only_old: V,
    /// The first is an away word.
    is_away: V,
    /// If the first word does not match, that says all of its table, whatever its count.
    decides: V,
}

/// All ones in the lanes whose lowest bit is set.
#[inline(always)]
fn mask<V: Vector>(bits: V) -> V {
    V::splat(0).sub(bits)
}

/// The lanes of `yes` where the mask is set, those of `no` elsewhere.
#[inline(always)]
fn select<V: Vector>(mask: V, yes: V, no: V) -> V {
    no.xor(yes.xor(no).and(mask))
}

impl<'a, V: Vector> Both<'a, V> {
    #[inline(always)]
    fn new<G: Live>(tables: &TwoTables<'a, G>) -> Self {
        Self {
            old: Constants::new(&tables.old),
            new: Constants::new(&tables.new),
            old_words: tables.old.words.table.words(),
            new_words: tables.new.words.table.words(),
            sealed: V::splat(tables.sealed as u64),
            begun: tables.begun.bits,
            chunk_bits: V::splat(tables.begun.chunk_bits.into()),
            low: V::splat(63),
            common: tables.old.words.common,
        }
    }

    #[inline(always)]
    fn places(&self, hashes: V) -> Places<V> {
        let (base, fingerprint) = self.old.classes(hashes);
        let away = self.old.other(base, fingerprint);
        Places {
            base,
            fingerprint,
            old_home: self.old.bucket(base, fingerprint),
            old_away: self.old.bucket(away, fingerprint),
            new_home: self.new.bucket(base, fingerprint),
            new_away: self.new.bucket(away, fingerprint),
        }
    }

    /// All ones where the draining of neither old bucket was begun. Asked after the words.
    #[inline(always)]
    fn untouched(&self, home: V, away: V) -> V {
        mask(self.begun(home).or(self.begun(away)).not_and(self.old.one))
    }

    /// The mark of this old bucket in the lowest bit.
    #[inline(always)]
    fn begun(&self, bucket: V) -> V {
        let chunk = bucket.shift_right_by(self.chunk_bits);
        V::gather_counters(self.begun, chunk.shift_right::<6>()).shift_right_by(chunk.and(self.low))
    }

    /// What to look at if one word did not decide.
    #[inline(always)]
    fn pair(&self, at: &Places<V>, keys: V) -> Pair<V> {
        let home_sealed = below(at.old_home, self.sealed);
        let away_sealed = below(at.old_away, self.sealed);
        let displaced = mask(keys.and(self.old.one));
        let only_new = home_sealed.and(away_sealed);
        let only_old = home_sealed.or(away_sealed).not_and(displaced);
        let is_away = home_sealed.or(only_old);
        let away = select(only_new, at.new_away, at.old_away);
        Pair {
            first: select(is_away, away, at.old_home),
            second: select(only_old, at.old_home, at.new_home),
            only_new,
            only_old,
            is_away,
            decides: is_away.or(away_sealed),
        }
    }

    /// The words of these buckets, of the newer table where the mask is set.
    #[inline(always)]
    fn gather(&self, buckets: V, in_new: V) -> V {
        V::gather_either(self.old_words, self.new_words, buckets, in_new)
    }

    /// Prefetches them.
    #[inline(always)]
    fn prefetch(&self, buckets: V, in_new: V) {
        let (mut lanes, mut newer) = ([0; MOST_LANES], [0; MOST_LANES]);
        buckets.store(&mut lanes);
        in_new.store(&mut newer);
        for (bucket, newer) in lanes.iter().zip(newer).take(V::LANES) {
            let words = if newer != 0 { self.new_words } else { self.old_words };
            table::prefetch(words.as_ptr().wrapping_add(*bucket as usize));
        }
    }

    /// For these keys of the queue of pairs, asks for the word of the pair that was not looked at yet: its away word, or else the home word in the newer table.
    #[inline(always)]
    fn ask_pair(&self, hashes: V, keys: V) {
        let at = self.places(hashes);
        let pair = self.pair(&at, keys);
        let all = mask(self.old.one);
        self.prefetch(select(pair.is_away, pair.first, pair.second), select(pair.is_away, pair.only_new, all));
    }

    /// Answers a vector of the queue of pairs, as far as pairs of words decide; the rest goes into the last queue.
    #[inline(always)]
    fn look_at_pair(&self, pairs: &mut Queue, found: &mut [bool], last: &mut Queue) {
        let (hashes, places) = pairs.next::<V>();
        let (hashes, keys) = (V::load(hashes), V::load(places));
        let at = self.places(hashes);
        let pair = self.pair(&at, keys);
        let at_home = self.old.pattern(at.fingerprint.add(at.fingerprint));
        let first_pattern = at_home.add(pair.is_away.and(self.old.ones));
        // All reads are Acquire, each is made after those before it.
        let before = self.old.look(at.base);
        let first = self.gather(pair.first, pair.only_new);
        let second = self.gather(pair.second, pair.only_old.xor(mask(self.old.one)));
        let after = self.old.look(at.base);
        let untouched = self.untouched(at.old_home, at.old_away);
        let hits = self.old.zeros(first.xor(first_pattern)).or(self.old.zeros(second.xor(at_home))).nonzero();
        let displaced = pair.decides.not_and(first).or(second).shift_right::<{ word::SLOT_BITS }>();
        let one_table = pair.only_new.or(pair.only_old);
        let rest = select(one_table, untouched.not_and(pair.only_old), displaced);
        let moved = before.xor(after).nonzero() & !hits;
        if moved != 0 {
            self.note_retries(moved);
        }
        let undecided = rest.nonzero() & !hits | moved;
        answer(places, hits, found);
        last.push(hashes, keys, undecided);
    }

    /// Notes that the words of these lanes are read again.
    #[cold]
    #[inline(never)]
    fn note_retries(&self, lanes: u32) {
        (0..lanes.count_ones()).for_each(|_| self.common.counters.add_rare(Event::ReadAgain));
    }

    /// Asks for all four words.
    #[inline(always)]
    fn ask_all(&self, hashes: V) {
        let at = self.places(hashes);
        let (old, new) = (V::splat(0), mask(self.old.one));
        self.prefetch(at.old_away, old);
        self.prefetch(at.old_home, old);
        self.prefetch(at.new_away, new);
        self.prefetch(at.new_home, new);
    }

    /// Answers a vector of the last queue.
    #[inline(always)]
    fn finish(&self, last: &mut Queue, found: &mut [bool], again: &dyn Fn(u64) -> bool) {
        let (lanes, keys) = last.next::<V>();
        let hashes = V::load(lanes);
        let at = self.places(hashes);
        let at_home = self.old.pattern(at.fingerprint.add(at.fingerprint));
        let displaced = at_home.add(self.old.ones);
        let before = self.old.look(at.base);
        let mut matches = self.old.zeros(self.old.gather(at.old_away).xor(displaced));
        matches = matches.or(self.old.zeros(self.old.gather(at.old_home).xor(at_home)));
        matches = matches.or(self.old.zeros(self.new.gather(at.new_away).xor(displaced)));
        matches = matches.or(self.old.zeros(self.new.gather(at.new_home).xor(at_home)));
        let after = self.old.look(at.base);
        let mut hits = matches.nonzero();
        let moved = before.xor(after).nonzero() & !hits;
        if moved != 0 {
            self.note_retries(moved);
            let lanes = lanes.iter().enumerate().filter(|(lane, _)| moved >> lane & 1 != 0);
            hits |= lanes.fold(0, |hits, (lane, hash)| hits | u32::from(again(*hash)) << lane);
        }
        answer(keys, hits, found);
    }
}

/// All ones where the first is less; both are far below 2<sup>63</sup>.
#[inline(always)]
fn below<V: Vector>(value: V, limit: V) -> V {
    mask(value.sub(limit).shift_right::<63>())
}

/// Answers these keys of a queue, one bit for each.
#[inline(always)]
fn answer(keys: &[u64], hits: u32, found: &mut [bool]) {
    for (lane, key) in keys.iter().enumerate() {
        found[(key >> BEHIND) as usize] = hits >> lane & 1 != 0;
    }
}

/// Keys whose home words are asked for, key `k` in place `k % RING`: the bucket that is looked at first, and what else is needed then.
struct Asked {
    homes: [u64; RING],
    fingerprints: [u64; RING],
    old_homes: [u64; RING],
    old_aways: [u64; RING],
}

impl Asked {
    /// First stage, for the vector of keys from `key` on.
    #[inline(always)]
    fn ask<V: Vector>(&mut self, both: &Both<'_, V>, key: usize, hashes: V) {
        let place = key % RING;
        let at = both.places(hashes);
        let in_new = below(at.old_home, both.sealed);
        let home = select(in_new, at.new_home, at.old_home);
        home.store(&mut self.homes[place..]);
        at.fingerprint.store(&mut self.fingerprints[place..]);
        at.old_home.store(&mut self.old_homes[place..]);
        at.old_away.store(&mut self.old_aways[place..]);
        both.prefetch(home, in_new);
    }

    /// Second stage, for the same keys: answers them, and says which are undecided, and what the queue has to know of each.
    #[inline(always)]
    fn decide<V: Vector>(&self, both: &Both<'_, V>, key: usize, found: &mut [bool]) -> (u32, V) {
        let place = key % RING;
        let (home, fingerprint) = (V::load(&self.homes[place..]), V::load(&self.fingerprints[place..]));
        let (old_home, old_away) = (V::load(&self.old_homes[place..]), V::load(&self.old_aways[place..]));
        let constants = &both.old;
        let home_sealed = below(old_home, both.sealed);
        let away_sealed = below(old_away, both.sealed);
        let words = both.gather(home, home_sealed);
        let untouched = both.untouched(old_home, old_away);
        let hits = constants.zeros(words.xor(constants.pattern(fingerprint.add(fingerprint)))).nonzero();
        spread(hits, found);
        let displaced = words.shift_right::<{ word::SLOT_BITS }>();
        // Where all copies are in the table that was looked at. Where a bucket is sealed something was begun.
        let one_table = home_sealed.and(away_sealed).or(untouched);
        let undecided = displaced.or(mask(constants.one).xor(one_table)).nonzero() & !hits;
        let keys = V::splat(key as u64).add(constants.lanes).shift_left::<BEHIND>();
        (undecided, keys.or(below(V::splat(0), displaced).and(constants.one)))
    }
}
