//! From capacity and rate to a number of words and probes, and from a hash to what is looked at.
//!
//! # Sizes
//!
//! - **Standard.** A key sets `k` of `m` bits, so with `n` keys a bit is set with probability `1 - exp(-k n / m)`, and an absent key is found with that to the power
//!   of `k` (Bloom, 1970). For the rate `p` the best `k` is `log2(1 / p)`, `m = -n ln p / (ln 2)^2`; a whole number of probes takes `m = -k n / ln(1 - p^(1/k))`. On top come
//!   `k` bits: the share of bits that are set scatters, and the mean of a power is above the power of the mean.
//! - **Blocked.** All bits of a key are in one line of eight words, one in each word, or two (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007; one
//!   bit in each word as in the split blocks of Apache Parquet). The keys of a line scatter as Poisson's distribution has it, and full lines answer wrongly more often than empty ones
//!   make up for. So the rate is that of a mixture over all loads of a line, and the number of lines is such that this rate is the one asked for.
//!
//! # Probes
//!
//! One hash makes all probes, as Kirsch and Mitzenmacher ("Less hashing, same performance", 2006) show that two numbers can. But the arithmetic progression that they make of them
//! meets the same bits too often in filters of some dozen words; a geometric progression (Lehmer's generator, of which the high bits are taken) costs one multiplication as well and
//! has the textbook's rate at any size.

use crate::{
    error::BuildError,
    hash::{MAX_BUCKETS, SEED, mix},
};

/// The most probes of a key: two hashes of 64 bits are equal at the rate that so many have.
pub(crate) const MAX_PROBES: u32 = 64;

/// The lowest rate that can be asked for, 2<sup>-32</sup>. Hashes of 64 bits that are equal add to it 1/16 of it with 2<sup>28</sup> keys, and as much again with 2<sup>32</sup>.
pub(crate) const LOWEST_RATE: f64 = 1.0 / (1_u64 << 32) as f64;

/// Words of a line: 64 bytes.
pub(crate) const LINE: usize = 8;

/// The factors of Lehmer's generators with good spectra (Steele and Vigna, 2021).
pub(crate) const NEXT_PROBE: u64 = 0xd134_2543_de82_ef95;
pub(crate) const LINE_FACTORS: [u64; 2] = [0xf135_7aea_2e62_a9c5, 0xaf25_1af3_b0f0_25b5];

/// The numbers that say where the bits, or counters, of a hash are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) blocked: bool,
    pub(crate) words: usize,
    /// Bits of a cell: 1, or those of a counter.
    pub(crate) cell_bits: u32,
    /// Cells of a key. In the blocked form 8 or 16.
    pub(crate) probes: u32,
    pub(crate) seed: u64,
    /// The seed, mixed: neighbouring seeds give unrelated filters.
    key: u64,
    cells: u64,
}

impl Shape {
    pub(crate) fn new(blocked: bool, words: usize, cell_bits: u32, probes: u32, seed: u64) -> Self {
        debug_assert!(words > 0 && (!blocked || words.is_multiple_of(LINE)));
        let cells = words as u64 * u64::from(64 / cell_bits);
        Self { blocked, words, cell_bits, probes, seed, key: mix(seed ^ SEED), cells }
    }

    /// The shape for `capacity` keys at `rate`, with a seed.
    pub(crate) fn plan(
        blocked: bool,
        capacity: usize,
        rate: f64,
        cell_bits: u32,
        seed: u64,
    ) -> Result<Self, BuildError> {
        check_rate(rate)?;
        Self::sized(blocked, capacity as f64, rate, cell_bits, seed)
            .ok_or_else(|| BuildError::CapacityTooLarge { capacity, largest: largest(blocked, rate, cell_bits) })
    }

    /// As [`plan`](Self::plan), of a rate greater than 0 and less than 1; `None` if it takes too many words.
    pub(crate) fn sized(blocked: bool, capacity: f64, rate: f64, cell_bits: u32, seed: u64) -> Option<Self> {
        let (probes, cells_per_key) = if blocked { blocked_plan(rate) } else { standard_plan(rate) };
        let cells = capacity * cells_per_key + f64::from(probes);
        let words = libm::ceil(cells / f64::from(64 / cell_bits)).max(1.0);
        let words = if blocked { libm::ceil(words / LINE as f64) * LINE as f64 } else { words };
        (words <= MAX_BUCKETS as f64 && words * 8.0 <= isize::MAX as f64)
            .then(|| Self::new(blocked, words as usize, cell_bits, probes, seed))
    }

    /// Bits, or counters.
    pub(crate) fn cells(&self) -> u64 {
        self.cells
    }

    pub(crate) fn lines(&self) -> u64 {
        (self.words / LINE) as u64
    }

    /// What hashes are combined with before they are mixed.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// The hash, mixed with the seed: weak hashes are as good as random ones.
    #[inline(always)]
    pub(crate) fn mixed(&self, hash: u64) -> u64 {
        mix(hash ^ self.key)
    }

    /// The cells of a key of the standard form. Some may be the same.
    #[inline(always)]
    pub(crate) fn probes(&self, mixed: u64) -> impl Iterator<Item = u64> + use<> {
        let cells = self.cells;
        let mut state = mixed;
        (0..self.probes).map(move |_| {
            let cell = reduce(state, cells);
            state = state.wrapping_mul(NEXT_PROBE);
            cell
        })
    }

    /// The share of absent keys that are found with so many keys in.
    pub(crate) fn rate_at(&self, keys: f64) -> f64 {
        if self.blocked {
            return blocked_rate(keys / self.lines() as f64, self.probes / LINE as u32);
        }
        let probes = f64::from(self.probes);
        self.rate_of_fill(-libm::expm1(-probes * keys / self.cells as f64))
    }

    /// The share of absent keys that are found, if this share of the cells is taken. Of the standard form.
    pub(crate) fn rate_of_fill(&self, fill: f64) -> f64 {
        libm::pow(fill, f64::from(self.probes))
    }

    /// The inverse of [`rate_of_fill`](Self::rate_of_fill).
    pub(crate) fn fill_of_rate(&self, rate: f64) -> f64 {
        libm::pow(rate, 1.0 / f64::from(self.probes))
    }

    /// How many keys take this share of the cells.
    pub(crate) fn keys_of_fill(&self, fill: f64) -> usize {
        // Finite also where all cells are taken: half a cell is left. Each line has 8 or 16 cells of a key, as the whole filter has.
        let free = (1.0 - fill).max(0.5 / self.cells as f64);
        libm::round(-libm::log(free) * self.cells as f64 / f64::from(self.probes)) as usize
    }
}

/// The high half of the product, which is below `cells`.
#[inline(always)]
fn reduce(random: u64, cells: u64) -> u64 {
    ((u128::from(random) * u128::from(cells)) >> 64) as u64
}

pub(crate) fn check_rate(rate: f64) -> Result<(), BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(BuildError::InvalidRate { rate });
    }
    if rate < LOWEST_RATE {
        return Err(BuildError::RateTooLow { rate, lowest: LOWEST_RATE, slots_per_bucket: None });
    }
    Ok(())
}

/// The largest capacity that can be had.
fn largest(blocked: bool, rate: f64, cell_bits: u32) -> usize {
    let (mut most, mut too_many) = (0, usize::MAX);
    while too_many - most > most / 1024 + 1 {
        let middle = usize::midpoint(most, too_many);
        let fits = Shape::sized(blocked, middle as f64, rate, cell_bits, 0).is_some();
        *(if fits { &mut most } else { &mut too_many }) = middle;
    }
    most
}

/// Probes and cells for each key of the standard form.
fn standard_plan(rate: f64) -> (u32, f64) {
    let best = libm::floor(-libm::log2(rate)) as u32;
    let cells = |probes: u32| {
        let fill = libm::pow(rate, 1.0 / f64::from(probes));
        -f64::from(probes) / libm::log1p(-fill)
    };
    let candidates = [best, best + 1].map(|probes| probes.clamp(1, MAX_PROBES));
    let [few, many] = candidates.map(|probes| (probes, cells(probes)));
    if few.1 <= many.1 { few } else { many }
}

/// Probes and cells for each key of the blocked form.
fn blocked_plan(rate: f64) -> (u32, f64) {
    let [single, double] = [1, 2].map(|bits_per_word| {
        // Keys of a line: between fewer and more than are ever wanted the rate only rises.
        let (mut low, mut high) = (0.5, MOST_KEYS_OF_LINE);
        while high - low > low * 1e-6 {
            let middle = f64::midpoint(low, high);
            *(if blocked_rate(middle, bits_per_word) <= rate { &mut low } else { &mut high }) = middle;
        }
        (8 * bits_per_word, LINE as f64 * 64.0 / low)
    });
    if single.1 <= double.1 { single } else { double }
}

/// So many, in the mean, leave no bit of a line unset.
const MOST_KEYS_OF_LINE: f64 = 4096.0;

/// The rate of the blocked form with a mean number of keys in a line, all loads considered.
fn blocked_rate(mean: f64, bits_per_word: u32) -> f64 {
    if mean <= 0.0 || mean > MOST_KEYS_OF_LINE {
        return if mean <= 0.0 { 0.0 } else { 1.0 };
    }
    let scatter = 9.0 * libm::sqrt(mean) + 30.0;
    let (mut keys, last) = (libm::floor((mean - scatter).max(0.0)), mean + scatter);
    // The probability of the first load, by its logarithm: small numbers.
    let mut load = libm::exp(keys * libm::log(mean) - mean - libm::lgamma(keys + 1.0));
    // What becomes, with each key, of the chances that one bit, and both of two, were never set.
    let of_key = [1.0, 2.0].map(|bits| libm::pow(1.0 - bits / 64.0, f64::from(bits_per_word)));
    let [mut one, mut two] = of_key.map(|factor| libm::pow(factor, keys));
    let mut rate = 0.0;
    while keys <= last {
        let word = match bits_per_word {
            1 => 1.0 - one,
            // The two bits of the key that is looked up are the same in one of 64 cases.
            _ => (1.0 - one) / 64.0 + (1.0 - 2.0 * one + two) * 63.0 / 64.0,
        };
        let four = (word * word) * (word * word);
        rate += load * four * four;
        keys += 1.0;
        load *= mean / keys;
        one *= of_key[0];
        two *= of_key[1];
    }
    rate
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The textbook's figures, within a thousandth; for the blocked form those of a computation apart from this one.
    #[test]
    fn bits_per_key() {
        let cases = [
            (0.1, 4.79, 5.88),
            (0.01, 9.59, 10.10),
            (0.001, 14.38, 15.72),
            (1e-4, 19.17, 22.88),
            (1e-6, 28.76, 39.01),
            (1e-8, 38.34, 65.72),
        ];
        for (rate, standard, blocked) in cases {
            let plan = |blocked| Shape::plan(blocked, 1_000_000, rate, 1, 0).unwrap().cells() as f64 / 1e6;
            assert!((plan(false) / standard - 1.0).abs() < 0.005, "{rate}: {}", plan(false));
            assert!((plan(true) / blocked - 1.0).abs() < 0.001, "{rate}: {}", plan(true));
        }
    }

    #[test]
    fn sizes_rise_with_the_capacity_and_fall_with_the_rate() {
        for blocked in [false, true] {
            let mut last = 0;
            for exponent in 1..=32 {
                let rate = 1.0 / (1_u64 << exponent) as f64;
                let shape = Shape::plan(blocked, 100_000, rate, 1, 0).unwrap();
                assert!(shape.words > last && shape.probes <= MAX_PROBES, "{blocked} {exponent} {shape:?}");
                last = shape.words;
            }
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        for blocked in [false, true] {
            for rate in [0.0, -0.0, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY] {
                let error = Shape::plan(blocked, 10, rate, 1, 0).unwrap_err();
                assert!(matches!(error, BuildError::InvalidRate { .. }), "{rate}: {error}");
            }
            for rate in [1e-20, f64::MIN_POSITIVE] {
                let error = Shape::plan(blocked, 10, rate, 1, 0).unwrap_err();
                assert!(matches!(error, BuildError::RateTooLow { .. }), "{rate}: {error}");
            }
            for rate in [1e-9, 0.01, 0.999] {
                let Err(BuildError::CapacityTooLarge { largest, .. }) = Shape::plan(blocked, usize::MAX, rate, 4, 0)
                else {
                    // Next to nothing for each key: where addresses have 32 bits that may be possible.
                    assert!(rate > 0.9 || usize::BITS < 64);
                    continue;
                };
                assert!(Shape::plan(blocked, largest, rate, 4, 0).is_ok(), "{largest}");
            }
            // Rates at the edges, tiny capacities.
            for rate in [LOWEST_RATE, 1.0 - f64::EPSILON] {
                for capacity in [0, 1, 2] {
                    assert!(Shape::plan(blocked, capacity, rate, 1, 0).is_ok(), "{capacity} {rate}");
                }
            }
        }
    }
}
