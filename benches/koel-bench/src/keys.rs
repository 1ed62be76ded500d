//! Keys: 64-bit hashes computed from an index, so that hundreds of millions of them need no memory.
//!
//! Key *i* is a bijective mix of *i*: no two keys are equal, and those of different ranges never meet. The look-ups of one sample
//! are drawn anew for each round, so that a table in memory is not answered from the lines that the round before left in the cache.

/// Where absent keys begin; no table holds so many.
const ABSENT: u64 = 1 << 48;
/// Keys that are generated at a time: their array stays in the first-level cache or just outside.
pub const CHUNK: usize = 4096;

/// The mixing function of splitmix64, a bijection.
#[inline]
pub const fn mix(index: u64) -> u64 {
    let x = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The hash of the key that is inserted as number `index`.
#[inline]
pub const fn present(index: u64) -> u64 {
    mix(index)
}

/// The hash of a key that is never inserted.
#[inline]
pub const fn absent(index: u64) -> u64 {
    mix(ABSENT + index)
}

/// A small generator (splitmix64), for draws that need no more than evenness.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// One sequence for each seed.
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x006b_6f65_6c00))
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How the keys of look-ups are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Evenly, in no order.
    Random,
    /// Integers that follow one another, in the order of insertion.
    Sequential,
    /// A few keys often: exponent 1.
    Zipf,
}

impl Order {
    /// As records name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sequential => "sequential",
            Self::Zipf => "Zipf",
        }
    }
}

/// Keys to look up, and what is known about the answers.
#[derive(Clone, Debug, Default)]
pub struct LookUps {
    /// The hashes.
    pub hashes: Vec<u64>,
    /// Whether each is in.
    pub present: Vec<bool>,
}

/// What a filter answered wrongly and rightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Keys that are in and were not found: has to stay 0.
    pub missed: u64,
    /// Absent keys asked for.
    pub absent: u64,
    /// Those of them that were answered "maybe".
    pub false_positives: u64,
}

impl LookUps {
    /// `count` look-ups of which `hits` percent are among the first `keys` keys, in no order. Each `round` draws others.
    pub fn random(keys: u64, count: usize, hits: u32, round: u64) -> Self {
        let mut random = Random::new(round);
        let absent_from = round.wrapping_mul(count as u64) & (ABSENT - 1);
        let mut look_ups = Self { hashes: Vec::with_capacity(count), present: Vec::with_capacity(count) };
        for index in 0..count as u64 {
            let hit = keys > 0 && random.below(100) < u64::from(hits);
            look_ups.present.push(hit);
            look_ups.hashes.push(if hit { present(random.below(keys)) } else { absent(absent_from + index) });
        }
        look_ups
    }

    /// `count` look-ups of present keys by Zipf's law with exponent 1. Popular keys are those inserted first, which sit anywhere in the table.
    pub fn zipf(keys: u64, count: usize, round: u64) -> Self {
        let mut random = Random::new(round);
        // The inverse of the law's distribution function, taken as continuous.
        let hashes = (0..count).map(|_| {
            let rank = ((keys as f64 + 1.0).ln() * random.unit()).exp() as u64 - 1;
            present(rank.min(keys - 1))
        });
        Self { hashes: hashes.collect(), present: vec![true; count] }
    }

    /// Compares answers with what is known.
    pub fn check(&self, found: &[bool]) -> Answers {
        let mut answers = Answers::default();
        for (present, found) in self.present.iter().zip(found) {
            answers.missed += u64::from(*present && !found);
            answers.absent += u64::from(!present);
            answers.false_positives += u64::from(!present && *found);
        }
        answers
    }
}

impl Answers {
    /// Adds those of another sample.
    pub fn add(&mut self, other: Self) {
        self.missed += other.missed;
        self.absent += other.absent;
        self.false_positives += other.false_positives;
    }
}

/// Calls `work` with the hashes of the keys numbered `from..to`, a chunk at a time, until it takes less than a whole chunk.
/// Returns how many were taken in all.
pub fn in_chunks(from: u64, to: u64, mut work: impl FnMut(&[u64]) -> usize) -> u64 {
    let mut hashes = Vec::with_capacity(CHUNK);
    let mut at = from;
    while at < to {
        hashes.clear();
        hashes.extend((at..to.min(at + CHUNK as u64)).map(present));
        let taken = work(&hashes);
        at += taken as u64;
        if taken < hashes.len() {
            break;
        }
    }
    at - from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_are_as_described() {
        let look_ups = LookUps::random(1000, 10_000, 50, 3);
        let hits = look_ups.present.iter().filter(|present| **present).count();
        assert!((4500..5500).contains(&hits), "{hits}");
        let keys: std::collections::HashSet<u64> = (0..1000).map(present).collect();
        for (hash, present) in look_ups.hashes.iter().zip(&look_ups.present) {
            assert_eq!(keys.contains(hash), *present);
        }
        assert_ne!(look_ups.hashes, LookUps::random(1000, 10_000, 50, 4).hashes);
    }

    #[test]
    fn zipf_prefers_the_first() {
        let look_ups = LookUps::zipf(100_000, 20_000, 0);
        let first = look_ups.hashes.iter().filter(|hash| **hash == present(0)).count();
        // ln 2 / ln 100001 of all.
        assert!((900..1500).contains(&first), "{first}");
    }

    #[test]
    fn answers_are_counted() {
        let look_ups = LookUps { hashes: vec![1, 2, 3, 4], present: vec![true, true, false, false] };
        let answers = look_ups.check(&[true, false, true, false]);
        assert_eq!(answers, Answers { missed: 1, absent: 2, false_positives: 1 });
    }

    #[test]
    fn chunks_stop_at_the_first_refusal() {
        let mut calls = 0;
        let taken = in_chunks(0, 3 * CHUNK as u64, |hashes| {
            calls += 1;
            if calls == 2 { 7 } else { hashes.len() }
        });
        assert_eq!((taken, calls), (CHUNK as u64 + 7, 2));
    }
}
