//! The header: 96 bytes that say what the filter is and how many bytes follow. Section "Header" of `docs/format.md`.

use xxhash_rust::xxh3::xxh3_64;

use super::{
    Head,
    error::DecodeError,
    hasher::Id,
    payload::{self, Audit, CHUNK},
};
use crate::{
    hash::{Doubled, Geometry, MAX_BUCKETS},
    sizing,
    word::Layout,
};

/// The first eight bytes: not text, and changed by transfers that take it for text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89KOEL\r\n\x1a";
pub(crate) const VERSION: u16 = 1;

/// Bytes of a header.
pub(crate) const HEADER: usize = 96;

/// Where the fields are.
pub(crate) mod at {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const KIND: usize = 10;
    pub(crate) const SLOTS: usize = 11;
    pub(crate) const DOUBLINGS: usize = 12;
    pub(crate) const MAX_DOUBLINGS: usize = 13;
    pub(crate) const ZERO: usize = 14;
    pub(crate) const BASE: usize = 16;
    pub(crate) const SEED: usize = 24;
    pub(crate) const ALGORITHM: usize = 32;
    pub(crate) const HASH_SEED: usize = 40;
    pub(crate) const HASH_CHECK: usize = 48;
    pub(crate) const KEYS: usize = 56;
    pub(crate) const CAPACITY: usize = 64;
    pub(crate) const RATE: usize = 72;
    pub(crate) const LIST: usize = 80;
    pub(crate) const CHECKSUM: usize = 88;
}

/// Which type of filter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fixed = 1,
    Growing = 2,
}

/// What the header says, checked: a filter can have such numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) layout: Layout,
    /// How often the table has doubled, and how often it may.
    pub(crate) doublings: u32,
    pub(crate) max_doublings: u32,
    pub(crate) base: usize,
    pub(crate) seed: u64,
    pub(crate) hasher: Id,
    pub(crate) keys: u64,
    /// The largest number of keys that the builder was told, and the rate; 0 if it was told none.
    pub(crate) capacity: usize,
    pub(crate) rate: f64,
    /// The checksum of the list of checksums.
    list: u64,
}

/// How many bytes the parts of a snapshot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    words: u64,
}

impl Sizes {
    pub(crate) const fn of(words: u64) -> Self {
        Self { words }
    }

    /// Bytes of the list of checksums.
    const fn list(self) -> u64 {
        8 * (8 * self.words).div_ceil(CHUNK as u64)
    }

    /// Bytes in all: at most about 2<sup>35</sup>, or for each of 64 layers.
    pub(crate) const fn total(self) -> u64 {
        HEADER as u64 + self.list() + 8 * self.words
    }

    /// Where the payload begins, in a snapshot that is in memory.
    pub(crate) const fn payload_at(self) -> usize {
        HEADER + self.list() as usize
    }

    /// How many words there are, if they can be addressed.
    pub(crate) fn words(self) -> Result<usize, DecodeError> {
        let bytes = 8 * self.words;
        if bytes > isize::MAX as u64 { Err(DecodeError::Alloc { bytes }) } else { Ok(self.words as usize) }
    }

    /// Whether that is what there is.
    pub(crate) fn check(self, len: u64) -> Result<(), DecodeError> {
        let expected = self.total();
        match len.cmp(&expected) {
            core::cmp::Ordering::Less => Err(DecodeError::TooShort { len, expected }),
            core::cmp::Ordering::Equal => Ok(()),
            core::cmp::Ordering::Greater => Err(DecodeError::TrailingBytes { len, expected }),
        }
    }
}

impl Header {
    /// The header of a filter that does not grow. Its keys are counted later.
    pub(crate) fn fixed(layout: Layout, geometry: &Geometry, hasher: Id, capacity: usize, rate: f64) -> Self {
        Self {
            kind: Kind::Fixed,
            layout,
            doublings: 0,
            max_doublings: 0,
            base: geometry.buckets(),
            seed: geometry.seed(),
            hasher,
            keys: 0,
            capacity,
            rate,
            list: 0,
        }
    }

    /// The same of a filter that grows, up to so many doublings.
    #[cfg(feature = "growth")]
    pub(crate) fn growing(self, max_doublings: u32) -> Self {
        Self { kind: Kind::Growing, max_doublings, ..self }
    }

    /// The bytes, given the list of checksums.
    fn encoded(&self, checksums: &[u8]) -> [u8; HEADER] {
        let small = [self.kind as u8, self.layout.slots() as u8, self.doublings as u8, self.max_doublings as u8];
        let words = [
            (at::BASE, self.base as u64),
            (at::SEED, self.seed),
            (at::ALGORITHM, self.hasher.algorithm),
            (at::HASH_SEED, self.hasher.seed),
            (at::HASH_CHECK, self.hasher.check),
            (at::KEYS, self.keys),
            (at::CAPACITY, self.capacity as u64),
            (at::RATE, self.rate.to_bits()),
        ];
        encoded(small, &words, checksums)
    }

    /// Reads the fields of a header whose checksum is right.
    fn read(bytes: &[u8; HEADER]) -> Result<Self, DecodeError> {
        let word = |at| word(bytes, at);
        let invalid = |field, value, allowed| DecodeError::InvalidField { field, value, allowed };
        let kind = match bytes[at::KIND] {
            1 => Kind::Fixed,
            2 => Kind::Growing,
            other => return Err(invalid("kind", other.into(), "1 or 2, that of a cuckoo filter")),
        };
        let slots = usize::from(bytes[at::SLOTS]);
        if !Layout::SLOTS.contains(&slots) {
            return Err(invalid("slots", slots as u64, "2 to 6"));
        }
        let layout = Layout::new(slots);
        let max_doublings = u32::from(bytes[at::MAX_DOUBLINGS]);
        let most = if kind == Kind::Growing { layout.fingerprint_bits() - 1 } else { 0 };
        if max_doublings > most {
            let allowed = "0, or in a filter that grows less than the bits of a fingerprint";
            return Err(invalid("most doublings", max_doublings.into(), allowed));
        }
        let doublings = u32::from(bytes[at::DOUBLINGS]);
        if doublings > max_doublings {
            return Err(invalid("doublings", doublings.into(), "at most the field most doublings"));
        }
        let zero = u16::from_le_bytes([bytes[at::ZERO], bytes[at::ZERO + 1]]);
        if zero != 0 {
            return Err(invalid("zero", zero.into(), "0"));
        }
        let base = word(at::BASE);
        if base == 0 || base > MAX_BUCKETS >> max_doublings {
            let allowed = "at least 1, and after all doublings less than 2^32";
            return Err(invalid("base buckets", base, allowed));
        }
        let keys = word(at::KEYS);
        if keys > (base << doublings) * slots as u64 {
            return Err(invalid("keys", keys, "at most the number of slots"));
        }
        let stored = word(at::CAPACITY);
        let capacity = usize::try_from(stored).ok().filter(|_| stored <= (base << max_doublings) * slots as u64);
        let Some(capacity) = capacity else {
            return Err(invalid(
                "capacity",
                stored,
                "at most the number of slots after all doublings, and addressable",
            ));
        };
        let header = Self {
            kind,
            layout,
            doublings,
            max_doublings,
            base: base as usize,
            seed: word(at::SEED),
            hasher: Id { algorithm: word(at::ALGORITHM), seed: word(at::HASH_SEED), check: word(at::HASH_CHECK) },
            keys,
            capacity,
            rate: f64::from_bits(word(at::RATE)),
            list: word(at::LIST),
        };
        header.check_rate()?;
        Ok(header)
    }

    /// A rate that was asked for holds with so many keys in so many buckets.
    fn check_rate(&self) -> Result<(), DecodeError> {
        let rate = self.rate;
        // Minus zero is another sequence of bytes for the same content.
        if rate.to_bits() == 0 {
            return Ok(());
        }
        if !(rate > 0.0 && rate < 1.0) {
            return Err(DecodeError::InvalidRate { rate });
        }
        let at_capacity = sizing::false_positive_rate(self.capacity, self.base, self.layout);
        // The last digits are a matter of rounding.
        if at_capacity > rate * (1.0 + 1e-9) {
            return Err(DecodeError::RateTooLow { rate, at_capacity });
        }
        Ok(())
    }

    pub(crate) fn expect(&self, kind: Kind) -> Result<(), DecodeError> {
        if self.kind == kind {
            return Ok(());
        }
        Err(DecodeError::OtherKind { stored: self.kind as u8, expected: kind as u8 })
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry::new(self.base, self.layout, self.seed)
    }

    pub(crate) fn generation(&self) -> Doubled {
        Doubled::new(self.layout, self.doublings)
    }
}

impl Head for Header {
    type Check<'h> = Audit<'h>;

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(front(bytes)?)
    }

    fn sizes(&self) -> Sizes {
        Sizes::of((self.base as u64) << self.doublings)
    }

    fn list(&self) -> u64 {
        self.list
    }

    fn check(&self) -> Result<Audit<'_>, DecodeError> {
        Audit::new(self)
    }

    fn sealed(mut self, doublings: u32, payload: &[u8], checksums: &mut [u8]) -> [u8; HEADER] {
        self.doublings = doublings;
        self.keys = payload::seal(payload, checksums, self.layout);
        self.encoded(checksums)
    }
}

/// A field of eight bytes.
pub(crate) fn word(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("within the header"))
}

/// The header that `bytes` begin with, if it is that of a snapshot, of this version, and its checksum is right.
pub(crate) fn front(bytes: &[u8]) -> Result<&[u8; HEADER], DecodeError> {
    let Some(bytes) = bytes.first_chunk::<HEADER>() else {
        return Err(DecodeError::TooShort { len: bytes.len() as u64, expected: HEADER as u64 });
    };
    let found = *bytes.first_chunk().expect("within the header");
    if found != MAGIC {
        return Err(DecodeError::NotASnapshot { found });
    }
    let version = u16::from_le_bytes([bytes[at::VERSION], bytes[at::VERSION + 1]]);
    if version != VERSION {
        return Err(DecodeError::UnknownVersion { version });
    }
    let (stored, computed) = (word(bytes, at::CHECKSUM), xxh3_64(&bytes[..at::CHECKSUM]));
    if stored == computed { Ok(bytes) } else { Err(DecodeError::HeaderChecksum { stored, computed }) }
}

/// The bytes of a header: its front, small fields and words at their places, the checksum of the list of checksums, and its own.
pub(crate) fn encoded(small: [u8; 4], words: &[(usize, u64)], checksums: &[u8]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(at::MAGIC, &MAGIC);
    put(at::VERSION, &VERSION.to_le_bytes());
    put(at::KIND, &small);
    words.iter().for_each(|(at, word)| put(*at, &word.to_le_bytes()));
    put(at::LIST, &xxh3_64(checksums).to_le_bytes());
    let checksum = xxh3_64(&bytes[..at::CHECKSUM]);
    bytes[at::CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}
