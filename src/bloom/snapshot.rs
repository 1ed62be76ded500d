//! Snapshots of the Bloom family: its header, what its words have to be, and how each filter is copied and restored. Section "The Bloom family" of `docs/format.md`.
//!
//! Each bit or counter of a key that was in before, and was not removed since, is found in its word whenever that is copied (`bloom`, "Orderings"). So nobody waits for a snapshot of bits; of
//! a key that is put in meanwhile a part may be copied, which does no harm. Counters are held still while they are copied (`bloom::counters`, rule 5), those of all layers together.

use super::{
    BloomFilter, CountingBloomFilter, ScalableBloomFilter, ScalableCountingBloomFilter,
    counters::tally,
    layers::{Cells, Layer, Layers, MAX_LAYERS, Series},
    shape::{LINE, LOWEST_RATE, MAX_PROBES, Shape},
};
use crate::{
    DecodeError, StableBuildHasher,
    hash::MAX_BUCKETS,
    snapshot::{
        Head, OtherSize, Source,
        hasher::Id,
        header::{self, HEADER, Sizes, at},
        methods::snapshot_methods,
        payload::{self, Check},
    },
    table::Table,
};

/// Which type of filter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bloom = 3,
    Counting = 4,
    Scalable = 5,
    ScalableCounting = 6,
}

impl Kind {
    fn is_scalable(self) -> bool {
        matches!(self, Self::Scalable | Self::ScalableCounting)
    }
}

/// The fields that cuckoo filters have not.
mod own {
    use super::at;

    pub(super) const CELL_BITS: usize = at::SLOTS;
    /// Probes; of a scalable filter layers.
    pub(super) const NUMBER: usize = at::DOUBLINGS;
    pub(super) const BLOCKED: usize = at::MAX_DOUBLINGS;
    pub(super) const WORDS: usize = at::BASE;
    pub(super) const TAKEN: usize = at::KEYS;
}

/// Words that a scalable filter's payload begins with: growth factor, tightening ratio, and two for each layer, words and probes.
const fn prefix(layers: usize) -> usize {
    2 + 2 * layers
}

/// What the header says, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BloomHeader {
    kind: Kind,
    cell_bits: u32,
    /// Probes; of a scalable filter layers.
    number: u32,
    blocked: bool,
    words: u64,
    seed: u64,
    pub(crate) hasher: Id,
    taken: u64,
    capacity: usize,
    rate: f64,
    list: u64,
}

impl BloomHeader {
    fn expect(&self, kind: Kind) -> Result<(), DecodeError> {
        if self.kind == kind {
            return Ok(());
        }
        Err(DecodeError::OtherKind { stored: self.kind as u8, expected: kind as u8 })
    }

    /// Words of the payload that hold no cells.
    fn prefix(&self) -> usize {
        if self.kind.is_scalable() { prefix(self.number as usize) } else { 0 }
    }

    fn read(bytes: &[u8; HEADER]) -> Result<Self, DecodeError> {
        let word = |at| header::word(bytes, at);
        let invalid = |field, value, allowed| Err(DecodeError::InvalidField { field, value, allowed });
        let kind = match bytes[at::KIND] {
            3 => Kind::Bloom,
            4 => Kind::Counting,
            5 => Kind::Scalable,
            6 => Kind::ScalableCounting,
            other => return invalid("kind", other.into(), "3 to 6, that of a filter of the Bloom family"),
        };
        let cell_bits = u32::from(bytes[own::CELL_BITS]);
        let counts = matches!(kind, Kind::Counting | Kind::ScalableCounting);
        if !(if counts { matches!(cell_bits, 2 | 4 | 8) } else { cell_bits == 1 }) {
            return invalid("bits of a cell", cell_bits.into(), "1, or of a filter that counts 2, 4 or 8");
        }
        let number = u32::from(bytes[own::NUMBER]);
        if number == 0 || number > if kind.is_scalable() { MAX_LAYERS as u32 } else { MAX_PROBES } {
            return invalid("probes or layers", number.into(), "1 to 64");
        }
        let blocked = match bytes[own::BLOCKED] {
            0 => false,
            1 if kind == Kind::Bloom => true,
            other => return invalid("blocked", other.into(), "0, or of kind 3 also 1"),
        };
        if blocked && !matches!(number, 8 | 16) {
            return invalid("probes or layers", number.into(), "8 or 16 in the blocked form");
        }
        let zero = u16::from_le_bytes([bytes[at::ZERO], bytes[at::ZERO + 1]]);
        if zero != 0 {
            return invalid("zero", zero.into(), "0");
        }
        let words = word(own::WORDS);
        let (least, most) = match kind.is_scalable() {
            true => (3 * u64::from(number) + 2, (MAX_BUCKETS + 2) * u64::from(number) + 2),
            false => (1, MAX_BUCKETS),
        };
        if words < least || words > most || blocked && !words.is_multiple_of(LINE as u64) {
            return invalid(
                "words",
                words,
                "less than 2^32 for each layer, at least 1, in the blocked form whole lines",
            );
        }
        let taken = word(own::TAKEN);
        if taken > words * u64::from(64 / cell_bits) {
            return invalid("cells taken", taken, "at most the number of cells");
        }
        let Ok(capacity) = usize::try_from(word(at::CAPACITY)) else {
            return invalid("capacity", word(at::CAPACITY), "addressable");
        };
        let rate = f64::from_bits(word(at::RATE));
        if !(LOWEST_RATE..1.0).contains(&rate) {
            return Err(DecodeError::InvalidRate { rate });
        }
        let header = Self {
            kind,
            cell_bits,
            number,
            blocked,
            words,
            seed: word(at::SEED),
            hasher: Id { algorithm: word(at::ALGORITHM), seed: word(at::HASH_SEED), check: word(at::HASH_CHECK) },
            taken,
            capacity,
            rate,
            list: word(at::LIST),
        };
        if !kind.is_scalable() {
            check_rate(&header.shape(), capacity as f64, rate)?;
        }
        Ok(header)
    }

    /// The shape of a filter that is not scalable.
    fn shape(&self) -> Shape {
        Shape::new(self.blocked, self.words as usize, self.cell_bits, self.number, self.seed)
    }
}

/// A rate that was asked for holds with so many keys.
fn check_rate(shape: &Shape, keys: f64, rate: f64) -> Result<(), DecodeError> {
    let at_capacity = shape.rate_at(keys);
    // The last digits are a matter of rounding; those of rates next to 1 are few.
    if at_capacity > rate + (rate * 1e-9).min((1.0 - rate) / 2.0) {
        return Err(DecodeError::RateTooLow { rate, at_capacity });
    }
    Ok(())
}

/// Counts cells.
pub(crate) struct Count<'h> {
    header: &'h BloomHeader,
    skip: usize,
    taken: u64,
}

impl Head for BloomHeader {
    type Check<'h> = Count<'h>;

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(header::front(bytes)?)
    }

    fn sizes(&self) -> Sizes {
        Sizes::of(self.words)
    }

    fn list(&self) -> u64 {
        self.list
    }

    fn check(&self) -> Result<Count<'_>, DecodeError> {
        Ok(Count { header: self, skip: self.prefix(), taken: 0 })
    }

    fn sealed(mut self, layers: u32, payload: &[u8], checksums: &mut [u8]) -> [u8; HEADER] {
        if self.kind.is_scalable() {
            self.number = layers;
        }
        self.words = payload.len() as u64 / 8;
        payload::seal_and(payload, checksums, |_| {});
        let cells = payload::words(payload).skip(self.prefix());
        let small = [self.kind as u8, self.cell_bits as u8, self.number as u8, u8::from(self.blocked)];
        let words = [
            (own::WORDS, self.words),
            (at::SEED, self.seed),
            (at::ALGORITHM, self.hasher.algorithm),
            (at::HASH_SEED, self.hasher.seed),
            (at::HASH_CHECK, self.hasher.check),
            (own::TAKEN, tally(cells, self.cell_bits).0),
            (at::CAPACITY, self.capacity as u64),
            (at::RATE, self.rate.to_bits()),
        ];
        header::encoded(small, &words, checksums)
    }
}

impl Check for Count<'_> {
    fn look_at(&mut self, mut words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        while self.skip > 0 && words.next().is_some() {
            self.skip -= 1;
        }
        self.taken += tally(words, self.header.cell_bits).0;
        Ok(())
    }

    fn finish(self, _words: impl Iterator<Item = u64>) -> Result<(), DecodeError> {
        let (stored, counted) = (self.header.taken, self.taken);
        if stored == counted { Ok(()) } else { Err(DecodeError::WrongKeyCount { stored, counted }) }
    }
}

/// Copies all words of one table, while they are held still.
pub(super) fn copy(from: &impl Cells, to: &mut [[u8; 8]]) {
    let _still = from.hold_still();
    copy_words(from.table(), to);
}

fn copy_words(from: &Table, to: &mut [[u8; 8]]) {
    to.iter_mut().zip(from.words()).for_each(|(to, word)| *to = word.load_alone().to_le_bytes());
}

/// What can be copied, and made of a copy.
trait Content: Sized {
    /// Words of a snapshot.
    fn words(&self) -> usize;
    /// Copies all words; of layers, how many there are.
    fn copy(&self, words: &mut [[u8; 8]]) -> Result<u32, OtherSize>;
    fn restored(header: &BloomHeader, table: Table) -> Result<Self, DecodeError>;
    /// Whether it is blocked, and the bits of a cell, and the probes.
    fn form(&self) -> (bool, u32, u32);
}

impl<C: Cells> Content for C {
    fn words(&self) -> usize {
        self.shape().words
    }

    fn copy(&self, words: &mut [[u8; 8]]) -> Result<u32, OtherSize> {
        copy(self, words);
        Ok(0)
    }

    fn restored(header: &BloomHeader, table: Table) -> Result<Self, DecodeError> {
        Ok(Self::of(table, header.shape())?)
    }

    fn form(&self) -> (bool, u32, u32) {
        let shape = self.shape();
        (shape.blocked, shape.cell_bits, shape.probes)
    }
}

/// Words of a snapshot of some layers.
fn words_of<'a, C: Cells + 'a>(layers: impl Iterator<Item = &'a Layer<C>>) -> usize {
    let (layers, words) = layers.fold((0, 0), |(layers, words), layer| (layers + 1, words + layer.cells.shape().words));
    prefix(layers) + words
}

impl<C: Cells> Content for Layers<C> {
    fn words(&self) -> usize {
        words_of(self.all())
    }

    fn copy(&self, words: &mut [[u8; 8]]) -> Result<u32, OtherSize> {
        // Those layers that are there now: a key whose insert returned before is in one of them.
        let len = self.len();
        let layers = || self.all().take(len);
        let needed = words_of(layers());
        if needed != words.len() {
            return Err(OtherSize { words: needed });
        }
        let (front, mut rest) = words.split_at_mut(prefix(len));
        let shapes = layers().flat_map(|layer| {
            let shape = layer.cells.shape();
            [shape.words as u64, shape.probes.into()]
        });
        let numbers = [self.series.growth.to_bits(), self.series.tightening.to_bits()].into_iter().chain(shapes);
        front.iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_le_bytes());
        // All are held still before the first is copied: else a key that is removed from one, and put into another, could be copied twice. In the same order by all snapshots, and an operation is
        // inside one of them at most.
        let mut still = [const { None }; MAX_LAYERS];
        still.iter_mut().zip(layers()).for_each(|(still, layer)| *still = layer.cells.hold_still());
        for layer in layers() {
            let (own, others) = rest.split_at_mut(layer.cells.shape().words);
            copy_words(layer.cells.table(), own);
            rest = others;
        }
        drop(still);
        Ok(len as u32)
    }

    fn restored(header: &BloomHeader, table: Table) -> Result<Self, DecodeError> {
        let invalid = |field, value, allowed| DecodeError::InvalidField { field, value, allowed };
        let all = table.words();
        let (words, mut rest) = all.split_at(header.prefix());
        let mut front = [0; prefix(MAX_LAYERS)];
        let front = &mut front[..words.len()];
        front.iter_mut().zip(words).for_each(|(number, word)| *number = word.load_alone());
        let series = Series {
            capacity: header.capacity,
            rate: header.rate,
            growth: f64::from_bits(front[0]),
            tightening: f64::from_bits(front[1]),
            cell_bits: header.cell_bits,
            seed: header.seed,
            huge_pages: false,
        };
        series.check().map_err(|error| match error {
            crate::BuildError::InvalidGrowthFactor { .. } => {
                invalid("growth factor", front[0], "a number from 1 to 1024")
            }
            _ => invalid("tightening ratio", front[1], "greater than 0 and at most 1 - 2^-32"),
        })?;
        // All sizes are looked at before anything is made.
        let mut left = rest.len() as u64;
        let shape = |words, probes| Shape::new(false, words as usize, header.cell_bits, probes as u32, header.seed);
        for (number, [words, probes]) in front[2..].as_chunks::<2>().0.iter().copied().enumerate() {
            if words == 0 || words > left || words > MAX_BUCKETS {
                let allowed = "at least 1, less than 2^32, and no more than are left";
                return Err(invalid("words of a layer", words, allowed));
            }
            if probes == 0 || probes > MAX_PROBES.into() {
                return Err(invalid("probes of a layer", probes, "1 to 64"));
            }
            check_rate(&shape(words, probes), series.layer_capacity(number), series.layer_rate(number))?;
            left -= words;
        }
        if left != 0 {
            return Err(invalid("words", header.words, "those of all layers"));
        }
        let mut layers = Self::empty(series)?;
        for (number, [words, probes]) in front[2..].as_chunks::<2>().0.iter().copied().enumerate() {
            let (own, others) = rest.split_at(words as usize);
            let mut table = Table::to_fill(own.len())?;
            for (word, from) in table.words_mut().iter_mut().zip(own) {
                word.set(from.load_alone());
            }
            layers.restore(number, C::of(table, shape(words, probes))?)?;
            rest = others;
        }
        Ok(layers)
    }

    fn form(&self) -> (bool, u32, u32) {
        (false, self.series.cell_bits, 0)
    }
}

/// Snapshots of one type.
macro_rules! snapshots {
    ($family:ident, $filter:ident, $name:literal, $kind:ident, $taken:ident) => {
        /// What a snapshot is taken of.
        struct $taken<'a, T: ?Sized, S>(&'a $filter<T, S>);

        impl<T: ?Sized, S: StableBuildHasher> Source for $taken<'_, T, S> {
            type Head = BloomHeader;

            fn header(&self) -> BloomHeader {
                let filter = self.0;
                let (blocked, cell_bits, number) = filter.raw.form();
                BloomHeader {
                    kind: Kind::$kind,
                    cell_bits,
                    number,
                    blocked,
                    words: 0,
                    seed: filter.seed(),
                    hasher: Id::of(filter.hasher()),
                    taken: 0,
                    capacity: filter.capacity,
                    rate: filter.rate,
                    list: 0,
                }
            }

            fn words(&self) -> usize {
                Content::words(&self.0.raw)
            }

            fn copy(&self, words: &mut [[u8; 8]]) -> Result<u32, OtherSize> {
                Content::copy(&self.0.raw, words)
            }
        }

        impl<T: ?Sized, S> $filter<T, S> {
            fn restored(header: BloomHeader, table: Table, hasher: S) -> Result<Self, DecodeError> {
                let raw = Content::restored(&header, table)?;
                Ok(Self::from_parts(raw, header.capacity, header.rate, hasher))
            }
        }

        snapshot_methods!($family, $filter, $name, Kind::$kind, BloomHeader, $taken);
    };
}

snapshots!(bloom, BloomFilter, "bloom::BloomFilter", Bloom, TakenBloom);
snapshots!(counting, CountingBloomFilter, "bloom::CountingBloomFilter", Counting, TakenCounting);
snapshots!(bloom, ScalableBloomFilter, "bloom::ScalableBloomFilter", Scalable, TakenScalable);
snapshots!(
    counting,
    ScalableCountingBloomFilter,
    "bloom::ScalableCountingBloomFilter",
    ScalableCounting,
    TakenScalableCounting
);
