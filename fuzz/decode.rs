//! Fuzzing of what reads snapshots: any bytes, bytes under checksums that are right, and snapshots of real filters that were changed.
//!
//! Whatever it is, there is an error or a filter that keeps all its promises; all readers agree; and what is read is written again as the same bytes.
//!
//! Shared by the fuzz target `decode` and by `tests/fuzz_corpus.rs`, which replays the corpus.

use arbitrary::{Arbitrary, Unstructured};
use koel::{
    CuckooFilter, DecodeError, FilterRef, GrowableCuckooFilter, LoadError,
    bloom::{BloomFilter, CountingBloomFilter, ScalableBloomFilter, ScalableCountingBloomFilter},
};

#[path = "../tests/common/sealed.rs"]
mod sealed;

/// What is to be read.
#[derive(Arbitrary, Debug)]
pub(crate) struct Case {
    source: Source,
    changes: Vec<Change>,
    /// Whether the checksums are made right, so that what is behind them is reached.
    seal: Seal,
}

#[derive(Arbitrary, Debug)]
enum Source {
    Raw(Vec<u8>),
    Filter {
        #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(0..=200))]
        capacity: usize,
        #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(2..=6))]
        slots: usize,
        seed: u64,
        keys: u8,
    },
    /// A table of so few buckets as no builder makes, filled with words.
    Words {
        kind: u8,
        slots: u8,
        doublings: u8,
        most_doublings: u8,
        words: Vec<u64>,
    },
    /// One of the Bloom family.
    Bloom {
        which: Which,
        #[arbitrary(with = |u: &mut Unstructured<'_>| u.int_in_range(0..=100))]
        capacity: usize,
        seed: u64,
        keys: u8,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Which {
    Standard,
    Blocked,
    Counting,
    Scalable,
    ScalableCounting,
}

#[derive(Arbitrary, Debug)]
enum Change {
    Byte { at: u16, value: u8 },
    Word { at: u16, value: u64 },
    Truncate { len: u16 },
    Append { bytes: u8 },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Seal {
    Nothing,
    Header,
    All,
}

/// Runs a case, and panics where a promise is broken.
pub(crate) fn run(case: &Case) {
    let mut bytes = case.source.bytes();
    for change in &case.changes {
        change.apply(&mut bytes);
    }
    if bytes.len() >= sealed::HEADER {
        match case.seal {
            Seal::Nothing => {}
            Seal::Header => sealed::seal_header(&mut bytes),
            Seal::All => seal_all(&mut bytes),
        }
    }
    let fixed = CuckooFilter::<u64>::from_bytes(&bytes);
    let growing = GrowableCuckooFilter::<u64>::from_bytes(&bytes);
    assert!(fixed.is_err() || growing.is_err(), "of both types");
    bloom_family(&bytes);
    assert_eq!(FilterRef::<u64>::new(&bytes).is_ok(), fixed.is_ok() || growing.is_ok());
    match FilterRef::<u64>::new_unverified(&bytes) {
        Ok(view) => {
            let verified = view.verify();
            assert_eq!(verified.is_ok(), fixed.is_ok() || growing.is_ok(), "{verified:?}");
            let hashes: Vec<u64> = (0..70).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let mut found = vec![false; hashes.len()];
            view.contains_hashes(&hashes, &mut found);
            for (hash, found) in hashes.iter().zip(found) {
                assert_eq!(view.contains_hash(*hash), found);
                // What a wrong count hides is found by those who do not believe it.
                assert!(sealed::contains(&bytes, *hash) || !found);
            }
        }
        Err(error) => {
            // By what they say, since an error that names NaN is not equal to itself.
            let said = [fixed.as_ref().err(), growing.as_ref().err()].map(|error| error.expect("refused").to_string());
            assert!(said.contains(&error.to_string()), "{error} against {said:?}");
        }
    }
    match CuckooFilter::<u64>::read_from(&bytes[..]) {
        Ok(_) => assert!(matches!(fixed, Ok(_) | Err(DecodeError::TrailingBytes { .. }))),
        Err(LoadError::Decode(_)) => assert!(fixed.is_err()),
        Err(error) => panic!("{error}"),
    }
    if let Ok(filter) = fixed {
        assert_eq!(filter.to_bytes(), bytes);
        use_it(filter.len(), |hash| filter.insert_hash(hash).is_ok(), |hash| filter.remove_hash(hash), || filter.len());
        CuckooFilter::<u64>::from_bytes(&filter.to_bytes()).expect("a snapshot");
    }
    if let Ok(filter) = growing {
        assert_eq!(filter.to_bytes(), bytes);
        // Below a thousand keys in tables so small growth stops soon; a few of them may make it grow.
        use_it(filter.len(), |hash| filter.insert_hash(hash).is_ok(), |hash| filter.remove_hash(hash), || filter.len());
        GrowableCuckooFilter::<u64>::from_bytes(&filter.to_bytes()).expect("a snapshot");
    }
}

/// Of each type there is an error, or a filter that is written as the same bytes, and works.
fn bloom_family(bytes: &[u8]) {
    let hashes: Vec<u64> = (0..20).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    if let Ok(filter) = BloomFilter::<u64>::from_bytes(bytes) {
        assert_eq!(filter.to_bytes(), bytes);
        filter.insert_hashes(&hashes);
        assert!(hashes.iter().all(|hash| filter.contains_hash(*hash)));
    }
    if let Ok(filter) = CountingBloomFilter::<u64>::from_bytes(bytes) {
        assert_eq!(filter.to_bytes(), bytes);
        filter.insert_hashes(&hashes);
        assert!(hashes.iter().all(|hash| filter.remove_hash(*hash)), "a present key was not removed");
        // Counters that became full stay so; all others are as they were.
        assert!(filter.saturated() > 0 || filter.to_bytes() == bytes);
    }
    if let Ok(filter) = ScalableBloomFilter::<u64>::from_bytes(bytes) {
        assert_eq!(filter.to_bytes(), bytes);
        let mut found = vec![false; hashes.len()];
        filter.contains_hashes(&hashes, &mut found);
        assert!(hashes.iter().zip(found).all(|(hash, found)| filter.contains_hash(*hash) == found));
        // The next layer is no more than so many times as large as the rate and the growth factor make it.
        let went_in = hashes.iter().take_while(|hash| filter.insert_hash(**hash).is_ok());
        assert!(went_in.count() == 0 || filter.contains_hash(hashes[0]));
    }
    if let Ok(filter) = ScalableCountingBloomFilter::<u64>::from_bytes(bytes) {
        assert_eq!(filter.to_bytes(), bytes);
        let mut found = vec![false; hashes.len()];
        filter.contains_hashes(&hashes, &mut found);
        assert!(hashes.iter().zip(found).all(|(hash, found)| filter.contains_hash(*hash) == found));
    }
}

/// What goes in can be taken out, and nothing else is.
fn use_it(keys: usize, insert: impl Fn(u64) -> bool, remove: impl Fn(u64) -> bool, len: impl Fn() -> usize) {
    let hashes: Vec<u64> = (0..100).map(|i: u64| i.wrapping_mul(0xd6e8_feb8_6659_fd93)).collect();
    let went_in: Vec<u64> = hashes.into_iter().filter(|hash| insert(*hash)).collect();
    assert_eq!(len(), keys + went_in.len());
    assert!(went_in.iter().all(|hash| remove(*hash)), "a present key was not removed");
    assert_eq!(len(), keys);
}

/// Makes all checksums right, if there are as many bytes as the header says; otherwise only that of the header.
fn seal_all(bytes: &mut [u8]) {
    let words = sealed::words(bytes).filter(|words| *words < 1 << 12);
    if words.is_some_and(|words| sealed::payload_at(bytes) + 8 * words as usize == bytes.len()) {
        sealed::reseal(bytes);
    }
    sealed::seal_header(bytes);
}

impl Source {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Raw(bytes) => bytes.clone(),
            Self::Filter { capacity, slots, seed, keys } => {
                let builder = CuckooFilter::<u64>::builder().capacity(*capacity).slots_per_bucket(*slots).seed(*seed);
                let filter = builder.build().expect("a small filter");
                (0..u64::from(*keys)).filter(|key| filter.insert(key).is_ok()).for_each(drop);
                filter.to_bytes()
            }
            Self::Bloom { which, capacity, seed, keys } => {
                macro_rules! snapshot {
                    ($filter:ident $(, $setting:ident($value:expr))*) => {{
                        let builder = $filter::<u64>::builder().capacity(*capacity).seed(*seed)$(.$setting($value))*;
                        let filter = builder.build().expect("a small filter");
                        for key in 0..u64::from(*keys) {
                            let _ = filter.insert(&key);
                        }
                        filter.to_bytes()
                    }};
                }
                match which {
                    Which::Standard => snapshot!(BloomFilter),
                    Which::Blocked => snapshot!(BloomFilter, blocked(true)),
                    Which::Counting => snapshot!(CountingBloomFilter),
                    Which::Scalable => snapshot!(ScalableBloomFilter, growth_factor(1.0)),
                    Which::ScalableCounting => snapshot!(ScalableCountingBloomFilter, growth_factor(1.0)),
                }
            }
            Self::Words { kind, slots, doublings, most_doublings, words } => {
                let mut bytes = CuckooFilter::<u64>::builder().seed(1).build().expect("a small filter").to_bytes();
                bytes.truncate(sealed::HEADER);
                bytes[10..14].copy_from_slice(&[*kind, *slots, *doublings, *most_doublings]);
                let base = (words.len() as u64).checked_shr((*doublings).into()).unwrap_or(0);
                sealed::put(&mut bytes, 16, base);
                sealed::put(&mut bytes, 72, 0);
                let slots = u64::from(*slots).clamp(2, 6);
                sealed::put(&mut bytes, 56, words.iter().map(|word| taken(*word, slots)).sum());
                bytes.extend(vec![0; 8 * (8 * words.len()).div_ceil(1 << 16)]);
                bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                bytes
            }
        }
    }
}

/// How many slots of a word are taken.
fn taken(word: u64, slots: u64) -> u64 {
    let width = 60 / slots;
    (0..slots).filter(|lane| word >> (lane * width) & ((1 << width) - 1) > 1).count() as u64
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Byte { at, value } => {
                if let Some(byte) = bytes.get_mut(usize::from(*at)) {
                    *byte = *value;
                }
            }
            Self::Word { at, value } => {
                if usize::from(*at) + 8 <= bytes.len() {
                    sealed::put(bytes, usize::from(*at), *value);
                }
            }
            Self::Truncate { len } => bytes.truncate(usize::from(*len)),
            Self::Append { bytes: more } => bytes.extend(vec![0; usize::from(*more)]),
        }
    }
}
