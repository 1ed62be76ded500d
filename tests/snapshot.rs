//! Snapshots: the same bytes for ever, nothing wrong accepted, the same answers from the bytes as from the filter.

use std::path::{Path, PathBuf};

use koel::{Backend, CuckooFilter, DecodeError, FilterRef, Xxh3};

mod common;
#[path = "common/sealed.rs"]
mod sealed;

use common::{Random, mixed};
use sealed::{HEADER, payload_at, put, reseal, seal_header, word};

fn filter(slots: usize, capacity: usize, seed: u64) -> CuckooFilter<u64> {
    CuckooFilter::builder().capacity(capacity).slots_per_bucket(slots).seed(seed).build().unwrap()
}

/// A filter with all of its capacity, some of it inserted late.
fn filled(slots: usize, capacity: u64, seed: u64) -> CuckooFilter<u64> {
    let filter = filter(slots, capacity as usize, seed);
    (0..capacity).for_each(|key| filter.insert(&key).unwrap());
    assert!((0..capacity / 5).all(|key| filter.remove(&key)));
    (0..capacity / 5).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Compares with the file of that name, which may never change; with `KOEL_WRITE_GOLDEN` set it is written if it is not there yet.
fn assert_golden(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = golden(name);
    if std::env::var_os("KOEL_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, bytes).unwrap();
    }
    let stored = std::fs::read(&path).unwrap();
    assert!(stored == bytes, "{name} would be written otherwise today");
    stored
}

#[test]
fn golden_files_of_every_layout() {
    for slots in 2..=6 {
        let filter = filled(slots, 100, 7);
        let stored = assert_golden(&format!("fixed-{slots}.koel"), &filter.to_bytes());
        let again = CuckooFilter::<u64>::from_bytes(&stored).unwrap();
        let view = FilterRef::<u64>::new(&stored).unwrap();
        for key in 0..10_000 {
            assert_eq!(again.contains(&key), filter.contains(&key));
            assert_eq!(view.contains(&key), filter.contains(&key));
            assert_eq!(sealed::contains(&stored, filter.hash_of(&key)), filter.contains(&key));
        }
        assert!((0..100).all(|key| again.contains(&key)));
    }
    let asked = CuckooFilter::<str>::builder().capacity(100).false_positive_rate(0.01).seed(3).build().unwrap();
    asked.insert("koel").unwrap();
    let stored = assert_golden("fixed-rate.koel", &asked.to_bytes());
    assert!(CuckooFilter::<str>::from_bytes(&stored).unwrap().contains("koel"));
}

#[test]
fn round_trips_keep_everything() {
    for slots in 2..=6 {
        for capacity in [0, 1, 10, 1_000, 30_000] {
            let filter = filled(slots, capacity, capacity);
            let bytes = filter.to_bytes();
            assert_eq!(bytes, filter.to_bytes(), "the same content, the same bytes");
            assert_eq!(bytes.len(), filter.serialized_size());
            let again = CuckooFilter::<u64>::from_bytes(&bytes).unwrap();
            assert_eq!(again.to_bytes(), bytes);
            assert!(again.words().eq(filter.words()));
            assert_eq!((again.len(), again.capacity(), again.seed()), (filter.len(), filter.capacity(), capacity));
            assert!((0..capacity).all(|key| again.contains(&key) && again.remove(&key)));
            assert!(again.is_empty() && again.words().all(|word| word << 4 == 0));
            // Behind what is there already, at any address.
            for before in 1..9 {
                let mut appended = vec![7; before];
                filter.append_to(&mut appended);
                assert!(appended[..before] == vec![7; before] && appended[before..] == bytes);
            }
        }
    }
}

#[test]
fn views_answer_like_filters() {
    // Above 4 MiB look-ups take another way.
    for (slots, capacity) in [(2, 500), (3, 1_000), (4, 5_000), (5, 20_000), (6, 10), (4, 2_500_000)] {
        let filter = filter(slots, capacity, 1);
        (0..capacity as u64).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
        let hashes: Vec<u64> =
            (0..3_000).map(|key| mixed(capacity as u64 - 1_500.min(capacity as u64) + key)).collect();
        let mut expected = vec![false; hashes.len()];
        filter.contains_hashes(&hashes, &mut expected);
        let bytes = filter.to_bytes();
        for offset in 0..8 {
            let mut moved = vec![0; offset];
            moved.extend_from_slice(&bytes);
            let view = FilterRef::<u64>::new(&moved[offset..]).unwrap();
            assert_eq!((view.len(), view.capacity(), view.buckets()), (filter.len(), capacity, filter.buckets()));
            assert!(hashes.iter().zip(&expected).all(|(hash, found)| view.contains_hash(*hash) == *found));
            for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
                let mut found: Vec<bool> = expected.iter().map(|found| !found).collect();
                view.contains_hashes_with(backend, &hashes, &mut found);
                assert!(found == expected, "{backend:?}, {slots} slots, {offset} bytes off");
            }
            let mut selected = Vec::new();
            view.select_hashes(&hashes, &mut selected);
            assert!(
                selected.iter().map(|index| *index as usize).eq((0..hashes.len()).filter(|index| expected[*index]))
            );
            if capacity > 1_000_000 && offset == 1 {
                break;
            }
            view.verify().unwrap();
        }
        let owned = FilterRef::<u64>::new(&bytes).unwrap().to_owned().unwrap();
        assert!(owned.words().eq(filter.words()));
        let shared: std::sync::Arc<[u8]> = bytes.into();
        let view = koel::FilterView::<_, u64>::new(shared).unwrap();
        assert!(hashes.iter().zip(&expected).all(|(hash, found)| view.clone().contains_hash(*hash) == *found));
    }
}

#[test]
fn views_hash_keys_like_filters() {
    let filter = CuckooFilter::<str>::builder().capacity(2_000).hasher(Xxh3::with_seed(99)).build().unwrap();
    let keys: Vec<String> = (0..4_000).map(|key| format!("key {key}")).collect();
    keys.iter().step_by(2).for_each(|key| filter.insert(key.as_str()).unwrap());
    let bytes = filter.to_bytes();
    let view = FilterRef::<str>::new(&bytes).unwrap();
    assert_eq!(view.hasher(), &Xxh3::with_seed(99), "restored");
    let mut found = vec![false; keys.len()];
    view.contains_many(&keys, &mut found);
    assert!(keys.iter().zip(found).all(|(key, found)| filter.contains(key.as_str()) == found));
    assert!(keys.iter().step_by(2).all(|key| view.contains(key.as_str())));
}

/// What is not a snapshot is refused by all that read one. So is a view, when it is made or, unverified, when it is verified.
#[track_caller]
fn refused(bytes: &[u8]) -> DecodeError {
    let error = CuckooFilter::<u64>::from_bytes(bytes).map(|_| ()).expect_err("accepted");
    assert!(!error.to_string().is_empty());
    let of_other_kind = matches!(error, DecodeError::OtherKind { .. });
    assert!(FilterRef::<u64>::new(bytes).is_err() || of_other_kind);
    if let Ok(view) = FilterRef::<u64>::new_unverified(bytes) {
        // Of either kind.
        assert!(view.verify() == Err(error) || of_other_kind);
        // Answers something, and harms nobody.
        let mut found = [false; 50];
        view.contains_hashes(&std::array::from_fn::<u64, 50, _>(|key| mixed(key as u64)), &mut found);
    }
    #[cfg(feature = "std")]
    match CuckooFilter::<u64>::read_from(bytes) {
        Err(koel::LoadError::Decode(from_reader)) => {
            let by_size = matches!(error, DecodeError::TooShort { .. } | DecodeError::TrailingBytes { .. });
            // By what they say, since one that names NaN is not equal to itself.
            assert!(by_size || from_reader.to_string() == error.to_string(), "{from_reader} against {error}");
        }
        // What comes after it is no part of it.
        Ok(_) => assert!(matches!(error, DecodeError::TrailingBytes { .. })),
        Err(error) => panic!("{error}"),
    }
    error
}

#[test]
fn every_prefix_and_every_flipped_bit_is_refused() {
    for slots in 2..=6 {
        let mut bytes = filled(slots, 40, 5).to_bytes();
        for len in 0..bytes.len() {
            assert!(matches!(refused(&bytes[..len]), DecodeError::TooShort { .. }));
        }
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            refused(&bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        CuckooFilter::<u64>::from_bytes(&bytes).unwrap();
        bytes.push(0);
        assert!(matches!(refused(&bytes), DecodeError::TrailingBytes { .. }));
    }
}

#[test]
fn random_flips_of_a_large_snapshot_are_refused() {
    let mut bytes = filled(4, 70_000, 5).to_bytes();
    assert!(bytes.len() > 2 << 16, "several chunks");
    let mut random = Random::new(1);
    for _ in 0..10_000 {
        let bit = random.below(8 * bytes.len() as u64) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
        CuckooFilter::<u64>::from_bytes(&bytes).map(|_| ()).expect_err("accepted");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    CuckooFilter::<u64>::from_bytes(&bytes).unwrap();
}

/// Values that no filter has, under a checksum that is right.
#[test]
fn header_values_are_checked() {
    let bytes = filled(4, 40, 5).to_bytes();
    let with = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        seal_header(&mut bytes);
        refused(&bytes)
    };
    let field = |at: usize, value: &[u8]| match with(at, value) {
        DecodeError::InvalidField { field, .. } => field,
        other => panic!("{other}"),
    };
    for version in [0_u16, 2, u16::MAX] {
        assert_eq!(with(8, &version.to_le_bytes()), DecodeError::UnknownVersion { version });
    }
    assert!(matches!(with(0, b"koel"), DecodeError::NotASnapshot { .. }));
    assert!([0, 3, 255].iter().all(|kind| field(10, &[*kind]) == "kind"));
    assert_eq!(with(10, &[2]), DecodeError::OtherKind { stored: 2, expected: 1 });
    assert!([0, 1, 7, 255].iter().all(|slots| field(11, &[*slots]) == "slots"));
    assert!([1, 64, 255].iter().all(|doublings| field(12, &[*doublings]) == "doublings"));
    assert!([1, 64, 255].iter().all(|doublings| field(13, &[*doublings]) == "most doublings"));
    // In a filter that grows, too.
    assert_eq!(field(10, &[2, 4, 0, 14]), "most doublings");
    assert_eq!(field(10, &[2, 4, 3, 2]), "doublings");
    assert_eq!(field(14, &[0, 1]), "zero");
    for buckets in [0, 1 << 32, 1 << 60, 1 << 61, u64::MAX / 8 + 1, u64::MAX] {
        assert_eq!(field(16, &buckets.to_le_bytes()), "base buckets");
    }
    // Possible in itself, but then there are not as many bytes.
    for buckets in [word(&bytes, 16) + 1, 1 << 20, u32::MAX.into()] {
        assert!(matches!(with(16, &buckets.to_le_bytes()), DecodeError::TooShort { .. }));
    }
    for keys in [u64::MAX, 1 << 40, 4 * word(&bytes, 16) + 1] {
        assert_eq!(field(56, &keys.to_le_bytes()), "keys");
    }
    assert_eq!(with(56, &39_u64.to_le_bytes()), DecodeError::WrongKeyCount { stored: 39, counted: 40 });
    for capacity in [u64::MAX, 1 << 40, 4 * word(&bytes, 16) + 1] {
        assert_eq!(field(64, &capacity.to_le_bytes()), "capacity");
    }
    for rate in [f64::NAN, f64::INFINITY, -0.0, -0.1, 1.0, 2.0, f64::MAX] {
        assert!(matches!(with(72, &rate.to_le_bytes()), DecodeError::InvalidRate { .. }), "{rate}");
    }
    for rate in [1e-9, f64::MIN_POSITIVE, 5e-324] {
        assert!(matches!(with(72, &rate.to_le_bytes()), DecodeError::RateTooLow { .. }), "{rate}");
    }
    assert!(matches!(with(80, &[0; 8]), DecodeError::ListChecksum { .. }));
    for (at, field) in [(32, "hash algorithm"), (48, "hash check")] {
        let error = with(at, &[9; 8]);
        assert!(matches!(error, DecodeError::OtherHasher { field: named, .. } if named == field), "{error}");
    }
    // Another seed of the hasher makes another check.
    assert!(matches!(with(40, &[9; 8]), DecodeError::OtherHasher { field: "hash check", .. }));
}

/// Words that no filter has, under checksums that are right.
#[test]
fn words_are_checked() {
    let filter = filled(4, 40, 5);
    let bytes = filter.to_bytes();
    let buckets = filter.buckets();
    let at = |bucket: usize| payload_at(&bytes) + 8 * bucket;
    let with = |change: &dyn Fn(usize, u64) -> u64| {
        let mut bytes = bytes.clone();
        for bucket in 0..buckets {
            let changed = change(bucket, word(&bytes, at(bucket)));
            put(&mut bytes, at(bucket), changed);
        }
        reseal(&mut bytes);
        bytes
    };
    let reason = |bytes: &[u8]| match refused(bytes) {
        DecodeError::InvalidWord { reason, .. } => reason,
        other => panic!("{other}"),
    };
    CuckooFilter::<u64>::from_bytes(&with(&|_, word| word)).unwrap();
    for bucket in 0..buckets {
        let count = word(&bytes, at(bucket)) >> 60;
        for other in (0..15).filter(|other| *other != count) {
            let changed = with(&|one, word| if one == bucket { word << 4 >> 4 | other << 60 } else { word });
            assert!(reason(&changed).contains("displaced count"));
        }
        // Saturated: nobody knows, and look-ups read both words.
        let changed = with(&|one, word| if one == bucket { word | 15 << 60 } else { word });
        let saturated = CuckooFilter::<u64>::from_bytes(&changed).unwrap();
        assert!((0..40).all(|key| saturated.contains(&key)));
        // The lowest slot sealed.
        let changed = with(&|one, word| if one == bucket { word & !0x7fff | 1 } else { word });
        assert!(reason(&changed).contains("value 1"));
        // The lowest slot emptied, or moved to where it does not count.
        if word(&bytes, at(bucket)) & 0x7fff > 1 {
            let changed = with(&|one, word| if one == bucket { word & !0x7fff } else { word });
            let error = refused(&changed);
            assert!(matches!(error, DecodeError::WrongKeyCount { .. } | DecodeError::InvalidWord { .. }), "{error}");
            let changed = with(&|one, word| if one == bucket { word ^ 1 } else { word });
            assert!(reason(&changed).contains("displaced"));
        }
    }
    let zeros = with(&|_, _| 0);
    assert_eq!(refused(&zeros), DecodeError::WrongKeyCount { stored: 40, counted: 0 });
    refused(&with(&|_, _| u64::MAX));
}

#[test]
fn another_hasher_is_an_error() {
    let filter = CuckooFilter::<u64>::builder().capacity(10).hasher(Xxh3::with_seed(1)).build().unwrap();
    let bytes = filter.to_bytes();
    let error = DecodeError::OtherHasher { field: "hash seed", stored: 1, given: 2 };
    assert_eq!(CuckooFilter::<u64>::from_bytes_with_hasher(&bytes, Xxh3::with_seed(2)).map(|_| ()), Err(error));
    assert_eq!(FilterRef::<u64>::with_hasher(&bytes, Xxh3::with_seed(2)).map(|_| ()), Err(error));
    assert!(CuckooFilter::<u64>::from_bytes_with_hasher(&bytes, Xxh3::with_seed(1)).is_ok());
    assert_eq!(CuckooFilter::<u64>::from_bytes(&bytes).unwrap().hasher(), &Xxh3::with_seed(1));
}

/// The fields where the description says that they are, in the order of bytes that it says, on any machine.
#[test]
fn bytes_are_little_endian() {
    let filter = CuckooFilter::<u64>::builder().capacity(300).slots_per_bucket(6).seed(0x0102_0304_0506_0708).build();
    let filter = filter.unwrap();
    (0..200).for_each(|key| filter.insert(&key).unwrap());
    let bytes = filter.to_bytes();
    assert_eq!(bytes[..16], *b"\x89KOEL\r\n\x1a\x01\0\x01\x06\0\0\0\0");
    assert_eq!(bytes[24..32], [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(word(&bytes, 16), filter.buckets() as u64);
    assert_eq!((word(&bytes, 32), word(&bytes, 40)), (1, 0));
    assert_eq!(word(&bytes, 48), filter.hash_of(&0x6b6f_656c));
    assert_eq!((word(&bytes, 56), word(&bytes, 64), word(&bytes, 72)), (200, 300, 0));
    assert_eq!(payload_at(&bytes), HEADER + 8);
    let words = bytes[HEADER + 8..].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    assert!(words.eq(filter.words()));
}

fn shuffled(mut hashes: Vec<u64>, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    for last in (1..hashes.len()).rev() {
        hashes.swap(last, random.below(last as u64 + 1) as usize);
    }
    hashes
}

#[test]
fn a_set_of_hashes_always_gives_the_same_bytes() {
    for slots in 2..=6 {
        for count in [0, 1, 2, 10, 300, 5_000, 40_000] {
            let hashes: Vec<u64> = (0..count).map(mixed).collect();
            let build = |hashes: &[u64]| {
                CuckooFilter::<u64>::builder().slots_per_bucket(slots).seed(count).build_from_hashes(hashes).unwrap()
            };
            let filter = build(&hashes);
            let bytes = filter.to_bytes();
            assert_eq!((filter.len(), filter.capacity()), (count as usize, count as usize));
            assert!(hashes.iter().all(|hash| filter.contains_hash(*hash)), "{slots} slots, {count} hashes");
            for seed in 0..3 {
                let mut repeated = shuffled(hashes.clone(), seed);
                repeated.extend(hashes.iter().take(seed as usize * 100));
                assert!(build(&shuffled(repeated, seed)).to_bytes() == bytes);
            }
            // All is checked: counts, number of keys.
            let again = CuckooFilter::<u64>::from_bytes(&bytes).unwrap();
            assert!(hashes.iter().all(|hash| again.remove_hash(*hash)));
            assert!(again.is_empty());
        }
    }
}

/// A larger capacity than the hashes is one that the filter then has.
#[test]
fn sets_with_a_capacity_take_as_many_keys() {
    for slots in 2..=6 {
        for capacity in [10_u64, 20, 100, 1_000] {
            for seed in 0..50 {
                let builder = CuckooFilter::<u64>::builder().slots_per_bucket(slots).seed(seed);
                let builder = builder.capacity(capacity as usize);
                let hashes: Vec<u64> = (0..capacity / 2).map(mixed).collect();
                let filter = builder.build_from_hashes(&hashes).unwrap();
                (capacity / 2..capacity).for_each(|key| filter.insert_hash(mixed(key)).unwrap());
            }
        }
    }
}

#[test]
fn sets_take_the_bits_of_the_sizing_table() {
    for (slots, bits) in [(2, 37.0), (3, 23.0), (4, 16.8), (5, 13.3), (6, 11.0)] {
        for count in [20_000_u64, 100_000, 1_000_000] {
            let hashes: Vec<u64> = (0..count).map(mixed).collect();
            for seed in 0..if count == 1_000_000 { 1 } else { 5 } {
                let builder = CuckooFilter::<u64>::builder().slots_per_bucket(slots).seed(seed);
                let bytes = builder.build_from_hashes(&hashes).unwrap().to_bytes();
                let measured = 8.0 * bytes.len() as f64 / count as f64;
                // The header is 96 bytes.
                assert!(measured <= bits + 0.05, "{slots} slots, {count} hashes: {measured}");
            }
        }
    }
    // The rate holds, too.
    for rate in [0.01, 0.001, 1e-5] {
        let hashes: Vec<u64> = (0..100_000).map(mixed).collect();
        let filter = CuckooFilter::<u64>::builder().false_positive_rate(rate).build_from_hashes(&hashes).unwrap();
        assert!(filter.false_positive_rate() <= rate);
        CuckooFilter::<u64>::from_bytes(&filter.to_bytes()).unwrap();
    }
}

/// The inverse of the remixing in `docs/format.md`: a hash that a filter of seed 0 remixes to this number.
fn unmixed(mut x: u64) -> u64 {
    const REMIX: u64 = 0xd6e8_feb8_6659_fd93;
    // Newton's iteration: each doubles the bits that are right.
    let inverse =
        (0..6).fold(REMIX, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(REMIX.wrapping_mul(inverse))));
    for _ in 0..2 {
        x ^= x >> 32;
        x = x.wrapping_mul(inverse);
    }
    x ^ x >> 32 ^ sealed::mix(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn hashes_that_are_too_alike_are_an_error() {
    let build = |hashes: &[u64]| {
        let builder = CuckooFilter::<u64>::builder().slots_per_bucket(4).capacity(1_000);
        builder.build_from_hashes(hashes)
    };
    // One home, but as many other buckets, in which there is room; all are sorted into one place.
    let alike: Vec<u64> = (0..200).map(|i| unmixed(1 << 60 | i << 24)).collect();
    let packed = build(&alike).unwrap();
    assert!(alike.iter().all(|hash| packed.contains_hash(*hash)));
    CuckooFilter::<u64>::from_bytes(&packed.to_bytes()).unwrap();
    // One class, of which two buckets hold eight.
    let class: Vec<u64> = (0..9).map(|i| unmixed(1 << 60 | i << 34)).collect();
    assert_eq!(build(&class[..8]).unwrap().count_hash(class[8]), 8);
    let error = build(&class).unwrap_err();
    assert!(matches!(error, koel::BuildError::HashesTooAlike { hashes: 9, .. }), "{error}");
}
