//! Snapshots of the Bloom family: the same bytes for ever, nothing wrong accepted, the same answers afterwards.

#![cfg(feature = "std")]

use std::path::Path;

use koel::{
    CuckooFilter, DecodeError,
    bloom::{BloomFilter, CountingBloomFilter, Removal, ScalableBloomFilter, ScalableCountingBloomFilter},
};

#[path = "common/sealed.rs"]
mod sealed;

use sealed::{HEADER, mix, put, seal_header, word};

const CHUNK: usize = 1 << 16;

fn bloom(blocked: bool, capacity: usize, keys: u64) -> BloomFilter<u64> {
    let filter = BloomFilter::builder().capacity(capacity).false_positive_rate(0.01).blocked(blocked).seed(7).build();
    let filter = filter.unwrap();
    for key in 0..keys {
        filter.insert(&key);
    }
    filter
}

fn counting(bits: u32, capacity: usize, keys: u64) -> CountingBloomFilter<u64> {
    let filter = CountingBloomFilter::builder().capacity(capacity).counter_bits(bits).seed(7).build().unwrap();
    for key in 0..keys {
        (0..key % 3 + 1).for_each(|_| assert!(filter.insert(&key) || filter.contains(&key)));
    }
    filter
}

fn scalable(capacity: usize, keys: u64) -> ScalableBloomFilter<u64> {
    let filter = ScalableBloomFilter::builder().capacity(capacity).false_positive_rate(0.01).seed(7).build().unwrap();
    (0..keys).for_each(|key| assert!(filter.insert(&key).is_ok()));
    filter
}

fn scalable_counting(capacity: usize, keys: u64) -> ScalableCountingBloomFilter<u64> {
    let filter = ScalableCountingBloomFilter::builder().capacity(capacity).seed(7).build().unwrap();
    (0..keys).for_each(|key| assert!(filter.insert(&key).is_ok()));
    filter
}

/// Snapshots of each type, small ones.
fn examples() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("bloom.koel", bloom(false, 50, 50).to_bytes()),
        ("bloom-blocked.koel", bloom(true, 50, 50).to_bytes()),
        ("counting-2.koel", counting(2, 20, 20).to_bytes()),
        ("counting-4.koel", counting(4, 20, 20).to_bytes()),
        ("counting-8.koel", counting(8, 10, 10).to_bytes()),
        ("scalable.koel", scalable(1, 200).to_bytes()),
        ("scalable-counting.koel", scalable_counting(1, 200).to_bytes()),
    ]
}

/// What reading these bytes gives, for all types; the bytes again if it is a snapshot.
fn read(bytes: &[u8]) -> [Result<Vec<u8>, DecodeError>; 4] {
    [
        BloomFilter::<u64>::from_bytes(bytes).map(|filter| filter.to_bytes()),
        CountingBloomFilter::<u64>::from_bytes(bytes).map(|filter| filter.to_bytes()),
        ScalableBloomFilter::<u64>::from_bytes(bytes).map(|filter| filter.to_bytes()),
        ScalableCountingBloomFilter::<u64>::from_bytes(bytes).map(|filter| filter.to_bytes()),
    ]
}

#[test]
fn golden_files() {
    for (name, bytes) in examples() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
        if std::env::var_os("KOEL_WRITE_GOLDEN").is_some() && !path.exists() {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == bytes, "{name} would be written otherwise today");
        let again: Vec<_> = read(&bytes).into_iter().filter_map(Result::ok).collect();
        assert_eq!(again, [bytes], "{name}");
    }
}

/// A reader written after `docs/format.md` alone finds what the filters find.
#[test]
fn the_format_is_the_one_described() {
    type Contains = Box<dyn Fn(u64) -> bool>;
    let filters: [(Vec<u8>, Contains); 5] = [
        (bloom(false, 900, 900).to_bytes(), Box::new(|hash| bloom(false, 900, 900).contains_hash(hash))),
        (bloom(true, 900, 900).to_bytes(), Box::new(|hash| bloom(true, 900, 900).contains_hash(hash))),
        (counting(4, 900, 900).to_bytes(), Box::new(|hash| counting(4, 900, 900).contains_hash(hash))),
        (scalable(64, 900).to_bytes(), Box::new(|hash| scalable(64, 900).contains_hash(hash))),
        (scalable_counting(64, 900).to_bytes(), Box::new(|hash| scalable_counting(64, 900).contains_hash(hash))),
    ];
    let keys = bloom(false, 1, 0);
    for (bytes, contains) in filters {
        for key in (0..900).step_by(30).chain(900..1_100) {
            let hash = keys.hash_of(&key);
            assert_eq!(found(&bytes, hash), contains(hash), "{key}");
        }
    }
}

fn found(bytes: &[u8], hash: u64) -> bool {
    let (kind, cell_bits, number, blocked) = (bytes[10], u64::from(bytes[11]), u64::from(bytes[12]), bytes[13] == 1);
    let words = word(bytes, 16);
    let payload = HEADER + 8 * (8 * words as usize).div_ceil(CHUNK);
    let at = |index: u64| word(bytes, payload + 8 * index as usize);
    let m = mix(hash ^ mix(word(bytes, 24) ^ 0x9e37_79b9_7f4a_7c15));
    let high = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    if blocked {
        let line = high(m, words / 8) * 8;
        let factors = [0xf135_7aea_2e62_a9c5_u64, 0xaf25_1af3_b0f0_25b5];
        return factors[..number as usize / 8].iter().all(|factor| {
            let bits = m.wrapping_mul(*factor);
            (0..8).all(|index| at(line + index) >> (bits >> (16 + 6 * index) & 63) & 1 == 1)
        });
    }
    let layer = |first: u64, words: u64, probes: u64| {
        let mut state = m;
        (0..probes).all(|_| {
            let cell = high(state, words * 64 / cell_bits);
            state = state.wrapping_mul(0xd134_2543_de82_ef95);
            let word = at(first + cell * cell_bits / 64);
            word >> (cell * cell_bits % 64) & ((1 << cell_bits) - 1) != 0
        })
    };
    if kind < 5 {
        return layer(0, words, number);
    }
    let mut first = 2 + 2 * number;
    (0..number).any(|index| {
        let (words, probes) = (at(2 + 2 * index), at(3 + 2 * index));
        first += words;
        layer(first - words, words, probes)
    })
}

#[test]
fn round_trips_keep_everything() {
    for keys in [0, 1, 100, 20_000] {
        for blocked in [false, true] {
            let filter = bloom(blocked, keys, keys as u64);
            let bytes = filter.to_bytes();
            assert_eq!(bytes.len(), filter.serialized_size());
            let again = BloomFilter::<u64>::from_bytes(&bytes).unwrap();
            assert_eq!((again.bits(), again.probes(), again.capacity()), (filter.bits(), filter.probes(), keys));
            assert!((0..keys as u64 * 2).all(|key| again.contains(&key) == filter.contains(&key)));
        }
        let filter = counting(4, keys, keys as u64);
        let again = CountingBloomFilter::<u64>::from_bytes(&filter.to_bytes()).unwrap();
        assert!((0..keys as u64 * 2).all(|key| again.count(&key) == filter.count(&key)));
        let filter = scalable(10, keys as u64);
        let mut bytes = Vec::new();
        filter.write_to(&mut bytes).unwrap();
        let again = ScalableBloomFilter::<u64>::read_from(&bytes[..]).unwrap();
        assert_eq!((again.layers(), again.false_positive_rate()), (filter.layers(), filter.false_positive_rate()));
        // It goes on where it was, within the steps at which it looks whether a layer is full.
        (keys as u64..2 * keys as u64).for_each(|key| assert!(again.insert(&key).is_ok()));
        assert!((0..2 * keys as u64).all(|key| again.contains(&key)));
        let filter = scalable_counting(10, keys as u64);
        let again = ScalableCountingBloomFilter::<u64>::from_bytes(&filter.to_bytes()).unwrap();
        let removed = (0..keys as u64).filter(|key| again.remove(key) == Removal::Removed).count();
        assert!(removed >= keys * 99 / 100, "{removed}");
    }
}

#[test]
fn files_and_serde() {
    let path = std::env::temp_dir().join(format!("koel-bloom-{}", std::process::id()));
    let filter = scalable(10, 1_000);
    filter.save(&path).unwrap();
    let again = ScalableBloomFilter::<u64>::load(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert!(again.to_bytes() == filter.to_bytes());
    #[cfg(feature = "serde")]
    {
        let text = serde_json::to_string(&filter).unwrap();
        let again: ScalableBloomFilter<u64> = serde_json::from_str(&text).unwrap();
        assert!(again.to_bytes() == filter.to_bytes());
    }
}

#[test]
fn every_prefix_and_every_flipped_bit_is_refused() {
    for (name, bytes) in examples() {
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).iter().all(Result::is_err), "{name}, {len} bytes");
        }
        let mut changed = bytes.clone();
        for bit in 0..8 * bytes.len() {
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&changed).iter().all(Result::is_err), "{name}, bit {bit}");
            changed[bit / 8] ^= 1 << (bit % 8);
        }
        changed.push(0);
        assert!(read(&changed).iter().all(Result::is_err), "{name}, trailing byte");
    }
}

/// Any value of any field, under a checksum that is right: an error, or a filter that is written as the same bytes.
#[test]
fn every_value_of_the_header() {
    let values = [0, 1, 2, 3, 8, 16, 63, 64, 65, 255, 1 << 16, 1 << 31, 1 << 32, 1 << 40, 1 << 61, 1 << 63, u64::MAX];
    let mut refused = 0;
    for (name, bytes) in examples() {
        let mut check = |changed: &mut Vec<u8>, what: &str| {
            seal_header(changed);
            for again in read(changed) {
                match again {
                    Ok(again) => assert!(again == *changed, "{name}: {what}"),
                    Err(error) => {
                        refused += 1;
                        assert!(!error.to_string().is_empty());
                    }
                }
            }
        };
        for at in 8..16 {
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = value;
                check(&mut changed, &format!("byte {at} is {value}"));
            }
        }
        for at in (16..88).step_by(8) {
            for value in values {
                let mut changed = bytes.clone();
                put(&mut changed, at, value);
                check(&mut changed, &format!("word {at} is {value}"));
            }
            let mut changed = bytes.clone();
            put(&mut changed, at, f64::NAN.to_bits());
            check(&mut changed, &format!("word {at} is NaN"));
        }
    }
    assert!(refused > 10_000);
}

/// What a scalable filter's payload begins with is checked as the header is.
#[test]
fn every_value_of_the_layers() {
    let bytes = scalable(1, 200).to_bytes();
    let layers = u64::from(bytes[12]);
    assert!(layers >= 2);
    let (mut refused, mut accepted) = (0, 0);
    let payload = HEADER + 8;
    for index in 0..(2 + 2 * layers) as usize {
        for value in
            [0, 1, 2, 64, 65, 1 << 20, 1 << 63, u64::MAX, f64::NAN.to_bits(), 0.5_f64.to_bits(), 3.0_f64.to_bits()]
        {
            let mut changed = bytes.clone();
            put(&mut changed, payload + 8 * index, value);
            let list = xxhash_rust::xxh3::xxh3_64(&changed[payload..]);
            put(&mut changed, HEADER, list);
            let checksum = xxhash_rust::xxh3::xxh3_64(&changed[HEADER..payload]);
            put(&mut changed, 80, checksum);
            seal_header(&mut changed);
            match ScalableBloomFilter::<u64>::from_bytes(&changed) {
                Ok(again) => {
                    accepted += 1;
                    assert!(again.to_bytes() == changed, "word {index} is {value:#x}");
                    assert_eq!(again.insert(&1_000_000).is_ok(), again.contains(&1_000_000));
                }
                Err(error) => {
                    refused += 1;
                    use DecodeError::{InvalidField, RateTooLow, WrongKeyCount};
                    let is_named = matches!(error, InvalidField { .. } | RateTooLow { .. } | WrongKeyCount { .. });
                    assert!(is_named, "word {index} is {value:#x}: {error}");
                }
            }
        }
    }
    // A smaller growth factor, say, makes a filter as well.
    assert!(accepted > 0 && refused > 50, "{accepted} accepted, {refused} refused");
}

/// A capacity that the words cannot hold at the rate is refused: else it would decide how large a layer the next insert makes.
#[test]
fn a_capacity_without_the_words_for_it_is_refused() {
    for (name, bytes) in examples() {
        let mut refused = 0;
        for capacity in [1_000, 1 << 30, 1 << 32, 1 << 48, u64::MAX >> 1] {
            let mut changed = bytes.clone();
            put(&mut changed, 64, capacity);
            seal_header(&mut changed);
            let errors = read(&changed).map(|read| read.expect_err(name));
            refused += u32::from(errors.iter().any(|error| matches!(error, DecodeError::RateTooLow { .. })));
        }
        assert_eq!(refused, 5, "{name}");
        let mut changed = bytes.clone();
        put(&mut changed, 72, 1e-9_f64.to_bits());
        seal_header(&mut changed);
        assert!(read(&changed).iter().all(Result::is_err), "{name}");
    }
}

#[test]
fn other_types_are_refused_by_name() {
    let bytes = bloom(false, 10, 10).to_bytes();
    let error = CountingBloomFilter::<u64>::from_bytes(&bytes).unwrap_err();
    assert_eq!(error, DecodeError::OtherKind { stored: 3, expected: 4 });
    let error = CuckooFilter::<u64>::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, DecodeError::InvalidField { field: "kind", value: 3, .. }), "{error}");
    let bytes = CuckooFilter::<u64>::with_capacity(10).to_bytes();
    let error = BloomFilter::<u64>::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, DecodeError::InvalidField { field: "kind", value: 1, .. }), "{error}");
}

/// Taken while two threads put keys in, a snapshot has all that were in before.
#[test]
fn snapshots_under_load() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const KEYS: u64 = 50_000;
    let (bloom, layers) = (bloom(true, 2 * KEYS as usize, 0), scalable(64, 0));
    let announced = [AtomicU64::new(0), AtomicU64::new(0)];
    let snapshots = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (first, announced) in [0, KEYS].into_iter().zip(&announced) {
            let (bloom, layers, snapshots) = (&bloom, &layers, &snapshots);
            scope.spawn(move || {
                for key in 0..KEYS {
                    // Ten snapshots at least while keys come.
                    while snapshots.load(Ordering::Relaxed) < key / (KEYS / 10) {
                        std::thread::yield_now();
                    }
                    bloom.insert(&(first + key));
                    layers.insert(&(first + key)).unwrap();
                    announced.store(key + 1, Ordering::Release);
                }
            });
        }
        let known = || announced.each_ref().map(|announced| announced.load(Ordering::Acquire));
        while known() != [KEYS; 2] {
            let [low, high] = known();
            let is_whole = |contains: &dyn Fn(u64) -> bool| (0..low).chain(KEYS..KEYS + high).all(contains);
            let copy = BloomFilter::<u64>::from_bytes(&bloom.to_bytes()).unwrap();
            assert!(is_whole(&|key| copy.contains(&key)));
            let copy = ScalableBloomFilter::<u64>::from_bytes(&layers.to_bytes()).unwrap();
            assert!(is_whole(&|key| copy.contains(&key)));
            snapshots.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Says so when it is dropped.
struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// While other keys come and go, a snapshot of a filter that counts has each of them wholly or not at all: those that it has can be removed from it, and nothing else goes.
#[test]
fn snapshots_of_counters_under_load() {
    use std::sync::atomic::{AtomicBool, Ordering};
    const STAY: u64 = 3_000;
    const OTHERS: u64 = 200;
    macro_rules! check {
        ($filter:ident, $capacity:expr, $remove:expr) => {
            // Of so low a rate that no key is taken for another.
            let filter =
                $filter::<u64>::builder().capacity($capacity).false_positive_rate(1e-9).seed(3).build().unwrap();
            (0..STAY).for_each(|key| {
                let _ = filter.insert(&key);
            });
            let stop = AtomicBool::new(false);
            let remove: fn(&$filter<u64>, u64) -> bool = $remove;
            std::thread::scope(|scope| {
                for first in [STAY, STAY + OTHERS] {
                    let (filter, stop) = (&filter, &stop);
                    scope.spawn(move || {
                        while !stop.load(Ordering::Relaxed) {
                            for key in first..first + OTHERS {
                                let _ = filter.insert(&key);
                                assert!(remove(filter, key), "false negative");
                            }
                        }
                    });
                }
                // Also if what follows fails.
                let _stop = Stop(&stop);
                let mut others = 0;
                for _ in 0..200 {
                    let copy = $filter::<u64>::from_bytes(&filter.to_bytes()).unwrap();
                    for key in STAY..STAY + 2 * OTHERS {
                        if copy.contains(&key) {
                            others += 1;
                            assert!(remove(&copy, key));
                        }
                    }
                    for key in 0..STAY {
                        assert!(copy.contains(&key), "{key} went with another key");
                        assert!(remove(&copy, key));
                    }
                    assert_eq!(copy.estimated_len(), 0);
                }
                assert!(others > 0);
                println!("{}: {others} of the other keys in 200 snapshots", stringify!($filter));
            });
        };
    }
    check!(CountingBloomFilter, STAY as usize, |filter, key| filter.remove(&key));
    check!(ScalableCountingBloomFilter, STAY as usize, |filter, key| filter.remove(&key) == Removal::Removed);
    // Of many layers, of which the last is added while keys come and go.
    check!(ScalableCountingBloomFilter, 190, |filter, key| filter.remove(&key) == Removal::Removed);
}
